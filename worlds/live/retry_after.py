"""What a busy server says of when it wants to be asked again."""

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime


def retry_after(told: str | None) -> float | None:
    """The seconds that a Retry-After asks for, be it a number or a date; None where it says nothing."""
    if told is None:
        return None
    if told.strip().isdecimal():
        return float(told)
    try:
        moment = parsedate_to_datetime(told)
        moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return max(0.0, (moment - datetime.now(UTC)).total_seconds())
    except (ValueError, OverflowError):
        # No date, or one beyond all calendars.
        return None
