"""What the parts of runs were, over stored runs of a generated world: operators, sources, facts, mistakes."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.app.cli.in_process import run_in_process

RUNS = {
    "right": ("geek", "oracle"),
    "wrong": ("geek", "faulty:0.3:7:wrong"),
    "cut": ("geek", "faulty:1:7:cut"),
    "atomr": ("atomr", "oracle"),
    "rag": ("rag", "oracle"),
}


@dataclass(frozen=True)
class Stored:
    """A home with a generated world and runs over its questions."""

    home: Path
    runs: dict[str, str]

    def compare(self, *names: str, by: str) -> list[dict[str, Any]]:
        done = run_in_process(
            self.home, "compare", *(self.runs[name] for name in names), "--by", by, "--format", "json"
        )
        assert done.returncode == 0, done.stderr
        rows: list[dict[str, Any]] = json.loads(done.stdout)
        return rows

    def of(self, name: str, rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
        return {row["group"]: row for row in rows if row["id"] == self.runs[name]}


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stored]:
    home = tmp_path_factory.mktemp("home")
    for words in (
        "world generate town --people 80 --seed 9 --split text=50,graph=35,web=15",
        "questions import worlds/town/questions.jsonl --project Town --world town",
    ):
        done = run_in_process(home, *words.split())
        assert done.returncode == 0, done.stderr
    runs = {}
    for name, (reasoner, skills) in RUNS.items():
        words = f"verify --project Town --reasoner {reasoner} --skills {skills} --limit 16 --json"
        done = run_in_process(home, *words.split())
        assert done.stdout, done.stderr
        runs[name] = json.loads(done.stdout)["run"]
    yield Stored(home, runs)


@pytest.mark.long
def test_gold_replies_have_every_gold_fact_and_make_no_mistake(stored: Stored):
    rows = stored.of("right", stored.compare("right", "wrong", by="fact"))
    assert {name: row["share"] for name, row in rows.items()} == {"matched": 1.0, "missed": 0, "wrong": 0, "beside": 0}
    assert rows["matched"]["parts"] >= 16
    print(stored.compare("right", "wrong", by="fact"), stored.compare("right", "wrong", "cut", by="mistake"))
    print(stored.compare("right", "atomr", by="operator"), stored.compare("right", "atomr", by="chosen-source"))
