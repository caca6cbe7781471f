"""The schema of the database: upgrade and downgrade by migrations, and the checks of a database."""

import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import Connection, create_engine, func, inspect, select, text
from sqlalchemy.orm import Session

from showhow.db import audit, rate_limits  # noqa: F401 - so that their tables and indexes are known
from showhow.db.database import Database, StoreError, StoreUnavailable, is_lock_conflict, translate_errors
from showhow.db.models import Question, Step, Trace
from showhow.db.people import logins  # noqa: F401 - so that their tables and indexes are known
from showhow.db.questions import guideline_pictures, question_list  # noqa: F401 - so that their tables and indexes are known
from showhow.db.questions.projects import select_completed_traces
from showhow.db.removal import removals  # noqa: F401 - so that their tables and indexes are known
from showhow.db.review import (
    studies,  # noqa: F401 - so that their tables and indexes are known
    study_blindness,  # noqa: F401 - so that it hides runs in every session
)
from showhow.db.runs import leases  # noqa: F401 - so that their tables and indexes are known
from showhow.db.sqlite_files import open_readonly
from showhow.db.storage.foreign_objects import (
    POSTGRESQL_ACTIVE,
    REMEDY,
    SQLITE_SCHEMA,
    Schema,
    active_objects,
    describe_postgresql,
    describe_sqlite,
    digest_schema,
    list_foreign,
    list_missing,
)
from showhow.db.storage.stored_secrets import find_secrets
from showhow.db.storage.stored_values import find_invalid_values
from showhow.db.traces import libraries, model_calls, recording, unsent_questions  # noqa: F401 - so that their tables and indexes are known
from showhow.db.types import Base


class SchemaDigest(NamedTuple):
    """A revision, and the digest of the schema that its migrations make."""

    revision: str
    digest: str


MIGRATIONS_TABLE = "alembic_version"
MIGRATIONS_FOLDER = Path(__file__).resolve().parents[2] / "migrations"
SQLITE_AT_HEAD = SchemaDigest("0016", "89c69cb4f865d2929442c4b97ccc5e542cc6f67a9c2a2ca744e1acd181d30ddf")
"""The newest revision and its schema on SQLite: a start need neither load the migrations nor run them anew."""


def current_revision(database: Database) -> str | None:
    """Return the revision of the database; None if it is empty."""
    with database.read() as session:
        return _read_revision(session.connection())


def _read_revision(connection: Connection) -> str | None:
    try:
        return MigrationContext.configure(connection).get_current_revision()
    except CommandError as error:
        raise StoreUnavailable(f"the database names several revisions ({error}); restore a backup") from error


def latest_revision() -> str:
    """Return the newest revision of the migrations."""
    head = _script_directory().get_current_head()
    if head is None:
        raise StoreError(f"there are no migrations in {MIGRATIONS_FOLDER}; install Showhow again")
    return head


def require_known_revision(revision: str | None) -> None:
    """StoreUnavailable if the migrations of this version cannot upgrade from that revision."""
    if not is_known_revision(revision):
        raise StoreUnavailable(
            f"the database is at revision {revision}, which this version of Showhow does not know; update the program"
        )


def require_current_revision(database: Database) -> None:
    """StoreUnavailable unless the database has the schema of this version."""
    revision = current_revision(database)
    if revision != SQLITE_AT_HEAD.revision:
        raise StoreUnavailable(describe_other_revision(revision))


def describe_other_revision(revision: str | None) -> str:
    """A sentence about a database that has not the schema of this version."""
    remedy = "run `showhow db upgrade`" if is_known_revision(revision) else "update the program"
    return f"the database is at revision {revision or 'none'}, the program at {SQLITE_AT_HEAD.revision}; {remedy}"


def is_known_revision(revision: str | None) -> bool:
    """Whether the migrations of this version can upgrade from that revision; None is an empty database."""
    return revision is None or revision in {script.revision for script in _script_directory().walk_revisions()}


def upgrade(database: Database, to: str = "head") -> bool:
    """Upgrade the database to the revision; False if it already has this revision.

    StoreUnavailable, and nothing has run, if the database has objects that Showhow did not make.
    """
    current = require_sound_schema(database)
    if current == (SQLITE_AT_HEAD.revision if to == "head" else to):
        return False
    for pause in (*_PAUSES, None):
        try:
            # One write transaction: if two programs start at once, the second waits and has nothing to upgrade.
            with database.begin(changes_schema=True) as session:
                _lock_tables(session.connection())
                apply_migrations(session.connection(), to)
        except StoreUnavailable as error:
            if pause is None or not is_lock_conflict(error):
                raise
            time.sleep(pause)
        else:
            break
    return True


_PAUSES = (0.5,) * 20 + (2.0,) * 60
"""Between the tries of an upgrade; with the waits for locks, it is tried for about three minutes."""


def _lock_tables(connection: Connection) -> None:
    """Take all tables from those who only read on PostgreSQL, before any work that would have to be done again."""
    names = sorted({*Base.metadata.tables}.intersection(inspect(connection).get_table_names()))
    if names and connection.dialect.name != "sqlite":
        listed = ", ".join(f'"{name}"' for name in names)
        connection.execute(text(f"LOCK TABLE {listed} IN ACCESS EXCLUSIVE MODE"))


def apply_migrations(connection: Connection, to: str) -> None:
    """Run the migrations in the caller's transaction."""
    # Alembic runs one migration at a time in a process.
    with _MIGRATION_LOCK:
        command.upgrade(_alembic_config(connection), to)


_MIGRATION_LOCK = Lock()


def require_sound_schema(database: Database) -> str | None:
    """Return the revision; StoreUnavailable if it is unknown, or if something in the database acts otherwise than ours.

    On PostgreSQL, other programs may have tables beside ours; what acts of itself is refused.
    """
    with database.read() as session:
        connection = session.connection()
        revision = _read_revision(connection)
        is_at_head = revision == SQLITE_AT_HEAD.revision
        if not is_at_head:
            require_known_revision(revision)
        actual = _read_schema(connection)
    if database.is_sqlite and is_at_head and digest_schema(actual) == SQLITE_AT_HEAD.digest:
        return revision
    expected: Schema = expected_sqlite(revision) if database.is_sqlite else POSTGRESQL_ACTIVE
    actual = actual if database.is_sqlite else active_objects(actual)
    if foreign := list_foreign(actual, expected):
        raise StoreUnavailable(
            f"the database has what Showhow did not make ({'; '.join(foreign)}) and is not opened, since it could "
            f"change what is recorded; {REMEDY}"
        )
    return revision


def _read_schema(connection: Connection) -> Schema:
    if connection.dialect.name == "sqlite":
        return describe_sqlite(connection.exec_driver_sql(SQLITE_SCHEMA).all())
    return describe_postgresql(connection)


@cache
def expected_sqlite(revision: str | None) -> Schema:
    """The schema that the migrations make at that revision; before the first one, only their own table may be there."""
    engine = create_engine("sqlite://")
    try:
        with engine.begin() as connection:
            apply_migrations(connection, revision or "head")
            schema = _read_schema(connection)
    finally:
        engine.dispose()
    key = ("table", MIGRATIONS_TABLE)
    return schema if revision else {key: schema[key]}


def _compare_schema(database: Database, revision: str) -> list[str]:
    """Describe the differences of the schema from the one that the migrations make."""
    with translate_errors(), database.engine.connect() as connection:
        actual = _read_schema(connection)
        if database.is_sqlite:
            expected = expected_sqlite(revision)
        # First what acts of itself: it would act on the comparison, too.
        elif foreign := list_foreign(active_objects(actual), POSTGRESQL_ACTIVE):
            return [_describe_foreign(foreign)]
        elif not connection.scalar(text("SELECT has_database_privilege(current_database(), 'CREATE')")):
            return []
        else:
            # In a schema of its own, which is undone with the transaction.
            connection.execute(text("CREATE SCHEMA showhow_expected"))
            connection.execute(text("SET LOCAL search_path = showhow_expected"))
            apply_migrations(connection, revision)
            expected = _read_schema(connection)
            connection.rollback()
    differences = [_describe_foreign(foreign)] if (foreign := list_foreign(actual, expected)) else []
    if missing := list_missing(actual, expected):
        differences.append(f"the database lacks {'; '.join(missing)}; restore a backup")
    return differences


def _describe_foreign(foreign: Sequence[str]) -> str:
    return f"the database has what Showhow did not make: {'; '.join(foreign)}; {REMEDY}"


def downgrade(database: Database, to: str) -> None:
    """Downgrade the database to an older revision; data of newer columns and tables are lost."""
    with database.begin(changes_schema=True) as session:
        command.downgrade(_alembic_config(session.connection()), to)


def _alembic_config(connection: object) -> Config:
    config = Config()
    config.set_main_option("script_location", str(MIGRATIONS_FOLDER).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


def _script_directory() -> ScriptDirectory:
    return ScriptDirectory(str(MIGRATIONS_FOLDER))


def check_database(database: Database) -> list[str]:
    """Check the database and return its problems, one sentence each."""
    if damage := _find_damage(database):
        # What reads a damaged or foreign table says nothing.
        return damage
    problems = check_rules(database)
    if current_revision(database) != latest_revision():
        return problems
    return [*problems, *find_invalid_values(database), *find_secrets(database)]


def _find_damage(database: Database) -> list[str]:
    """Describe damage of the file, or else the differences of the schema."""
    if database.is_sqlite and (damage := _find_sqlite_damage(Path(database.url.database or ""))):
        return [damage]
    revision = current_revision(database)
    return _compare_schema(database, revision) if revision and is_known_revision(revision) else []


def check_rules(database: Database) -> list[str]:
    """Check what rows say about each other, in a sound database, and its revision."""
    problems = []
    revision = current_revision(database)
    with database.read() as session:
        if database.is_sqlite:
            violations = session.execute(text("PRAGMA foreign_key_check")).all()
            problems += [f"table {row[0]}: row {row[1]} refers to a missing {row[2]}" for row in violations]
        if revision == latest_revision():
            problems += [*_find_position_gaps(session), *_find_miscounted_questions(session)]
        else:
            problems.append(describe_other_revision(revision))
    return problems


def _find_sqlite_damage(path: Path) -> str | None:
    """Describe the damage of the file in one sentence; reads only, so that a log of another database is not applied."""
    if not path.is_file() or not path.stat().st_size:  # not created yet
        return None
    damage = _read_damage(path)
    wal = path.with_name(f"{path.name}-wal")
    if wal.is_file() and wal.stat().st_size and _read_damage(path, without_wal=True) is None:
        damage = damage or _find_other_schema(path)
        return damage and (
            f"{path} is sound, but {wal.name} beside it belongs to another database ({damage}): stop Showhow, move "
            f"{wal.name} and {path.name}-shm away, or restore a backup with `showhow db restore FILE`"
        )
    return damage and (
        f"{path} is damaged or not a database ({damage}): stop Showhow and restore a backup with `showhow db restore "
        "FILE`, which keeps this file aside"
    )


def _find_other_schema(path: Path) -> str | None:
    """Whether the log replaces all pages of the file by those of another program's database."""
    if _has_schema(path) or not _has_schema(path, without_wal=True):
        return None
    return "with it, there are no tables of Showhow"


def _has_schema(path: Path, *, without_wal: bool = False) -> bool:
    with closing(open_readonly(path, without_wal=without_wal)) as connection:
        tables = connection.execute("SELECT count(*) FROM sqlite_schema WHERE name = 'alembic_version'")
        return bool(tables.fetchone()[0])


def _read_damage(path: Path, *, without_wal: bool = False) -> str | None:
    """Return the first damage that SQLite finds; None for a sound file."""
    try:
        with closing(open_readonly(path, without_wal=without_wal)) as connection:
            result = str(connection.execute("PRAGMA integrity_check(1)").fetchone()[0])
    except (sqlite3.DatabaseError, UnicodeError) as error:
        return str(error)
    return None if result == "ok" else result.replace("\n", " ")


def _find_position_gaps(session: Session) -> Iterator[str]:
    rows = session.execute(
        select(Step.trace_id, func.count(), func.min(Step.position), func.max(Step.position))
        .where(Step.removed_at.is_(None))
        .group_by(Step.trace_id)
        .having((func.count() != func.max(Step.position)) | (func.min(Step.position) != 1))
    )
    for trace_id, count, first, last in rows:
        yield f"trace {trace_id}: its {count} steps are numbered from {first} to {last}"


def _find_miscounted_questions(session: Session) -> Iterator[str]:
    counts = (
        select_completed_traces()
        .group_by(Trace.question_id)
        .with_only_columns(Trace.question_id, func.count(Trace.author_id.distinct()).label("people"))
        .subquery()
    )
    rows = session.execute(
        select(Question.id, Question.completed, func.coalesce(counts.c.people, 0))
        .outerjoin(counts, counts.c.question_id == Question.id)
        .where(Question.completed != func.coalesce(counts.c.people, 0))
    )
    for question_id, stored_count, people in rows:
        yield f"question {question_id}: {people} people completed it, but the stored count is {stored_count}"
