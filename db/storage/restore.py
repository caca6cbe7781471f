"""Restore a backup: its rows, in a new database of Showhow's own schema, in place of the database.

Nothing of the backup's own schema runs or is kept. The new database is filled, upgraded and checked beside the former
one before anything is replaced; the former one is kept aside, and a kill at any moment leaves one of the two.
"""

import fcntl
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import URL

from showhow.db.database import Database, StoreError, StoreUnavailable
from showhow.db.sqlite_files import (
    RestoreInProgress,
    commit_restored_file,
    finish_restore,
    former_file,
    restore_lock,
)
from showhow.db.storage.prepared_database import IN_USE, RestoredDatabase, finish_prepared, make_schema
from showhow.db.storage.sqlite_rows import copy_sqlite_rows, read_sqlite_contents
from showhow.guard.files import flush_to_disk, open_regular, refuse_irregular

SQLITE_MAGIC = b"SQLite format 3\x00"
POSTGRESQL_MAGIC = b"PGDMP"
_SQLITE_LOCK_RANGE = (512, 0x40000000)
"""Length and start of the bytes that SQLite locks; each open connection to a database with a -wal holds one of them."""
_SIDE_SUFFIXES = ("-journal", "-wal", "-shm")


def restore_database(database: Database, backup: Path) -> RestoredDatabase:
    """Replace the database by the backup; StoreError if the backup is damaged or the database is in use."""
    magic = _read_magic(backup)
    if database.is_sqlite:
        if not magic.startswith(SQLITE_MAGIC):
            raise StoreError(_wrong_kind(backup, magic, "SQLite"))
        database.close()
        # SQLite keeps the -wal beside the file that a link leads to.
        return _restore_sqlite(Path(database.url.database or "").resolve(), backup)
    if not magic.startswith(POSTGRESQL_MAGIC):
        raise StoreError(_wrong_kind(backup, magic, "PostgreSQL"))
    database.close()
    from showhow.db.storage.postgresql_restore import restore_postgresql  # noqa: PLC0415 - only PostgreSQL needs its driver

    return restore_postgresql(database.url, backup)


def _read_magic(backup: Path) -> bytes:
    if not backup.exists():
        raise StoreError(f"there is no backup file {backup}; name a file that `showhow db backup` made")
    try:
        with open_regular(backup) as file:
            magic = file.read(len(SQLITE_MAGIC))
        for suffix in _SIDE_SUFFIXES:
            side_file = backup.with_name(f"{backup.name}{suffix}")
            if side_file.exists():
                refuse_irregular(side_file, side_file.stat())
    except OSError as error:
        raise StoreError(
            f"{error.filename or backup} cannot be read ({error.strerror}); name a file that `showhow db backup` made"
        ) from error
    return magic


def _wrong_kind(backup: Path, magic: bytes, expected: str) -> str:
    if magic.startswith((SQLITE_MAGIC, POSTGRESQL_MAGIC)):
        return f"{backup} is the backup of another kind of database; this one is {expected} (SHOWHOW_DATABASE_URL)"
    return f"{backup} is no backup of {expected}; name a file that `showhow db backup` made"


def _restore_sqlite(path: Path, backup: Path) -> RestoredDatabase:
    if path.exists() and backup.samefile(path):
        raise StoreError(f"{backup} is the database itself; name a backup")
    prepared = _prepared_file(path)
    if prepared.exists() and backup.samefile(prepared):
        raise StoreError(
            f"{backup} is what an interrupted restore left, and the next one removes it; restore the backup itself, or "
            "copy it to another name"
        )
    try:
        with restore_lock(path):
            finish_restore(path)
            with _without_use(path):  # before the work, and again before the replacement
                pass
            try:
                findings, revision = _prepare_sqlite(backup, prepared)
                with _without_use(path):
                    moment = f"{datetime.now(UTC):%Y%m%dT%H%M%S%f}"
                    former = former_file(path, moment) if path.exists() else None
                    commit_restored_file(prepared, path, moment)
                    flush_to_disk(path.parent)
                    finish_restore(path)
                    flush_to_disk(path.parent)
            finally:
                _remove_sqlite_files(prepared)
    except RestoreInProgress as error:
        raise StoreUnavailable(f"another process restores a backup to {path}; wait until it has ended") from error
    except OSError as error:
        raise StoreUnavailable(
            f"{backup} cannot be restored to {path} ({error.strerror}); nothing was replaced, check the folder and its "
            "free space"
        ) from error
    return RestoredDatabase(revision, str(former) if former else None, findings)


def _prepare_sqlite(backup: Path, prepared: Path) -> tuple[list[str], str | None]:
    _remove_sqlite_files(prepared)
    size, free = backup.stat().st_size, shutil.disk_usage(prepared.parent).free
    if size > free:
        raise StoreUnavailable(f"{backup} has {size:,} bytes, and {prepared.parent} has {free:,} free; make room")
    contents = read_sqlite_contents(backup)
    store = Database(URL.create("sqlite", database=str(prepared)))
    try:
        make_schema(store, contents.revision)
        store.close()
        copy_sqlite_rows(contents, prepared)
        findings, revision = finish_prepared(store, backup)
    finally:
        store.close()
    with closing(sqlite3.connect(prepared)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    flush_to_disk(prepared)
    return [*contents.findings, *findings], revision


def remove_abandoned_copy(url: URL) -> list[str]:
    """Remove what a killed restore left unfinished beside the database, and return a sentence about it."""
    if url.get_backend_name() != "sqlite":
        from showhow.db.storage.postgresql_restore import remove_abandoned_database  # noqa: PLC0415 - likewise

        return remove_abandoned_database(url)
    path = Path(url.database or "").resolve()
    prepared = _prepared_file(path)
    if not prepared.exists():
        return []
    # While another process restores, it is not abandoned.
    with suppress(RestoreInProgress), restore_lock(path):
        _remove_sqlite_files(prepared)
        return ["Removed the unfinished copy of a backup: the process that restored it was killed."]
    return []


def _prepared_file(path: Path) -> Path:
    return path.with_name(f".{path.name}.restoring")


def _remove_sqlite_files(path: Path) -> None:
    for suffix in ("", *_SIDE_SUFFIXES):
        path.with_name(path.name + suffix).unlink(missing_ok=True)


@contextmanager
def _without_use(path: Path) -> Iterator[None]:
    """Keep every SQLite connection out of the database, by the locks that SQLite uses itself, also across machines."""
    if not path.exists():
        yield
        return
    handle = os.open(path, os.O_RDWR)
    try:
        try:
            fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, *_SQLITE_LOCK_RANGE)
        except (BlockingIOError, PermissionError) as error:
            raise StoreUnavailable(IN_USE) from error
        yield
    finally:
        os.close(handle)
