"""What an ending says, however a model lays it out."""

import pytest

from db.recording import TraceAnswers
from reasoners.answers.extraction import extract_answers, format_final_answer, strip_or_none
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
    assert extract_answers(ending, "So.", "graph") == TraceAnswers("Lisbon", "Lisbon (Q597)", None, None, "So.")


def test_a_remark_behind_the_answer_is_a_thought() -> None:
    found = extract_answers("Lisbon\nText says: Lisbon\nI hope that this helps!", "So.", "graph")
    assert found == TraceAnswers("Lisbon", "Lisbon", None, None, "So.\nI hope that this helps!")
    assert extract_answers("Lisbon\n\nIt is the capital.", "", None) == TraceAnswers(
        "Lisbon", final_thought="It is the capital."
    )


def test_sources_that_are_told_before_the_answer_count() -> None:
    found = extract_answers("Lisbon", "I know.\nText says: Lisbon\nGraph says: Porto", "text")
    assert found == TraceAnswers("Lisbon", "Lisbon", "Porto", None, "I know.")


def test_an_empty_line_takes_nothing_from_the_next_one() -> None:
    assert extract_answers("Lisbon\nText says:\nGraph says: Porto", "", None) == TraceAnswers("Lisbon", None, "Porto")


@pytest.mark.parametrize(
    "final", ["unknown", "Unknown.", "The answer could not be found.", "No information found", "N/A", ""]
)
def test_an_answer_that_is_none_is_empty(final: str) -> None:
    assert extract_answers(final, "", "text") == TraceAnswers("")


@pytest.mark.parametrize("final", ["none", "no answer", "nothing", "Lisbon\nPorto", "No Country for Old Men"])
def test_an_answer_stays_even_where_it_says_that_there_is_none(final: str) -> None:
    assert extract_answers(final, "", None) == TraceAnswers(final)


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
    assert strip_or_none(said) is None


@pytest.mark.parametrize("said", ["no", "0", "no answer", "Nonesuch", "Nothing Compares 2 U", "Unknown Pleasures"])
def test_words_that_only_begin_so_are_answers(said: str) -> None:
    assert strip_or_none(said) == said


def test_what_is_said_of_a_source_that_was_not_asked_does_not_count() -> None:
    told = "Lisbon\nText says: Lisbon\nGraph says: Porto"
    assert extract_answers(told, "", "graph", "graph") == TraceAnswers("Lisbon", None, "Porto")
    assert extract_answers(told, "", "text", "text") == TraceAnswers("Lisbon", "Lisbon", None)
    assert extract_answers("Lisbon\nText says: Lisbon", "", "graph", "graph") == TraceAnswers("Lisbon", None, "Lisbon")


def test_demonstrations_say_what_each_source_that_may_be_asked_told() -> None:
    trace = record_of("Where?", [], final_answer="Lisbon", answer_text="Lisbon").trace
    assert format_final_answer(trace) == "Lisbon\nText says: Lisbon\nGraph says: none"
    assert (format_final_answer(trace, "text"), format_final_answer(trace, "graph")) == (
        "Lisbon\nText says: Lisbon",
        "Lisbon",
    )
    assert format_final_answer(record_of("Where?", []).trace) is None
