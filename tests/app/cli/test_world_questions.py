"""`showhow world around | family | questions`, compared with the world."""

import json
from pathlib import Path

import pytest

from showhow.fiction.family import build_universe_family
from showhow.fiction.universe.build import make_universe
from showhow.fiction.universe.items import ItemCatalog
from showhow.fiction.universe.options import GenerationOptions
from tests.app.cli.test_world import ISLE, error_of, stdout_of

ROWS = [
    {"id": f"q{n}", "text": f"Question {n}?", "kind": "who" if n % 2 else "count", "difficulty": n, "answers": []}
    for n in range(1, 41)
]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a generated world, whose questions are replaced by ROWS, and an imported one."""
    home = tmp_path_factory.mktemp("home")
    stdout_of(home, "generate", "kin", "--people", "60", "--seed", "3", "--per-template", "0")
    (home / "worlds" / "kin" / "questions.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    stdout_of(home, "import", "isle", "--articles", ISLE.with_suffix(".jsonl"), "--graph", ISLE.with_suffix(".ttl"))
    return home


def test_around_prints_the_relations_of_an_entity(home):
    stdout = stdout_of(home, "around", "isle", "Q2")
    assert stdout.splitlines() == ["Tom Quill (Q2)", 'father <- Mara Quill, Ole "the Oar" O\'Hara']
    neighbourhood = json.loads(stdout_of(home, "around", "isle", "Q2", "--most", "1", "--json"))
    assert [(branch["outgoing"], branch["more"]) for branch in neighbourhood["branches"]] == [(False, True)]
    assert "does not know 'Q77'" in error_of(home, "around", "isle", "Q77")


def test_the_actual_family_and_the_family_in_the_graph(home):
    universe = make_universe(GenerationOptions(people=60, seed=3, per_template=0))
    items = ItemCatalog(universe)
    families = [build_universe_family(universe, items.person(row)) for row in range(len(universe))]
    largest = max((one for one in families if one), key=lambda one: len(one.people))
    for flags in ((), ("--told",)):
        family = json.loads(stdout_of(home, "family", "kin", largest.centre, *flags, "--json"))
        assert set(family["people"]) == set(largest.people)
    stdout = stdout_of(home, "family", "kin", largest.centre)
    children = [largest.people[child].label for child in largest.children(largest.centre)]
    assert not children or f"children: {', '.join(children)}" in stdout
    assert (
        stdout_of(home, "family", "isle", "Q1")
        == 'Mara Quill (Q1)\nparents: Tom Quill\nsiblings: Ole "the Oar" O\'Hara\n'
    )
    assert "Q5 has no family" in error_of(home, "family", "isle", "Q5")


def test_questions_are_filtered_and_listed(home):
    lines = stdout_of(home, "questions", "kin").splitlines()
    assert [line.split(":")[0] for line in lines] == [f"q{n}" for n in range(1, 21)]
    command = ("questions", "kin", "--kind", "who", "--lowest", "10", "--highest", "30", "--limit", "3", "--after", "1")
    assert [row["id"] for row in json.loads(stdout_of(home, *command, "--json"))] == ["q13", "q15", "q17"]
    assert json.loads(stdout_of(home, "questions", "kin", "--text", "question 7?", "--json")) == [ROWS[6]]
    assert stdout_of(home, "questions", "kin", "--needs", "web") == "no questions\n"
    assert "has no questions; generated worlds" in error_of(home, "questions", "isle")
    assert "has no question q99" in error_of(home, "trace", "kin", "q99")
    assert "There is no world 'none'" in error_of(home, "questions", "none")
