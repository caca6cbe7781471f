"""Open regular files only: a pipe would block, a device may never end, and a socket or a folder cannot be read."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def open_regular_file(path: Path) -> BinaryIO:
    """Open the file for reading bytes, without waiting; OSError if it is no regular file or cannot be opened."""
    return open(path, "rb", opener=_open_without_blocking)


def _open_without_blocking(path: str, flags: int) -> int:
    # Opening alone may act on a device, so the path is checked first; it may be replaced before it is opened, so the
    # descriptor is checked as well.
    _require_regular(os.stat(path))  # noqa: PTH116 - an opener is given a text
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    try:
        _require_regular(os.fstat(descriptor))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _require_regular(status: os.stat_result) -> None:
    for is_kind, kind in _KINDS:
        if is_kind(status.st_mode):
            raise OSError(errno.EINVAL, f"it is {kind}, and only regular files are read")
