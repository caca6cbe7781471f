"""`showhow questions`, started as users start it."""

import json
import subprocess
from pathlib import Path

import pytest

from fiction.generator.build import generate_world
from fiction.universe.options import GenerationOptions
from tests.app.cli.in_process import run_in_process

GOOD = {"question": "Who is the mother of Ada Reed?", "answers": ["Eva Reed"], "id": "1"}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home with the world `small`."""
    generate_world(tmp_path / "worlds", "small", GenerationOptions(people=10, seed=1, depth=2, per_template=1))
    return tmp_path


def showhow(home: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    return run_in_process(home, "questions", *words)


def listed(home: Path, *words: str) -> list[dict[str, object]]:
    done = showhow(home, "list", "--project", "Kin", "--json", *words)
    assert done.returncode == 0, done.stderr
    found: list[dict[str, object]] = json.loads(done.stdout)
    return found


def lines(home: Path, *records: object) -> Path:
    file = home / "q.jsonl"
    file.write_text("\n".join(each if isinstance(each, str) else json.dumps(each) for each in records), "utf-8")
    return file


def refused(done: subprocess.CompletedProcess[str]) -> str:
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    return done.stderr


def test_questions_are_added_once_in_their_order_and_listed(home: Path) -> None:
    file = lines(home, GOOD, {"question": "When was Ada Reed born?", "answer": "1931-03-05", "kind": "date"})
    guidelines = home / "guide.md"
    guidelines.write_text("**Be brief.**", "utf-8")
    done = showhow(home, "import", file, "--project", "Kin", "--world", "small", "--guidelines", guidelines, "--json")
    assert json.loads(done.stdout) == {"project": "Kin", "added": 2, "already": 0}
    again = showhow(home, "import", file, "--project", "Kin")
    assert again.stdout == "Kin: 0 questions added, 2 existed already\n"
    found = listed(home)
    assert [(each["position"], each["text"]) for each in found] == [
        (1, GOOD["question"]),
        (2, "When was Ada Reed born?"),
    ]
    assert found[0]["answers"] == [{"text": "Eva Reed", "entity": None}]
    assert [each["position"] for each in listed(home, "--limit", "1", "--after", "1")] == [2]


def test_a_malformed_line_stops_the_import_and_nothing_of_it_stays(home: Path) -> None:
    file = lines(home, GOOD, '{"question": ')
    said = refused(showhow(home, "import", file, "--project", "Kin", "--world", "small"))
    assert f"{file}, line 2" in said
    assert "there is no project 'Kin'" in refused(showhow(home, "list", "--project", "Kin"))


def test_what_is_missing_is_named_and_no_project_is_made(home: Path) -> None:
    file = lines(home, GOOD)
    assert "--world" in refused(showhow(home, "import", file, "--project", "Kin"))
    assert "small" in refused(showhow(home, "import", file, "--project", "Kin", "--world", "nowhere"))
    unreadable = ("--world", "small", "--guidelines", home / "none.md")
    assert "none.md" in refused(showhow(home, "import", file, "--project", "Kin", *unreadable))
    assert "hotpotqa" in refused(showhow(home, "import", file, "--project", "Kin", "--format", "tables"))
    assert "there is no project 'Kin'" in refused(showhow(home, "list", "--project", "Kin"))


def test_the_real_questions_are_imported(home: Path, shared_data: Path) -> None:
    file = shared_data / "world_2wiki" / "questions_300.json"
    done = showhow(home, "import", file, "--project", "Kin", "--world", "small", "--json")
    assert json.loads(done.stdout)["added"] == 300
    assert len(listed(home, "--limit", "1000")) == 300
