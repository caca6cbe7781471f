"""The files of a SQLite database: the database, its -wal and its -shm.

A process that keeps a deleted or replaced file open would go on writing into it, and everything would be lost when it
ends. So each write compares device and inode of the files with those that were opened.

A restored database is put in place in several steps. It is prepared beside the database and committed by one renaming
to a name with a mark; whoever opens the database finishes the steps of a restore that was interrupted after that.
"""

import os
import sqlite3
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Lock

from filelock import FileLock, Timeout

_SIDE_SUFFIXES = ("-wal", "-shm")
_RESTORED_MARK = ".restored-"
_INDEX_HEADER = struct.Struct("=14xHI")
"""Of the header of the index: the size of a page, and the number of frames in the -wal."""
_LOG_HEADER_BYTES, _FRAME_HEADER_BYTES = 32, 24
_FileIdentity = tuple[int, int]


class SqliteFiles:
    """The device and inode of each file, from the first connection of this process until its last one is closed."""

    def __init__(self, path: Path) -> None:
        self.path = path.absolute()
        self._side_files: dict[str, Path] = {}
        """-wal and -shm by their suffix; SQLite keeps them beside the file itself where the path is a link."""
        self._identity: _FileIdentity | None = None
        self._side_identities: dict[str, _FileIdentity] = {}
        self._index_descriptor: int | None = None
        self._connection_count = 0
        self._lock = Lock()

    def register_connection(self) -> None:
        """Count a connection that is open; the first one determines which file is the database."""
        with self._lock:
            self._connection_count += 1
            if self._identity is None:
                linked = self.path.resolve()
                self._side_files = {suffix: linked.with_name(linked.name + suffix) for suffix in _SIDE_SUFFIXES}
                self._identity = _identify(self.path)
        self.find_change()

    def unregister_connection(self) -> None:
        """Discount a closed connection; SQLite may remove -wal and -shm with the last one."""
        with self._lock:
            self._connection_count -= 1
            if not self._connection_count:
                self._side_identities = {}

    def forget(self) -> None:
        """Forget the file, so that the next connection may open another one."""
        with self._lock:
            self._identity = None

    def find_change(self) -> str | None:
        """Return the first file that was removed or replaced since this process opened it, else None."""
        with self._lock:
            if self._identity is None:
                return None
            if _identify(self.path) != self._identity:
                return str(self.path)
            if not self._connection_count:
                return None
            for suffix, side_file in self._side_files.items():
                identity = _identify(side_file)
                # SQLite makes them with its first read; from then on they stay until the last connection is closed.
                if (known := self._side_identities.get(suffix)) is None and identity is not None:
                    self._side_identities[suffix] = identity
                elif identity != known:
                    return str(side_file)
            log = self._side_files["-wal"]
            if self._is_shortened(log):
                return str(log)
        return None

    def _is_shortened(self, log: Path) -> bool:
        """Whether the -wal is shorter than its index in the -shm says (https://sqlite.org/walformat.html, section 2.1).

        SQLite lengthens the -wal before its index, and shortens it after.
        """
        try:
            header = self._read_index(_INDEX_HEADER.size)
            length = log.stat().st_size
        except OSError:
            return False
        if len(header) < _INDEX_HEADER.size:
            return False
        stored_page_size, frames = _INDEX_HEADER.unpack(header)
        page_size = 65_536 if stored_page_size == 1 else stored_page_size
        return length < (_LOG_HEADER_BYTES + frames * (_FRAME_HEADER_BYTES + page_size) if frames else 0)

    def _read_index(self, count: int) -> bytes:
        """The first bytes of the -shm, through the descriptor with which SQLite itself opened it; b"" if there is none.

        To open and close the file would release every lock that this process holds on it: another process would then
        take the database for unused and empty the -shm, from which this one reads.
        """
        identity = self._side_identities.get("-shm")
        if identity is None:
            return b""
        if self._index_descriptor is None or not _is_open(self._index_descriptor, identity):
            descriptors = (int(entry.name) for entry in Path("/dev/fd").iterdir())
            self._index_descriptor = next((one for one in descriptors if _is_open(one, identity)), None)
        return b"" if self._index_descriptor is None else os.pread(self._index_descriptor, count, 0)


def _identify(path: Path) -> _FileIdentity | None:
    """Return device and inode; None if there is no such file, or if it was emptied."""
    try:
        status = path.stat()
    except OSError:
        return None
    is_emptied = status.st_size == 0 and not path.name.endswith(_SIDE_SUFFIXES)
    return None if is_emptied else (status.st_dev, status.st_ino)


def _is_open(descriptor: int, identity: _FileIdentity) -> bool:
    try:
        status = os.fstat(descriptor)
    except OSError:
        return False
    return (status.st_dev, status.st_ino) == identity


class RestoreInProgress(Exception):
    """Another process restores this database."""


@contextmanager
def restore_lock(path: Path) -> Iterator[None]:
    """Restore in one process at a time; RestoreInProgress if another one does."""
    lock = FileLock(path.with_name(f".{path.name}.restore-lock"), timeout=0)
    try:
        lock.acquire()
    except Timeout as error:
        raise RestoreInProgress from error
    try:
        yield
    finally:
        lock.release()


def commit_restored_file(prepared: Path, path: Path, moment: str) -> None:
    """Commit the prepared file as the restored database; from here on, finish_restore puts it in place."""
    prepared.rename(path.with_name(f".{path.name}{_RESTORED_MARK}{moment}"))


def former_file(path: Path, moment: str) -> Path:
    """The name under which the database that was replaced at that moment is kept, with its -wal beside it."""
    return path.with_name(f"{path.stem}-before-restore-{moment}{path.suffix}")


def find_restored_file(path: Path) -> Path | None:
    """Find a restored database that is committed and not yet in place."""
    prefix = f".{path.name}{_RESTORED_MARK}"
    if not path.parent.is_dir():
        return None
    return min((file for file in path.parent.iterdir() if file.name.startswith(prefix)), default=None)


def finish_restore(path: Path) -> None:
    """Put a committed restored database in place; the caller holds restore_lock.

    Each step may have been done before the process was killed.
    """
    restored = find_restored_file(path)
    if restored is None:
        return
    former = former_file(path, restored.name.rpartition(_RESTORED_MARK)[2])
    for suffix in ("-wal", ""):
        file = path.with_name(path.name + suffix)
        if file.exists():
            file.rename(former.with_name(former.name + suffix))
    path.with_name(f"{path.name}-shm").unlink(missing_ok=True)
    restored.rename(path)


def open_readonly(path: Path, *, without_wal: bool = False) -> sqlite3.Connection:
    """Open a SQLite database for reading, with or without what its -wal holds."""
    mode = "immutable=1" if without_wal else "mode=ro"
    return sqlite3.connect(f"{path.absolute().as_uri()}?{mode}", uri=True)
