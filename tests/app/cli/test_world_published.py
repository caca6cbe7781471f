"""`showhow world import --format phantomwiki | verify | export`, started as users start them."""

import json
import shutil
from pathlib import Path

import pytest

from tests.app.cli.test_world import refused, showhow, told
from tests.fiction.phantomwiki import small_instance
from tests.fiction.verification.alterations import change_rows


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the small instance."""
    home = tmp_path_factory.mktemp("home")
    folder = small_instance.write(home / "instance")
    said = told(home, "import", "small", "--format", "phantomwiki", "--articles", folder)
    assert said == "small: 5 people, 5 articles, 136 triples, 3 questions\n"
    return home


@pytest.fixture
def home(made: Path, tmp_path: Path) -> Path:
    """A copy of that home, to be changed."""
    return Path(shutil.copytree(made, tmp_path / "home"))


def test_an_imported_instance_is_verified_exported_and_imported_again(home: Path):
    counts = "3 answers, 21 particulars of questions, 46 facts under articles, 36 facts in sentences"
    counts += ", 136 triples, 3 answers of queries"
    assert told(home, "verify", "small") == f"small: {counts}: all equal\n"
    found = json.loads(told(home, "verify", "small", "--json"))
    assert (found["world"], found["equal"], found["different"]) == ("small", True, 0)
    assert {check["name"]: check["checked"] for check in found["checks"]}["triples"] == 136
    split = "depth_20_size_5_seed_1"
    said = told(home, "export", "small", "--format", "phantomwiki", "--to", home / split)
    assert said == f"{home / split}: 5 people and articles, 3 questions\n"
    back = told(home, "import", "back", "--format", "phantomwiki", "--articles", home / split, "--json")
    assert json.loads(back)["people"] == 5
    assert told(home, "verify", "back") == f"back: {counts}: all equal\n"


def test_a_planted_wrong_answer_is_shown_and_the_exit_status_is_1(home: Path):
    wrong = [{"text": "Nobody Atall", "entity": None}]
    change_rows(home / "worlds" / "small" / "questions.jsonl", lambda rows: rows[0].update(answers=wrong))
    done = showhow(home, "verify", "small")
    assert done.returncode == 1
    first, *differences = done.stdout.splitlines()
    assert first.startswith("small: 2 differ of 3 answers, ")
    asked = "Who is the sister of the person whose hobby is rowing? (q0)"
    assert differences == [
        f"  {asked}: stated Nobody Atall, derived Di Lee (Q1000000003)",
        f"  query of {asked}: stated Nobody Atall, derived Q1000000003",
    ]
    done = showhow(home, "verify", "small", "--json")
    assert (done.returncode, json.loads(done.stdout)["different"]) == (1, 2)


def test_a_wrong_instance_is_refused_in_one_sentence(home: Path):
    facts = home / "instance" / "facts.pl"
    facts.write_text(facts.read_text(encoding="utf-8").replace("0950-01-02", "0950-13-02"), encoding="utf-8")
    said = refused(home, "import", "bad", "--format", "phantomwiki", "--articles", facts.parent)
    assert said == (
        f"showhow: {facts}, line 26: '0950-13-02' is not a valid day; write days like 0929-10-28. "
        "Nothing was imported; mend the file and import it again."
    )
    assert told(home, "list").count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["verify", "nowhere"], "There is no world 'nowhere'"),
        (["export", "small", "--to", "instance"], "instance is not empty; name a new folder."),
        (
            ["export", "small", "--to", "there", "--format", "hotpotqa"],
            "there is no export format 'hotpotqa' for worlds; use phantomwiki",
        ),
        (["import", "x", "--format", "phantomwiki", "--graph", "g.nt"], "name the folder of the instance"),
        (["import", "x", "--format", "phantomwiki", "--articles", "worlds"], "the folder has no facts.pl"),
        (
            ["import", "x", "--format", "phantomwiki", "--articles", "instance", "--where", "kind=film"],
            "of an instance only a split can be chosen (--where split=NAME), not 'kind'",
        ),
        (
            ["import", "small", "--format", "phantomwiki", "--articles", "instance"],
            "There is a world 'small' already; choose another name, or replace it with --replace.",
        ),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(made: Path, words: list[str], said: str):
    assert said in refused(made, *words)


def test_a_world_of_articles_alone_cannot_be_verified(home: Path):
    isle = Path(__file__).resolve().parents[2] / "worlds" / "isle.jsonl"
    told(home, "import", "isle", "--articles", isle)
    assert "The world isle has no universe to derive answers from" in refused(home, "verify", "isle")
    assert "The world isle has no universe" in refused(home, "export", "isle", "--to", "there")


def test_a_generated_world_is_verified_and_exported_without_what_the_grammar_cannot_ask(tmp_path: Path):
    told(tmp_path, "generate", "kin", "--people", "60", "--seed", "2", "--depth", "4", "--per-template", "1")
    questions = json.loads(told(tmp_path, "info", "kin", "--json"))["questions"]
    assert told(tmp_path, "verify", "kin").startswith(f"kin: {questions} answers, 60 people, ")
    out = json.loads(told(tmp_path, "export", "kin", "--to", tmp_path / "folder", "--json"))
    assert (out["people"], out["questions"] + out["left_out"]) == (60, questions)
    assert 0 < out["questions"] < questions
    back = told(tmp_path, "import", "back", "--format", "phantomwiki", "--articles", tmp_path / "folder")
    assert back.endswith(f", {out['questions']} questions\n")
    assert told(tmp_path, "verify", "back").endswith(": all equal\n")
