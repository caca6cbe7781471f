"""`showhow library` as a user runs it, on the published demonstrations."""

import json

import pytest

from tests.app.test_verbs_traces import run  # noqa: F401 - a fixture


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
