"""Invitations, logins and people who are switched off, as the store keeps them."""

from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import select, text, update

from showhow.db.database import Conflict, Database
from showhow.db.people import logins, users
from showhow.db.people.logins import Invitation, Login
from showhow.db.storage.backup import back_up_database
from showhow.db.storage.restore import restore_database
from showhow.db.types import utc_now
from tests.db.conftest import Scene
from tests.db.test_restore import client_programs  # noqa: F401 - a fixture


def logged_in(scene: Scene, name: str = "ben") -> str:
    """The token of a login of that person."""
    with scene.database.begin() as session:
        user = users.find_user(session, name)
        assert user is not None
        return logins.begin_login(session, user.id)


def is_in(database: Database, token: str) -> bool:
    with database.read() as session:
        return logins.find_login(session, token) is not None


def age(database: Database, table: type[Invitation] | type[Login]) -> None:
    with database.begin() as session:
        session.execute(update(table).values(expires_at=utc_now() - timedelta(seconds=1)))


def test_a_link_is_used_once_until_it_expires_and_a_later_one_replaces_it(scene: Scene):
    with scene.database.begin() as session:
        replaced, token = (logins.invite(session, scene.ben.id) for _ in range(2))
        assert logins.find_invited(session, replaced) is None
        invited = logins.find_invited(session, token)
        assert invited is not None
        assert invited.name == "ben"
    with scene.database.begin() as session:
        logins.set_password(session, logins.use_invitation(session, token).id, "hash 1")
    for unusable in (token, replaced, "", "x" * 43):
        with pytest.raises(Conflict, match="used already or has expired"), scene.database.begin() as session:
            logins.use_invitation(session, unusable)
    with scene.database.begin() as session:
        late = logins.invite(session, scene.ben.id)
    age(scene.database, Invitation)
    with pytest.raises(Conflict, match="expired"), scene.database.begin() as session:
        logins.use_invitation(session, late)
    with scene.database.read() as session:
        assert logins.find_password(session, "ben") is not None
        assert logins.find_password(session, "ben")[1] == "hash 1"  # type: ignore[index]
        assert logins.find_password(session, "ada") is None


def test_a_login_ends_by_its_end_its_expiry_a_new_password_and_a_later_login_of_the_browser(scene: Scene):
    first, second, others = logged_in(scene), logged_in(scene), logged_in(scene, "ada")
    assert all(is_in(scene.database, token) for token in (first, second, others))
    with scene.database.begin() as session:
        later = logins.begin_login(session, scene.ben.id, first)
    assert [is_in(scene.database, token) for token in (first, second, later)] == [False, True, True]
    with scene.database.begin() as session:
        kept = logins.find_login(session, later)
        assert kept is not None
        assert logins.end_logins(session, scene.ben.id, kept[0].id) == 1
    assert [is_in(scene.database, token) for token in (second, later)] == [True, False]
    with scene.database.begin() as session:
        logins.use_invitation(session, logins.invite(session, scene.ben.id))
    assert [is_in(scene.database, token) for token in (second, others)] == [False, True]
    age(scene.database, Login)
    assert not is_in(scene.database, others)


def test_who_is_switched_off_or_has_no_role_is_out_and_can_change_nothing(scene: Scene):
    token = logged_in(scene)
    with scene.database.begin() as session:
        link = logins.invite(session, scene.ben.id)
        logins.set_password(session, scene.ben.id, "hash")
        logins.switch(session, "ben", on=False)
    with scene.database.read() as session:
        assert logins.find_password(session, "ben") is None
        assert logins.find_invited(session, link) is None
    assert not is_in(scene.database, token)
    for is_local in (True, False):
        acting = scene.database.acting_as(users.ActingPerson("ben", is_local))
        with pytest.raises(Conflict, match="ben is switched off"), acting.begin():
            pass
    with scene.database.begin() as session:
        logins.switch(session, "ben", on=True)
    assert not is_in(scene.database, token), "a login does not come back"
    again = logged_in(scene)
    with scene.database.begin() as session:
        users.set_roles(session, "ben", [])
    assert not is_in(scene.database, again)


def test_only_an_administrator_invites_switches_and_ends_and_one_stays(scene: Scene):
    for act in (
        lambda session: logins.invite(session, scene.ada.id),
        lambda session: logins.switch(session, "ada", on=False),
        lambda session: logins.end_logins(session, scene.ada.id),
    ):
        with (
            pytest.raises(Conflict, match="ben is not an admin"),
            scene.database.acting_as(users.ActingPerson("ben", is_local=False)).begin() as session,
        ):
            act(session)
    with pytest.raises(Conflict, match="ada is the only administrator"), scene.database.begin() as session:
        logins.switch(session, "ada", on=False)
    with scene.database.begin() as session:
        users.set_roles(session, "ben", [users.ADMIN])
        logins.switch(session, "ben", on=False)
    with pytest.raises(Conflict, match="ada is the only administrator"), scene.database.begin() as session:
        users.set_roles(session, "ada", [users.ANNOTATOR])


def test_no_token_is_stored(scene: Scene):
    with scene.database.begin() as session:
        tokens = [logins.invite(session, scene.ben.id), logins.begin_login(session, scene.ben.id)]
        rows = [session.execute(text(f"SELECT * FROM {table}")).all() for table in ("login", "invitation")]
    assert [len(kind) for kind in rows] == [1, 1]
    assert [token for token in tokens if token in repr(rows)] == []
    assert all(len(token) == 43 for token in tokens)


def test_a_restored_backup_has_people_and_passwords_and_no_login_or_open_link(scene: Scene, tmp_path: Path):
    token = logged_in(scene)
    with scene.database.begin() as session:
        link = logins.invite(session, scene.ada.id)
        logins.set_password(session, scene.ben.id, "hash")
    back_up_database(scene.database, tmp_path / "backup")
    assert restore_database(scene.database, tmp_path / "backup").findings == []
    with scene.database.read() as session:
        assert logins.find_login(session, token) is None
        assert logins.find_invited(session, link) is None
        assert logins.find_password(session, "ben") is not None
        assert len(session.scalars(select(users.User)).all()) == 2


def test_a_person_is_known_by_one_subject_of_a_provider_and_nobody_else_is(scene: Scene):
    with scene.database.begin() as session:
        for subject in ("1", "2"):
            logins.link_subject(session, scene.ben.id, "https://idp.example", subject)
    with scene.database.read() as session:
        known = [logins.find_subject(session, "https://idp.example", subject) for subject in ("1", "2")]
        assert [user and user.name for user in known] == [None, "ben"]
        assert logins.find_subject(session, "https://other.example", "2") is None
    with pytest.raises(Conflict, match="belongs to somebody else"), scene.database.begin() as session:
        logins.link_subject(session, scene.ada.id, "https://idp.example", "2")
    with scene.database.begin() as session:
        logins.switch(session, "ben", on=False)
        assert logins.find_subject(session, "https://idp.example", "2") is None
