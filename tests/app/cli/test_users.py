"""`showhow users`."""

import json
from pathlib import Path

import pytest

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
        {"name": "ada", "roles": ["annotator", "reviewer", "admin"]},
        {"name": "ben", "roles": []},
    ]


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
