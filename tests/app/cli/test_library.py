"""`showhow library` as a user runs it, on the published demonstrations."""

import json

import pytest

from tests.app.cli.test_traces import run  # noqa: F401 - a fixture


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
    status, out, _ = frozen("library", "show", "mintaka", "--json")
    shown = json.loads(out)
    assert (status, shown["number"], shown["card"]["licence"]) == (0, 1, "CC BY 4.0")
    assert shown["statistics"]["demonstrations"] == len(shown["demonstrations"]) == 20
    assert sum(shown["statistics"]["tools"].values()) == sum(len(each["tools"]) for each in shown["demonstrations"])
    assert frozen("library", "freeze", "mintaka", "--project", "HumanIQ Mintaka")[0] == 0
    assert frozen("library", "compare", "mintaka:1", "mintaka:2")[1] == "0 added, 0 removed, 20 kept\n"
    assert frozen("library", "list")[1].count("mintaka:") == 2


def test_the_choice_is_explained_and_leaves_out_the_question_itself_when_asked(frozen):
    # One process an answer loads the encoder for seconds, so that few are asked.
    asked = "What is the tallest mountain in alaska?"
    status, out, err = frozen("library", "select", "mintaka", asked, "--json")
    assert (status, err) == (0, "")
    found = json.loads(out)
    assert found["picks"][0]["question"] == asked
    assert found["picks"][0]["relevance"] == 1
    assert sum(pick["gain"] for pick in found["picks"]) == pytest.approx(found["log_det"], abs=1e-5)
    assert all(0 < pick["novelty"] <= 1 and pick["lead"] > 0 for pick in found["picks"])
    told = frozen("library", "select", "mintaka", asked, "--explain", "--leave-out-itself")[1]
    assert asked not in told
    assert told.count("relevance") == told.count("next best") == 3


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("select", "nets", "Who?"), "there is no library 'nets'"),
        (("select", "mintaka", "Who?", "--mode", "best"), "there is no mode 'best'"),
        (("select", "mintaka", "Who?", "--alpha", "-1"), "alpha -1"),
        (("freeze", "mintaka", "--by", "cats"), "not by 'cats'"),
        (("freeze", "none", "--kind", "odd"), "no approved trace fits"),
        (("show", "mintaka:9"), "there is no library 'mintaka:9'"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line(frozen, words, said):
    status, out, err = frozen("library", *words)
    assert (status, out) == (1, "")
    assert said in err
    assert err.count("\n") == 1


def test_how_often_demonstrations_are_used_for_a_project_is_counted_and_kept(frozen, shared_data, tmp_path):
    assert frozen("traces", "import", shared_data / "humaniq" / "compmix.json")[0] == 0
    words = ("library", "usage", "mintaka", "--project", "HumanIQ Compmix", "-k", "2", "--json")
    status, out, err = frozen(*words)
    report = json.loads(out)
    assert (status, err.splitlines()[-1]) == (0, "20 of 20 questions")
    assert (report["questions"], report["picks"], report["number"]) == (20, 40, 1)
    assert sum(each["times"] for each in report["used"]) == 40
    assert len(report["used"]) + report["never"] == report["demonstrations"] == 20
    [kept] = (tmp_path / "home" / "libraries" / "mintaka" / "1-usage").iterdir()
    assert json.loads(kept.read_text()) == report
    # The same count, from one answer after the other, for the demonstration that is used most.
    most = report["used"][0]
    told = frozen("library", "usage", "mintaka", "--project", "HumanIQ Compmix", "-k", "2")[1].splitlines()
    assert told[0].split(maxsplit=1) == [str(most["times"]), most["question"]]
    assert told[-1].startswith("20 questions, 40 picks: ")
    assert frozen("library", "usage", "mintaka", "--project", "none")[::2] == (
        1,
        "showhow: there is no project 'none'; `showhow questions import` makes one\n",
    )


def test_the_map_has_every_sequence_once(frozen):
    found = json.loads(frozen("library", "map", "mintaka", "--json")[1])
    shown = json.loads(frozen("library", "show", "mintaka", "--json")[1])
    used = [tuple(each["tools"]) for each in shown["demonstrations"]]
    drawn = {tuple(each["actions"]): each["demonstrations"] for each in found["sequences"]}
    assert drawn == {tools: used.count(tools) for tools in used}
    assert 0 < found["shown"][0] <= found["shown"][1] <= 1
    assert frozen("library", "map", "mintaka", "--distance", "far")[0] == 1


def test_a_version_or_what_fits_is_exported(frozen, shared_data, tmp_path):
    assert frozen("traces", "import", shared_data / "humaniq" / "compmix.json")[0] == 0
    file = tmp_path / "mintaka.jsonl"
    assert json.loads(frozen("library", "export", file, "--library", "mintaka", "--json")[1])["written"] == 20
    assert len(file.read_text().splitlines()) == 20
    assert frozen("library", "export", file)[0] == 1
    told = frozen("library", "export", file, "--force", "--text", "ALASKA tallest", "--format", "humaniq")
    assert told[:2] == (0, f"1 traces written to {file}\n")
    assert "tallest mountain in alaska" in file.read_text()
    assert "no demonstration matches" in frozen("library", "export", tmp_path / "none", "--kind", "odd")[2]
    assert not (tmp_path / "none").exists()
