"""Copies of the files of a world: into a backup, and out of a backup of anybody."""

import hashlib
import os
import shutil
import sqlite3
import stat
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from showhow.guard.files import NotRegularFile, is_sparse, open_regular, refuse_irregular
from showhow.worlds.folder import WorldError
from showhow.worlds.live.consent import CONSENT_FILE

_SQLITE_MAGIC = b"SQLite format 3\x00"
_SIDE_SUFFIXES = ("-wal", "-shm", "-journal")
_MAX_FILES = 100_000


def copy_world_folder(source: Path, target: Path) -> str:
    """Copy the files of a world of this home into an existing empty folder; returns the digest of the copy.

    A SQLite file, such as the stored responses of a live world, is copied as a whole while others write it. What a link
    leads to is copied in its place. The consent to send headers is not copied: it is given on each machine.
    """
    try:
        for file in _list_files(source):
            copy = target / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            if not file.name.endswith(_SIDE_SUFFIXES):
                _copy_file(file, copy)
    except (OSError, sqlite3.Error) as error:
        raise WorldError(
            f"The world in {source} cannot be copied to {target} ({error}); check the free space, and that no other "
            "process replaces this world."
        ) from error
    return digest_folder(target)


def measure_folder(folder: Path) -> int:
    """The bytes of all files of a folder of ours."""
    return sum(file.stat().st_size for file in _list_files(folder))


def digest_folder(folder: Path) -> str:
    """SHA-256 over the names and contents of all files but the consent to send headers."""
    digest = hashlib.sha256()
    for file in _list_files(folder):
        with open_regular(file) as stream:
            content = hashlib.file_digest(stream, "sha256").hexdigest()
        digest.update(f"{file.relative_to(folder).as_posix()}\x00{content}\n".encode())
    return digest.hexdigest()


def _list_files(folder: Path) -> list[Path]:
    """The files of a folder and of the folders that its links lead to, but for the consent to send headers."""
    files: list[Path] = []
    entered: set[Path] = set()
    for parent, folders, names in os.walk(folder, followlinks=True):
        # A link to a folder above it would be followed for ever.
        entered.add(Path(parent).resolve())
        folders[:] = [name for name in folders if Path(parent, name).resolve() not in entered]
        files += [Path(parent, name) for name in names if name != CONSENT_FILE]
    return sorted(files)


def _copy_file(file: Path, copy: Path) -> None:
    with open_regular(file) as stream:
        is_sqlite = stream.read(len(_SQLITE_MAGIC)) == _SQLITE_MAGIC
        if not is_sqlite:
            stream.seek(0)
            with copy.open("xb") as target:
                shutil.copyfileobj(stream, target)
            return
    with (
        closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as original,
        closing(sqlite3.connect(copy)) as stored,
    ):
        original.backup(stored)
        stored.execute("PRAGMA journal_mode = DELETE")


def list_brought_files(folder: Path) -> list[tuple[Path, int]]:
    """The files of a world in a backup, with their sizes; WorldError if it holds a link, a pipe, a device ..."""
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            raise WorldError(f"{folder} is no folder; restore another backup.")
        files = []
        for path, status in _walk(folder):
            refuse_irregular(path, status)
            files.append((path, status.st_size))
            if len(files) > _MAX_FILES:
                raise WorldError(f"{folder} holds more than {_MAX_FILES:,} files; restore another backup.")
    except OSError as error:
        raise _unreadable(folder, error) from error
    return files


def copy_brought_world(folder: Path, target: Path) -> str:
    """Copy the files of a world in a backup into an existing empty folder; returns the digest of the copy."""
    try:
        for file, size in list_brought_files(folder):
            copy = target / file.relative_to(folder)
            copy.parent.mkdir(parents=True, exist_ok=True)
            with open_regular(file, follow_links=False) as stream, copy.open("xb") as written:
                if is_sparse(stream):
                    raise WorldError(f"{file} consists mostly of holes; restore another backup.")
                # A file that grows meanwhile is not followed.
                left = size
                while left > 0 and (part := stream.read(min(left, 1024 * 1024))):
                    left -= written.write(part)
    except OSError as error:
        raise _unreadable(folder, error) from error
    return digest_folder(target)


def _walk(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """All entries but folders, and what no backup copies."""
    with os.scandir(folder) as entries:
        for entry in entries:
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                yield from _walk(Path(entry.path))
            elif entry.name.casefold() != CONSENT_FILE and not entry.name.endswith(_SIDE_SUFFIXES):
                yield Path(entry.path), status


def _unreadable(folder: Path, error: OSError) -> WorldError:
    what = f"{error.filename}: {error.strerror}" if isinstance(error, NotRegularFile) else str(error)
    return WorldError(f"The world in {folder} cannot be restored ({what}); restore another backup.")
