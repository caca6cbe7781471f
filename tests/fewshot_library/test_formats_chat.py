"""Export and import of OpenAI and LangChain chats."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from langchain_core.load import dumpd
from langchain_core.messages import (
    AIMessage,
    HumanMessage,
    ToolMessage,
    convert_to_openai_messages,
    messages_from_dict,
    messages_to_dict,
)

from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.formats import FORMATS, detect_format, read_traces
from showhow.fewshot_library.formats.format import RecordRemark, RefusedRecord, TraceExport
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
        messages = messages_from_dict(ours["messages"])
        assert messages_to_dict(messages) == ours["messages"]
        converted = convert_to_openai_messages(messages)
        for message in converted:
            # The arguments are written without escapes here.
            for call in message.get("tool_calls", []):
                call["function"]["arguments"] = json.dumps(
                    json.loads(call["function"]["arguments"]), ensure_ascii=False
                )
        assert converted == theirs["messages"]
    answers = [
        message for message in messages_from_dict(lines(tmp_path / "l.jsonl")[0]["messages"]) if message.type == "tool"
    ]
    assert [answer.status for answer in answers[:2]] == ["error", "success"]
    assert [answer.artifact for answer in answers[:2]] == [None, {"hits": [1]}]
    # Former exports have the list of messages alone.
    former = "".join(f"{json.dumps(row['messages'])}\n" for row in lines(tmp_path / "l.jsonl"))
    (tmp_path / "former.jsonl").write_text(former)
    again, before = (list(map(told, read_traces(tmp_path / name))) for name in ("l.jsonl", "former.jsonl"))
    assert again == before


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
    assert record.trace.result.details["openai"] == {
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
    "it is not a list of messages": {"message": []},
    "message 2 has no role": {"messages": [USER, {"role": 3}]},
    "message 3 has no role": {"messages": [USER, USER, {"role": None, "content": "x"}]},
    "U+0000": {"messages": [{"role": "user", "content": "\x00"}]},
    "U+D83D": {"messages": [{"role": "user", "content": "q", "\ud83d": 1}]},
}


@pytest.mark.parametrize("reason", BROKEN)
def test_a_malformed_chat_is_refused_with_its_line_and_the_reason_and_the_others_are_read(tmp_path, reason):
    path = tmp_path / "x.jsonl"
    good = json.dumps({"messages": [USER, {"role": "assistant", "content": "a"}]})
    path.write_text(f"{good}\n\n{json.dumps(BROKEN[reason])}\n{good}\n")
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
        ([{"type": "human", "data": {"content": "x", "name": 3}}], "message 1: name: input should be a valid string"),
        ([{"type": "robot", "data": {"content": "x"}}], "it is not a list of messages"),
        ({"messages": [], "type": 1}, "it is not a list of messages"),
        ([{"lc": 1, "id": ["Odd"], "kwargs": {"content": "x"}}], "it has no user message"),
    ],
)
def test_malformed_langchain_messages_are_refused(tmp_path, chat, reason):
    (refused,) = found_in(tmp_path / "x.json", chat, "langchain")
    assert isinstance(refused, RefusedRecord)
    assert reason in refused.reason


NOTHING = (None, {}, None, None)
ANSWER = {"role": "assistant", "content": "Ada"}
IMAGE = {"type": "image_url", "image_url": {"url": "x"}}
ODD = {
    "has the role 'assistant', and is in no step": ([{"role": "assistant", "content": "Hello"}, USER, ANSWER], []),
    "message 1 calls a tool, but has the role 'user'": ([{**USER, "tool_calls": [call("a", {})]}, ANSWER], []),
    "message 2 of the role critic": ([USER, {"role": "critic", "content": "x"}, ANSWER], [("", None, {}, "x", None)]),
    "part 1 of message 2 is of the kind 'image_url'": (
        [USER, {"role": "assistant", "content": [IMAGE]}, ANSWER],
        [("", None, {}, None, None)],
    ),
    "message 2 of the role tool": (
        [USER, {"role": "tool", "tool_call_id": "c9", "content": {"rows": [1]}}, ANSWER],
        [("", None, {}, '{"rows": [1]}', None)],
    ),
    "call 1, names no tool": ([USER, {"role": "assistant", "tool_calls": [{"id": "c"}]}, ANSWER], [("", *NOTHING)]),
}


@pytest.mark.parametrize("remark", ODD)
def test_what_cannot_be_read_in_a_chat_is_a_remark_and_the_rest_is_read(tmp_path, remark):
    messages, steps = ODD[remark]
    *remarks, record = found_in(tmp_path / "x.json", {"messages": messages})
    assert len([entry for entry in remarks if remark in entry.text]) == 1
    assert told(record) == ("q", steps, None, "Ada")


@pytest.mark.parametrize(
    ("written", "read", "error"),
    [
        *((nothing, {}, None) for nothing in (None, "", "  ", "null", [], "[]", "{}", '"{}"')),
        ('"{\\"x\\": 1}"', {"x": 1}, None),
        ({"x": 1, "y": None, "z": [{"w": None}]}, {"x": 1, "z": [{}]}, None),
        ('{"x": null}', {"x": None}, None),
        ('```json\n{"x": 1}\n```', {"x": 1}, None),
        *(
            (text, {"input": text}, error)
            for text, error in (
                ('{"x": 1,}', "its arguments are not JSON"),
                ('{"x": 1', "its arguments are not JSON"),
                ("look it up", "its arguments are not JSON"),
                ('{"x": NaN}', "NaN is not a JSON number"),
                ('{"x": 1e400}', "its arguments are not JSON (the number 1e400 is too large)"),
                ('{"x": "\\u0000"}', "its arguments cannot be stored (the text has the character U+0000"),
            )
        ),
        ("[1]", {"input": [1]}, "its arguments are no JSON object"),
    ],
)
def test_a_call_with_malformed_arguments_is_a_step_with_an_error_and_its_text(tmp_path, written, read, error):
    asked = {"id": "c1", "type": "function", "function": {"name": "a", "arguments": written}}
    chat = [USER, {"role": "assistant", "tool_calls": [asked]}, {"role": "tool", "content": "one"}, ANSWER]
    *remarks, record = found_in(tmp_path / "x.json", {"messages": chat})
    (step,) = record.steps
    assert (step.tool, step.arguments, step.observation) == ("a", read, "one")
    assert (error or "") in (step.error or "")
    assert bool(step.error) == bool(remarks) == bool(error)
    assert record.trace.final_answer == "Ada"


@pytest.mark.parametrize(
    "asked",
    [
        {"tool_calls": [{"type": "custom", "id": "c1", "custom": {"name": "a", "input": "x"}}]},
        {"tool_calls": [{"name": "a", "args": {"input": "x"}, "id": "c1"}]},
        {"tool_calls": {"function": {"name": "a", "arguments": '{"input": "x"}'}, "id": 7}},
        {"role": "tool_call", "content": '{"name": "a", "arguments": {"input": "x"}}'},
        {"role": "model", "content": [{"functionCall": {"name": "a", "args": {"input": "x"}}}]},
        {"content": [{"type": "tool_use", "id": "c1", "name": "a", "input": {"input": "x"}}]},
    ],
)
def test_calls_are_read_in_the_forms_of_other_servers(tmp_path, asked):
    seen = {"role": "tool_response", "content": "one"}
    (record,) = found_in(tmp_path / "x.json", {"messages": [USER, {"role": "assistant"} | asked, seen, ANSWER]})
    assert told(record) == ("q", [("", "a", {"input": "x"}, "one", None)], None, "Ada")


@pytest.mark.parametrize(
    ("ids", "names", "order"),
    [
        ((None, None, None, None), ("a", "a"), (0, 1)),
        (("", "", "", ""), (None, None), (0, 1)),
        (("", "", "", ""), ("b", "a"), (1, 0)),
        (("a", "a", "a", "a"), (None, None), (0, 1)),
        (("c", "d", "d", "c"), (None, None), (1, 0)),
        (("c", "d", None, None), ("b", "a"), (1, 0)),
    ],
)
def test_results_without_ids_of_their_own_lie_on_their_calls(tmp_path, ids, names, order):
    tools = ("a", "b") if "b" in names else ("a", "a")
    calls = [call(tool, {"n": place}, ids[place]) for place, tool in enumerate(tools)]
    results = [
        {"role": "tool", "tool_call_id": ids[2 + place], "name": names[place], "content": f"result {order[place]}"}
        for place in range(2)
    ]
    chat = [USER, {"role": "assistant", "content": None, "tool_calls": calls}, *results, ANSWER]
    *_, record = found_in(tmp_path / "x.json", {"messages": chat})
    assert told(record)[1] == [("", tool, {"n": place}, f"result {place}", None) for place, tool in enumerate(tools)]


@pytest.mark.parametrize(
    "thinking",
    [
        *({name: "hm"} for name in ("reasoning", "thinking", "reasoning_content")),
        {"additional_kwargs": {"reasoning_content": "hm"}},
        {"content": "<think>\nhm\n</think>\n\nAda"},
        {"content": "hm</think>Ada"},
        {"content": [{"type": "thinking", "thinking": "hm", "signature": "z"}, {"type": "text", "text": "Ada"}]},
        {"content": [{"type": "reasoning", "summary": [{"text": "hm"}]}, {"type": "output_text", "text": "Ada"}]},
        {"reasoning_details": [{"type": "reasoning.text", "text": "hm"}], "reasoning": "hm"},
    ],
)
@pytest.mark.parametrize("form", ["openai", "langchain"])
def test_thoughts_are_read_wherever_providers_put_them_and_are_no_part_of_the_answer(tmp_path, thinking, form):
    name, roles = ("type", ("human", "ai")) if form == "langchain" else ("role", ("user", "assistant"))
    messages = [{name: roles[0], "content": "q"}, {name: roles[1], "content": "Ada"} | thinking]
    (record,) = found_in(tmp_path / "x.json", {"messages": messages})
    assert told(record) == ("q", [], "hm", "Ada")


@pytest.mark.parametrize(
    "tools",
    [[TOOL], json.dumps([TOOL]), [json.dumps(TOOL)], TOOL, [TOOL["function"]], [{"type": "tool", **TOOL, "x": None}]],
)
def test_tool_definitions_are_read_from_objects_and_from_json_texts(tmp_path, tools):
    (record,) = found_in(tmp_path / "x.json", {"messages": json.dumps([USER, ANSWER]), "tools": tools})
    (tool,) = record.trace.result.tools
    assert tool["function"] == TOOL["function"]
    remark, record = found_in(tmp_path / "x.json", {"messages": [USER, ANSWER], "tools": ["read"]})
    assert remark.text == "the definition of tool 1 names no function, and was left out"


ASKED = {"name": "read", "args": {"title": "Ada"}, "id": "c1"}
CONVERSATION = [
    HumanMessage("who?"),
    AIMessage("look", tool_calls=[ASKED]),
    ToolMessage("a page", tool_call_id="c1"),
    AIMessage("Ada"),
]
FLAT = [message.model_dump() for message in CONVERSATION]
DUMPED = [dumpd(message) for message in CONVERSATION]
INNER_RUN = {"id": "r2", "run_type": "llm", "parent_run_id": "r1", "inputs": {"messages": [DUMPED]}, "outputs": {}}


@pytest.mark.parametrize(
    "document",
    [
        FLAT,
        [FLAT],
        {"messages": FLAT, "thread": 1},
        {"values": {"messages": FLAT}, "next": []},
        {"channel_values": {"messages": DUMPED}},
        {"output": {"messages": FLAT}},
        [
            {
                "type": "AIMessageChunk" if m["type"] == "ai" else m["type"],
                "content": m["content"],
                "tool_calls": m.get("tool_calls"),
            }
            for m in FLAT
        ],
        {"id": "r1", "run_type": "chain", "inputs": {"messages": FLAT[:1]}, "outputs": {"messages": FLAT}},
        {
            "id": "r1",
            "run_type": "llm",
            "inputs": {"messages": [DUMPED[:3]]},
            "outputs": {"generations": [[{"text": "Ada", "message": DUMPED[3]}]]},
        },
        {
            "id": "r1",
            "run_type": "chain",
            "inputs": {"messages": [{"role": "user", "content": "who?"}]},
            "outputs": {"messages": [{"type": "remove", "id": "0", "content": ""}, *FLAT[1:]]},
        },
        [{"id": "r1", "run_type": "chain", "inputs": {}, "outputs": {"messages": FLAT}}, INNER_RUN],
    ],
)
def test_states_and_runs_of_langchain_are_read(tmp_path, document):
    results = found_in(tmp_path / "x.json", document)
    (record,) = [result for result in results if isinstance(result, TraceRecord)]
    assert told(record) == ("who?", [("look", "read", {"title": "Ada"}, "a page", None)], None, "Ada")
    remarks = [result.text for result in results if isinstance(result, RecordRemark)]
    parts = ["it is a part of the run r1, which has the whole conversation, and was left out"]
    assert remarks == (parts if INNER_RUN in list(document) else [])


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ({"additional_kwargs": {"tool_calls": [call("read", {"title": "Ada"})]}}, None),
        ({"additional_kwargs": {"function_call": call("read", {"title": "Ada"})["function"]}}, None),
        (
            {"invalid_tool_calls": [ASKED | {"type": "invalid_tool_call", "args": '{"title"', "error": None}]},
            "not JSON",
        ),
        ({"tool_calls": [], "invalid_tool_calls": [ASKED | {"type": "invalid_tool_call", "error": "no"}]}, "no"),
        ({"tool_calls": [ASKED], "additional_kwargs": {"tool_calls": [call("read", {"title": "Ada"})]}}, None),
    ],
)
def test_calls_that_langchain_did_not_parse_are_read(tmp_path, message, error):
    seen = {"type": "function", "name": "read", "content": "a page"}
    chat = [FLAT[0], {"type": "ai", "content": "", **message}, seen, FLAT[3]]
    *_, record = found_in(tmp_path / "x.json", chat)
    (step,) = record.steps
    assert (step.tool, step.observation, record.trace.final_answer) == ("read", "a page", "Ada")
    assert (step.error is None) == (error is None)
    assert error is None or error in step.error
    assert step.arguments == ({"input": '{"title"'} if error == "not JSON" else {"title": "Ada"})


def test_a_call_that_was_streamed_in_pieces_is_read(tmp_path):
    parts = [{"type": "tool_use", "id": "c1", "name": "read", "input": {}, "index": 1}]
    parts += [{"type": "input_json_delta", "partial_json": piece, "index": 1} for piece in ('{"title"', ': "Ada"}')]
    results = found_in(tmp_path / "x.json", [FLAT[0], {"type": "ai", "content": parts}, FLAT[2], FLAT[3]])
    assert [told(record) for record in results] == [
        ("who?", [("", "read", {"title": "Ada"}, "a page", None)], None, "Ada")
    ]


def test_calls_that_the_server_ran_itself_and_others_keep_their_order(tmp_path):
    parts = [
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": "Ada"}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": [{"type": "text", "text": "a hit"}]},
        {"type": "text", "text": "look"},
        {"type": "tool_use", "id": "c1", "name": "read", "input": {"title": "Ada"}},
    ]
    chat = [FLAT[0], {"type": "ai", "content": parts, "tool_calls": [ASKED]}, FLAT[2], FLAT[3]]
    (record,) = found_in(tmp_path / "x.json", chat)
    searched = ("", "web_search", {"query": "Ada"}, "a hit", None)
    assert told(record) == ("who?", [searched, ("look", "read", {"title": "Ada"}, "a page", None)], None, "Ada")
