from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from showhow.worlds.live.http.rate_limiter import parse_retry_after

BEYOND = "Wed, 21 Oct 99999999999999999999 07:28:00 GMT"
FAR = "Wed, 21 Oct 2030 07:28:00 +99999999999999"


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("7", 7.0),
        (" 120 ", 120.0),
        ("-3", None),
        ("soon", None),
        ("1.5.2", None),
        (BEYOND, None),
        (FAR, None),
    ],
)
def test_seconds_are_parsed_and_invalid_values_are_none(header: str | None, seconds: float | None):
    assert parse_retry_after(header) == seconds


def test_a_date_is_converted_to_seconds_from_now():
    then = datetime.now(UTC) + timedelta(seconds=90)
    seconds = parse_retry_after(format_datetime(then, usegmt=True))
    assert seconds is not None
    assert 60 < seconds <= 91
    assert parse_retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0.0
