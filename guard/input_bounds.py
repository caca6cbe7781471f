"""Bounds on what is read of a file from elsewhere: its expansion, its lines, and the memory of the whole work.

They hold for every reader. The operator at the command line lifts those of size with `--unbounded`; a page cannot.
"""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from showhow.guard.limits import limit_memory

MEGABYTE = 1 << 20
MAX_EXPANSION = 200
"""A packed file may expand to that many times its size; text and tables expand to 3 to 50 times."""
FREE_EXPANSION_BYTES = 64 * MEGABYTE
"""What every packed file may expand to, however small it is."""
MAX_LINE_BYTES = 64 * MEGABYTE
"""A longer line means a file of another kind, which is not read into memory."""
MAX_DOCUMENT_BYTES = 128 * MEGABYTE
"""A file that has to be read as a whole may be as long, after it was unpacked."""
MAX_RECORD_BYTES = 64 * MEGABYTE
"""The size of one record of a packed file after it was unpacked."""
MAX_WORK_MEGABYTES = 640
"""The memory that reading a file may take beyond that of the program."""
HINT = "split it, or read it with --unbounded at the command line if you trust it"

_unbounded: ContextVar[bool] = ContextVar("unbounded_input", default=False)


class InputBoundExceeded(ValueError):
    """What is read exceeds a bound; the message names the bound and says what to do."""


def is_unbounded() -> bool:
    """Whether the operator trusts what is read, whatever its size."""
    return _unbounded.get()


@contextmanager
def bounded_work(what: object, *, unbounded: bool = False) -> Iterator[None]:
    """Read `what` in this process within its memory; InputBoundExceeded in place of a lack of memory or of stack.

    A page does not call it, since its process also serves others; it has a worker read the file.
    """
    token = _unbounded.set(unbounded)
    limits = resource.getrlimit(resource.RLIMIT_AS)
    if not unbounded:
        limit_memory(MAX_WORK_MEGABYTES, is_final=False)
    try:
        yield
    except MemoryError as error:
        raise InputBoundExceeded(
            f"{what}: reading it takes more than {MAX_WORK_MEGABYTES:,} MB of memory; {HINT}"
        ) from error
    except RecursionError as error:
        raise InputBoundExceeded(f"{what}: it is nested too deeply; flatten it") from error
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)
        _unbounded.reset(token)


class ExpansionBudget:
    """Counts what a packed file expands to, and stops its reader at the bound."""

    def __init__(self, packed_bytes: int) -> None:
        self.bound = max(FREE_EXPANSION_BYTES, MAX_EXPANSION * packed_bytes)
        self._left = self.bound
        self._is_unbounded = is_unbounded()

    def spend(self, expanded_bytes: int) -> None:
        """Count so many more bytes; InputBoundExceeded above the bound."""
        self._left -= expanded_bytes
        if self._left < 0 and not self._is_unbounded:
            raise InputBoundExceeded(
                f"it expands to more than {self.bound / MEGABYTE:,.0f} MB, the bound for a packed file of its size "
                f"({MAX_EXPANSION} times its size, or {FREE_EXPANSION_BYTES // MEGABYTE} MB); {HINT}"
            )


def check_record_size(size: int) -> None:
    """Raise InputBoundExceeded for a record of a packed file that is too long to be read."""
    if size > MAX_RECORD_BYTES and not is_unbounded():
        raise InputBoundExceeded(
            f"one of its records has {size / MEGABYTE:,.0f} MB, more than the bound of "
            f"{MAX_RECORD_BYTES // MEGABYTE} MB; {HINT}"
        )
