"""What the parts of runs were, over stored runs of a generated world: operators, sources, facts, mistakes."""

import json
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from tests.app.cli.in_process import run_in_process
from tests.reasoners.baselines.scripted_runs import read_request
from tests.servers.model import ModelServer, Request, Says

pytestmark = pytest.mark.long

RUNS = {
    "right": ("geek --option rounds=20", "oracle"),
    "wrong": ("geek --option rounds=20", "faulty:0.3:7:wrong"),
    "cut": ("geek", "faulty:1:7:cut"),
    "atomr": ("atomr", "oracle"),
    "rag": ("rag", "oracle"),
}


@dataclass(frozen=True)
class Stored:
    """A home with a generated world and runs over its questions."""

    home: Path
    runs: dict[str, str]

    def print_parts(self, *names: str, by: str, form: str = "json") -> str:
        ids = [self.runs[name] for name in names]
        done = run_in_process(self.home, "compare", *ids, "--by", by, "--format", form)
        return done.stdout or done.stderr

    def compare(self, *names: str, by: str) -> list[dict[str, dict[str, Any]]]:
        """The rows of each run by group."""
        rows = json.loads(self.print_parts(*names, by=by))
        return [{row["group"]: row for row in rows if row["id"] == self.runs[name]} for name in names]


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Stored:
    home = tmp_path_factory.mktemp("home")
    for words in (
        "world generate town --people 80 --seed 9 --split text=50,graph=35,web=15",
        "questions import worlds/town/questions.jsonl --project Town --world town",
    ):
        done = run_in_process(home, *words.split())
        assert done.returncode == 0, done.stderr
    runs = {}
    for name, (reasoner, skills) in RUNS.items():
        words = f"verify --project Town --reasoner {reasoner} --skills {skills} --limit 12 --json"
        done = run_in_process(home, *words.split())
        runs[name] = json.loads(done.stdout)["id"]
    return Stored(home, runs)


def test_gold_replies_have_every_gold_fact_and_make_no_mistake(stored: Stored):
    right, wrong, cut = stored.compare("right", "wrong", "cut", by="fact")
    assert {name: row["share"] for name, row in right.items()} == {"matched": 1, "missed": 0, "wrong": 0, "beside": 0}
    gold_facts = right["matched"]["parts"]
    assert gold_facts >= 12
    assert right["matched"]["questions"] == 12
    for rows in (wrong, cut):
        assert rows["matched"]["parts"] + rows["missed"]["parts"] == gold_facts
    assert 0 < wrong["wrong"]["parts"] <= wrong["missed"]["parts"]
    assert cut["matched"]["parts"] == 0


def test_the_mistakes_of_wrong_answers_are_shares_of_these_answers(stored: Stored):
    right, wrong, cut = stored.compare("right", "wrong", "cut", by="mistake")
    assert [row["parts"] for row in right.values()] == [0] * 5
    assert list(wrong) == ["decomposition", "action", "facts", "deduction", "failure"]
    # Several of one answer are counted apart, as in the paper, whose shares add up to 122 %.
    assert sum(row["share"] for row in wrong.values()) > 0.99
    assert wrong["facts"]["parts"] > 0
    assert all((row["score"] or 0) < 1 for row in wrong.values())
    assert {name: row["share"] for name, row in cut.items() if row["parts"]} == {"failure": 1.0}


def test_operators_and_chosen_sources_are_shares_of_the_parts_of_a_run(stored: Stored):
    none, operators = stored.compare("rag", "atomr", by="operator")
    assert not none
    assert set(operators) <= {"Search", "Relate", "Filter"}
    # Relate is the most frequent operator, and Search finds what every question begins with.
    assert next(iter(operators)) == "Relate"
    assert operators["Search"]["questions"] == 12
    assert sum(row["share"] for row in operators.values()) == pytest.approx(1.0)
    geek, atomr = stored.compare("right", "atomr", by="chosen-source")
    for sources in (geek, atomr):
        assert set(sources) <= {"text", "graph", "web"}
        assert sum(row["share"] for row in sources.values()) == pytest.approx(1.0)


def prefer_the_longer_list(request: Request) -> Says:
    asked = read_request(request)
    first, second = (len(asked[name].splitlines()) for name in ("first", "second"))
    better = "tie" if first == second else "first" if first > second else "second"
    return Says(json.dumps({"reasons": "I counted.", "better": better}))


def test_a_judge_compares_the_facts_of_a_run_with_the_gold_ones_in_both_orders(stored: Stored):
    with ModelServer(prefer_the_longer_list) as server:
        environ = {
            "SHOWHOW_MODEL": "judge",
            "SHOWHOW_MODEL_BASE_URL": server.url,
            "OPENAI_API_KEY": "none",
        }
        done = run_in_process(stored.home, "judge", stored.runs["right"], "--facts", "--json", **environ)
        report = json.loads(done.stdout)
        assert (report["compared"], report["tie"], len(server.requests)) == (12, 12, 24)
        asked = [read_request(request) for request in server.requests]
        pairs = {(entry["first"], entry["second"]) for entry in asked}
        assert pairs == {pair[::-1] for pair in pairs}
        assert all(entry["first"].count("? ") == entry["second"].count("? ") > 0 for entry in asked)
        assert "two lists of facts" in server.requests[0].body["messages"][0]["content"]
        refused = run_in_process(stored.home, "judge", stored.runs["atomr"], "--facts", **environ)
        assert "facts are those of a run of GEEK beside the gold ones" in refused.stderr


def test_the_tables_are_written_like_the_others_and_runs_without_such_parts_are_one_sentence(stored: Stored):
    table = pd.read_csv(StringIO(stored.print_parts("right", "wrong", by="mistake", form="csv")))
    assert list(table["group"][:5]) == ["decomposition", "action", "facts", "deduction", "failure"]
    lines = stored.print_parts("right", "atomr", by="operator", form="text").splitlines()
    assert lines[0] == "atomr, oracle"
    assert " Relate " in lines[1]
    message = stored.print_parts("rag", "atomr", by="fact")
    assert "no run has GEEK's facts beside the gold ones" in message
    assert "choose one of kind, hops" in stored.print_parts("rag", "atomr", by="colour")
