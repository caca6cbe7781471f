"""Extraction of answers from last messages in many layouts."""

import pytest

from showhow.db.traces.recording import TraceAnswers
from showhow.reasoners.answers.extraction import extract_answers, format_final_answer, strip_code_fence, strip_or_none
from tests.reasoners.example_traces import record_of


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
def test_source_lines_are_extracted_in_every_layout(ending: str) -> None:
    assert extract_answers(ending, "So.", "graph") == TraceAnswers("Lisbon", "Lisbon (Q597)", None, None, "So.")


def test_text_after_the_answer_is_appended_to_the_final_thought() -> None:
    answers = extract_answers("Lisbon\nText says: Lisbon\nI hope that this helps!", "So.", "graph")
    assert answers == TraceAnswers("Lisbon", "Lisbon", None, None, "So.\nI hope that this helps!")
    assert extract_answers("Lisbon\n\nIt is the capital.", "", None) == TraceAnswers(
        "Lisbon", final_thought="It is the capital."
    )


def test_source_lines_before_the_answer_are_extracted() -> None:
    answers = extract_answers("Lisbon", "I know.\nText says: Lisbon\nGraph says: Porto", "text")
    assert answers == TraceAnswers("Lisbon", "Lisbon", "Porto", None, "I know.")


def test_an_empty_source_line_does_not_take_the_next_line() -> None:
    assert extract_answers("Lisbon\nText says:\nGraph says: Porto", "", None) == TraceAnswers("Lisbon", None, "Porto")


@pytest.mark.parametrize(
    "final", ["unknown", "Unknown.", "The answer could not be found.", "No information found", "N/A", ""]
)
def test_an_unknown_answer_is_empty(final: str) -> None:
    assert extract_answers(final, "", "text") == TraceAnswers("")


@pytest.mark.parametrize("final", ["none", "no answer", "nothing", "Lisbon\nPorto", "No Country for Old Men"])
def test_none_is_accepted_as_a_final_answer(final: str) -> None:
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
        "Sorry, but I can't answer that.",
        "It cannot be determined from the steps.",
        "I am unable to answer this question.",
        "No information was found about Ada Reed",
        " ",
    ],
)
def test_a_source_without_an_answer_has_none(said: str) -> None:
    assert strip_or_none(said) is None


@pytest.mark.parametrize(
    "said",
    [
        "no",
        "0",
        "no answer",
        "Nonesuch",
        "Nothing Compares 2 U",
        "Unknown Pleasures",
        "You Don't Know Jack",
        "No Way Out",
    ],
)
def test_answers_that_begin_like_no_answer_are_kept(said: str) -> None:
    assert strip_or_none(said) == said


def test_the_answer_of_a_source_that_is_not_allowed_is_ignored() -> None:
    demonstration_answer = "Lisbon\nText says: Lisbon\nGraph says: Porto"
    assert extract_answers(demonstration_answer, "", "graph", "graph") == TraceAnswers("Lisbon", None, "Porto")
    assert extract_answers(demonstration_answer, "", "text", "text") == TraceAnswers("Lisbon", "Lisbon", None)
    assert extract_answers("Lisbon\nText says: Lisbon", "", "graph", "graph") == TraceAnswers("Lisbon", None, "Lisbon")


def test_a_demonstration_shows_the_answers_of_the_allowed_sources() -> None:
    trace = record_of("Where?", [], final_answer="Lisbon", answer_text="Lisbon").trace
    assert format_final_answer(trace) == "Lisbon\nText says: Lisbon\nGraph says: none"
    assert (format_final_answer(trace, "text"), format_final_answer(trace, "graph")) == (
        "Lisbon\nText says: Lisbon",
        "Lisbon",
    )
    assert format_final_answer(record_of("Where?", []).trace) is None


@pytest.mark.parametrize(
    "value", ['{"result": "Paris"}', '["a"]', "null", '{"reason": "It does not mention an order"}']
)
def test_a_json_answer_loses_its_code_fence_and_nothing_else(value):
    assert strip_code_fence(f"```json\n{value}\n```") == strip_code_fence(f" {value}\n") == value
