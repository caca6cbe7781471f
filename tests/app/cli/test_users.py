"""`showhow users`."""

import json
from pathlib import Path

import pytest

from showhow.db.database import Database
from showhow.db.people import logins, users
from tests.app.cli.in_process import run_in_process


@pytest.fixture
def home(tmp_path: Path) -> Path:
    done = run_in_process(tmp_path, "db", "upgrade")
    assert done.returncode == 0, done.stderr
    return tmp_path


def test_people_are_listed_added_and_given_roles(home: Path):
    assert "nobody yet" in run_in_process(home, "users", "list").stdout
    assert run_in_process(home, "users", "add", "ada").stdout == "ada: annotator, reviewer, admin\n"
    assert run_in_process(home, "users", "add", "ben").stdout == "ben: annotator\n"
    done = run_in_process(home, "users", "role", "ben", "reviewer", "annotator", "--json")
    assert json.loads(done.stdout) == {"name": "ben", "roles": ["annotator", "reviewer"]}
    assert run_in_process(home, "users", "role", "ben", "none").stdout == "ben: none\n"
    assert json.loads(run_in_process(home, "users", "list", "--json").stdout) == [
        {"name": "ada", "roles": ["annotator", "reviewer", "admin"], "is_active": True},
        {"name": "ben", "roles": [], "is_active": True},
    ]


TEAM = {"SHOWHOW_LOGIN": "password", "SHOWHOW_URL": "https://showhow.example.org/"}


def test_where_people_log_in_who_is_added_gets_a_link_and_who_is_invited_again_another(home: Path):
    added = run_in_process(home, "users", "add", "ada", "--role", "admin", **TEAM).stdout
    assert added.startswith("ada: admin\nWith this link ada gets in, once and within 7 days:\n")
    again = json.loads(run_in_process(home, "users", "invite", "ada", "--json", **TEAM).stdout)
    assert again["link"].startswith("https://showhow.example.org/invite/")
    assert again["link"] not in added
    for words, environ, reason in (
        (["invite", "nobody"], TEAM, "there is no person 'nobody'"),
        (["invite", "ada"], {}, "SHOWHOW_LOGIN=password"),
        (["add", "ben", "--role", "boss"], TEAM, "there is no role 'boss'"),
    ):
        done = run_in_process(home, "users", *words, **environ)
        assert (done.returncode, reason in done.stderr) == (1, True), done.stderr
    assert "ben" not in run_in_process(home, "users", "list").stdout


def test_people_are_switched_off_and_on_and_their_logins_listed_and_ended(home: Path):
    for name in ("ada", "ben"):
        run_in_process(home, "users", "add", name)
    assert "ada is the only administrator" in run_in_process(home, "users", "disable", "ada").stderr
    assert run_in_process(home, "users", "disable", "ben").stdout == "ben: switched off\n"
    assert "ben  annotator  (switched off)" in run_in_process(home, "users", "list").stdout
    assert run_in_process(home, "users", "enable", "ben").stdout == "ben: switched on\n"
    assert run_in_process(home, "users", "logins", "ben").stdout == "ben is not logged in\n"
    database = Database(f"sqlite:///{home / 'showhow.db'}")
    with database.begin() as session:
        for _ in range(3):
            logins.begin_login(session, users.find_named(session, "ben").id)
    database.close()
    listed = json.loads(run_in_process(home, "users", "logins", "ben", "--json").stdout)
    assert len(listed) == 3
    left = run_in_process(home, "users", "logins", "ben", "--end", listed[0]["id"]).stdout
    assert [row["id"] in left for row in listed] == [False, True, True]
    for wrong, reason in ((listed[0]["id"], "ben has no login"), ("x", "is not the id of a login")):
        assert reason in run_in_process(home, "users", "logins", "ben", "--end", wrong).stderr
    assert run_in_process(home, "users", "logins", "ben", "--end", "all").stdout == "ben is not logged in\n"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["ada", "annotator"], "ada is the only administrator"),
        (["cleo", "annotator"], "there is no person 'cleo'"),
        (["ada", "boss"], "there is no role 'boss'"),
        (["ada", "none", "admin"], "there is no role 'none'"),
    ],
)
def test_a_role_that_cannot_be_given_is_refused_in_a_sentence(home: Path, words: list[str], reason: str):
    run_in_process(home, "users", "add", "ada")
    done = run_in_process(home, "users", "role", *words)
    assert done.returncode == 1
    assert reason in done.stderr
