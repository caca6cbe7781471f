"""Restore a dump of PostgreSQL: its rows alone, in a new database, which then takes over the name of the former one."""

import time
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import psycopg
from sqlalchemy import URL, Connection, Engine, create_engine, inspect, text
from sqlalchemy.exc import DBAPIError

from showhow.db.database import Database, StoreUnavailable
from showhow.db.storage.postgresql_dump import PostgresqlDump
from showhow.db.storage.prepared_database import IN_USE, RestoredDatabase, finish_prepared, make_schema
from showhow.db.storage.schema import MIGRATIONS_TABLE

_MAX_POSTGRESQL_NAME_BYTES = 63
_RESTORE_ADVISORY_LOCK = 7_203_002
_BACKEND_EXIT_SECONDS = 2.0


def restore_postgresql(url: URL, backup: Path) -> RestoredDatabase:
    """Replace the database by the backup; StoreError if the backup is damaged or the database is in use."""
    dump = PostgresqlDump(backup)
    engine = _connect_to_server(url)
    try:
        with engine.connect() as connection:
            if not connection.scalar(text("SELECT pg_try_advisory_lock(:key)"), {"key": _RESTORE_ADVISORY_LOCK}):
                raise StoreUnavailable("another process restores a backup on this server; wait until it has ended")
            return _replace_database(engine, connection, url, dump)
    except DBAPIError as error:
        raise _postgresql_error(error) from error
    finally:
        engine.dispose()


def remove_abandoned_database(url: URL) -> list[str]:
    """Remove the database that a killed restore left unfinished, and return a sentence about it."""
    prepared = _prepared_name(url.database or "")
    engine = _connect_to_server(url)
    try:
        with engine.connect() as connection:
            exists = text("SELECT count(*) FROM pg_database WHERE datname = :name")
            # While another process restores, it is not abandoned.
            if connection.scalar(exists, {"name": prepared}) and connection.scalar(
                text("SELECT pg_try_advisory_lock(:key)"), {"key": _RESTORE_ADVISORY_LOCK}
            ):
                connection.execute(text(f"DROP DATABASE IF EXISTS {_quote(prepared)}"))
                return ["Removed the unfinished copy of a backup: the process that restored it was killed."]
    except DBAPIError as error:
        return [f"Whether a killed restore left a copy on the server is not known ({_first_line(error)})."]
    finally:
        engine.dispose()
    return []


def _connect_to_server(url: URL) -> Engine:
    """An engine for a database other than that one, which can then be replaced."""
    server = url.set(database="postgres" if url.database != "postgres" else "template1")
    return create_engine(server, isolation_level="AUTOCOMMIT")


def _prepared_name(name: str) -> str:
    return f"showhow_restoring_{sha256(name.encode()).hexdigest()[:32]}"


def _replace_database(engine: Engine, connection: Connection, url: URL, dump: PostgresqlDump) -> RestoredDatabase:
    name = url.database or ""
    exists = _refuse_database_in_use(connection, name)
    prepared = _prepared_name(name)
    former = _former_postgresql_name(name) if exists else None
    try:
        _create_database(connection, prepared, name)
        findings, revision = _prepare_database(url.set(database=prepared), dump)
        _refuse_database_in_use(connection, name)
        # Both renamings or none.
        with engine.execution_options(isolation_level="READ COMMITTED").begin() as renaming:
            if former:
                renaming.execute(text(f"ALTER DATABASE {_quote(name)} RENAME TO {_quote(former)}"))
            renaming.execute(text(f"ALTER DATABASE {_quote(prepared)} RENAME TO {_quote(name)}"))
    finally:
        connection.execute(text(f"DROP DATABASE IF EXISTS {_quote(prepared)}"))
    return RestoredDatabase(revision, former, findings)


def _prepare_database(url: URL, dump: PostgresqlDump) -> tuple[list[str], str | None]:
    store = Database(url)
    try:
        make_schema(store, dump.revision)
        _copy_rows(store, dump)
        findings, revision = finish_prepared(store, dump.path)
    finally:
        store.close()
    return [*dump.findings, *findings], revision


def _copy_rows(store: Database, dump: PostgresqlDump) -> None:
    """Copy the rows of all tables into the empty tables of the same revision, those that others refer to first."""
    with store.engine.begin() as connection:
        inspector = inspect(connection)
        driver = cast("psycopg.Connection[Any]", connection.connection.driver_connection)
        for name, _ in inspector.get_sorted_table_and_fkc_names():
            if name is not None and name != MIGRATIONS_TABLE:
                dump.copy_rows(driver, name, [column["name"] for column in inspector.get_columns(name)])


def _refuse_database_in_use(connection: Connection, name: str) -> bool:
    """Return whether the database exists; StoreUnavailable if a client stays connected to it."""
    clients = text("SELECT count(*) FROM pg_stat_activity WHERE datname = :name AND backend_type = 'client backend'")
    # The server ends the backend of a closed connection a moment later.
    deadline = time.monotonic() + _BACKEND_EXIT_SECONDS
    while connection.scalar(clients, {"name": name}):
        if time.monotonic() > deadline:
            raise StoreUnavailable(IN_USE)
        time.sleep(0.05)
    return bool(connection.scalar(text("SELECT count(*) FROM pg_database WHERE datname = :name"), {"name": name}))


def _create_database(connection: Connection, prepared: str, like: str) -> None:
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
    message = _first_line(error)
    if state == "55006":
        return StoreUnavailable(IN_USE)
    if state == "42501":
        return StoreUnavailable(
            f"this user of the database may not restore ({message}); ask its administrator for ALTER ROLE ... CREATEDB"
        )
    return StoreUnavailable(f"the backup cannot be restored ({message}); nothing was replaced")


def _first_line(error: DBAPIError) -> str:
    return str(error.orig).strip().partition("\n")[0]
