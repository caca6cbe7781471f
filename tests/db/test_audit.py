"""The audit log: one chain whoever writes at once, no change of it that is not seen, and no act without its entry."""

import threading
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import text
from sqlalchemy.orm import Session

from showhow.db import audit
from showhow.db.audit import check_chain, iterate_entries, record_act
from showhow.db.database import Conflict, Database, StoreError
from showhow.db.people import logins, users
from showhow.db.people.users import ActingPerson
from showhow.db.removal import purging, removals
from showhow.db.removal.removal_kinds import Kind
from showhow.db.storage.backup import back_up_database
from showhow.db.storage.move import move_database
from showhow.db.storage.restore import restore_database
from showhow.db.storage.schema import check_database
from showhow.guard.redaction import Redactor
from tests.db.conftest import Scene
from tests.db.test_restore import client_programs  # noqa: F401 - a fixture
from tests.servers.postgresql import PostgresqlServer


def entries(database: Database) -> list[dict[str, Any]]:
    with database.read() as session:
        return list(iterate_entries(session))


def check(database: Database) -> audit.ChainCheck:
    with database.read() as session:
        return check_chain(session)


def acts(database: Database, after: int = 0) -> list[tuple[str, str]]:
    return [(entry["action"], entry["object_kind"]) for entry in entries(database)[after:]]


def drop_triggers(database: Database) -> None:
    """As somebody with the rights of the database's owner does."""
    with database.begin() as session:
        if database.is_sqlite:
            for name in ("update", "delete", "replace"):
                session.execute(text(f"DROP TRIGGER audit_entry_no_{name}"))
        else:
            session.execute(text("DROP FUNCTION refuse_audit_change() CASCADE"))


def test_writers_at_once_make_one_chain_without_gaps(database: Database):
    failures: list[Exception] = []
    start = threading.Barrier(8)

    def write(number: int) -> None:
        start.wait()
        try:
            for act in range(10):
                with database.begin() as session:
                    # The first statement of others is an act, too: the lock waits for the end of the transaction.
                    record_act(
                        session, "tried", "thing", f"{number}-{act}", {"before": None, "after": [1.5, "ä\u2028"]}
                    )
                    session.execute(text("UPDATE alembic_version SET version_num = version_num"))
                    record_act(session, "tried again", "thing", f"{number}-{act}")
        except Exception as failed:  # noqa: BLE001 - a thread's failure is the test's
            failures.append(failed)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert check(database).problem == ""
    listed = entries(database)
    assert [entry["position"] for entry in listed] == list(range(1, 161))
    # Both acts of a transaction stand together.
    assert all(first["object_id"] == second["object_id"] for first, second in zip(*[iter(listed)] * 2, strict=True))


def test_the_database_itself_refuses_every_change_of_an_entry(scene: Scene):
    before = entries(scene.database)
    assert before
    copied = "position, at, person_id, access, 'other', object_kind, object_id, details, previous, digest"
    replace = f"INSERT OR REPLACE INTO audit_entry SELECT {copied} FROM audit_entry"
    for change in (
        "UPDATE audit_entry SET action = 'other'",
        "DELETE FROM audit_entry",
        "DELETE FROM audit_entry WHERE position = (SELECT max(position) FROM audit_entry)",
        replace if scene.database.is_sqlite else "TRUNCATE audit_entry",
    ):
        with pytest.raises(Exception, match="append-only"), scene.database.begin() as session:
            session.execute(text(change))
    assert entries(scene.database) == before


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("UPDATE audit_entry SET details = '{}' WHERE position = 2", (1, "the entry 2 was changed")),
        ("UPDATE audit_entry SET digest = previous WHERE position = 2", (1, "the entry 2 was changed")),
        ("UPDATE audit_entry SET person_id = NULL, access = 'command line' WHERE position = 3", (2, "the entry 3 was")),
        ("DELETE FROM audit_entry WHERE position = 1", (0, "the entry 1 is missing")),
        ("DELETE FROM audit_entry WHERE position = 3", (2, "the entry 3 is missing")),
        ("UPDATE audit_entry SET previous = digest WHERE position = 4", (3, "the entry 4 does not follow")),
        ("UPDATE audit_entry SET details = '[1' WHERE position = 2", (0, "cannot be read")),
    ],
)
def test_what_was_changed_past_the_database_s_refusal_is_named(
    sqlite_scene: Scene, change: str, problem: tuple[int, str]
):
    database = sqlite_scene.database
    ada = database.acting_as(ActingPerson("ada", is_local=False))
    for roles in ([users.ANNOTATOR], [users.REVIEWER], [users.ANNOTATOR]):
        with ada.begin() as session:
            users.set_roles(session, "ben", roles)
    assert check(database).problem == ""
    drop_triggers(database)
    with database.begin() as session:
        session.execute(text(change))
    result = check(database)
    assert (result.entries, problem[1] in result.problem) == (problem[0], True), result


def test_an_end_that_was_cut_off_is_found_by_a_digest_from_before(sqlite_scene: Scene):
    digest = check(sqlite_scene.database).digest
    drop_triggers(sqlite_scene.database)
    with sqlite_scene.database.begin() as session:
        assert audit.has_entry(session, digest)
        session.execute(text("DELETE FROM audit_entry WHERE position = (SELECT max(position) FROM audit_entry)"))
    assert check(sqlite_scene.database).problem == ""
    with sqlite_scene.database.read() as session:
        assert not audit.has_entry(session, digest)


@pytest.fixture
def sqlite_scene(sqlite_template: Path, tmp_path: Path) -> Any:
    """A database whose triggers may be gone at the end."""
    store = Database(f"sqlite:///{tmp_path / 'audited.db'}")
    (tmp_path / "audited.db").write_bytes(sqlite_template.read_bytes())
    with store.begin() as session:
        ada, ben = users.register_user(session, "ada"), users.register_user(session, "ben")
    yield Scene(store, None, [], ada, ben)  # type: ignore[arg-type]
    store.close()


def test_a_missing_trigger_is_named_by_the_check_and_a_changed_one_keeps_the_database_closed(database: Database):
    with database.begin() as session:
        if database.is_sqlite:
            session.execute(text("DROP TRIGGER audit_entry_no_update"))
        else:
            session.execute(text("ALTER TABLE audit_entry DISABLE TRIGGER audit_entry_no_change"))
    (finding,) = check_database(database)
    assert "trigger audit_entry_no_" in finding
    with database.begin() as session:
        if database.is_sqlite:
            session.execute(
                text(
                    "CREATE TRIGGER audit_entry_no_update BEFORE UPDATE ON audit_entry "
                    "BEGIN SELECT RAISE(ABORT, 'the audit log is append-only'); END"
                )
            )
        else:
            session.execute(text("ALTER TABLE audit_entry ENABLE TRIGGER audit_entry_no_change"))


def test_an_act_that_is_undone_leaves_no_entry(scene: Scene):
    before = entries(scene.database)
    with suppress(Conflict), scene.database.begin() as session:
        users.set_roles(session, "ben", [users.ANNOTATOR])
        logins.switch(session, "ada", on=False)
    with scene.database.begin() as session:
        savepoint = session.begin_nested()
        users.set_roles(session, "ben", [users.ANNOTATOR])
        savepoint.rollback()
        with session.begin_nested():
            record_act(session, "kept", "thing")
    with suppress(StoreError), scene.database.begin() as session:
        record_act(session, "tried", "thing", "\0")
    assert acts(scene.database, len(before)) == [("kept", "thing")]
    assert check(scene.database).problem == ""


def logged_in(session: Session, user_id: UUID) -> str:
    token = logins.invite(session, user_id)
    user = logins.use_invitation(session, token)
    return logins.begin_login(session, user.id)


def test_acts_are_stored_with_the_id_of_who_acts_and_how_they_came(scene: Scene):
    database, first = scene.database, len(entries(scene.database))
    with database.begin() as session:
        token = logged_in(session, scene.ben.id)
        logins.record_failure(session, "ben", "192.0.2.1")
        logins.record_failure(session, "my-pässword\0", "192.0.2.1")
    with database.begin() as session:
        logins.end_login(session, token)
        logins.end_login(session, token)
    ada = database.acting_as(ActingPerson("ada", is_local=False))
    with ada.begin() as session:
        users.set_roles(session, "ben", [users.ANNOTATOR])
        users.set_roles(session, "ben", [users.ANNOTATOR])
        logins.begin_login(session, scene.ben.id)
        logins.switch(session, "ben", on=False)
    with database.acting_as(ActingPerson("ada", is_local=True)).begin() as session:
        removed = removals.remove(session, Kind.PROJECT, scene.project.id)
        removals.restore(session, removed.id)
        removals.remove(session, Kind.QUESTION, scene.questions[0].id)
    purging.purge(database, now=True)
    new = entries(database)[first:]
    ben, who_acts = str(scene.ben.id), str(scene.ada.id)
    assert [(entry["action"], entry["object_kind"], entry["person_id"], entry["access"]) for entry in new] == [
        ("invited", "person", None, "command line"),
        ("used an invitation", "person", ben, "login"),
        ("logged in", "login", ben, "login"),
        ("failed to log in", "person", None, "login"),
        ("failed to log in", "", None, "login"),
        ("logged out", "login", ben, "login"),
        ("changed roles", "person", who_acts, "login"),
        ("logged in", "login", ben, "login"),
        ("ended logins", "person", who_acts, "login"),
        ("switched off", "person", who_acts, "login"),
        ("deleted", "project", who_acts, "this machine"),
        ("restored", "project", who_acts, "this machine"),
        ("deleted", "question", who_acts, "this machine"),
        ("deleted for good", "question", None, "command line"),
    ]
    assert new[6]["details"] == {"before": ["annotator", "reviewer"], "after": ["annotator"]}
    assert new[10]["details"] == {"with": {"question": 3, "trace": 0, "run": 0}}
    assert [entry["person"] for entry in new[-3:]] == ["ada", "ada", None]
    for written in (token, "my-pässword", scene.questions[0].text, "harbours"):
        assert written not in repr(new)


def test_a_person_s_name_can_go_and_the_chain_stays(scene: Scene):
    with scene.database.acting_as(ActingPerson("ada", is_local=False)).begin() as session:
        logins.invite(session, scene.ben.id)
    with scene.database.begin() as session:
        session.get_one(users.User, scene.ada.id).name = "somebody"
    assert check(scene.database).problem == ""
    assert entries(scene.database)[-1]["person"] == "somebody"
    with scene.database.read() as session:
        rows = repr(session.execute(text("SELECT * FROM audit_entry")).all())
    assert "ada" not in rows
    assert "ben" not in rows


def test_a_secret_is_in_no_entry_and_the_chain_is_of_what_is_stored(database: Database):
    secret = "sk-0123456789abcdef"  # noqa: S105 - of this test
    store = Database(database.url, lambda: Redactor([secret]))
    with store.begin() as session:
        record_act(session, "tried", "thing", secret, {"after": [secret]})
    assert secret not in repr(entries(store))
    assert check(store).problem == ""
    store.close()


def test_a_restored_and_a_moved_log_have_the_same_chain_and_go_on(
    scene: Scene, tmp_path: Path, postgresql_server: PostgresqlServer
):
    kept = check(scene.database)
    assert kept.entries
    back_up_database(scene.database, tmp_path / "backup")
    with scene.database.begin() as session:
        logins.switch(session, "ben", on=False)
    assert restore_database(scene.database, tmp_path / "backup").findings == []
    assert check(scene.database) == kept
    target = (
        Database(postgresql_server.create_database(f"audit{tmp_path.name[-8:]}".lower().replace("-", "_")))
        if scene.database.is_sqlite
        else Database(f"sqlite:///{tmp_path / 'moved.db'}")
    )
    move_database(scene.database, target)
    for database in (scene.database, target):
        assert check(database) == kept
        with pytest.raises(Exception, match="append-only"), database.begin() as session:
            session.execute(text("DELETE FROM audit_entry"))
        with database.begin() as session:
            logins.switch(session, "ben", on=False)
        assert (check(database).problem, check(database).entries) == ("", kept.entries + 1)
    target.close()
