"""`showhow world import --format phantomwiki | verify | export`."""

import json
import shutil
from pathlib import Path

import pytest

from tests.app.cli.test_world import error_of, showhow, stdout_of
from tests.fiction.phantomwiki import small_instance
from tests.fiction.world_alterations import change_rows


@pytest.fixture(scope="module")
def imported_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the small instance."""
    home = tmp_path_factory.mktemp("home")
    folder = small_instance.write(home / "instance")
    stdout = stdout_of(home, "import", "small", "--articles", folder)
    assert stdout == "small: 5 people, 5 articles, 136 triples, 3 questions\n"
    return home


@pytest.fixture
def home(imported_home: Path, tmp_path: Path) -> Path:
    """A copy of that home, to be changed."""
    return Path(shutil.copytree(imported_home, tmp_path / "home"))


def test_an_imported_instance_is_verified_exported_and_imported_again(home: Path):
    counts = "3 answers, 24 particulars of questions, 5 solution traces, 90 relations by rules"
    counts += ", 46 facts under articles, 36 facts in sentences"
    counts += ", 136 triples, 3 answers of queries"
    assert stdout_of(home, "verify", "small") == f"small: {counts}: all equal\n"
    report = json.loads(stdout_of(home, "verify", "small", "--json"))
    assert (report["world"], report["equal"], report["different"]) == ("small", True, 0)
    assert {check["name"]: check["checked"] for check in report["checks"]}["triples"] == 136
    split = "depth_20_size_5_seed_1"
    stdout = stdout_of(home, "export", "small", "--format", "phantomwiki", "--to", home / split)
    assert stdout == f"{home / split}: 5 people and articles, 3 questions\n"
    imported = stdout_of(home, "import", "back", "--format", "phantomwiki", "--articles", home / split, "--json")
    assert json.loads(imported)["people"] == 5
    # Our own instances have no solution traces.
    counts = counts.replace("5 solution traces, ", "")
    assert stdout_of(home, "verify", "back") == f"back: {counts}: all equal\n"


def test_a_project_is_made_over_an_imported_instance_too(home: Path):
    stdout = stdout_of(home, "import", "again", "--articles", home / "instance", "--project", "Kin")
    assert stdout.splitlines()[1:] == ["Kin: a project without questions"]


def test_a_wrong_answer_is_listed_and_the_exit_status_is_1(home: Path):
    wrong_answers = [{"text": "Nobody Atall", "entity": None}]
    change_rows(home / "worlds" / "small" / "questions.jsonl", lambda rows: rows[0].update(answers=wrong_answers))
    done = showhow(home, "verify", "small")
    assert done.returncode == 1
    first, *differences = done.stdout.splitlines()
    assert first.startswith("small: 2 differ of 3 answers, ")
    question = "Who is the sister of the person whose hobby is rowing? (q0)"
    assert differences == [
        f"  {question}: stated Nobody Atall, derived Di Lee (Q1000000003)",
        f"  query of {question}: stated Nobody Atall, derived Q1000000003",
    ]
    done = showhow(home, "verify", "small", "--json")
    assert (done.returncode, json.loads(done.stdout)["different"]) == (1, 2)


def test_a_malformed_instance_fails_with_one_sentence(home: Path):
    facts = home / "instance" / "facts.pl"
    facts.write_text(facts.read_text(encoding="utf-8").replace("0950-01-02", "0950-13-02"), encoding="utf-8")
    message = error_of(home, "import", "bad", "--format", "phantomwiki", "--articles", facts.parent)
    assert message == (
        f"showhow: {facts}, line 26: '0950-13-02' is not a valid day; write days like 0929-10-28. "
        "Nothing was imported; correct the file and import it again."
    )
    assert stdout_of(home, "list").count("\n") == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["verify", "nowhere"], "There is no world 'nowhere'"),
        (["export", "small", "--to", "instance"], "instance is not empty; name a new folder."),
        (
            ["export", "small", "--to", "there", "--format", "hotpotqa"],
            "there is no export format 'hotpotqa' for worlds; use phantomwiki",
        ),
        (["import", "x", "--format", "phantomwiki", "--graph", "g.nt"], "name the folder of the instance"),
        (
            ["import", "x", "--format", "phantomwiki", "--articles", "worlds"],
            "neither the folder nor a folder in it has a facts.pl",
        ),
        (
            ["import", "x", "--format", "phantomwiki", "--articles", "instance", "--where", "kind=film"],
            "an instance takes only --where split=NAME, not 'kind'",
        ),
        (
            ["import", "small", "--format", "phantomwiki", "--articles", "instance"],
            "There is a world 'small' already; choose another name, or replace it with --replace.",
        ),
    ],
)
def test_a_failure_is_one_line(imported_home: Path, words: list[str], message: str):
    assert message in error_of(imported_home, *words)


def test_a_world_without_universe_cannot_be_verified(home: Path):
    isle = Path(__file__).resolve().parents[2] / "worlds" / "isle.jsonl"
    stdout_of(home, "import", "isle", "--articles", isle)
    assert "The world isle has no universe to derive answers from" in error_of(home, "verify", "isle")
    assert "The world isle has no universe" in error_of(home, "export", "isle", "--to", "there")


def test_a_generated_world_is_verified_and_exported_without_questions_outside_the_grammar(tmp_path: Path):
    stdout_of(tmp_path, "generate", "kin", "--people", "60", "--seed", "2", "--depth", "4", "--per-template", "1")
    questions = json.loads(stdout_of(tmp_path, "info", "kin", "--json"))["questions"]
    assert stdout_of(tmp_path, "verify", "kin").startswith(f"kin: {questions} answers, 60 people, ")
    export = json.loads(stdout_of(tmp_path, "export", "kin", "--to", tmp_path / "folder", "--json"))
    assert (export["people"], export["questions"] + export["left_out"]) == (60, questions)
    assert 0 < export["questions"] < questions
    imported = stdout_of(tmp_path, "import", "back", "--format", "phantomwiki", "--articles", tmp_path / "folder")
    assert imported.endswith(f", {export['questions']} questions\n")
    assert stdout_of(tmp_path, "verify", "back").endswith(": all equal\n")
