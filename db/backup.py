"""Backups: a whole database in one new file, made while others read and write it, and restored.

A backup is copied, upgraded and checked beside the database before anything is replaced. The database that it replaces
is kept aside, and a kill at any moment leaves one of the two.
"""

import fcntl
import os
import re
import secrets
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

import psutil
from sqlalchemy import URL, Connection, Engine, create_engine, text
from sqlalchemy.exc import DBAPIError

from db.database import Database, StoreError, StoreUnavailable
from db.schema import check_database, current_revision, upgrade
from db.sqlite_files import (
    RestoreInProgress,
    commit_restored_file,
    finish_restore,
    former_file,
    open_readonly,
    restore_lock,
)

SQLITE_MAGIC = b"SQLite format 3\x00"
POSTGRESQL_MAGIC = b"PGDMP"
_SQLITE_LOCK_RANGE = (512, 0x40000000)
"""Length and start of the bytes that SQLite locks; each open connection to a database with a -wal holds one of them."""
_MAX_POSTGRESQL_NAME_BYTES = 63
_RESTORE_ADVISORY_LOCK = 7_203_002
_BACKEND_EXIT_SECONDS = 2.0
_IN_USE = "the database is in use; stop `showhow run` and every other verb that uses it, then restore again"


def back_up_database(database: Database, path: Path) -> None:
    """Copy the whole database into a new file: a SQLite database, or a dump in the custom format of pg_dump.

    The file appears under its name once it is complete, and never replaces another one.
    """
    if path.exists():
        raise _exists_error(path)
    if not path.parent.is_dir():
        raise StoreError(f"there is no folder {path.parent}; create it, or name another file for the backup")
    # Two backups at once, even to the same name, do not disturb each other.
    partial = path.with_name(f".{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        _remove_abandoned(path)
        if database.is_sqlite:
            copy_sqlite(Path(database.url.database or ""), partial)
        else:
            run_client_program("pg_dump", ["--format=custom", f"--file={partial}"], database.url)
        flush_to_disk(partial)
        _publish(partial, path)
    except OSError as error:
        raise StoreUnavailable(f"the backup to {path} cannot be written ({error}); name another file") from error
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            partial.with_name(partial.name + suffix).unlink(missing_ok=True)


def _remove_abandoned(path: Path) -> None:
    """Remove what a killed backup to this file left."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.([0-9]+)-[0-9a-f]+\.part")
    for partial in path.parent.iterdir():
        match = pattern.fullmatch(partial.name)
        if match is not None and not psutil.pid_exists(int(match[1])):
            partial.unlink(missing_ok=True)


def copy_sqlite(source_path: Path, target: Path, *, idle: bool = False) -> None:
    """Copy a SQLite database, with what its -wal holds, into a new file, and check the copy.

    `idle` says that nobody has the database open; then its folder may be read-only, and nothing is left in it.
    """
    if not source_path.is_file():
        raise StoreUnavailable(f"there is no database at {source_path}; run `showhow setup` first")
    try:
        without_wal = idle and not source_path.with_name(f"{source_path.name}-wal").exists()
        with (
            closing(open_readonly(source_path, without_wal=without_wal)) as source,
            closing(sqlite3.connect(target)) as copy,
        ):
            source.backup(copy)
            # Without a log of its own, the copy is one file that can be moved.
            copy.execute("PRAGMA journal_mode = DELETE")
            check = copy.execute("PRAGMA integrity_check").fetchone()[0]
    except sqlite3.Error as error:
        raise StoreUnavailable(
            f"{source_path} cannot be copied to {target.parent} ({error}); check the free space, and `showhow db check`"
        ) from error
    if check != "ok":
        raise StoreUnavailable(f"the copy of {source_path} is damaged ({check}); run `showhow db check`")


def run_client_program(name: str, options: Sequence[str], url: URL | None = None) -> None:
    """Run a client program of PostgreSQL, pg_dump or pg_restore, on that database; StoreUnavailable if it fails.

    The message says that the program is not installed, or has its first line of errors.
    """
    program = shutil.which(name)
    if program is None:
        raise StoreUnavailable(f"{name} is not installed; install PostgreSQL's client programs, then try again")
    address = []
    environment = dict(os.environ)
    if url is not None:
        # The password is passed in the environment: every user of the machine can read a command line.
        address = [f"--dbname={url.set(drivername='postgresql', password=None).render_as_string()}"]
        environment |= {"PGPASSWORD": str(url.password)} if url.password else {}
    process = subprocess.run(  # noqa: S603 - PostgreSQL's own program with the database's own address
        [program, *options, *address], capture_output=True, text=True, errors="replace", check=False, env=environment
    )
    if process.returncode != 0:
        first_line = process.stderr.strip().partition("\n")[0]
        raise StoreUnavailable(f"{name} failed: {first_line or 'no reason given'}")


def flush_to_disk(path: Path) -> None:
    """Wait until the file or folder is on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _publish(partial: Path, path: Path) -> None:
    try:
        # Unlike a renaming, a link never replaces a file that another process made meanwhile.
        path.hardlink_to(partial)
    except FileExistsError as error:
        raise _exists_error(path) from error
    except OSError:
        # A file system without links.
        partial.rename(path)
    with suppress(OSError):
        flush_to_disk(path.parent)


def _exists_error(path: Path) -> StoreError:
    return StoreError(f"{path} already exists; name a new file for the backup")


@dataclass(frozen=True, slots=True)
class RestoredDatabase:
    """What a restore has done: the revision now, the name of the former database, and findings of the check."""

    revision: str | None
    former: str | None
    findings: list[str]


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
    return _restore_postgresql(database.url, backup)


def _read_magic(backup: Path) -> bytes:
    if not backup.is_file():
        raise StoreError(f"there is no backup file {backup}; name a file that `showhow db backup` made")
    try:
        with backup.open("rb") as file:
            return file.read(len(SQLITE_MAGIC))
    except OSError as error:
        raise StoreError(f"{backup} cannot be read ({error.strerror}); check its permissions") from error


def _wrong_kind(backup: Path, magic: bytes, expected: str) -> str:
    if magic.startswith((SQLITE_MAGIC, POSTGRESQL_MAGIC)):
        return f"{backup} is the backup of another kind of database; this one is {expected} (SHOWHOW_DATABASE_URL)"
    return f"{backup} is no backup of {expected}; name a file that `showhow db backup` made"


def _restore_sqlite(path: Path, backup: Path) -> RestoredDatabase:
    if path.exists() and backup.samefile(path):
        raise StoreError(f"{backup} is the database itself; name a backup")
    prepared = path.with_name(f".{path.name}.restoring")
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
    copy_sqlite(backup, prepared, idle=True)
    store = Database(URL.create("sqlite", database=str(prepared)))
    try:
        findings, revision = _upgrade_and_check(store, backup)
    finally:
        store.close()
    with closing(sqlite3.connect(prepared)) as connection:
        connection.execute("PRAGMA journal_mode = DELETE")
    flush_to_disk(prepared)
    return findings, revision


def _upgrade_and_check(store: Database, backup: Path) -> tuple[list[str], str | None]:
    if current_revision(store) is None:
        raise StoreError(f"{backup} is no database of Showhow; name a file that `showhow db backup` made")
    upgrade(store)
    return check_database(store), current_revision(store)


def _remove_sqlite_files(path: Path) -> None:
    for suffix in ("", "-journal", "-wal", "-shm"):
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
            raise StoreUnavailable(_IN_USE) from error
        yield
    finally:
        os.close(handle)


def _restore_postgresql(url: URL, backup: Path) -> RestoredDatabase:
    run_client_program("pg_restore", ["--list", f"--file={os.devnull}", str(backup)])
    name = url.database or ""
    server = url.set(database="postgres" if name != "postgres" else "template1")
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    try:
        with engine.connect() as connection:
            if not connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": _RESTORE_ADVISORY_LOCK}):
                raise StoreUnavailable("another process restores a backup on this server; wait until it has ended")
            return _replace_postgresql(engine, connection, url, backup)
    except DBAPIError as error:
        raise _postgresql_error(error) from error
    finally:
        engine.dispose()


def _replace_postgresql(engine: Engine, connection: Connection, url: URL, backup: Path) -> RestoredDatabase:
    name = url.database or ""
    exists = _refuse_postgresql_in_use(connection, name)
    prepared = f"showhow_restoring_{sha256(name.encode()).hexdigest()[:32]}"
    former = _former_postgresql_name(name) if exists else None
    try:
        _create_postgresql_database(connection, prepared, name)
        findings, revision = _prepare_postgresql(url.set(database=prepared), backup)
        _refuse_postgresql_in_use(connection, name)
        # Both renamings or none.
        with engine.execution_options(isolation_level="READ COMMITTED").begin() as renaming:
            if former:
                renaming.execute(text(f"ALTER DATABASE {_quote(name)} RENAME TO {_quote(former)}"))
            renaming.execute(text(f"ALTER DATABASE {_quote(prepared)} RENAME TO {_quote(name)}"))
    finally:
        connection.execute(text(f"DROP DATABASE IF EXISTS {_quote(prepared)}"))
    return RestoredDatabase(revision, former, findings)


def _prepare_postgresql(url: URL, backup: Path) -> tuple[list[str], str | None]:
    run_client_program(
        "pg_restore", ["--exit-on-error", "--single-transaction", "--no-owner", "--no-privileges", str(backup)], url
    )
    store = Database(url)
    try:
        return _upgrade_and_check(store, backup)
    finally:
        store.close()


def _refuse_postgresql_in_use(connection: Connection, name: str) -> bool:
    """Return whether the database exists; StoreUnavailable if a client stays connected to it."""
    clients = text("SELECT count(*) FROM pg_stat_activity WHERE datname = :name AND backend_type = 'client backend'")
    # The server ends the backend of a closed connection a moment later.
    deadline = time.monotonic() + _BACKEND_EXIT_SECONDS
    while connection.scalar(clients, {"name": name}):
        if time.monotonic() > deadline:
            raise StoreUnavailable(_IN_USE)
        time.sleep(0.05)
    return bool(connection.scalar(text("SELECT count(*) FROM pg_database WHERE datname = :name"), {"name": name}))


def _create_postgresql_database(connection: Connection, prepared: str, like: str) -> None:
    # One that a killed restore left.
    connection.execute(text(f"DROP DATABASE IF EXISTS {_quote(prepared)}"))
    locale = connection.execute(
        text("SELECT datcollate, datctype FROM pg_database WHERE datname = :name"), {"name": like}
    ).first()
    options = "".join(
        f" {option} '{value.replace(chr(39), chr(39) * 2)}'"
        for option, value in zip(("LC_COLLATE", "LC_CTYPE"), locale or (), strict=bool(locale))
    )
    connection.execute(text(f"CREATE DATABASE {_quote(prepared)} TEMPLATE template0 ENCODING 'UTF8'{options}"))


def _quote(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'


def _former_postgresql_name(name: str) -> str:
    """The name of the database that is kept aside; PostgreSQL would cut a longer one at its end."""
    suffix = f"_before_restore_{datetime.now(UTC):%Y%m%dt%H%M%S}"
    beginning = name.encode()[: _MAX_POSTGRESQL_NAME_BYTES - len(suffix)].decode(errors="ignore")
    return beginning + suffix


def _postgresql_error(error: DBAPIError) -> StoreUnavailable:
    state = getattr(error.orig, "sqlstate", None)
    message = str(error.orig).strip().partition("\n")[0]
    if state == "55006":
        return StoreUnavailable(_IN_USE)
    if state == "42501":
        return StoreUnavailable(
            f"this user of the database may not restore ({message}); ask its administrator for ALTER ROLE ... CREATEDB"
        )
    return StoreUnavailable(f"the backup cannot be restored ({message}); nothing was replaced")
