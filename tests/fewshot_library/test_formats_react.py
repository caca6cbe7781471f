"""Export and import of plain ReAct text."""

import json
import re

import pytest
from hypothesis import HealthCheck, event, given, settings

from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.formats import detect_format, read_traces
from showhow.fewshot_library.formats.format import FormatError, RecordRemark, RefusedRecord
from showhow.fewshot_library.formats.react import REACT
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


def written(label="{}:", action="Action: read\nAction Input: {}", before="", behind="", line="Riverton"):
    """A text of one step whose labels and action have these forms."""
    text = (
        "Question: Who founded Riverton?\n{before}Thought: I look it up.\n{action}\n{behind}"
        "Observation: It was founded by\nIda Vale.\nThought: I know.\nFinal Answer: Ida Vale\n"
    ).format(before=before, action=action.replace("{}", line), behind=behind)
    names = ("Question", "Thought", "Action Input", "Action", "Observation", "Final Answer")
    return re.sub(rf"^({'|'.join(names)}):", lambda match: label.format(match[1]), text, flags=re.MULTILINE)


JSON_ACTION = 'Action:\n```json\n{"action": "read", "action_input": {"input": "Riverton"}}\n```'
FENCED_INPUT = 'Action: read\nAction Input:\n```json\n{"input": "Riverton"}\n```'
WRITTEN = {
    "bold": written("**{}:**"),
    "bold before the colon": written("**{}**:"),
    "numbered headings": written("### {} 1:"),
    "headings": written("## {}\n"),
    "list items": written("- {}:"),
    "a full-width colon": written("{}\uff1a"),
    "indented and quoted": written(" > {}:"),
    "capitals": written().replace("Thought:", "THOUGHT:").replace("Action", "ACTION"),
    "small letters": re.sub(r"(?m)^[A-Z][\w ]+:", lambda label: label[0].lower(), written()),
    "a bold line": written().replace("Thought: I look it up.", "**Thought: I look it up.**"),
    "half of it bold": written("**{}:** ")
    .replace("**Question:**", "Question:")
    .replace("**Final", "Final", 1)
    .replace("Answer:**", "Answer:"),
    "a call": written(action='Action: read({"input": "{}"})'),
    "a call with a named argument": written(action="Action: `read(input='{}')`"),
    "a call with a text": written(action='Action: read("{}")'),
    "a call in brackets": written("**{}**:", action="Action: read [{}]"),
    "JSON": written(action='Action: {"name": "read", "arguments": "{\\"input\\": \\"Riverton\\"}"}'),
    "a block of JSON": written(action=JSON_ACTION),
    "a block of JSON as input": written("{}\uff1a", action=FENCED_INPUT),
    "marks of code": written(action="Action: `read`\nAction Input: `{}`"),
    "fences around steps": written(before="```\n", behind="```\n"),
    "fences around each part": "```text\n" + written(before="```\n```\n", behind="```\n```\n") + "```\n",
    "a fence around everything": f"```\n{written(action=JSON_ACTION)}```",
    "a log of a terminal": "\x1b[1m> Entering new AgentExecutor chain...\x1b[0m\n"
    + written().replace("It was founded by\nIda Vale.", "\x1b[36;1mIt was founded by\nIda Vale.\x1b[0m")
    + "\n> Finished chain.\n",
    "an answer without its adjective": written().replace("Final Answer", "**Answer**"),
    "a finishing call": written().replace("Final Answer: Ida Vale", "Action: Finish[Ida Vale]"),
    "a finishing block": written().replace(
        "Final Answer: Ida Vale", 'Action:\n```\n{"action": "Final Answer", "action_input": "Ida Vale"}\n```'
    ),
    "a fenced answer": written().replace("Final Answer: Ida Vale", "Final Answer:\n```\nIda Vale\n```"),
    "no action at last": written().replace("Final Answer", "Action: None\nAction Input: None\nFinal Answer"),
    "a phrase for no action": written().replace("Final Answer", "Action: No action needed.\nFinal Answer"),
}


@pytest.mark.parametrize("form", WRITTEN)
def test_the_forms_in_which_models_and_frameworks_write_steps_are_read(tmp_path, form):
    (tmp_path / "x.txt").write_text(WRITTEN[form])
    (record,) = read_traces(tmp_path / "x.txt")
    step = ("I look it up.", "read", {"input": "Riverton"}, "It was founded by\nIda Vale.", None)
    assert told(record) == ("Who founded Riverton?", [step], "I know.", "Ida Vale")


def test_the_prompt_before_a_question_is_no_question(tmp_path):
    prompt = (
        "Answer with tools. Use the following format:\n\nQuestion: the input question\nThought: what to do\n"
        "Action: the tool\nFinal Answer: the answer\n\nBegin!\n\n"
    )
    (tmp_path / "x.txt").write_text(prompt + written())
    remark, record = read_traces(tmp_path / "x.txt")
    assert remark.text == "the text before the first question was left out"
    assert record.question.text == "Who founded Riverton?"


def test_a_marker_in_another_form_ends_no_observation_in_a_text_that_does_not_use_it(tmp_path):
    seen = "a page\n**Thought:** of its author\nFinal answer: no\nquestion: none\n```\ncode"
    (tmp_path / "x.txt").write_text(written().replace("It was founded by\nIda Vale.", seen))
    (record,) = read_traces(tmp_path / "x.txt")
    assert record.steps[0].observation == seen
    # What is exported is escaped, so that it is read as it was.
    record.steps[0].thought = "hm\n**Action:** look\n- question: who\n```"
    export(REACT, [record], tmp_path / "y.txt")
    assert [told(back) for back in read_traces(tmp_path / "y.txt")] == [told(record)]


def test_text_in_another_form_is_refused_with_its_place(tmp_path):
    path = tmp_path / "x.txt"
    path.write_text("Question: a\nThought: b\nAction Input: c\nQuestion: d\n\nQuestion: e\nThought: f\nFinal Answer: g")
    first, unfinished, second, record = read_traces(path)
    assert first == RecordRemark("question 1", "thought 1 has the Action Input 'c' and no Action; it was left out")
    assert told(unfinished) == ("a", [("b", None, {}, None, None)], None, None)
    assert second == RefusedRecord("question 2", "it has neither a thought nor an answer")
    assert told(record) == ("e", [], "f", "g")
    path.write_text("nothing")
    with pytest.raises(FormatError, match='no line begins with "Question:"'):
        list(read_traces(path, "react"))
    path.write_bytes(b"Question: \xff")
    with pytest.raises(FormatError, match="not a text in UTF-8"):
        list(read_traces(path, "react"))
