"""Durations and orders that stay right when the clock of the machine is set: no duration is ever negative."""

import time
from datetime import datetime
from functools import lru_cache
from uuid import UUID

from uuid_utils.compat import uuid7

from db.models import utc_now

_MAX_ID = (1 << 128) - 1


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


def id_after(last: UUID | None) -> UUID:
    """Return a new id that sorts after `last`, so that rows are in the order of their ids.

    Ids begin with the time; while the clock says that `last` is yet to come, the id that follows it is taken.
    """
    new = uuid7()
    # Only an imported row can have the highest id; nothing sorts after it.
    return new if last is None or last < new or last.int == _MAX_ID else UUID(int=last.int + 1)
