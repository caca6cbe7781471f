"""Solution processes as marked text."""

from hypothesis import given
from hypothesis import strategies as st

from fewshot_library.formats.react_text import (
    MARKERS,
    ReactTranscript,
    ReactTurn,
    format_as_humaniq,
    format_transcript,
    parse_transcript,
)

LINES = st.lists(
    st.sampled_from(
        [f"{marker}:" for marker in MARKERS] + ["\\Thought:", "\\\\Action: x", "Observation: y", "text", "", "{x}"]
    )
    | st.text(max_size=8),
    max_size=4,
)
VALUES = LINES.map("\n".join).map(str.strip)
TURNS = st.builds(ReactTurn, VALUES, st.none() | VALUES, st.none() | VALUES, st.none() | VALUES)


@given(VALUES, st.lists(TURNS, max_size=4), VALUES, VALUES, st.none() | VALUES)
def test_any_parts_survive_being_written_and_read(question, turns, final_thought, final_answer, response):
    told = ReactTranscript("", question, turns, final_thought, final_answer, response)
    assert parse_transcript(format_as_humaniq(told)) == told
    assert parse_transcript(format_transcript(told)) == told


@given(st.text(), st.lists(st.sampled_from([f"\n{marker}: " for marker in MARKERS]), max_size=8), st.text(max_size=9))
def test_no_word_of_any_text_is_dropped(before, markers, word):
    told = parse_transcript(before + word.join(markers) + word)
    parts = [told.preamble, told.question, told.final_thought, told.final_answer, told.response, *told.repeated]
    for turn in told.turns:
        parts += [turn.thought, turn.action, turn.action_input, turn.observation]
    if word.strip() and "\\" not in word and ":" not in word + before:
        found = sum((part or "").count(word.strip()) for part in parts)
        assert found >= len(markers[1:]) * bool(markers)


def test_an_action_behind_an_empty_thought_is_an_action():
    told = parse_transcript("Thought: Action:GetLabel\nAction Input: [Q1]\nObservation: a\nFinal Answer: b")
    assert told.turns == [ReactTurn("", "GetLabel", "[Q1]", "a")]


def test_parts_that_are_missing_are_none_and_a_last_thought_is_the_final_one():
    told = parse_transcript(
        "hello\nThought: a\nAction Input: b\nThought: c\nAction: d\nThought: e\nFinal Answer: f\nFinal Answer: g"
    )
    assert told.preamble == "hello"
    assert told.turns == [ReactTurn("a", None, "b", None), ReactTurn("c", "d", None, None)]
    assert (told.final_thought, told.final_answer, told.repeated) == ("e", "f", ["Final Answer:g"])
