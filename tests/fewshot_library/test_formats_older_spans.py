"""Import of spans as instrumentations write them that follow older or other conventions."""

import json

import pytest

from showhow.db.traces.trace_record import TraceRecord
from showhow.fewshot_library.formats import read_traces
from tests.fewshot_library.conversations import plain_messages
from tests.fewshot_library.foreign_samples import TASKS
from tests.fewshot_library.traces import told

TASK = TASKS[0]
*SENT, ANSWER = plain_messages(TASK)


def span(attributes, **fields):
    return {"name": "chat", "context": {"trace_id": "t", "span_id": "s"}, "attributes": attributes, **fields}


def numbered(prefix, messages):
    """Attributes with a number for each message and each call."""
    attributes = {}
    for number, message in enumerate(messages):
        at = f"{prefix}.{number}"
        attributes |= {f"{at}.{name}": message[name] for name in ("role", "content", "tool_call_id") if name in message}
        for place, call in enumerate(message.get("tool_calls", ())):
            fields = {"id": call["id"], **call["function"]}
            attributes |= {f"{at}.tool_calls.{place}.{name}": value for name, value in fields.items()}
    return attributes


def event(name, message):
    return {"name": name, "attributes": {"gen_ai.event.content": json.dumps(message)}}


def column(message):
    """A message in a table, whose columns keep the dots of the attributes."""
    fields = {f"message.{name}": message[name] for name in ("role", "content", "tool_call_id") if name in message}
    calls = [
        {
            "tool_call.id": call["id"],
            **{f"tool_call.function.{name}": value for name, value in call["function"].items()},
        }
        for call in message.get("tool_calls", ())
    ]
    return fields | ({"message.tool_calls": calls} if calls else {})


EVENTS = [event(f"gen_ai.{message['role']}.message", message) for message in SENT]
CHOICE = {"index": 0, "message": ANSWER}
LISTED = [
    *({"event.name": f"gen_ai.{message['role']}.message", **message} for message in SENT),
    {"event.name": "gen_ai.choice", **CHOICE},
]
FORMS = {
    "numbered": span(numbered("gen_ai.prompt", SENT) | numbered("gen_ai.completion", [ANSWER])),
    "events": span({"gen_ai.system": "openai"}, events=[*EVENTS, event("gen_ai.choice", CHOICE)]),
    "a list of events": span({"gen_ai.operation.name": "chat", "events": json.dumps(LISTED)}),
    "columns": {
        "name": "chat",
        "context.trace_id": "t",
        "context.span_id": "s",
        "attributes.openinference.span.kind": "LLM",
        "attributes.llm.input_messages": [*map(column, SENT)],
        "attributes.llm.output_messages": [column(ANSWER)],
    },
}


@pytest.mark.parametrize("form", FORMS)
def test_the_messages_of_spans_are_read_wherever_their_convention_puts_them(tmp_path, form):
    (tmp_path / "x.jsonl").write_text(json.dumps(FORMS[form]) + "\n")
    (record,) = [result for result in read_traces(tmp_path / "x.jsonl") if isinstance(result, TraceRecord)]
    assert told(record) == (TASK.question, [(*call, None) for call in TASK.calls], None, TASK.answer)
