"""Export and import of OpenAI and LangChain chats."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    ToolMessage,
    convert_to_openai_messages,
    messages_from_dict,
    messages_to_dict,
)

from db.trace_record import TraceRecord
from fewshot_library.formats import FORMATS, detect_format, read_traces
from fewshot_library.formats.format import RecordRemark, RefusedRecord, TraceExport
from tests.examples import examples
from tests.fewshot_library.traces import export, plain_trace, records, told

CHATS = ["openai", "langchain"]
TOOL = {"type": "function", "function": {"name": "read", "description": "Read.", "parameters": {"type": "object"}}}


def lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line]


def found_in(path, content, name="auto"):
    path.write_text(json.dumps(content), encoding="utf-8")
    return list(read_traces(path, name))


@pytest.mark.parametrize("name", CHATS)
def test_the_published_demonstrations_round_trip_as_chats(shared_data, tmp_path, name):
    source = [r for r in read_traces(shared_data / "humaniq" / "mintaka.json") if isinstance(r, TraceRecord)]
    path = tmp_path / "chats.jsonl"
    losses = export(FORMATS[name], source, path)
    assert losses.written == len(source) == 20
    assert detect_format(path) is FORMATS[name]
    back = list(read_traces(path))
    assert [told(record) for record in back] == [told(record) for record in source]
    assert losses.lost["a question's dataset"] == losses.lost["a trace's author"] == 20
    assert {what for what in losses.lost if "thought" in what or "observation" in what} == set()


@settings(max_examples=examples(60), deadline=None, suppress_health_check=list(HealthCheck))
@given(records())
@pytest.mark.parametrize("name", CHATS)
def test_any_trace_round_trips_except_for_the_reported_losses(tmp_path_factory, name, record):
    path = tmp_path_factory.mktemp("any") / "chats.jsonl"
    losses = export(FORMATS[name], [record], path)
    (back,) = [result for result in read_traces(path, name) if not isinstance(result, RecordRemark)]
    assert isinstance(back, TraceRecord)
    blurred = {"the distinction of a step's error from an observation, for a step without a tool"}
    blurred |= {
        "the distinction of a step's error from an observation",
        "a step's error beside its observation",
        "a step's missing observation",
    }
    blurred |= {"the absence of an answer", "the end of the final thought", "the arguments of a step without a tool"}
    if not blurred & losses.lost.keys():
        assert told(back) == told(record)


def test_langchain_reads_the_export_and_converts_it_to_the_openai_export(shared_data, tmp_path):
    source = list(read_traces(shared_data / "humaniq" / "compmix.json"))
    source[0].steps[0].error, source[0].steps[0].observation = "it timed out", None
    source[0].steps[1].data = {"hits": [1]}
    export(FORMATS["langchain"], source, tmp_path / "l.jsonl")
    export(FORMATS["openai"], source, tmp_path / "o.jsonl")
    for ours, theirs in zip(lines(tmp_path / "l.jsonl"), lines(tmp_path / "o.jsonl"), strict=True):
        messages = messages_from_dict(ours)
        assert messages_to_dict(messages) == ours
        converted = convert_to_openai_messages(messages)
        for message in converted:
            # The arguments are written without escapes here.
            for call in message.get("tool_calls", []):
                call["function"]["arguments"] = json.dumps(
                    json.loads(call["function"]["arguments"]), ensure_ascii=False
                )
        assert converted == theirs["messages"]
    answers = [message for message in messages_from_dict(lines(tmp_path / "l.jsonl")[0]) if message.type == "tool"]
    assert [answer.status for answer in answers[:2]] == ["error", "success"]
    assert [answer.artifact for answer in answers[:2]] == [None, {"hits": [1]}]


def test_chats_written_by_langchain_are_read(tmp_path):
    asked = {"name": "read", "args": {"title": "Ada"}, "id": "c1"}
    messages = [
        AIMessage([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "look"}], tool_calls=[asked]),
        ToolMessage("it broke", tool_call_id="c1", name="read", status="error", artifact={"error": "it broke"}),
        AIMessage("Ada"),
    ]
    question = {"type": "human", "data": {"content": "who?", "type": "human"}}
    for form in (messages_to_dict(messages), [dumpd(message) for message in messages]):
        (record,) = found_in(tmp_path / "x.json", [question, *form])
        (step,) = record.steps
        assert (step.thought, step.tool, step.arguments) == ("hm\n\nlook", "read", {"title": "Ada"})
        assert (step.error, step.observation, step.data) == ("it broke", None, {"error": "it broke"})
        assert (record.trace.final_answer, record.trace.status) == ("Ada", "submitted")


def test_tool_definitions_are_the_offered_ones_or_inferred_from_calls(tmp_path):
    record = plain_trace()
    record.steps[0].arguments = {"title": "x", "places": [1], "deep": {"a": None}, "odd": None}
    export(FORMATS["openai"], TraceExport([record], {"read": TOOL}, ["read"]), tmp_path / "known.jsonl")
    export(FORMATS["openai"], [record], tmp_path / "guessed.jsonl")
    (known,), (guessed,) = lines(tmp_path / "known.jsonl"), lines(tmp_path / "guessed.jsonl")
    assert known["tools"] == [TOOL]
    assert guessed["tools"][0]["function"]["parameters"]["properties"] == {
        "title": {"type": "string"},
        "places": {"type": "array", "items": {"type": "integer"}},
        "deep": {"type": "object"},
        "odd": {},
    }
    (back,) = read_traces(tmp_path / "known.jsonl")
    export(FORMATS["openai"], [back], tmp_path / "again.jsonl")
    assert lines(tmp_path / "again.jsonl") == [known]


def call(name, arguments, call_id="c1"):
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}


def test_unknown_fields_of_a_chat_are_kept(tmp_path):
    chat = {
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": [{"type": "text", "text": "who", "seen": 1}, {"type": "text", "text": "?"}]},
            {"role": "assistant", "tool_calls": [call("a", {}), call("b", {"x": 1}, "c2")], "weight": 0},
            {"role": "tool", "tool_call_id": "c2", "content": "two"},
            {"role": "tool", "tool_call_id": "c1", "content": "one"},
            {"role": "assistant", "content": "Shall I go on?"},
            {"role": "user", "content": "yes", "name": "eve"},
            {"role": "user", "content": "please"},
            {"role": "assistant", "content": "hm\n\nFinal Answer: Ada"},
        ],
        "metadata": {"split": "train"},
    }
    first, second, record = found_in(tmp_path / "x.json", [chat])
    assert first == RecordRemark("record 1", "message 7 of the role user was imported as the observation of step 3")
    assert second == RecordRemark("record 1", "message 8 of the role user was imported as the observation of step 4")
    assert told(record) == (
        "who?",
        [
            ("", "a", {}, "one", None),
            ("", "b", {"x": 1}, "two", None),
            ("Shall I go on?", None, {}, "yes", None),
            ("", None, {}, "please", None),
        ],
        "hm",
        "Ada",
    )
    assert record.trace.configuration["openai"] == {
        "system": ["Be brief."],
        "metadata": {"split": "train"},
        "together": [[1, 2]],
        "messages": {"2": {"parts": [{"seen": 1}, {}]}, "3": {"weight": 0}, "7": {"name": "eve"}},
    }
    assert list(record.find_inconsistencies()) == []


def test_the_older_form_of_calls_is_read(tmp_path):
    chat = [
        {"role": "user", "content": "who?"},
        {"role": "assistant", "content": None, "function_call": {"name": "a", "arguments": '{"x": 1}'}},
        {"role": "function", "name": "a", "content": "one"},
    ]
    (record,) = found_in(tmp_path / "x.json", {"messages": chat})
    assert told(record) == ("who?", [("", "a", {"x": 1}, "one", None)], None, None)
    assert record.trace.status == "failed"


USER = {"role": "user", "content": "q"}
BROKEN = {
    "it has no user message": {"messages": [{"role": "system", "content": "x"}]},
    "message 1, before the question, has the role 'assistant'": {
        "messages": [{"role": "assistant", "content": "x"}, USER]
    },
    "messages: field required": {"message": []},
    "messages[1].role: input should be a valid string": {"messages": [USER, {"role": 3}]},
    "message 2 has the role 'critic'": {"messages": [USER, {"role": "critic"}]},
    "message 2 has a part of the kind 'image_url'": {
        "messages": [USER, {"role": "assistant", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]
    },
    "the content of message 2 is neither a text": {"messages": [USER, {"role": "assistant", "content": 3}]},
    "its arguments are not a JSON object": {"messages": [USER, {"role": "assistant", "tool_calls": [call("a", [1])]}]},
    "message 1 calls a tool, but has the role 'user'": {"messages": [{**USER, "tool_calls": [call("a", {})]}]},
    "U+0000 at position 1": {"messages": [USER, {"role": "assistant", "tool_calls": [call("a", {"x": "y\x00"})]}]},
    "NaN is not a JSON number)": {
        "messages": [USER, {"role": "assistant", "tool_calls": [call("a", {"x": float("nan")})]}]
    },
    "its arguments are not JSON (": {
        "messages": [USER, {"role": "assistant", "function_call": {"name": "a", "arguments": "{"}}]
    },
    "message 2 answers the call 'c9'": {"messages": [USER, {"role": "tool", "tool_call_id": "c9", "content": "x"}]},
    "U+0000": {"messages": [{"role": "user", "content": "\x00"}]},
    "U+D83D": {"messages": [{"role": "user", "content": "q", "\ud83d": 1}]},
    "NaN is not a JSON number": {"messages": [USER], "x": float("nan")},
    "it has the number inf": {"messages": [USER], "x": "1e999"},
}


@pytest.mark.parametrize("reason", BROKEN)
def test_a_malformed_chat_is_refused_with_its_line_and_the_reason_and_the_others_are_read(tmp_path, reason):
    path = tmp_path / "x.jsonl"
    good = json.dumps({"messages": [USER, {"role": "assistant", "content": "a"}]})
    broken = json.dumps(BROKEN[reason]).replace('"1e999"', "1e999")
    path.write_text(f"{good}\n\n{broken}\n{good}\n")
    before, refused, after = read_traces(path)
    assert isinstance(refused, RefusedRecord)
    assert refused.place == "line 3"
    assert reason in refused.reason
    assert before.trace.final_answer == after.trace.final_answer == "a"


def test_a_malformed_first_line_does_not_refuse_the_others(tmp_path):
    good = json.dumps({"messages": [USER, {"role": "assistant", "content": "a"}]})
    (tmp_path / "x.jsonl").write_text(f"{good[:-5]}\n{good}\n")
    refused, record = read_traces(tmp_path / "x.jsonl")
    assert (refused.place, record.trace.final_answer) == ("line 1", "a")
    assert refused.reason.startswith("invalid JSON")


@pytest.mark.parametrize(
    ("chat", "reason"),
    [
        ([{"type": "human", "data": {}}], "message 1: data.content: field required"),
        ([{"type": "robot", "data": {"content": "x"}}], "message 1 is of the kind 'robot'"),
        ({"messages": [], "type": 1}, "it is not a list of messages"),
        ([{"lc": 1, "id": ["Odd"], "kwargs": {"content": "x"}}], "message 1 is of the kind 'Odd'"),
    ],
)
def test_malformed_langchain_messages_are_refused(tmp_path, chat, reason):
    (refused,) = found_in(tmp_path / "x.json", chat, "langchain")
    assert isinstance(refused, RefusedRecord)
    assert reason in refused.reason
