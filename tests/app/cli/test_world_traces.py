"""`showhow world traces`."""

import json
from pathlib import Path

import pytest

from showhow.fewshot_library.formats import showhow
from showhow.fiction.questions.question_file import read_question_rows
from tests.app.cli.test_world import ISLE, error_of, stdout_of


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a world whose graph states all facts, and an imported one."""
    home = tmp_path_factory.mktemp("home")
    split = "text=0,graph=100,web=0"
    stdout_of(home, "generate", "kin", "--people", "80", "--per-template", "1", "--depth", "4", "--split", split)
    stdout_of(home, "import", "isle", "--articles", ISLE.with_suffix(".jsonl"))
    return home


def test_gold_traces_are_written_in_the_import_format(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "gold.jsonl"
    report = json.loads(stdout_of(home, "traces", "kin", "--limit", "12", "--to", file, "--json"))
    records = list(showhow.read_records(file))
    assert (report["written"], len(records)) == (12 - len(report["failed"]), report["written"])
    question_texts = [row["text"] for row in read_question_rows(home / "worlds" / "kin")][:12]
    texts = [record.question.text for record in records]
    assert texts == [text for text in question_texts if text in texts]
    assert all(record.trace.status == "approved" and record.steps for record in records)


def test_traces_of_one_kind_are_written_and_an_existing_file_is_kept(home: Path, tmp_path: Path) -> None:
    file = tmp_path / "gold.jsonl"
    stdout = stdout_of(home, "traces", "kin", "--kind", "comparison", "--limit", "2", "--to", file)
    assert stdout == "2 traces written, 0 failed\n"
    assert {record.question.kind for record in showhow.read_records(file)} == {"comparison"}
    assert "exists already" in error_of(home, "traces", "kin", "--to", file)


def test_a_world_without_questions_is_reported(home: Path, tmp_path: Path) -> None:
    assert "has no questions; generated worlds" in error_of(home, "traces", "isle", "--to", tmp_path / "none.jsonl")
    assert not (tmp_path / "none.jsonl").exists()
