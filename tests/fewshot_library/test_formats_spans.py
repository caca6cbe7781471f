"""Spans of OpenInference (recorded from a LangChain agent) and of OpenTelemetry, in every form of JSON."""

import json
from pathlib import Path

import pytest

from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.formats import detect_format, read_traces
from showhow.fewshot_library.formats.format import RecordRemark, RefusedRecord
from tests.fewshot_library.traces import told

RECORDED = Path(__file__).with_name("recorded") / "openinference_langchain.json"
SEEN = "Ada Lovelace wrote it."
STEPS = [
    ("I look it up.", "lookup", {"query": "who wrote it"}, SEEN, None),
    ("Once more.", "lookup", {"query": "who wrote it, exactly"}, SEEN, None),
]


def found_in(path, content, name="auto"):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return list(read_traces(path, name))


def only_trace(results):
    (record,) = [result for result in results if isinstance(result, TraceRecord)]
    assert list(record.find_inconsistencies()) == []
    return record


def recorded():
    return json.loads(RECORDED.read_text())


def test_a_recorded_agent_is_one_trace():
    assert detect_format(RECORDED).name == "openinference"
    remark, record = read_traces(RECORDED)
    assert remark.text == "of its 6 spans only messages, calls, results and ratings were imported"
    assert told(record) == ("Who wrote the first program?", STEPS, None, "Ada Lovelace")
    assert [tool["function"]["name"] for tool in record.trace.result.tools] == ["lookup"]
    assert record.trace.result.details["openinference"]["system"] == ["Use tools."]
    assert record.trace.started_at < record.steps[0].finished_at < record.trace.submitted_at


def nested(span):
    """The span as Phoenix exports it: attributes as a tree, dotted names within lists, the context flat."""
    attributes, lists = {"openinference": {"span": {"kind": span["attributes"]["openinference.span.kind"]}}}, {}
    for key, value in span["attributes"].items():
        head, _, rest = key.partition(".")
        path = rest.split(".")
        if head == "llm" and len(path) > 2:
            lists.setdefault(path[0], {}).setdefault(path[1], {})[".".join(path[2:])] = value
        elif key != "openinference.span.kind":
            attributes[key] = value
    attributes["llm"] = {name: list(items.values()) for name, items in lists.items()}
    flat = {key: value for key, value in span.items() if key not in ("context", "attributes", "status")}
    return flat | {
        "context.trace_id": span["context"]["trace_id"],
        "context.span_id": span["context"]["span_id"],
        "attributes": attributes,
        "status_code": "OK",
    }


def otlp_value(value):
    kinds = {str: "stringValue", bool: "boolValue", int: "intValue", float: "doubleValue"}
    if isinstance(value, list):
        return {"arrayValue": {"values": [otlp_value(element) for element in value]}}
    if isinstance(value, dict):
        return {"kvlistValue": {"values": [{"key": k, "value": otlp_value(v)} for k, v in value.items()]}}
    return {kinds[type(value)]: str(value) if type(value) is int else value}


def otlp(spans):
    """The spans as an OTLP exporter writes them."""
    told_spans = [
        {
            "traceId": span["context"]["trace_id"],
            "spanId": span["context"]["span_id"],
            **({"parentSpanId": span["parent_id"]} if span["parent_id"] else {}),
            "name": span["name"],
            "startTimeUnixNano": str(1_790_000_000_000_000_000 + number),
            "endTimeUnixNano": 1_790_000_000_000_000_100 + number,
            "attributes": [{"key": k, "value": otlp_value(v)} for k, v in span["attributes"].items()],
            "status": {"code": "STATUS_CODE_OK"},
        }
        for number, span in enumerate(spans)
    ]
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": told_spans}]}]}


def test_every_form_of_the_same_spans_is_the_same_trace(tmp_path):
    spans = recorded()
    forms = {
        "lines": "\n".join(json.dumps(span) for span in reversed(spans)),
        "otlp": otlp(spans),
        "phoenix": [nested(span) for span in spans],
        "data": {"spans": spans},
    }
    for name, form in forms.items():
        record = only_trace(found_in(tmp_path / f"{name}.json", form))
        assert told(record) == ("Who wrote the first program?", STEPS, None, "Ada Lovelace"), name


def test_two_traces_in_one_file_are_separated(tmp_path):
    spans = recorded()
    other = [{**span, "context": {**span["context"], "trace_id": "0x2"}} for span in spans]
    shuffled = [span for pair in zip(spans, other, strict=True) for span in pair]
    records = [result for result in found_in(tmp_path / "x.json", shuffled) if isinstance(result, TraceRecord)]
    assert [told(record) for record in records] == [told(records[0])] * 2
    assert records[0].trace.id != records[1].trace.id


TOOL = {
    "name": "wiki_search",
    "start_time": "2026-01-01T00:00:01Z",
    "attributes": {
        "openinference.span.kind": "TOOL",
        "tool.name": "wiki_search",
        "tool.id": "c1",
        "input.value": '{"query": "longest rivers US"}',
        "output.value": "Missouri River, 2341 mi",
        "annotations.0.annotation.name": "observation_quality",
        "annotations.0.annotation.score": 5,
        "annotations.0.annotation.annotator_kind": "HUMAN",
    },
}
AGENT = {
    "name": "agent",
    "parent_id": None,
    "start_time": "2026-01-01T00:00:00Z",
    "attributes": {"openinference.span.kind": "AGENT", "input.value": "Which river?", "output.value": "Missouri River"},
}


def test_a_trace_without_model_messages_is_built_from_tool_spans(tmp_path):
    failed = {
        **TOOL,
        "status": {"status_code": "ERROR", "description": "no net"},
        "attributes": dict(TOOL["attributes"]),
    }
    failed["attributes"] |= {"tool.id": "c2", "input.value": "rivers"}
    del failed["attributes"]["output.value"]
    record = only_trace(found_in(tmp_path / "x.json", [TOOL, failed, AGENT]))
    assert told(record) == (
        "Which river?",
        [
            ("", "wiki_search", {"query": "longest rivers US"}, "Missouri River, 2341 mi", None),
            ("", "wiki_search", {"input": "rivers"}, None, "no net"),
        ],
        None,
        "Missouri River",
    )
    assert [step.rating for step in record.steps] == [5, 5]
    assert record.trace.result.details["openinference"]["annotations"][0]["name"] == "observation_quality"


CALLED = {"type": "tool_call", "id": "c1", "name": "search", "arguments": {"query": "a.b", "deep": {"x.y": [1, None]}}}
ASKED = [{"role": "user", "parts": [{"type": "text", "content": "Which river?"}]}]
LOOKED = [
    {"role": "assistant", "parts": [{"type": "reasoning", "content": "hm"}, CALLED], "finish_reason": "tool_call"}
]
BACK = [{"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": {"found": ["Missouri"]}}]}]
ANSWERED = [{"role": "assistant", "parts": [{"type": "text", "content": "Missouri River"}], "finish_reason": "stop"}]


def span(name, at, **attributes):
    told_attributes = {f"gen_ai.{key.replace('__', '.')}": value for key, value in attributes.items()}
    return {
        "name": name,
        "context": {"trace_id": "t", "span_id": f"s{at}"},
        "parent_id": "s0" if at else None,
        "start_time": f"2026-01-01T00:00:{at:02}Z",
        "end_time": f"2026-01-01T00:01:{at:02}Z",
        "attributes": told_attributes,
    }


def conversation():
    tools = [{"type": "function", "name": "search", "description": "Search.", "parameters": {"type": "object"}}]
    first = span("chat m", 1, operation__name="chat", input__messages=ASKED, output__messages=LOOKED)
    second = span(
        "chat m", 3, operation__name="chat", input__messages=[*ASKED, *LOOKED, *BACK], output__messages=ANSWERED
    )
    second["attributes"] |= {
        "gen_ai.system_instructions": [{"type": "text", "content": "Be brief."}],
        "gen_ai.tool.definitions": tools,
    }
    tool = span("execute_tool search", 2, operation__name="execute_tool", tool__name="search", tool__call__id="c1")
    tool["attributes"]["gen_ai.tool.call.result"] = "Missouri"
    return [span("invoke_agent a", 0, operation__name="invoke_agent"), first, tool, second]


def as_text(span_given):
    """Encode lists and objects as JSON text, as span attributes require."""
    told_attributes = {
        key: json.dumps(value) if isinstance(value, list | dict) else value
        for key, value in span_given["attributes"].items()
    }
    return {**span_given, "attributes": told_attributes}


def in_event(span_given):
    """Move the messages to the event that the conventions define for them."""
    kept = {key: value for key, value in span_given["attributes"].items() if "messages" not in key}
    messages = {key: value for key, value in span_given["attributes"].items() if "messages" in key}
    event = {"name": "gen_ai.client.inference.operation.details", "attributes": messages}
    return {**span_given, "attributes": kept, "events": [event] if messages else []}


FORMS = {
    "structured": lambda spans: spans,
    "text": lambda spans: [as_text(span) for span in spans],
    "events": lambda spans: [in_event(span) for span in spans],
    "otlp of text": lambda spans: otlp([as_text(span) for span in spans]),
    "otlp of structures": otlp,
}


@pytest.mark.parametrize("form", FORMS)
def test_a_conversation_by_the_conventions_of_opentelemetry_is_one_trace(tmp_path, form):
    spans = conversation()
    arguments = {"query": "a.b", "deep": {"x.y": [1, None]}}
    if form == "otlp of structures":
        # OTLP has no null.
        spans = json.loads(json.dumps(spans).replace("[1, null]", "[1, 2]"))
        arguments = {"query": "a.b", "deep": {"x.y": [1, 2]}}
    record = only_trace(found_in(tmp_path / "x.json", FORMS[form](spans)))
    assert detect_format(tmp_path / "x.json").name == "opentelemetry"
    step = ("hm", "search", arguments, '{"found": ["Missouri"]}', None)
    assert told(record) == ("Which river?", [step], None, "Missouri River")
    assert record.trace.result.details["opentelemetry"]["system"] == ["Be brief."]
    assert list(record.trace.result.tools) == [
        {"type": "function", "function": {"name": "search", "description": "Search.", "parameters": {"type": "object"}}}
    ]


def test_an_answer_by_a_tool_is_the_final_answer(tmp_path):
    agent, first, tool, _ = conversation()
    # As AgentScope writes it: one message alone, and instructions as a text; printed one after the other.
    agent["attributes"] |= {
        "gen_ai.input.messages": json.dumps(ASKED),
        "gen_ai.output.messages": json.dumps(ANSWERED[0]),
    }
    first["attributes"]["gen_ai.system_instructions"] = "Be brief."
    console = "\n".join(json.dumps(as_text(span), indent=4) for span in (agent, first, tool))
    record = only_trace(found_in(tmp_path / "x.json", console))
    assert told(record)[3] == "Missouri River"
    assert [step.observation for step in record.steps] == ["Missouri"]
    assert record.trace.result.details["opentelemetry"]["system"] == ["Be brief."]
    record = only_trace(found_in(tmp_path / "x.json", "\n".join(json.dumps(as_text(span)) for span in (tool, agent))))
    assert told(record)[::3] == ("Which river?", "Missouri River")


def test_tool_spans_complete_the_messages(tmp_path):
    first, tool = conversation()[1:3]
    tool["status"] = {"status_code": "ERROR"}
    record = only_trace(found_in(tmp_path / "x.json", [first, tool]))
    assert [(step.error, step.observation) for step in record.steps] == [("Missouri", None)]
    assert (record.trace.status, record.trace.final_answer) == ("failed", None)


def test_calls_of_another_conversation_are_reported_as_left_out(tmp_path):
    aside = span("chat m", 4, operation__name="chat", input__messages=ASKED, output__messages=ANSWERED)
    aside["attributes"]["gen_ai.output.messages"] = [{"role": "assistant", "parts": [{"type": "text", "content": "?"}]}]
    _, remark, _ = found_in(tmp_path / "x.json", [*conversation(), aside])
    assert remark == RecordRemark(
        "trace t", "1 of its model and tool calls belong to other conversations and were left out"
    )


def chat(**message):
    return span("chat m", 1, operation__name="chat", input__messages=[*ASKED, message])


BROKEN = {
    "it is not a span: it has no attributes": {"name": "x"},
    "it is not a span": 3,
    "none of its spans has a message of a model or a result of a tool": span("x", 1),
    "none of its spans has the question": span("x", 1, operation__name="execute_tool", tool__name="a"),
}


@pytest.mark.parametrize("reason", BROKEN)
def test_a_malformed_span_is_refused_and_other_traces_are_read(tmp_path, reason):
    other = [{**span, "context": {"trace_id": "other", "span_id": span["name"]}} for span in conversation()]
    lines = [json.dumps(span) for span in (BROKEN[reason], *other)]
    results = found_in(tmp_path / "x.jsonl", "\n".join(lines), "opentelemetry")
    assert told(only_trace(results))[3] == "Missouri River"
    (refused,) = [result for result in results if isinstance(result, RefusedRecord)]
    assert reason in refused.reason
    assert refused.place in ("line 1, span 1", "line 1", "trace t")


def with_attribute(value):
    spans = otlp(json.loads(json.dumps(conversation()).replace("[1, null]", "[1]")))
    spans["resourceSpans"][0]["scopeSpans"][0]["spans"][1]["attributes"].append(value)
    return spans


def with_message(number, **message):
    """The conversation with an odd message among those that its last span sent."""
    spans = conversation()
    sent = spans[3]["attributes"]["gen_ai.input.messages"]
    spans[3]["attributes"]["gen_ai.input.messages"] = [*sent[:number], message, *sent[number:]]
    return spans


def changed_span(number, **fields):
    spans = conversation()
    spans[number] |= fields
    return spans


REMARKED = {
    "one of its attributes has no key, and was left out": with_attribute({"value": 1}),
    "its start_time 'noon' is not a valid time, and was left out": changed_span(0, start_time="noon"),
    "its attributes are not a JSON object but a str, and were left out": changed_span(0, attributes="x"),
    "gen_ai.input.messages.3 has no role, and was taken for a message of the role assistant": with_message(3, parts=[]),
    "message 5 of the role critic was imported as the observation of step 2": with_message(3, role="critic", parts=[]),
    "part 1 of gen_ai.input.messages.3 is of the kind 'blob', and was kept but not read": with_message(
        3, role="assistant", parts=[{"type": "blob", "content": "iVBOR"}]
    ),
    "message 5 of the role tool was imported as the observation of step 2": with_message(
        3, role="tool", parts=[{"type": "tool_call_response", "id": "c9", "response": "x"}]
    ),
    "of its 4 spans only messages, calls, results and ratings were imported": [*conversation(), conversation()[3]],
}


@pytest.mark.parametrize("remark", REMARKED)
def test_what_cannot_be_read_in_a_span_is_a_remark_and_the_rest_is_read(tmp_path, remark):
    results = found_in(tmp_path / "x.json", REMARKED[remark], "opentelemetry")
    assert remark in [result.text for result in results if isinstance(result, RecordRemark)]
    question, (step, *_), _, answer = told(only_trace(results))
    assert (question, step[1], answer) == ("Which river?", "search", "Missouri River")


def openinference(name, at, parent, kind, *, asked=(), answered=None, **attributes):
    """A span of OpenInference; messages are pairs of a role and a text."""
    messages = [*(("input", *pair) for pair in asked), *((("output", "assistant", answered),) if answered else ())]
    counts = {"input": 0, "output": 0}
    own = {"openinference.span.kind": kind, **{key.replace("__", "."): value for key, value in attributes.items()}}
    for side, role, text in messages:
        own[f"llm.{side}_messages.{counts[side]}.message.role"] = role
        own[f"llm.{side}_messages.{counts[side]}.message.content"] = text
        counts[side] += 1
    return {
        "name": name,
        "context": {"trace_id": "t", "span_id": name},
        "parent_id": parent,
        "start_time": f"2026-01-01T00:00:{at:02}Z",
        "attributes": own,
    }


AGENT_SPAN = openinference("agent", 0, None, "AGENT", input__value="Which river?", output__value="Missouri")
MODEL_SPAN = openinference("model", 2, "agent", "LLM", asked=[("user", "Which river?")], answered="Missouri")
JUDGE = [("system", "Grade."), ("user", "river 1"), ("assistant", "good"), ("user", "Which river? Missouri")]
ASKED_IN_JSON = json.dumps({"messages": [["user", "Which river?"]]})
ASIDES = {
    "a judge below the agent": openinference("judge", 4, "agent", "LLM", asked=JUDGE, answered="bad"),
    "a judge beside it": openinference("judge", 4, "0x0000000000000000", "LLM", asked=JUDGE, answered="bad"),
    "a title": openinference("title", 4, "agent", "LLM", asked=[("user", "Name: Which river?")], answered="Rivers"),
    "an earlier check": openinference(
        "check", 1, "agent", "LLM", asked=[("user", "Safe? Which river?")], answered="ok"
    ),
    "a sub-agent": openinference("sub", 3, "tool", "LLM", asked=[*JUDGE, ("user", "the longest")], answered="Missouri"),
}


@pytest.mark.parametrize("aside", ASIDES)
@pytest.mark.parametrize(
    "root",
    [AGENT_SPAN, {**AGENT_SPAN, "attributes": {**AGENT_SPAN["attributes"], "input.value": ASKED_IN_JSON}}],
    ids=["text", "json"],
)
def test_the_conversation_of_the_root_is_the_trace_and_others_are_left_out_with_a_remark(tmp_path, aside, root):
    tool = openinference("tool", 2, "agent", "TOOL", input__value="{}", output__value="Missouri")
    results = found_in(tmp_path / "x.json", [ASIDES[aside], MODEL_SPAN, tool, root])
    assert told(only_trace(results)) == ("Which river?", [], None, "Missouri")
    assert any("belong to other conversations and were left out" in getattr(result, "text", "") for result in results)


def test_a_sub_agent_does_not_stand_for_a_root_without_texts(tmp_path):
    root = openinference("agent", 0, None, "AGENT")
    sub = openinference("sub", 1, "agent", "AGENT", input__value="How long is it?", output__value="long")
    asked = [("user", "How long is it?"), ("assistant", "hm"), ("user", "go on")]
    inner = openinference("inner", 2, "sub", "LLM", asked=asked, answered="long")
    for spans in ([root, sub, inner, MODEL_SPAN], [inner, MODEL_SPAN, sub, root]):
        results = found_in(tmp_path / "x.json", spans)
        assert told(only_trace(results)) == ("Which river?", [], None, "Missouri")
        assert any("1 of its model and tool calls" in getattr(result, "text", "") for result in results)


def test_the_root_has_the_question_and_answer_where_no_message_of_its_model_was_recorded(tmp_path):
    tool = openinference("tool", 2, "agent", "TOOL", tool__name="search", input__value="{}", output__value="Missouri")
    inner = openinference("inner", 3, "tool", "TOOL", tool__name="search", input__value="{}", output__value="Nile")
    record = only_trace(found_in(tmp_path / "x.json", [AGENT_SPAN, tool, inner, ASIDES["a judge below the agent"]]))
    assert told(record) == ("Which river?", [("", "search", {}, "Missouri", None)], None, "Missouri")


def test_an_answer_of_the_root_that_its_model_did_not_write_is_told(tmp_path):
    root = {**AGENT_SPAN, "attributes": {**AGENT_SPAN["attributes"], "output.value": "The Missouri River"}}
    results = found_in(tmp_path / "x.json", [root, MODEL_SPAN])
    assert told(only_trace(results)) == ("Which river?", [], "Missouri", "The Missouri River")
    assert any("its answer is the output of its root" in getattr(result, "text", "") for result in results)


@pytest.mark.parametrize("ids", [("", ""), ("c", "c"), (None, None)])
def test_results_of_tool_spans_lie_on_their_own_calls_without_ids(tmp_path, ids):
    calls = [{**CALLED, "id": number, "arguments": {"query": name}} for number, name in zip(ids, "ab", strict=True)]
    looked = [{"role": "assistant", "parts": calls}]
    second = span("execute_tool search", 2, operation__name="execute_tool", tool__name="search")
    second["attributes"] |= {"gen_ai.tool.call.arguments": '{"query": "b"}', "gen_ai.tool.call.result": "B"}
    first = span("execute_tool search", 3, operation__name="execute_tool", tool__name="search")
    first["attributes"] |= {"gen_ai.tool.call.arguments": '{"query": "a"}', "gen_ai.tool.call.result": "A"}
    spans = [span("chat m", 1, operation__name="chat", input__messages=ASKED, output__messages=looked), second, first]
    record = only_trace(found_in(tmp_path / "x.json", spans))
    assert [(step.arguments["query"], step.observation) for step in record.steps] == [("a", "A"), ("b", "B")]


def test_a_result_of_the_tools_span_stands_for_an_empty_message_and_thoughts_are_found(tmp_path):
    spans = conversation()
    sent = spans[3]["attributes"]["gen_ai.input.messages"]
    sent[2] = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": None}]}
    spans[3]["attributes"]["gen_ai.output.messages"] = [
        {"role": "assistant", "reasoning_content": "so", "parts": [{"type": "text", "content": "<think>hm</think>M"}]}
    ]
    record = only_trace(found_in(tmp_path / "x.json", spans))
    assert [step.observation for step in record.steps] == ["Missouri"]
    assert told(record)[2:] == ("so\n\nhm", "M")


def test_numbers_that_json_does_not_have_are_absent_also_in_texts(tmp_path):
    spans = [as_text(span) for span in conversation()]
    text = json.dumps(spans).replace('\\"query\\": \\"a.b\\"', '\\"query\\": NaN')
    assert "NaN" in text
    results = found_in(tmp_path / "x.json", text)
    assert only_trace(results).steps[0].arguments["query"] is None
    assert any("arguments.query: no number of JSON" in getattr(result, "text", "") for result in results)
