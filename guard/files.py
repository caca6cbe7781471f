"""Files that were brought in, and files that a killed process left.

Of those that were brought in, only regular files are opened, so that no name makes a reader wait or read for ever: a
named pipe waits for a writer, /dev/zero never ends, and a link in a folder can lead anywhere.
"""

import errno
import os
import re
import shutil
import stat
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO

_KINDS = {
    stat.S_IFIFO: "a named pipe",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
    stat.S_IFSOCK: "a socket",
    stat.S_IFLNK: "a link",
}
_PARTIAL_NAME = re.compile(r"\.(?P<name>.+)\.(?P<process>[0-9]{1,9})(-[0-9a-f]+)?\.part", re.DOTALL)
_MIN_SPARSE_BYTES = 64 * 1024 * 1024
"""Up to this size, holes in a file cost nobody anything."""


class NotRegularFile(OSError):
    """The path is no regular file; `strerror` says what it is."""


def open_regular(path: Path, *, follow_links: bool = True) -> BufferedReader:
    """Open a regular file for reading, without waiting; NotRegularFile says what else the path is.

    A link is followed to what the user named; within a folder that was brought in, `follow_links` is False.
    """
    # Looked at before it is opened: the opening alone acts on some devices.
    refuse_irregular(path, path.stat(follow_symlinks=follow_links))
    flags = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | (0 if follow_links else os.O_NOFOLLOW)
    descriptor = os.open(path, flags)
    try:
        # Another process may have replaced it in between.
        refuse_irregular(path, os.fstat(descriptor))
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def refuse_irregular(path: Path, status: os.stat_result) -> None:
    """Raise NotRegularFile unless the status is a regular file's."""
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "something else")
        raise NotRegularFile(errno.EINVAL, f"it is {kind}, not a regular file", str(path))


def partial_path(file: Path) -> Path:
    """A new name beside the file, under which this process writes it until it is complete."""
    return file.with_name(f".{file.name}.{os.getpid()}-{os.urandom(4).hex()}.part")


def remove_abandoned_partials(folder: Path, name: str | None = None) -> list[Path]:
    """Remove what killed processes wrote in the folder, for the file of that name or for any; returns what it was."""
    abandoned = []
    for path in folder.iterdir():
        match = _PARTIAL_NAME.fullmatch(path.name)
        if match is None or name not in (None, match["name"]) or _is_running(int(match["process"])):
            continue
        abandoned.append(path)
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    return abandoned


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # another user's
    return True


def is_sparse(stream: BinaryIO) -> bool:
    """Whether a large file consists mostly of holes: a few bytes on its disk that become gigabytes where it is read."""
    size = os.fstat(stream.fileno()).st_size
    if size < _MIN_SPARSE_BYTES:
        return False
    position = data = 0
    while position < size:
        try:
            start = os.lseek(stream.fileno(), position, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # no data from here to the end
                break
            return False
        position = os.lseek(stream.fileno(), start, os.SEEK_HOLE)
        data += position - start
    os.lseek(stream.fileno(), 0, os.SEEK_SET)
    return data < size // 2


def flush_to_disk(path: Path) -> None:
    """Wait until the file or folder is on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
