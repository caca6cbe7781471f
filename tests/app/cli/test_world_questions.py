"""`showhow world around | family | questions`, started as users start them, against the world itself."""

import json
from pathlib import Path

import pytest

from fiction.family import build_universe_family
from fiction.universe.build import make_universe
from fiction.universe.items import ItemCatalog
from fiction.universe.options import GenerationOptions
from tests.app.cli.test_world import ISLE, refused, told

ROWS = [
    {"id": f"q{n}", "text": f"Question {n}?", "kind": "who" if n % 2 else "count", "difficulty": n, "answers": []}
    for n in range(1, 41)
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a generated world, whose questions are given here, and an imported one."""
    home = tmp_path_factory.mktemp("home")
    told(home, "generate", "kin", "--people", "60", "--seed", "3", "--per-template", "0")
    (home / "worlds" / "kin" / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    told(home, "import", "isle", "--articles", ISLE.with_suffix(".jsonl"), "--graph", ISLE.with_suffix(".ttl"))
    return home


def test_what_the_graph_says_of_an_entity(home):
    said = told(home, "around", "isle", "Q2")
    assert said.splitlines() == ["Tom Quill (Q2)", 'father <- Mara Quill, Ole "the Oar" O\'Hara']
    found = json.loads(told(home, "around", "isle", "Q2", "--most", "1", "--json"))
    assert [(branch["outgoing"], branch["more"]) for branch in found["branches"]] == [(False, True)]
    assert "does not know 'Q77'" in refused(home, "around", "isle", "Q77")


def test_a_family_as_it_is_and_as_the_graph_tells_it(home):
    universe = make_universe(GenerationOptions(people=60, seed=3, per_template=0))
    items = ItemCatalog(universe)
    families = [build_universe_family(universe, items.person(row)) for row in range(len(universe))]
    largest = max((one for one in families if one), key=lambda one: len(one.people))
    for how in ((), ("--told",)):
        found = json.loads(told(home, "family", "kin", largest.centre, *how, "--json"))
        assert set(found["people"]) == set(largest.people)
    said = told(home, "family", "kin", largest.centre)
    children = [largest.people[child].label for child in largest.children(largest.centre)]
    assert not children or f"children: {', '.join(children)}" in said
    assert (
        told(home, "family", "isle", "Q1") == 'Mara Quill (Q1)\nparents: Tom Quill\nsiblings: Ole "the Oar" O\'Hara\n'
    )
    assert "Q5 has no family" in refused(home, "family", "isle", "Q5")


def test_questions_are_listed_by_what_they_are_like(home):
    listed = told(home, "questions", "kin").splitlines()
    assert [line.split(":")[0] for line in listed] == [f"q{n}" for n in range(1, 21)]
    some = ("questions", "kin", "--kind", "who", "--lowest", "10", "--highest", "30", "--limit", "3", "--after", "1")
    assert [row["id"] for row in json.loads(told(home, *some, "--json"))] == ["q13", "q15", "q17"]
    assert json.loads(told(home, "questions", "kin", "--text", "question 7?", "--json")) == [ROWS[6]]
    assert told(home, "questions", "kin", "--needs", "web") == "no questions\n"
    assert "no questions of its own" in refused(home, "questions", "isle")
    assert "has no question q99" in refused(home, "trace", "kin", "q99")
    assert "There is no world 'none'" in refused(home, "questions", "none")
