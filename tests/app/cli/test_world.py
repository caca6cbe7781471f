"""`showhow world import | list | info | search | article | query`."""

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


def test_the_verb_works_in_a_process_of_its_own(tmp_path: Path):
    environ = {**os.environ, "SHOWHOW_HOME": str(tmp_path), "SHOWHOW_DATABASE_URL": ""}
    command = [SHOWHOW, "world", "import", "isle", "--articles", ISLE.with_suffix(".jsonl")]
    first = subprocess.run(command, capture_output=True, text=True, env=environ, check=False, cwd=tmp_path)
    assert (first.returncode, first.stdout) == (0, "isle: 7 articles, 0 triples\n")
    second = subprocess.run(command, capture_output=True, text=True, env=environ, check=False, cwd=tmp_path)
    assert (second.returncode, second.stdout) == (1, "")
    assert second.stderr.splitlines()[-1].startswith("showhow: ")


def stdout_of(home: Path, *words: str | Path | bytes) -> str:
    done = showhow(home, *words)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    return done.stdout


def error_of(home: Path, *words: str | Path | bytes) -> str:
    done = showhow(home, *words)
    assert (done.returncode, done.stdout) == (1, "")
    assert "Traceback" not in done.stderr
    *progress, message = done.stderr.splitlines()
    assert progress in ([], [f"importing {words[1]!s} ..."])
    assert message.startswith("showhow: ")
    return message


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the world `isle`, imported by the verb."""
    home = tmp_path_factory.mktemp("home")
    files = ("--articles", ISLE.with_suffix(".jsonl"), "--graph", ISLE.with_suffix(".ttl"))
    assert stdout_of(home, "import", "isle", *files, "--licence", "CC0") == "isle: 7 articles, 29 triples\n"
    return home


def test_a_world_is_listed_and_described(home):
    assert stdout_of(home, "list") == "isle: 7 articles, 29 triples (imported)\n"
    about = json.loads(stdout_of(home, "info", "isle", "--json"))
    assert json.loads(stdout_of(home, "list", "--json")) == [about]
    assert (about["articles"], about["licence"], len(about["hash"])) == (7, "CC0", 64)
    assert "licence: CC0\n" in stdout_of(home, "info", "isle")


def test_articles_are_searched_and_read(home):
    hits = json.loads(stdout_of(home, "search", "isle", "Who rowed the mail?", "-k", "1", "--json"))
    assert [hit["title"] for hit in hits] == ["Mara Quill (keeper)"]
    assert stdout_of(home, "search", "isle", "tom quill", "-k", "1") == "Tom Quill: Tom Quill was a rower.\n"
    assert stdout_of(home, "search", "isle", "xyzzy") == "nothing found\n"
    assert stdout_of(home, "search", "isle", b"\xff") == "nothing found\n"
    assert stdout_of(home, "article", "isle", "tom quill") == "Tom Quill (Q2)\nTom Quill was a rower.\n"
    assert json.loads(stdout_of(home, "article", "isle", "Empty Page", "--json"))["sentences"] == []
    assert "nearest" in error_of(home, "article", "isle", "Quill")
    assert "no article titled" in error_of(home, "article", "isle", b"\xff")


def test_the_graph_is_queried(home):
    assert stdout_of(home, "query", "isle", "ASK { wd:Q1 wdt:P22 wd:Q2 }") == "yes\n"
    assert stdout_of(home, "query", "isle", "SELECT ?x ?y { wd:Q1 wdt:P22 ?x }") == "x\ty\nQ2\t\n"
    table = json.loads(stdout_of(home, "query", "isle", "SELECT ?x { wd:Q1 wdt:P22 ?x }", "--json"))
    assert table["rows"] == [[{"kind": "entity", "value": "Q2", "datatype": None, "language": None}]]
    assert "SERVICE" in error_of(home, "query", "isle", "SELECT * { SERVICE <http://x/> { ?a ?b ?c } }")
    assert "not a valid SELECT or ASK" in error_of(home, "query", "isle", "who?\nwhat?")


def test_a_missing_source_of_a_world_is_reported(home):
    stdout_of(home, "import", "words", "--articles", ISLE.with_suffix(".jsonl"))
    stdout_of(home, "import", "facts", "--graph", ISLE.with_suffix(".ttl"))
    assert "the world words has no graph" in error_of(home, "query", "words", "ASK {}")
    assert "the world facts has no articles" in error_of(home, "search", "facts", "Mara")
    assert "the world facts has no articles" in error_of(home, "article", "facts", "Mara")
    assert "there are: facts, isle, words" in error_of(home, "info", "nowhere")


def test_a_failed_import_is_one_line_and_removes_the_world(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"title": "A", "text": "B."}\n{"title": "A"\n')
    message = error_of(tmp_path, "import", "w", "--articles", "a.jsonl")
    assert "a.jsonl, line 2: invalid JSON" in message
    assert stdout_of(tmp_path, "list") == "no worlds yet\n"
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
def test_a_failed_import_or_generation_is_one_line_and_exit_status_1(home, words, reason):
    assert reason in error_of(home, *words)


@pytest.mark.parametrize("words", [(), ("search", "isle"), ("search", "isle", "x", "-k", "0"), ("nonsense",)])
def test_wrong_usage_has_exit_status_2(home, words):
    done = showhow(home, *words)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_where_imports_only_matching_articles_and_is_stored_in_the_metadata(tmp_path):
    stdout_of(tmp_path, "import", "w", "--articles", ISLE.with_suffix(".jsonl"), "--where", "entity=Q2")
    about = json.loads(stdout_of(tmp_path, "info", "w", "--json"))
    assert (about["articles"], about["where"]) == (1, ["entity=Q2"])


def test_the_same_seed_generates_the_same_world(tmp_path):
    words = ("--people", "12", "--seed", "5", "--json")
    first, second = (json.loads(stdout_of(tmp_path, "generate", name, *words)) for name in ("one", "two"))
    assert first["hash"] == second["hash"]
    assert (first["kind"], first["people"], first["seed"]) == ("generated", 12, 5)
    third = json.loads(stdout_of(tmp_path, "generate", "one", "--people", "12", "--seed", "6", "--json", "--replace"))
    assert third["hash"] != first["hash"]
