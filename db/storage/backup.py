"""Backups: a whole database in one new file, made while others read and write it."""

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

from sqlalchemy import URL

from showhow.db.audit import record_act
from showhow.db.database import Database, StoreError, StoreUnavailable
from showhow.db.sqlite_files import open_readonly
from showhow.db.storage.foreign_objects import SQLITE_SCHEMA, describe_sqlite, digest_schema
from showhow.db.storage.schema import SQLITE_AT_HEAD, require_sound_schema
from showhow.guard.files import flush_to_disk, partial_path, remove_abandoned_partials

_PLAIN_VARIABLES = {"PATH", "HOME", "LANG", "LC_ALL", "TZ", "TMPDIR"}


def back_up_database(database: Database, path: Path) -> None:
    """Copy the whole database into a new file: a SQLite database, or a dump in the custom format of pg_dump.

    The file appears under its name once it is complete, and never replaces another one.
    """
    if path.exists():
        raise _exists_error(path)
    if not path.parent.is_dir():
        raise StoreError(f"there is no folder {path.parent}; create it, or name another file for the backup")
    # Two backups at once, even to the same name, do not disturb each other.
    partial = partial_path(path)
    try:
        remove_abandoned_partials(path.parent, path.name)
        if database.is_sqlite:
            _copy_sqlite(Path(database.url.database or ""), partial)
        else:
            run_client_program("pg_dump", ["--format=custom", f"--file={partial}"], database.url)
        flush_to_disk(partial)
        _publish(partial, path)
    except OSError as error:
        raise StoreUnavailable(f"the backup to {path} cannot be written ({error}); name another file") from error
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            partial.with_name(partial.name + suffix).unlink(missing_ok=True)


def _copy_sqlite(source_path: Path, target: Path) -> None:
    """Copy a SQLite database, with what its -wal holds, into a new file, and check the copy."""
    if not source_path.is_file():
        raise StoreUnavailable(f"there is no database at {source_path}; run `showhow setup` first")
    try:
        with closing(open_readonly(source_path)) as source, closing(sqlite3.connect(target)) as copy:
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


def record_backup(database: Database, name: str) -> None:
    """Have the backup of that name in the audit log, and so in the backup itself.

    A database that is not sound, of another version, full or locked is backed up as it is: nothing of it may run.
    """
    with suppress(StoreError, sqlite3.Error):
        if _is_of_this_version(database):
            with database.begin() as session:
                record_act(session, "backed up", "database", details={"file": name})


def _is_of_this_version(database: Database) -> bool:
    if not database.is_sqlite:
        return require_sound_schema(database) == SQLITE_AT_HEAD.revision
    path = Path(database.url.database or "")
    if not path.is_file():
        return False
    # Without a write: a log of another database that lies beside it would be applied.
    with closing(open_readonly(path)) as connection:
        return digest_schema(describe_sqlite(connection.execute(SQLITE_SCHEMA))) == SQLITE_AT_HEAD.digest


def run_client_program(name: str, options: Sequence[str], url: URL | None = None) -> str:
    """Run a client program of PostgreSQL, pg_dump or pg_restore, on that database, and return what it printed.

    StoreUnavailable if it is not installed, or with its first line of errors.
    """
    command, environment = client_command(name, options, url)
    process = subprocess.run(  # noqa: S603 - PostgreSQL's own program with the database's own address
        command, capture_output=True, text=True, errors="replace", check=False, env=environment
    )
    if process.returncode != 0:
        raise client_failure(name, process.stderr)
    return process.stdout


def client_command(name: str, options: Sequence[str], url: URL | None = None) -> tuple[list[str], dict[str, str]]:
    """The command line of a client program of PostgreSQL, and the variables that it needs; it gets no others.

    The password is passed in a variable: every user of the machine can read a command line.
    """
    program = shutil.which(name)
    if program is None:
        raise StoreUnavailable(f"{name} is not installed; install PostgreSQL's client programs, then try again")
    if url is None:
        return [program, *options], {key: value for key, value in os.environ.items() if key in _PLAIN_VARIABLES}
    # Those of PostgreSQL's own library say where certificates and passwords lie.
    environment = {
        key: value for key, value in os.environ.items() if key in _PLAIN_VARIABLES or key.startswith(("PG", "KRB5"))
    }
    address = f"--dbname={url.set(drivername='postgresql', password=None).render_as_string()}"
    return [program, *options, address], environment | ({"PGPASSWORD": str(url.password)} if url.password else {})


def client_failure(name: str, errors: str) -> StoreUnavailable:
    """The failure of a client program, with the first line of what it wrote about it."""
    return StoreUnavailable(f"{name} failed: {errors.strip().partition(chr(10))[0] or 'no reason given'}")


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
