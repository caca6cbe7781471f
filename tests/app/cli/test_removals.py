"""`rename`, `archive`, `delete` and `restore` of the verbs, and what is deleted for good."""

import json
from pathlib import Path

import pytest

from tests.app.cli.in_process import run_in_process
from tests.browser.server import copy_prepared_home

PEOPLE = "Fictional people"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("removals")
    copy_prepared_home(folder)
    return folder


def run(home: Path, *words: str) -> str:
    done = run_in_process(home, *words)
    assert done.returncode == 0, done.stderr
    return done.stdout


def refuse(home: Path, *words: str) -> str:
    done = run_in_process(home, *words)
    assert done.returncode == 1
    return done.stderr


def test_a_run_is_named_at_its_start_renamed_exported_and_restored(home: Path):
    arguments = ("verify", "--project", PEOPLE, "--reasoner", "replay", "--limit", "2", "--json")
    first = json.loads(run(home, *arguments, "--name", "Baseline", "--note", "first week"))
    assert (first["name"], first["note"]) == ("Baseline", "first week")
    second = json.loads(run(home, *arguments))
    assert second["name"] == ""
    lines = run(home, "runs", "list", "--project", PEOPLE).splitlines()
    assert lines[1].endswith("Baseline (first week)")
    assert "2 of 2" in lines[0] or "of 2" in lines[0]
    assert run(home, "runs", "rename", "Baseline", "Before repairs").endswith("Before repairs\n")
    log = home / "run.json"
    run(home, "runs", "export", first["id"], str(log))
    run(home, "runs", "delete", "Before repairs", "--yes")
    assert [row["id"] for row in json.loads(run(home, "runs", "list", "--json"))] == [second["id"]]
    run(home, "runs", "restore", first["id"])
    # The log brings its name and its note into another project.
    run(home, "project", "create", "Elsewhere", "--world", "default")
    run(home, "runs", "import", str(log), "--project", "Elsewhere")
    (imported,) = json.loads(run(home, "runs", "list", "--project", "Elsewhere", "--json"))
    assert (imported["name"], imported["note"]) == ("Before repairs", "first week")
    run(home, "project", "delete", "Elsewhere", "--yes")


def test_a_deletion_says_what_it_touches_and_asks(home: Path):
    done = run_in_process(home, "project", "delete", PEOPLE)
    assert done.returncode == 1
    assert f"Project {PEOPLE} with" in done.stderr
    assert "The library default:1 keeps its" in done.stderr
    assert PEOPLE in run(home, "project", "list")
    assert "no project 'Nobody'" in refuse(home, "project", "delete", "Nobody", "--yes")
    assert "name one as default:1" in refuse(home, "library", "delete", "default", "--yes")
    assert "'ffff' is not the id of any runs here" in refuse(home, "runs", "delete", "ffff", "--yes")


def test_worlds_libraries_projects_and_questions_are_put_away_and_brought_back(home: Path):
    assert "renamed" not in run(home, "project", "rename", PEOPLE, "People")
    run(home, "world", "rename", "default", "harbour")
    assert run(home, "world", "info", "harbour").startswith("name: harbour")
    assert json.loads(run(home, "project", "show", "People", "--json"))["world"] == "harbour"
    assert "over it" in run_in_process(home, "world", "delete", "harbour").stderr
    run(home, "world", "delete", "harbour", "--yes")
    assert "There is no world 'harbour'" in refuse(home, "world", "info", "harbour")
    assert "harbour: deleted" in run(home, "world", "restore")
    run(home, "world", "restore", "harbour")
    run(home, "world", "rename", "harbour", "default")
    run(home, "project", "rename", "People", PEOPLE)
    before = json.loads(run(home, "questions", "list", "--project", PEOPLE, "--json"))
    run(home, "questions", "archive", f"{PEOPLE}:2")
    after = json.loads(run(home, "questions", "list", "--project", PEOPLE, "--json"))
    assert [row["position"] for row in after][:2] == [1, 3]
    run(home, "questions", "restore", before[1]["id"])
    assert json.loads(run(home, "questions", "list", "--project", PEOPLE, "--json")) == before
    run(home, "library", "archive", "default:1")
    assert "no library yet" in run(home, "library", "list")
    assert "archived" in run(home, "library", "restore")
    run(home, "library", "restore", "default:1")
    assert run(home, "library", "list").startswith("default:1")


def test_what_is_deleted_can_be_deleted_for_good(home: Path):
    run(home, "project", "create", "Gone", "--world", "default")
    run(home, "project", "delete", "Gone", "--yes")
    assert run(home, "db", "purge") == "nothing to do\n"
    assert "project Gone" in run(home, "db", "purge", "--now")
    assert "no projects called 'Gone'" in refuse(home, "project", "restore", "Gone")
    assert run(home, "db", "check") == "the database is sound\n"
