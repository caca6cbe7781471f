"""Backups of strangers: rows are taken over, nothing of the schema runs or stays, and damage ends in a sentence."""

import os
import re
import shutil
import sqlite3
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from tempfile import gettempdir
from uuid import uuid4

import psycopg
import pytest
from sqlalchemy import text

from showhow.db.database import Database, StoreError, StoreUnavailable
from showhow.db.storage.backup import back_up_database
from showhow.db.storage.foreign_objects import SQLITE_SCHEMA, Schema, describe_sqlite
from showhow.db.storage.restore import restore_database
from showhow.db.storage.schema import check_database, upgrade
from tests.db.test_restore import add_project, client_programs, names  # noqa: F401 - a fixture
from tests.servers.postgresql import PostgresqlServer

pytestmark = pytest.mark.long

SQLITE_OBJECTS = {
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON step BEGIN UPDATE step SET thought = 'changed'; END",
    "a trigger of a role": "CREATE TRIGGER t AFTER INSERT ON user BEGIN UPDATE user SET roles = '[\"admin\"]'; END",
    "a view": "CREATE VIEW v AS SELECT * FROM user",
    "a virtual table": "CREATE VIRTUAL TABLE v USING fts5(content)",
    "an index of an expression": "CREATE INDEX i ON step (abs(position))",
    "a unique index": "CREATE UNIQUE INDEX i ON user (roles)",
    "a table": "CREATE TABLE other (x, y AS (x + 1))",
    "a generated column": "ALTER TABLE step ADD COLUMN y AS (thought || 'x')",
    "a default": "ALTER TABLE step ADD COLUMN z DEFAULT (hex(randomblob(8)))",
}


@pytest.fixture
def sqlite_backup(sqlite_template: Path, tmp_path: Path) -> Path:
    """A backup with one project."""
    store = Database(f"sqlite:///{shutil.copy(sqlite_template, tmp_path / 'source.db')}")
    add_project(store, "first")
    back_up_database(store, tmp_path / "backup.db")
    store.close()
    return tmp_path / "backup.db"


def schema_of(path: Path | str) -> Schema:
    with closing(sqlite3.connect(path)) as raw:
        return describe_sqlite(raw.execute(SQLITE_SCHEMA).fetchall())


def restore_or_refuse(folder: Path, backup: Path) -> Database | None:
    """The restored database, which is sound; None if the backup was refused in one sentence."""
    try:
        store, _ = restored_into(folder, backup)
    except StoreError as error:
        sentence = str(error)
    else:
        assert check_database(store) == []
        return store
    assert "\n" not in sentence
    return None


def restored_into(folder: Path, backup: Path) -> tuple[Database, list[str]]:
    store = Database(f"sqlite:///{folder / 'home.db'}")
    return store, restore_database(store, backup).findings


@pytest.mark.parametrize("kind", SQLITE_OBJECTS)
def test_a_database_with_foreign_objects_is_named_not_opened_and_restored_without_them(
    sqlite_backup: Path, sqlite_template: Path, tmp_path: Path, kind: str
):
    with closing(sqlite3.connect(sqlite_backup)) as raw:
        raw.execute(SQLITE_OBJECTS[kind])
    store = Database(f"sqlite:///{sqlite_backup}")
    (finding, *_) = check_database(store)
    assert "what Showhow did not make" in finding
    with pytest.raises(StoreUnavailable, match=r"what Showhow did not make .* is not opened") as refused:
        upgrade(store)
    assert "\n" not in str(refused.value)
    # The way out that the sentence names.
    back_up_database(store, tmp_path / "again.db")
    store.close()
    restored, findings = restored_into(tmp_path, tmp_path / "again.db")
    assert "only its rows were taken over" in " ".join(findings)
    assert names(restored) == ["first"]
    assert check_database(restored) == []
    restored.close()
    assert schema_of(tmp_path / "home.db") == schema_of(sqlite_template)


@pytest.mark.parametrize(
    "change",
    [
        "DROP TABLE judgement; CREATE VIEW judgement AS SELECT * FROM edit",
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'state TEXT', 'state TEXT GENERATED "
        "ALWAYS AS (reason)') WHERE name = 'assignment'",
        "DROP TABLE alembic_version; CREATE VIEW alembic_version AS SELECT '0009' AS version_num",
        "INSERT INTO alembic_version VALUES ('0001')",
        "DELETE FROM alembic_version",
        "UPDATE alembic_version SET version_num = zeroblob(10)",
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = 'nonsense' WHERE name = 'step'",
        "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET rootpage = 1000000 WHERE name = 'step'",
        "ALTER TABLE step RENAME TO step2; CREATE VIRTUAL TABLE step USING fts5(thought)",
    ],
)
def test_what_cannot_be_read_as_showhows_tables_is_refused_in_one_sentence(
    sqlite_backup: Path, tmp_path: Path, change: str
):
    with closing(sqlite3.connect(sqlite_backup)) as raw:
        raw.executescript(change)
        raw.commit()
    with pytest.raises(StoreError) as refused:
        restored_into(tmp_path, sqlite_backup)
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "home.db").exists()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("UPDATE user SET roles = '[\"root\"]'", "table user"),
        ("UPDATE user SET roles = 'admin'", "table user"),
        ("UPDATE user SET roles = '{\"admin\": 1}'", "table user"),
        ("UPDATE user SET created_at = 'yesterday'", "table user"),
        ("UPDATE user SET name = x'fffe'", "table user"),
        ("UPDATE user SET name = cast(x'fffe' AS TEXT)", "table user"),
        ("UPDATE user SET name = 'a' || char(0) || 'b'", "table user"),
        ("UPDATE user SET id = 'me'", "table user"),
        ("UPDATE user SET name = printf('%.*c', 5000000, 'a')", "table user"),
        ("UPDATE project SET answer_format = '{\"a\": 1e999}'", "table project"),
        ("UPDATE project SET answer_format = '{\"a\": NaN}'", "table project"),
        (
            "UPDATE project SET answer_format = '{\"a\":' || replace(hex(zeroblob(5000)), '0', '[') || '}'",
            "table project",
        ),
        # Of a million and a half of lists, the memory is known before they are parsed.
        (
            "UPDATE project SET answer_format = '{\"a\":[' || replace(hex(zeroblob(750000)), '0', '[],') || '1]}'",
            "table project: .*its JSON would take more than 256 MB of memory",
        ),
        ("UPDATE project SET tools = '[1]'", "table project"),
        ("UPDATE project SET overlap = 'many'", "table project"),
    ],
)
def test_values_that_no_column_can_hold_are_found_and_not_restored(
    sqlite_backup: Path, tmp_path: Path, change: str, sentence: str
):
    with closing(sqlite3.connect(sqlite_backup)) as raw, raw:
        raw.execute(
            "INSERT INTO user VALUES ('ada', '[\"annotator\"]', ?, '2026-01-01 00:00:00.000000', 1)", ["0" * 32]
        )
        raw.execute(change)
    store = Database(f"sqlite:///{sqlite_backup}")
    (finding,) = check_database(store)
    assert re.search(sentence, finding)
    assert "\n" not in finding
    store.close()
    with pytest.raises(StoreUnavailable, match=sentence):
        restored_into(tmp_path, sqlite_backup)


def test_a_value_that_breaks_a_rule_of_the_schema_is_refused(sqlite_backup: Path, tmp_path: Path):
    with closing(sqlite3.connect(sqlite_backup)) as raw, raw:
        raw.execute("PRAGMA ignore_check_constraints = ON")
        columns = [row[1] for row in raw.execute("PRAGMA table_info(step)")]
        values = {"rating": 9, "position": 1} | {name: "{}" for name in columns if name in ("arguments", "origins")}
        raw.execute(
            f"INSERT INTO step ({', '.join(columns)}) VALUES ({', '.join('?' * len(columns))})",
            [values.get(name, "0" * 32) for name in columns],
        )
    with pytest.raises(StoreUnavailable, match="CHECK constraint failed"):
        restored_into(tmp_path, sqlite_backup)


def test_pages_that_lead_in_circles_and_random_damage_end_in_a_sentence(sqlite_backup: Path, tmp_path: Path):
    whole = sqlite_backup.read_bytes()
    (page_size,) = struct.unpack(">H", whole[16:18])
    with closing(sqlite3.connect(sqlite_backup)) as raw:
        (root,) = raw.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'step'").fetchone()
    for page in (root, 1):
        # An interior page all of whose children are the page itself.
        offset = (page - 1) * page_size
        header = 100 if page == 1 else 0
        circle = bytearray(whole)
        cells = [page_size - 5 * (number + 1) for number in range(200)]
        content = struct.pack(">BHHHB", 5, 0, len(cells), min(cells), 0) + struct.pack(">I", page)
        content += b"".join(struct.pack(">H", cell) for cell in cells)
        circle[offset + header : offset + header + len(content)] = content
        for number, cell in enumerate(cells):
            circle[offset + cell : offset + cell + 5] = struct.pack(">IB", page, number % 128)
        sqlite_backup.write_bytes(circle)
        started = time.monotonic()
        with pytest.raises(StoreError, match="damaged"):
            restored_into(tmp_path, sqlite_backup)
        assert time.monotonic() - started < 20
    for number in range(40):
        place = number * len(whole) // 40
        sqlite_backup.write_bytes(whole[:place] + os.urandom(64) + whole[place + 64 :])
        if store := restore_or_refuse(tmp_path, sqlite_backup):
            store.close()
            (tmp_path / "home.db").unlink()


def test_special_files_are_refused_at_once_also_beside_the_backup(sqlite_backup: Path, tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(tmp_path / "backup.db-wal")
    for path in (tmp_path / "pipe", Path("/dev/zero"), sqlite_backup):
        with pytest.raises(StoreError, match=r"not a regular file"):
            restored_into(tmp_path, path)


def test_a_file_of_holes_is_not_copied(sqlite_backup: Path, tmp_path: Path):
    with sqlite_backup.open("r+b") as file:
        file.seek(28)
        file.write(struct.pack(">I", 30 * 1024**3 // 4096))
        file.truncate(30 * 1024**3)
    started = time.monotonic()
    if store := restore_or_refuse(tmp_path, sqlite_backup):
        assert names(store) == ["first"]
        store.close()
    assert time.monotonic() - started < 20
    assert sum(file.stat().st_blocks for file in tmp_path.glob("*home*")) * 512 < 10_000_000


@pytest.mark.parametrize("revision", [f"{number:04}" for number in range(1, 10)])
def test_backups_of_every_revision_are_restored(empty_database: Database, tmp_path: Path, revision: str):
    upgrade(empty_database, revision)
    back_up_database(empty_database, tmp_path / "old")
    assert restore_database(empty_database, tmp_path / "old").findings == []
    assert check_database(empty_database) == []


HOSTILE_SQL = """
CREATE SCHEMA evil;
CREATE FUNCTION evil.shell() RETURNS text LANGUAGE plpgsql AS
    $$ BEGIN COPY (SELECT 1) TO PROGRAM 'touch {mark}'; RETURN 'x'; END $$;
CREATE FUNCTION public.lower(varchar) RETURNS text LANGUAGE sql AS 'SELECT evil.shell()';
CREATE FUNCTION evil.on_change() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM evil.shell(); NEW.guidelines = 'changed'; RETURN NEW; END $$;
CREATE TRIGGER changes BEFORE INSERT OR UPDATE ON project FOR EACH ROW EXECUTE FUNCTION evil.on_change();
CREATE FUNCTION evil.on_command() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM evil.shell(); END $$;
CREATE RULE doubled AS ON INSERT TO "user" DO ALSO SELECT evil.shell();
CREATE VIEW public.people AS SELECT evil.shell() AS name;
CREATE DOMAIN public.word AS text CHECK (evil.shell() = 'x');
CREATE INDEX evil_index ON project (length(name));
ALTER TABLE project ALTER COLUMN instruction SET DEFAULT evil.shell();
ALTER TABLE step ADD COLUMN copied text GENERATED ALWAYS AS (thought || 'x') STORED;
ALTER TABLE step ENABLE ROW LEVEL SECURITY;
CREATE POLICY nobody ON step USING (evil.shell() = 'x');
CREATE EXTENSION file_fdw;
CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
CREATE FOREIGN TABLE public.passwords (line text) SERVER files OPTIONS (program 'touch {mark}');
CREATE TABLE evil.project (name text);
CREATE SEQUENCE public.counter;
SELECT lo_from_bytea(0, 'large');
CREATE EVENT TRIGGER on_command ON ddl_command_start EXECUTE FUNCTION evil.on_command();
"""


@pytest.fixture
def shell_mark() -> Iterator[Path]:
    """A file that a shell command of the server would make: it runs as another user, who may write there."""
    mark = Path(gettempdir(), f"showhow-test-{uuid4().hex}")
    yield mark
    assert not mark.exists()


def make_hostile(database: Database, mark: Path) -> None:
    """Add what a superuser can hide in a database; nothing of it has run afterwards."""
    url = database.url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in filter(str.strip, HOSTILE_SQL.format(mark=mark).split(";\n")):
            connection.execute(statement)


@pytest.mark.parametrize("empty_database", ["postgresql"], indirect=True)
def test_nothing_of_a_hostile_dump_runs_or_stays(
    empty_database: Database, postgresql_server: PostgresqlServer, tmp_path: Path, shell_mark: Path
):
    upgrade(empty_database)
    add_project(empty_database, "first")
    make_hostile(empty_database, shell_mark)
    (finding,) = check_database(empty_database)
    assert "what Showhow did not make" in finding
    with pytest.raises(StoreUnavailable, match=r"what Showhow did not make .* is not opened"):
        upgrade(empty_database)
    dump = tmp_path / "hostile.dump"
    back_up_database(empty_database, dump)
    empty_database.close()
    target = Database(postgresql_server.create_database(f"r{uuid4().hex}"))
    restored = restore_database(target, dump)
    assert "only its rows were taken over" in restored.findings[0]
    assert names(target) == ["first"]
    assert check_database(target) == []
    with target.read() as session:
        assert session.scalars(text("SELECT nspname FROM pg_namespace WHERE nspname = 'evil'")).all() == []
        functions = text("SELECT proname FROM pg_proc WHERE pronamespace = 'public'::regnamespace")
        assert session.scalars(functions).all() == ["refuse_audit_change"]
        assert session.scalar(text("SELECT count(*) FROM pg_event_trigger")) == 0
        assert session.scalar(text("SELECT count(*) FROM pg_largeobject_metadata")) == 0
        assert session.scalar(text("SELECT guidelines FROM project")) == ""
    target.close()


@pytest.fixture
def dump(postgresql_server: PostgresqlServer, postgresql_template: str, tmp_path: Path) -> Callable[[str], Path]:
    """A function that makes a dump with one project, after a statement of SQL."""

    def make(statement: str) -> Path:
        store = Database(postgresql_server.create_database(f"s{uuid4().hex}", postgresql_template))
        add_project(store, "first")
        with store.begin() as session:
            session.execute(
                text("INSERT INTO \"user\" VALUES ('ada', '[\"annotator\"]', gen_random_uuid(), '2026-01-01', true)")
            )
            for part in statement.split(";"):
                session.execute(text(part))
        back_up_database(store, tmp_path / "some.dump")
        store.close()
        return tmp_path / "some.dump"

    return make


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("UPDATE \"user\" SET created_at = 'infinity'", "table user"),
        ("UPDATE \"user\" SET created_at = '4000-01-01 BC'", "table user"),
        ('UPDATE "user" SET roles = \'{"admin": true}\'', "table user"),
        ('UPDATE "user" SET roles = \'["root"]\'', "table user"),
        ("UPDATE project SET answer_format = '{\"a\": 1e999}'", "table project"),
        (
            "UPDATE project SET answer_format = ('{\"a\":' || repeat('[', 3000) || repeat(']', 3000) || '}')::json",
            "project",
        ),
        ("ALTER TABLE page_counter ALTER COLUMN value TYPE text; UPDATE page_counter SET value = 'x'", "page_counter"),
        ("ALTER TABLE project ALTER COLUMN overlap TYPE text; UPDATE project SET overlap = '\\.'", "table project"),
        ("ALTER TABLE project RENAME COLUMN world TO earth", "no column world"),
        ("ALTER TABLE rate_limit RENAME TO limits", "no rows of a table rate_limit"),
        ("UPDATE alembic_version SET version_num = '9999'", "update the program"),
        ("UPDATE alembic_version SET version_num = '../../x'", "no database of Showhow"),
        ("INSERT INTO alembic_version VALUES ('0001')", "no database of Showhow"),
    ],
)
def test_a_dump_with_values_or_tables_of_others_is_refused_in_one_sentence(
    postgresql_server: PostgresqlServer, dump: Callable[[str], Path], change: str, sentence: str
):
    target = Database(postgresql_server.create_database(f"r{uuid4().hex}"))
    with pytest.raises(StoreError, match=sentence) as refused:
        restore_database(target, dump(change))
    assert "\n" not in str(refused.value)
    target.close()


def test_columns_of_others_are_left_out_of_a_dump(postgresql_server: PostgresqlServer, dump: Callable[[str], Path]):
    target = Database(postgresql_server.create_database(f"r{uuid4().hex}"))
    file = dump(
        "ALTER TABLE project DROP COLUMN guidelines; ALTER TABLE project ADD COLUMN colour text DEFAULT 'a\tb'; "
        "ALTER TABLE project ADD COLUMN guidelines text NOT NULL DEFAULT 'line one\nline\ttwo \\\\'"
    )
    restore_database(target, file)
    with target.read() as session:
        assert session.scalar(text("SELECT guidelines FROM project")) == "line one\nline\ttwo \\\\"
    assert check_database(target) == []
    target.close()


def test_a_dump_whose_copy_statements_were_changed_or_that_is_damaged_ends_in_one_sentence(
    postgresql_server: PostgresqlServer, dump: Callable[[str], Path]
):
    target = Database(postgresql_server.create_database(f"r{uuid4().hex}"))
    file = dump("SELECT 1")
    whole = file.read_bytes()
    for statement in (b"\\! touch x;", b"FROM PROGR;", b"FROM STDIN;", b"FROM 'a'  ;", b"FROM stdin,"):
        file.write_bytes(whole.replace(b"FROM stdin;", statement))
        with pytest.raises(StoreError) as refused:
            restore_database(target, file)
        assert "\n" not in str(refused.value)
    for number in range(24):
        place = number * len(whole) // 24
        file.write_bytes(whole[:place] + os.urandom(16) + whole[place + 16 :])
        try:
            restore_database(target, file)
        except StoreError as error:
            sentence = str(error)
        else:
            assert check_database(target) == []
            sentence = ""
        assert "\n" not in sentence
    target.close()
