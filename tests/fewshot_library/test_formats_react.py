"""Export and import of plain ReAct text."""

import json

import pytest
from hypothesis import HealthCheck, event, given, settings

from db.trace_record import TraceRecord
from fewshot_library.formats import detect_format, read_traces
from fewshot_library.formats.format import FormatError, RecordRemark, RefusedRecord
from fewshot_library.formats.react import REACT
from tests.examples import examples
from tests.fewshot_library.traces import export, fork_of, plain_trace, records, told


@pytest.mark.parametrize("name", ["mintaka.json", "compmix.json", "late_fusion_library/qald_wikipedia.json"])
def test_the_published_demonstrations_round_trip_as_react_text(shared_data, tmp_path, name):
    source = [r for r in read_traces(shared_data / "humaniq" / name) if isinstance(r, TraceRecord)]
    losses = export(REACT, source, tmp_path / "x.txt")
    assert (losses.written, losses.refused) == (len(source), [])
    assert detect_format(tmp_path / "x.txt") is REACT
    assert [told(record) for record in read_traces(tmp_path / "x.txt")] == [told(record) for record in source]


def test_a_trace_is_written_as_react_text(tmp_path):
    export(REACT, [fork_of(plain_trace(), 1)], tmp_path / "x.txt")
    assert (tmp_path / "x.txt").read_text() == (
        "Question: who?\n"
        'Thought: look\nAction: read\nAction Input: {"title": "x"}\n'
        "Thought: look elsewhere\nAction: wikisearch\nAction Input: Eve\nObservation: Eve was there.\n"
        "Thought: so it was Eve\nFinal Answer: Eve\n"
    )


def cut(value):
    """The texts of the trace without surrounding white space, which is layout in the format."""
    return (
        value.strip()
        if isinstance(value, str)
        else [cut(v) for v in value]
        if isinstance(value, tuple | list)
        else value
    )


@settings(max_examples=examples(100), deadline=None, suppress_health_check=list(HealthCheck))
@given(records())
def test_any_trace_round_trips_or_is_left_out(tmp_path_factory, record):
    path = tmp_path_factory.mktemp("any") / "x.txt"
    losses = export(REACT, [record], path)
    event("left out" if losses.refused else "comes back")
    assert losses.written + len(losses.refused) == 1
    if losses.written and "the arguments of a step without a tool" not in losses.lost:
        (back,) = read_traces(path, "react")
        for here, there in zip(back.steps, record.steps, strict=True):
            assert cut([here.thought, here.tool]) == cut([there.thought, there.tool])
            assert here.arguments == there.arguments
            assert cut(here.observation or "") == cut(
                there.observation if there.observation is not None else there.error or ""
            )
        if not any(what.startswith("white space") for what in losses.lost):
            assert told(back)[::2] == told(record)[::2]


def test_a_trace_that_the_text_cannot_represent_is_left_out(tmp_path):
    record = plain_trace()
    record.trace.final_answer, record.trace.final_thought = None, "so"
    losses = export(REACT, [record, plain_trace()], tmp_path / "x.txt")
    assert losses.written == 1
    assert losses.refused == [
        RefusedRecord(f"trace {record.trace.id}", "in this format its parts would be parsed differently")
    ]


def test_the_numbered_labels_of_reacts_own_prompts_are_read(shared_data, tmp_path):
    prompts = json.loads((shared_data / "react" / "prompts_naive.json").read_text())
    (tmp_path / "x.txt").write_text("Answer with tools.\n" + prompts["webthink_simple"])
    remark, *records = read_traces(tmp_path / "x.txt")
    assert remark == RecordRemark("question 1", "the text before the first question was left out")
    assert len(records) == prompts["webthink_simple"].count("Question:")
    steps = records[0].steps
    assert [(step.tool, step.arguments) for step in steps] == [
        ("Search", {"input": "Milhouse"}),
        ("Lookup", {"input": "named after"}),
    ]
    assert steps[0].observation.startswith("Milhouse Mussolini Van Houten is")
    assert records[0].trace.final_thought.endswith("so the answer is Richard Nixon.")
    assert records[0].trace.final_answer == "Richard Nixon"
    # Thoughts and searches are all there.
    assert sum(len(record.steps) for record in records) == prompts["webthink_simple"].count("Observation ")


def test_text_in_another_form_is_refused_with_its_place(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("Question: a\nThought: b\nAction Input: c\nQuestion: d\n\nQuestion: e\nThought: f\nFinal Answer: g")
    first, second, record = read_traces(path)
    assert first == RefusedRecord("question 1", "thought 1 has an Action Input and no Action")
    assert second == RefusedRecord("question 2", "it has neither a thought nor an answer")
    assert told(record) == ("e", [], "f", "g")
    path.write_text("nothing")
    with pytest.raises(FormatError, match='no line begins with "Question:"'):
        list(read_traces(path, "react"))
    path.write_bytes(b"Question: \xff")
    with pytest.raises(FormatError, match="not a text in UTF-8"):
        list(read_traces(path, "react"))
