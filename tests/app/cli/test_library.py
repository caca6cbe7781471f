"""`showhow library` on the published demonstrations."""

import json

import pytest

from tests.app.cli.in_process import run_in_process
from tests.app.cli.test_traces import run  # noqa: F401 - a fixture
from tests.browser.server import copy_prepared_home
from tests.fewshot_library.test_golden_picks import published_actions

HUMANIQ_NAMES = {
    "wikisearch": "WikiSearch",
    "getWikiDataID": "GetWikidataID",
    "generateQuery": "GenerateSparql",
    "runQuery": "RunSparql",
    "getLabel": "GetLabel",
}


@pytest.fixture
def frozen(run, shared_data):  # noqa: F811 - the fixture above
    """A home with the Mintaka demonstrations frozen once."""
    assert run("traces", "import", shared_data / "humaniq" / "mintaka.json")[0] == 0
    assert run("library", "freeze", "mintaka", "--licence", "CC BY 4.0")[:2] == (
        0,
        "mintaka:1 holds 20 demonstrations\n",
    )
    return run


def test_a_version_is_frozen_shown_and_compared(frozen):
    assert frozen("library", "freeze", "mintaka", "--by", "models")[0] == 1
    status, stdout, _ = frozen("library", "show", "mintaka", "--json")
    version = json.loads(stdout)
    assert (status, version["number"], version["card"]["licence"]) == (0, 1, "CC BY 4.0")
    assert version["statistics"]["demonstrations"] == len(version["demonstrations"]) == 20
    assert sum(version["statistics"]["tools"].values()) == sum(
        len(demonstration["tools"]) for demonstration in version["demonstrations"]
    )
    assert frozen("library", "freeze", "mintaka", "--project", "HumanIQ Mintaka")[0] == 0
    assert frozen("library", "compare", "mintaka:1", "mintaka:2")[1] == "0 added, 0 removed, 20 kept\n"
    assert frozen("library", "list")[1].count("mintaka:") == 2


def test_a_selection_is_explained_and_can_leave_out_the_question_itself(frozen):
    # Few calls, since each one may load the encoder for seconds.
    question = "What is the tallest mountain in alaska?"
    status, stdout, stderr = frozen("library", "select", "mintaka", question, "--json")
    assert (status, stderr) == (0, "")
    selection = json.loads(stdout)
    assert selection["picks"][0]["question"] == question
    assert selection["picks"][0]["relevance"] == 1
    assert sum(pick["gain"] for pick in selection["picks"]) == pytest.approx(selection["log_det"], abs=1e-5)
    assert all(0 < pick["novelty"] <= 1 and pick["lead"] > 0 for pick in selection["picks"])
    explanation = frozen("library", "select", "mintaka", question, "--explain", "--leave-out-itself")[1]
    assert question not in explanation
    assert explanation.count("relevance") == explanation.count("next best") == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("select", "nets", "Who?"), "there is no library 'nets'"),
        (("select", "mintaka", "Who?", "--mode", "best"), "there is no mode 'best'"),
        (("select", "mintaka", "Who?", "--alpha", "-1"), "alpha -1"),
        (("freeze", "mintaka", "--by", "cats"), "not by 'cats'"),
        (("freeze", "none", "--kind", "odd"), "no approved trace matches"),
        (("freeze", ".."), "a library cannot be called '..': use up to 64 letters"),
        (("freeze", "x" * 300), "…': use up to 64 letters"),
        (("freeze", "NUL"), "Windows reserves this name"),
        (("freeze", "Mintaka"), "it is easily taken for 'mintaka'"),
        (("show", "mintaka:9"), "there is no library 'mintaka:9'"),
    ],
)
def test_a_failure_is_one_line(frozen, words, message):
    status, stdout, stderr = frozen("library", *words)
    assert (status, stdout) == (1, "")
    assert message in stderr
    assert stderr.count("\n") == 1


def test_usage_of_demonstrations_for_a_project_is_counted_and_stored(frozen, shared_data, tmp_path):
    assert frozen("traces", "import", shared_data / "humaniq" / "compmix.json")[0] == 0
    words = ("library", "usage", "mintaka", "--project", "HumanIQ Compmix", "-k", "2", "--json")
    status, stdout, stderr = frozen(*words)
    report = json.loads(stdout)
    assert (status, stderr.splitlines()[-1]) == (0, "20 of 20 questions")
    assert (report["questions"], report["picks"], report["number"]) == (20, 40, 1)
    assert sum(row["times"] for row in report["used"]) == 40
    assert len(report["used"]) + report["never"] == report["demonstrations"] == 20
    [report_file] = (tmp_path / "home" / "libraries").glob("*/usage/*.json")
    assert json.loads(report_file.read_text()) == report
    # The text output has the same counts, the most used demonstration first.
    most_used = report["used"][0]
    lines = frozen("library", "usage", "mintaka", "--project", "HumanIQ Compmix", "-k", "2")[1].splitlines()
    assert lines[0].split(maxsplit=1) == [str(most_used["times"]), most_used["question"]]
    assert lines[-1].startswith("20 questions, 40 picks: ")
    assert frozen("library", "usage", "mintaka", "--project", "none")[::2] == (
        1,
        "showhow: there is no project 'none'; `showhow questions import` makes one\n",
    )


def test_the_map_has_every_sequence_of_the_imported_names_of_tools_once(frozen, shared_data):
    sequence_map = json.loads(frozen("library", "map", "mintaka", "--json")[1])
    sequences = [[HUMANIQ_NAMES.get(name, name) for name in row["actions"]] for row in sequence_map["sequences"]]
    published = published_actions(shared_data / "humaniq" / "mintaka.json")
    assert {
        tuple(names): row["demonstrations"] for names, row in zip(sequences, sequence_map["sequences"], strict=True)
    } == {tuple(names): published.count(names) for names in published}
    statistics = json.loads(frozen("library", "show", "mintaka", "--json")[1])["statistics"]
    assert statistics["sequences"] == len(sequences)
    assert 0 < sequence_map["shown"][0] <= sequence_map["shown"][1] <= 1
    assert frozen("library", "map", "mintaka", "--distance", "far")[0] == 1


def test_a_version_or_the_matching_traces_are_exported(frozen, shared_data, tmp_path):
    assert frozen("traces", "import", shared_data / "humaniq" / "compmix.json")[0] == 0
    file = tmp_path / "mintaka.jsonl"
    assert json.loads(frozen("library", "export", file, "--library", "mintaka", "--json")[1])["written"] == 20
    assert len(file.read_text().splitlines()) == 20
    assert frozen("library", "export", file)[0] == 1
    export = frozen("library", "export", file, "--force", "--text", "ALASKA tallest", "--format", "humaniq")
    assert export[:2] == (0, f"1 traces written to {file}\n")
    assert "tallest mountain in alaska" in file.read_text()
    assert "no demonstration matches" in frozen("library", "export", tmp_path / "none", "--kind", "odd")[2]
    assert not (tmp_path / "none").exists()


def test_the_check_says_of_each_demonstration_that_replay_does_not_repeat_why(frozen):
    status, stdout, stderr = frozen("library", "check", "mintaka", "--json")
    report = json.loads(stdout)
    assert (status, stderr, set(report)) == (0, "", {"demonstrations", "repeat", "not"})
    assert (report["demonstrations"], report["repeat"] + len(report["not"])) == (20, 20)
    # Their world is not in this home.
    assert {why["why"].partition("'")[0] for why in report["not"]} == {"There is no world "}
    listed = json.loads(frozen("traces", "list", "--json")[1])
    assert {entry["id"] for entry in report["not"]} <= {trace["id"] for trace in listed}
    assert frozen("library", "check", "mintaka")[1].endswith("0 of 20 demonstrations repeat on their own question\n")


@pytest.mark.long
def test_each_demonstration_of_the_setup_repeats_exactly(tmp_path):
    copy_prepared_home(tmp_path)
    checked = run_in_process(tmp_path, "library", "check", "default", "--json")
    assert json.loads(checked.stdout) == {"demonstrations": 60, "repeat": 60, "not": []}
