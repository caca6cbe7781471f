"""What an ending says, however a model lays it out."""

import pytest

from db.recording import Answers
from reasoners.ending import answers_in, ending_of, present
from tests.reasoners.told import record_of


@pytest.mark.parametrize(
    "ending",
    [
        "Lisbon\nText says: Lisbon (Q597)\nGraph says: none",
        "Lisbon\n**Text says:** Lisbon (Q597)\n**Graph says:** none",
        "**Lisbon**\n**Text says**: Lisbon (Q597)\n**Graph says**: none",
        "Lisbon**\n**Text says: Lisbon (Q597)**\n**Graph says: none**",
        "Lisbon\n- Text says: Lisbon (Q597)\n- Graph says: nothing",
        '"Lisbon"\nText says: "Lisbon (Q597)"\nGraph says: "none"',
        "Lisbon\n\nText says:\nLisbon (Q597)\n\nGraph says:\nnone",
        "```\nLisbon\nText says: Lisbon (Q597)\nGraph says: none\n```",
        "Lisbon\ntext says: Lisbon (Q597)\ngraph says: none (the query failed)",
        "Lisbon\nText says: Lisbon (Q597)\nGraph says: The graph has no answer.",
        "Lisbon\nText says: Lisbon (Q597)\nGraph says:",
    ],
)
def test_the_sources_are_read_in_every_layout(ending: str) -> None:
    assert answers_in(ending, "So.", "graph") == Answers("Lisbon", "Lisbon (Q597)", None, None, "So.")


def test_a_remark_behind_the_answer_is_a_thought() -> None:
    found = answers_in("Lisbon\nText says: Lisbon\nI hope that this helps!", "So.", "graph")
    assert found == Answers("Lisbon", "Lisbon", None, None, "So.\nI hope that this helps!")
    assert answers_in("Lisbon\n\nIt is the capital.", "", None) == Answers("Lisbon", final_thought="It is the capital.")


def test_sources_that_are_told_before_the_answer_count() -> None:
    found = answers_in("Lisbon", "I know.\nText says: Lisbon\nGraph says: Porto", "text")
    assert found == Answers("Lisbon", "Lisbon", "Porto", None, "I know.")


def test_an_empty_line_takes_nothing_from_the_next_one() -> None:
    assert answers_in("Lisbon\nText says:\nGraph says: Porto", "", None) == Answers("Lisbon", None, "Porto")


@pytest.mark.parametrize(
    "final", ["unknown", "Unknown.", "The answer could not be found.", "No information found", "N/A", ""]
)
def test_an_answer_that_is_none_is_empty(final: str) -> None:
    assert answers_in(final, "", "text") == Answers("")


@pytest.mark.parametrize("final", ["none", "no answer", "nothing", "Lisbon\nPorto", "No Country for Old Men"])
def test_an_answer_stays_even_where_it_says_that_there_is_none(final: str) -> None:
    assert answers_in(final, "", None) == Answers(final)


@pytest.mark.parametrize(
    "said",
    [
        "none",
        "None.",
        "nothing found",
        "not mentioned",
        "no results",
        "null",
        "-",
        "n/a",
        "The articles have no answer.",
        " ",
    ],
)
def test_a_source_that_says_nothing_is_silent(said: str) -> None:
    assert present(said) is None


@pytest.mark.parametrize("said", ["no", "0", "no answer", "Nonesuch", "Nothing Compares 2 U", "Unknown Pleasures"])
def test_words_that_only_begin_so_are_answers(said: str) -> None:
    assert present(said) == said


def test_what_is_said_of_a_source_that_was_not_asked_does_not_count() -> None:
    told = "Lisbon\nText says: Lisbon\nGraph says: Porto"
    assert answers_in(told, "", "graph", "graph") == Answers("Lisbon", None, "Porto")
    assert answers_in(told, "", "text", "text") == Answers("Lisbon", "Lisbon", None)
    assert answers_in("Lisbon\nText says: Lisbon", "", "graph", "graph") == Answers("Lisbon", None, "Lisbon")


def test_demonstrations_say_what_each_source_that_may_be_asked_told() -> None:
    trace = record_of("Where?", [], final_answer="Lisbon", answer_text="Lisbon").trace
    assert ending_of(trace) == "Lisbon\nText says: Lisbon\nGraph says: none"
    assert (ending_of(trace, "text"), ending_of(trace, "graph")) == ("Lisbon\nText says: Lisbon", "Lisbon")
    assert ending_of(record_of("Where?", []).trace) is None
