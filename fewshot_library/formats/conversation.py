"""The conversation that the spans of one trace tell: what the model was told last, and what it said to that."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from fewshot_library.formats.chat import MessageToolCall, TraceMessage
from fewshot_library.formats.chat_record import ChatTranscript, chat_to_records
from fewshot_library.formats.documents import MalformedRecord, RecordOrigin, decode_record, read_json_values
from fewshot_library.formats.format import ReadResult, RecordRemark
from fewshot_library.formats.spans import TraceSpan, iterate_raw_spans, parse_span


@dataclass(slots=True)
class SpanToolRun:
    """One run of a tool, as its span tells it."""

    call: MessageToolCall
    content: str | None
    rating: int | None = None


@dataclass(slots=True)
class SpanContent:
    """What a span tells in the words of its convention."""

    input_messages: list[TraceMessage] = field(default_factory=list)
    """What the model was told."""
    output_messages: list[TraceMessage] = field(default_factory=list)
    tools: list[dict[str, Any]] = field(default_factory=list)
    tool_run: SpanToolRun | None = None
    input_text: str | None = None
    output_text: str | None = None
    final_answer: str | None = None
    """What an agent answered in the end, where its span tells that in words."""
    annotations: list[Any] = field(default_factory=list)


SpanDecoder = Callable[[TraceSpan], SpanContent]


def span_trace_reader(format_name: str, tell: SpanDecoder) -> Callable[[Path], Iterator[ReadResult]]:
    """A reader of spans, which are gathered into their traces wherever they stand in the file."""

    def read(path: Path) -> Iterator[ReadResult]:
        traces: dict[str, list[TraceSpan]] = {}
        for place, value in read_json_values(path):
            for number, raw in enumerate(iterate_raw_spans(value), start=1):
                origin = RecordOrigin(format_name, path.stem, f"{place}span {number}")
                yield from decode_record(raw, partial(_collect_span, traces), origin)
        for number, (trace_id, spans) in enumerate(traces.items(), start=1):
            origin = RecordOrigin(format_name, path.stem, f"trace {trace_id or number}")
            yield from decode_record(spans, partial(_decode_spans, tell), origin)

    return read


def _collect_span(traces: dict[str, list[TraceSpan]], raw: Any, _: RecordOrigin) -> Iterator[ReadResult]:
    span = parse_span(raw)
    traces.setdefault(span.trace_id, []).append(span)
    return iter(())


def _decode_spans(tell: SpanDecoder, spans: list[TraceSpan], origin: RecordOrigin) -> Iterator[ReadResult]:
    spans.sort(key=lambda span: (span.started_at is None, span.started_at.timestamp() if span.started_at else 0.0))
    told = [(span, tell(span)) for span in spans]
    models = [each for _, each in told if each.input_messages or each.output_messages]
    uses = [(span, each.tool_run) for span, each in told if each.tool_run is not None]
    if not models and not uses:
        raise MalformedRecord("none of its spans tells what a model or a tool said")
    chat = _longest_conversation(models) if models else ChatTranscript(_messages_from_tools(told, uses))
    used = _attach_tool_results(chat.messages, uses)
    concluded = next((each.final_answer for _, each in told if each.final_answer), None)
    if concluded is not None and (chat.messages[-1].role != "assistant" or chat.messages[-1].calls):
        # An agent may answer by a tool, whose call is then the last that its model said.
        chat.messages.append(TraceMessage("assistant", concluded))
    chat.tools = next((each.tools for each in models if each.tools), [])
    chat.extra = {"spans": [span.name for span in spans], "trace_id": spans[0].trace_id}
    if annotations := [annotation for _, each in told for annotation in each.annotations]:
        chat.extra["annotations"] = annotations
    roots = [span for span in spans if span.parent_id is None]
    chat.error = next((span.error for span in roots if span.error), None)
    times = [time for span in spans for time in (span.started_at, span.ended_at) if time is not None]
    if times:
        chat.started_at, chat.finished_at = min(times), max(times)
    yield RecordRemark(origin.place, f"of its {len(spans)} spans only what was said, called, seen and rated was taken")
    if elsewhere := _count_unrelated_calls(models, chat.messages) + len(uses) - used:
        yield RecordRemark(
            origin.place, f"{elsewhere} of its model and tool calls belong to other conversations, left out"
        )
    yield from chat_to_records(chat, origin)


def _longest_conversation(models: list[SpanContent]) -> ChatTranscript:
    """The longest conversation, the latest of several; it holds what was said in those that it goes on from."""
    longest = max(reversed(models), key=lambda each: len(each.input_messages) + len(each.output_messages))
    return ChatTranscript([*longest.input_messages, *longest.output_messages])


def _count_unrelated_calls(models: list[SpanContent], messages: list[TraceMessage]) -> int:
    """How many calls of a model said something that is not among the messages."""
    kept = [_message_key(message) for message in messages]
    return sum(any(_message_key(message) not in kept for message in each.output_messages) for each in models)


def _message_key(message: TraceMessage) -> Any:
    return message.content, [(call.name, call.arguments) for call in message.calls]


def _messages_from_tools(
    told: list[tuple[TraceSpan, SpanContent]], uses: list[tuple[TraceSpan, SpanToolRun]]
) -> list[TraceMessage]:
    """The messages where no model's words were recorded."""
    asked = next((each.input_text for _, each in told if each.input_text and each.tool_run is None), None)
    if asked is None:
        raise MalformedRecord("none of its spans tells what was asked")
    messages = [TraceMessage("user", asked)]
    messages += [TraceMessage("assistant", calls=[use.call]) for _, use in uses]
    answered = next((each.output_text for _, each in told if each.output_text and each.tool_run is None), None)
    return messages + ([TraceMessage("assistant", answered)] if answered is not None else [])


def _attach_tool_results(messages: list[TraceMessage], uses: list[tuple[TraceSpan, SpanToolRun]]) -> int:
    """Tell with each call what its span tells of it; gives how many spans were of use."""
    answers = {message.call_id: message for message in messages if message.role == "tool"}
    calls = {call.id: call for message in messages for call in message.calls}
    found: dict[str, tuple[TraceSpan, SpanToolRun]] = {}
    for span, use in uses:
        # Some spans do not name their call: then it is the first of the tool's that has none yet.
        known = use.call.id if use.call.id in calls else None
        by_name = (each for each in calls if each not in found and calls[each].name == use.call.name)
        call_id = known or next(by_name, None)
        if call_id is not None:
            found[call_id] = span, use
    missing: dict[str, TraceMessage] = {}
    for call_id, (span, use) in found.items():
        answer = answers.get(call_id)
        if answer is None:
            answer = missing[call_id] = TraceMessage("tool", use.content or span.error or "", call_id=call_id)
        answer.failed, answer.at, answer.rating = span.error is not None, span.ended_at, use.rating
    messages[:] = [
        each
        for said in messages
        for each in (said, *(missing.pop(call.id) for call in said.calls if call.id in missing))
    ]
    return len(found)
