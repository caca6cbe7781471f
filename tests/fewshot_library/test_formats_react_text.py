"""Formatting and parsing of labelled text."""

from hypothesis import given
from hypothesis import strategies as st

from showhow.fewshot_library.formats.react_text import (
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
def test_any_transcript_round_trips(question, turns, final_thought, final_answer, response):
    transcript = ReactTranscript("", question, turns, final_thought, final_answer, response)
    assert parse_transcript(format_as_humaniq(transcript)) == transcript
    assert parse_transcript(format_transcript(transcript)) == transcript


@given(st.text(), st.lists(st.sampled_from([f"\n{marker}: " for marker in MARKERS]), max_size=8), st.text(max_size=9))
def test_parsing_drops_no_word(before, markers, word):
    transcript = parse_transcript(before + word.join(markers) + word)
    parts = [
        transcript.preamble,
        transcript.question,
        transcript.final_thought,
        transcript.final_answer,
        transcript.response,
        *transcript.repeated,
    ]
    for turn in transcript.turns:
        parts += [turn.thought, turn.action, turn.action_input, turn.observation]
    if word.strip() and "\\" not in word and ":" not in word + before:
        occurrences = sum((part or "").count(word.strip()) for part in parts)
        assert occurrences >= len(markers[1:]) * bool(markers)


def test_an_action_after_an_empty_thought_on_one_line_is_parsed():
    transcript = parse_transcript("Thought: Action:GetLabel\nAction Input: [Q1]\nObservation: a\nFinal Answer: b")
    assert transcript.turns == [ReactTurn("", "GetLabel", "[Q1]", "a")]


def test_missing_parts_are_none_and_a_last_thought_is_the_final_thought():
    transcript = parse_transcript(
        "hello\nThought: a\nAction Input: b\nThought: c\nAction: d\nThought: e\nFinal Answer: f\nFinal Answer: g"
    )
    assert transcript.preamble == "hello"
    assert transcript.turns == [ReactTurn("a", None, "b", None), ReactTurn("c", "d", None, None)]
    assert (transcript.final_thought, transcript.final_answer, transcript.repeated) == ("e", "f", ["Final Answer:g"])
