"""Temporary folders of one process, which another process may remove only once that process has ended.

Beside each folder lies a file that is locked as long as its process lives, or a process that inherited the lock. The
operating system releases the lock with the last of them, also after a kill, and in containers that share a volume.
"""

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

_LOCK_SUFFIX = ".lock"


class ScratchFolder:
    """A new folder in `parent`, named by the prefix, a random token and the name, with a lock until `remove`."""

    def __init__(self, parent: Path, prefix: str, name: str) -> None:
        parent.mkdir(parents=True, exist_ok=True)
        descriptor = None
        while descriptor is None:
            # Another process that cleans up may take the file between its creation and its lock; a new name is free.
            self._stem = f"{prefix}{uuid4().hex[:12]}"
            self._lock = parent / f"{self._stem}{_LOCK_SUFFIX}"
            descriptor = _try_lock(self._lock)
        self.descriptor = descriptor
        """A child process that inherits it keeps the folder in use after this process has ended."""
        self.path = self.sibling(name)
        try:
            self.path.mkdir(mode=0o700)
        except OSError:
            self.remove()
            raise

    def sibling(self, name: str) -> Path:
        """The path of a further folder under the same lock."""
        return self._lock.with_name(f"{self._stem}-{name}")

    def remove(self) -> None:
        """Remove the folder, if it is still here, and end the lock."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.unlink(missing_ok=True)
        os.close(self.descriptor)


def claim_abandoned_folders(parent: Path, prefix: str) -> Iterator[Path]:
    """Yield each folder with that prefix which no process uses; afterwards it is removed, unless it was moved away."""
    stems = {path.name.removeprefix(prefix).split("-")[0].split(".")[0] for path in parent.glob(f"{prefix}*")}
    for stem in sorted(stems):
        lock = parent / f"{prefix}{stem}{_LOCK_SUFFIX}"
        descriptor = _try_lock(lock)
        if descriptor is None:
            continue
        try:
            for folder in sorted(parent.glob(f"{prefix}{stem}-*")):
                yield folder
                shutil.rmtree(folder, ignore_errors=True)
            lock.unlink(missing_ok=True)
        finally:
            os.close(descriptor)


def _try_lock(file: Path) -> int | None:
    """Lock the file, which is made if it is missing, and return its descriptor; None if another process has it."""
    descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
    with suppress(BlockingIOError):
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Its owner may have removed the file after it was opened here; the lock is then on no name.
        if os.fstat(descriptor).st_nlink:
            return descriptor
    os.close(descriptor)
    return None
