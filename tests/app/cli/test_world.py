"""`showhow world`, started as users start it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.cli.in_process import run_in_process

SHOWHOW = Path(sys.executable).with_name("showhow")
ISLE = Path(__file__).resolve().parents[2] / "worlds" / "isle"


def showhow(home: Path, *words: str | Path | bytes) -> subprocess.CompletedProcess[str]:
    return run_in_process(home, "world", *words)


def test_a_process_of_its_own_does_the_same(tmp_path: Path):
    environ = {**os.environ, "SHOWHOW_HOME": str(tmp_path), "SHOWHOW_DATABASE_URL": ""}
    command = [SHOWHOW, "world", "import", "isle", "--articles", ISLE.with_suffix(".jsonl")]
    first = subprocess.run(command, capture_output=True, text=True, env=environ, check=False, cwd=tmp_path)
    assert (first.returncode, first.stdout) == (0, "isle: 7 articles, 0 triples\n")
    second = subprocess.run(command, capture_output=True, text=True, env=environ, check=False, cwd=tmp_path)
    assert (second.returncode, second.stdout) == (1, "")
    assert second.stderr.splitlines()[-1].startswith("showhow: ")


def told(home: Path, *words: str | Path | bytes) -> str:
    done = showhow(home, *words)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    return done.stdout


def refused(home: Path, *words: str | Path | bytes) -> str:
    done = showhow(home, *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr
    *progress, said = done.stderr.splitlines()
    assert progress in ([], [f"importing {words[1]!s} ..."])
    assert said.startswith("showhow: ")
    return said


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the world `isle`, imported by the verb."""
    home = tmp_path_factory.mktemp("home")
    files = ("--articles", ISLE.with_suffix(".jsonl"), "--graph", ISLE.with_suffix(".ttl"))
    assert told(home, "import", "isle", *files, "--licence", "CC0") == "isle: 7 articles, 29 triples\n"
    return home


def test_a_world_is_listed_and_described(home):
    assert told(home, "list") == "isle: 7 articles, 29 triples (imported)\n"
    about = json.loads(told(home, "info", "isle", "--json"))
    assert json.loads(told(home, "list", "--json")) == [about]
    assert (about["articles"], about["licence"], len(about["hash"])) == (7, "CC0", 64)
    assert "licence: CC0\n" in told(home, "info", "isle")


def test_articles_are_searched_and_read(home):
    hits = json.loads(told(home, "search", "isle", "Who rowed the mail?", "-k", "1", "--json"))
    assert [hit["title"] for hit in hits] == ["Mara Quill (keeper)"]
    assert told(home, "search", "isle", "tom quill", "-k", "1") == "Tom Quill: Tom Quill was a rower.\n"
    assert told(home, "search", "isle", "xyzzy") == "nothing found\n"
    assert told(home, "search", "isle", b"\xff") == "nothing found\n"
    assert told(home, "article", "isle", "tom quill") == "Tom Quill (Q2)\nTom Quill was a rower.\n"
    assert json.loads(told(home, "article", "isle", "Empty Page", "--json"))["sentences"] == []
    assert "nearest" in refused(home, "article", "isle", "Quill")
    assert "no article titled" in refused(home, "article", "isle", b"\xff")


def test_the_graph_is_asked(home):
    assert told(home, "query", "isle", "ASK { wd:Q1 wdt:P22 wd:Q2 }") == "yes\n"
    assert told(home, "query", "isle", "SELECT ?x ?y { wd:Q1 wdt:P22 ?x }") == "x\ty\nQ2\t\n"
    table = json.loads(told(home, "query", "isle", "SELECT ?x { wd:Q1 wdt:P22 ?x }", "--json"))
    assert table["rows"] == [[{"kind": "entity", "value": "Q2", "datatype": None, "language": None}]]
    assert "SERVICE" in refused(home, "query", "isle", "SELECT * { SERVICE <http://x/> { ?a ?b ?c } }")
    assert "no valid SELECT or ASK" in refused(home, "query", "isle", "who?\nwhat?")


def test_what_a_world_does_not_have_is_told(home):
    told(home, "import", "words", "--articles", ISLE.with_suffix(".jsonl"))
    told(home, "import", "facts", "--graph", ISLE.with_suffix(".ttl"))
    assert "the world words has no graph" in refused(home, "query", "words", "ASK {}")
    assert "the world facts has no articles" in refused(home, "search", "facts", "Mara")
    assert "the world facts has no articles" in refused(home, "article", "facts", "Mara")
    assert "there are: facts, isle, words" in refused(home, "info", "nowhere")


def test_an_import_that_fails_is_one_line_and_leaves_nothing(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"title": "A", "text": "B."}\n{"title": "A"\n')
    said = refused(tmp_path, "import", "w", "--articles", "a.jsonl")
    assert "a.jsonl, line 2: no JSON" in said
    assert told(tmp_path, "list") == "no worlds yet\n"
    assert list((tmp_path / "worlds").iterdir()) == []


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("import", "w"), "--articles, --graph or both"),
        (("import", "../w", "--graph", ISLE.with_suffix(".ttl")), "cannot name a world"),
        (("import", "isle", "--graph", ISLE.with_suffix(".ttl")), "already"),
        (("import", "w", "--articles", "none.jsonl"), "none.jsonl"),
        (("import", "w", "--articles", ISLE.with_suffix(".jsonl"), "--format", "odd"), "auto, jsonl, hotpotqa, 2wiki"),
        (("import", "w", "--articles", ISLE.with_suffix(".jsonl"), "--where", "side"), "FIELD=VALUE"),
        (("import", "w", "--articles", ISLE.with_suffix(".jsonl"), "--where", "side=x"), "would be empty"),
        (("generate", "w", "--people", "0"), "people must be from 1 to 5,000,000, not 0"),
        (("generate", "w", "--split", "text=3"), "add up to 3; make it 100"),
    ],
)
def test_what_cannot_be_imported_or_made_is_one_line_and_status_one(home, words, reason):
    assert reason in refused(home, *words)


@pytest.mark.parametrize("words", [(), ("search", "isle"), ("search", "isle", "x", "-k", "0"), ("nonsense",)])
def test_wrong_usage_is_status_two(home, words):
    done = showhow(home, *words)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_only_articles_with_the_wanted_fields_are_imported_and_the_condition_is_remembered(tmp_path):
    told(tmp_path, "import", "w", "--articles", ISLE.with_suffix(".jsonl"), "--where", "entity=Q2")
    about = json.loads(told(tmp_path, "info", "w", "--json"))
    assert (about["articles"], about["where"]) == (1, ["entity=Q2"])


def test_the_same_seed_makes_the_same_world(tmp_path):
    words = ("--people", "12", "--seed", "5", "--json")
    one, two = (json.loads(told(tmp_path, "generate", name, *words)) for name in ("one", "two"))
    assert one["hash"] == two["hash"]
    assert (one["kind"], one["people"], one["seed"]) == ("generated", 12, 5)
    other = json.loads(told(tmp_path, "generate", "one", "--people", "12", "--seed", "6", "--json", "--replace"))
    assert other["hash"] != one["hash"]
