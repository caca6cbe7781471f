"""`showhow world traces`, started as users start it."""

import json
from pathlib import Path

import pytest

from fewshot_library.formats import showhow
from fiction.questions.question_file import read_question_rows
from tests.app.cli.test_world import ISLE, refused, told


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a world whose graph tells everything, and an imported one."""
    home = tmp_path_factory.mktemp("home")
    split = "text=0,graph=100,web=0"
    told(home, "generate", "kin", "--people", "80", "--per-template", "1", "--depth", "4", "--split", split)
    told(home, "import", "isle", "--articles", ISLE.with_suffix(".jsonl"))
    return home


def test_gold_traces_are_written_as_traces_that_can_be_imported(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "gold.jsonl"
    report = json.loads(told(home, "traces", "kin", "--limit", "12", "--to", file, "--json"))
    found = list(showhow.read_records(file))
    assert (report["written"], len(found)) == (12 - len(report["failed"]), report["written"])
    asked = [row["text"] for row in read_question_rows(home / "worlds" / "kin")][:12]
    texts = [record.question.text for record in found]
    assert texts == [text for text in asked if text in texts]
    assert all(record.trace.status == "approved" and record.steps for record in found)


def test_only_one_kind_and_never_over_a_file_that_is_there(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "gold.jsonl"
    said = told(home, "traces", "kin", "--kind", "comparison", "--limit", "2", "--to", file)
    assert said == "2 traces written, 0 failed\n"
    assert {record.question.kind for record in showhow.read_records(file)} == {"comparison"}
    assert "exists already" in refused(home, "traces", "kin", "--to", file)


def test_worlds_without_questions_are_told(home: Path, tmp_path: Path) -> None:
    assert "no questions of its own" in refused(home, "traces", "isle", "--to", tmp_path / "none.jsonl")
    assert not (tmp_path / "none.jsonl").exists()
