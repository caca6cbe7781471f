"""`showhow questions import | list`."""

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


def list_questions(home: Path, *words: str) -> list[dict[str, object]]:
    done = showhow(home, "list", "--project", "Kin", "--json", *words)
    assert done.returncode == 0, done.stderr
    questions: list[dict[str, object]] = json.loads(done.stdout)
    return questions


def write_questions(home: Path, *records: object) -> Path:
    file = home / "q.jsonl"
    file.write_text("\n".join(record if isinstance(record, str) else json.dumps(record) for record in records), "utf-8")
    return file


def error_of(done: subprocess.CompletedProcess[str]) -> str:
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    return done.stderr


def test_questions_are_added_once_and_listed_in_order(home: Path) -> None:
    file = write_questions(home, GOOD, {"question": "When was Ada Reed born?", "answer": "1931-03-05", "kind": "date"})
    guidelines = home / "guide.md"
    guidelines.write_text("**Be brief.**", "utf-8")
    done = showhow(home, "import", file, "--project", "Kin", "--world", "small", "--guidelines", guidelines, "--json")
    assert json.loads(done.stdout) == {"project": "Kin", "added": 2, "already": 0}
    again = showhow(home, "import", file, "--project", "Kin")
    assert again.stdout == "Kin: 0 questions added, 2 existed already\n"
    questions = list_questions(home)
    assert [(question["position"], question["text"]) for question in questions] == [
        (1, GOOD["question"]),
        (2, "When was Ada Reed born?"),
    ]
    assert questions[0]["answers"] == [{"text": "Eva Reed", "entity": None}]
    assert [question["position"] for question in list_questions(home, "--limit", "1", "--after", "1")] == [2]


def test_a_malformed_line_stops_the_import_and_no_question_is_stored(home: Path) -> None:
    file = write_questions(home, GOOD, '{"question": ')
    message = error_of(showhow(home, "import", file, "--project", "Kin", "--world", "small"))
    assert f"{file}, line 2" in message
    assert "there is no project 'Kin'" in error_of(showhow(home, "list", "--project", "Kin"))


def test_a_missing_world_or_file_is_reported_and_no_project_is_created(home: Path) -> None:
    file = write_questions(home, GOOD)
    assert "--world" in error_of(showhow(home, "import", file, "--project", "Kin"))
    assert "small" in error_of(showhow(home, "import", file, "--project", "Kin", "--world", "nowhere"))
    unreadable = ("--world", "small", "--guidelines", home / "none.md")
    assert "none.md" in error_of(showhow(home, "import", file, "--project", "Kin", *unreadable))
    assert "hotpotqa" in error_of(showhow(home, "import", file, "--project", "Kin", "--format", "tables"))
    assert "there is no project 'Kin'" in error_of(showhow(home, "list", "--project", "Kin"))


def test_the_real_questions_are_imported(home: Path, shared_data: Path) -> None:
    file = shared_data / "world_2wiki" / "questions_300.json"
    done = showhow(home, "import", file, "--project", "Kin", "--world", "small", "--json")
    assert json.loads(done.stdout)["added"] == 300
    assert len(list_questions(home, "--limit", "1000")) == 300
