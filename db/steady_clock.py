"""Durations by the monotonic clock: never negative, and unaffected when the clock of the machine is set."""

import time
from datetime import datetime
from functools import lru_cache

from db.models import utc_now


@lru_cache(maxsize=100_000)
def _monotonic_reading(moment: datetime) -> float:
    """The reading of the monotonic clock at that moment; the clock of the machine is asked once, at the first call."""
    return time.monotonic() - max(0.0, (utc_now() - moment).total_seconds())


def seconds_since(moment: datetime) -> float:
    """Seconds from a stored moment until now.

    Call it once soon after the moment was stored, such as when a page shows it: a clock that is set from then on
    changes nothing in this process.
    """
    started = _monotonic_reading(moment)
    return time.monotonic() - started
