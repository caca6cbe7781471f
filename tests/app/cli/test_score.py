"""`showhow score`: values, lists of metrics and refusals on the command line."""

import gzip
import json
from pathlib import Path

import pytest

from tests.app.cli.in_process import run_in_process


@pytest.fixture
def predictions(tmp_path: Path) -> Path:
    """Two predictions with their gold answers."""
    file = tmp_path / "predictions.jsonl"
    rows = [
        {"id": "1", "predicted": "Lake-side", "gold": ["lake side"], "type": "bridge"},
        {"id": "2", "ending": "refused", "gold": ["Ada"], "type": "comparison"},
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


def test_a_value_has_its_metric_version_components_and_counts(tmp_path: Path, predictions: Path):
    done = run_in_process(tmp_path, "score", predictions, "--metric", "atomr_f1", "--dataset", "HotpotQA", "--json")
    report = json.loads(done.stdout)
    names = ("metric", "version", "value", "n", "answered", "refused", "failed", "wrong")
    assert [report[name] for name in names] == ["atomr_f1", 1, 0.5, 2, 1, 1, 0, 0]
    assert report["components"] == {"em": 0.5, "cover_em": 0.5, "f1": 0.5}
    assert [(kind, group["value"]) for kind, group in report["by_kind"].items()] == [
        ("bridge", 1.0),
        ("comparison", 0.0),
    ]
    text = run_in_process(tmp_path, "score", predictions, "--metric", "atomr_f1").stdout
    assert "0.5000  1 answered, 1 refused of 2  all" in text
    assert "atomr_f1 (version 1, THU-KEG/AtomR src/calculate_metrics.py)" in text


def test_metrics_are_listed_by_data_set(tmp_path: Path):
    listed = json.loads(run_in_process(tmp_path, "score", "--metric", "list", "--json").stdout)
    assert {"f1", "official_f1", "2wiki_joint_f1", "atomr_f1"} <= listed["2wikimultihopqa"].keys()
    assert "ontology" in listed["grailqa"]["grailqa_em"]
    assert "  mintaka_kg_h1" in run_in_process(tmp_path, "score", "--metric", "list").stdout


def test_answers_that_need_a_judge_have_no_value_and_a_reason(tmp_path: Path):
    file = tmp_path / "crag.jsonl"
    file.write_text(
        '{"predicted": "Ada Lund", "gold": ["Ada"]}\n{"predicted": "Ada", "gold": ["Ada"]}\n', encoding="utf-8"
    )
    text = run_in_process(tmp_path, "score", file, "--metric", "crag_score").stdout
    assert "1 answers could not be scored, so there is no value (1: the rules leave the answer to a judge" in text
    assert "Note: answers are cut" in text


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--metric", "atomr_f1", "--dataset", "mintaka"), "The data set mintaka does not have the metric atomr_f1"),
        (("--metric", "nonsense"), "There is no metric 'nonsense'"),
        (("--metric", "mintaka_kg_f1", "--gold", "nowhere.json"), "nowhere.json: it cannot be read"),
    ],
)
def test_a_refusal_is_one_sentence(tmp_path: Path, predictions: Path, words: tuple[str, ...], reason: str):
    done = run_in_process(tmp_path, "score", predictions, *words)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert reason in done.stderr
    assert run_in_process(tmp_path, "score", "--metric", "atomr_f1").returncode == 1


def test_a_small_file_that_expands_beyond_the_memory_is_refused_in_one_sentence(tmp_path: Path):
    file = tmp_path / "predictions.jsonl.gz"
    row = json.dumps({"predicted": "Ada", "gold": ["Ada"], "note": [[]] * 10_000})
    # A hundred kilobytes of rows that take a gigabyte as Python's values.
    file.write_bytes(gzip.compress(f"{row}\n".encode() * 1_500))
    done = run_in_process(tmp_path, "score", file, "--metric", "atomr_f1")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert "takes more than 640 MB of memory" in done.stderr
    assert "--unbounded" in done.stderr
