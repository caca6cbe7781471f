"""Finds the conversation of a trace's root among its spans; those of sub-agents, judges and others are left out."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any

from showhow.fewshot_library.formats.chat import (
    ChatTranscript,
    MessageToolCall,
    TraceMessage,
    chat_to_records,
    match_results,
)
from showhow.fewshot_library.formats.format import ReadResult, RecordRemark
from showhow.fewshot_library.formats.json_documents import (
    MalformedRecord,
    RecordOrigin,
    decode_record,
    read_json_values,
)
from showhow.fewshot_library.formats.spans import SpanContent, TraceSpan, iterate_raw_spans, parse_json_text, parse_span
from showhow.guard.json_input import MAX_DEPTH

SpanDecoder = Callable[[TraceSpan], SpanContent]


def span_trace_reader(format_name: str, decode: SpanDecoder) -> Callable[[Path], Iterator[ReadResult]]:
    """A reader of spans; the spans of a trace may stand anywhere in the file."""

    def read(path: Path) -> Iterator[ReadResult]:
        traces: dict[str, list[TraceSpan]] = {}
        for place, value in read_json_values(path):
            for number, raw in enumerate(iterate_raw_spans(value), start=1):
                origin = RecordOrigin(format_name, path.stem, f"{place}span {number}")
                yield from decode_record(raw, partial(_collect_span, traces), origin)
        for number, (trace_id, spans) in enumerate(_join_traces(traces).items(), start=1):
            origin = RecordOrigin(format_name, path.stem, f"trace {trace_id or number}")
            yield from decode_record(spans, partial(_decode_spans, decode), origin)

    return read


def _collect_span(traces: dict[str, list[TraceSpan]], raw: Any, origin: RecordOrigin) -> Iterator[ReadResult]:
    span = parse_span(raw)
    traces.setdefault(span.trace_id, []).append(span)
    return (RecordRemark(origin.place, remark) for remark in span.remarks)


def _join_traces(traces: dict[str, list[TraceSpan]]) -> dict[str, list[TraceSpan]]:
    """The traces, where spans whose parent is in another one, since their trace's id is damaged, are moved to it."""
    traces_by_id: dict[str, set[str]] = {}
    for trace_id, spans in traces.items():
        for span in spans:
            traces_by_id.setdefault(span.id, set()).add(trace_id)
    joined: dict[str, list[TraceSpan]] = {}
    for trace_id, spans in traces.items():
        for span in spans:
            parents = traces_by_id.get(span.parent_id or "", set())
            joined.setdefault(next(iter(parents)) if len(parents) == 1 else trace_id, []).append(span)
    return joined


@dataclass(slots=True)
class _Node:
    """A span in its trace."""

    span: TraceSpan
    content: SpanContent
    level: int = 0
    """The number of spans above it."""
    scopes: tuple[int, ...] = ()
    """The identities of those that have a conversation of their own, from the nearest on."""

    @property
    def has_messages(self) -> bool:
        return bool(self.content.input_messages or self.content.output_messages)


def _decode_spans(decode: SpanDecoder, spans: list[TraceSpan], origin: RecordOrigin) -> Iterator[ReadResult]:
    spans.sort(key=lambda span: (span.started_at is None, span.started_at.timestamp() if span.started_at else 0.0))
    nodes = _arrange([_Node(span, _decode_span(decode, span)) for span in _drop_repeated(spans)])
    remarks = [remark for node in nodes for remark in node.content.remarks]
    models = [node for node in nodes if node.has_messages]
    tools = [node for node in nodes if node.content.tool_run is not None]
    if not models and not tools:
        raise MalformedRecord((remarks or ["none of its spans has a message of a model or a result of a tool"])[0])
    root = _Root(nodes)
    conversation = root.choose_conversation(models)
    own_tools = _tools_within(conversation, tools)
    if conversation is not None:
        chat = ChatTranscript([*conversation.content.input_messages, *conversation.content.output_messages])
        remarks += root.complete(chat)
    else:
        chat = ChatTranscript(root.messages(own_tools))
    used = _attach_tool_results(chat.messages, own_tools)
    with_tools = [node.content.tools for node in ([conversation] if conversation else models) if node.content.tools]
    chat.tools = (
        with_tools[0] if with_tools else next((node.content.tools for node in models if node.content.tools), [])
    )
    chat.extra = {"spans": [node.span.name for node in nodes], "trace_id": spans[0].trace_id}
    if annotations := [annotation for node in nodes for annotation in node.content.annotations]:
        chat.extra["annotations"] = annotations
    chat.error = next((span.error for span in spans if span.parent_id is None and span.error), None)
    times = [time for span in spans for time in (span.started_at, span.ended_at) if time is not None]
    if times:
        chat.started_at, chat.finished_at = min(times), max(times)
    remarks.insert(0, f"of its {len(nodes)} spans only messages, calls, results and ratings were imported")
    if elsewhere := _count_unrelated_calls(models, chat.messages) + len(tools) - used:
        remarks.append(f"{elsewhere} of its model and tool calls belong to other conversations and were left out")
    yield from (RecordRemark(origin.place, remark) for remark in remarks)
    yield from chat_to_records(chat, origin)


def _drop_repeated(spans: list[TraceSpan]) -> Iterator[TraceSpan]:
    """The spans without those that an exporter wrote again."""
    by_id: dict[str, list[TraceSpan]] = {}
    for span in spans:
        same_id = by_id.setdefault(span.id, [])
        if not span.id or span not in same_id[:MAX_DEPTH]:
            same_id.append(span)
            yield span


def _decode_span(decode: SpanDecoder, span: TraceSpan) -> SpanContent:
    try:
        return decode(span)
    except MalformedRecord as error:
        return SpanContent(remarks=[f"the span {span.name[:80]!r} was left out: {error}"])


def _arrange(nodes: list[_Node]) -> list[_Node]:
    """Set where the spans are below others."""
    by_id = {node.span.id: node for node in reversed(nodes) if node.span.id}
    for node in nodes:
        above = list(islice(_iterate_above(node, by_id), MAX_DEPTH))
        node.level = len(above)
        node.scopes = tuple(id(other) for other in above if other.content.is_apart)
    return nodes


def _iterate_above(node: _Node, by_id: dict[str, _Node]) -> Iterator[_Node]:
    seen = {id(node)}
    while (parent := by_id.get(node.span.parent_id or "")) is not None and id(parent) not in seen:
        seen.add(id(parent))
        yield parent
        node = parent


def _tools_within(conversation: _Node | None, tools: list[_Node]) -> list[_Node]:
    """The tools that ran for the conversation of a span, and not for one below it; without one, the outermost."""
    if conversation is not None:
        return [tool for tool in tools if not tool.scopes or tool.scopes[0] in conversation.scopes]
    return [tool for tool in tools if len(tool.scopes) == min(len(other.scopes) for other in tools)]


_IN_FULL = 2
"""The rank of a conversation that has the root's question, or its answer, as a message."""


class _Root:
    """What the trace was asked and answered, by its first span that has a text of either."""

    def __init__(self, nodes: list[_Node]) -> None:
        # An agent below another one has the question of the agent above it, not that of the trace.
        outer = [node for node in nodes if not node.scopes and (node.content.input_text or node.content.output_text)]
        node = min(outer, key=lambda node: (not node.content.input_text, node.level), default=None)
        content = node.content if node else SpanContent()
        self._texts = content.input_text, content.output_text
        self._question, self._questions = _read_texts(content.input_text)
        self._answer, self._answers = _read_texts(content.output_text)

    def choose_conversation(self, models: list[_Node]) -> _Node | None:
        """The last call of the model in the root's conversation; None if no call of a model belongs to the root."""
        best = max(_last_calls(models), key=self._rank, default=None)
        if best is None or (self._question and self._answer and self._rank(best)[0] < _IN_FULL):
            return None
        return best

    def _rank(self, node: _Node) -> tuple[int, ...]:
        """The greater, the more likely the root's: by the root's texts, and where they do not tell, by what it does."""
        messages = [*node.content.input_messages, *node.content.output_messages]
        asked = [message.content.strip() for message in messages if message.role == "user"]
        rank = _IN_FULL if self._questions.intersection(asked) else 0
        if not rank and self._question:
            # A prompt may have the question within its text; so do those of judges.
            rank = int(any(self._question in text for text in asked))
        is_answered = not messages[-1].calls and messages[-1].role == "assistant"
        if is_answered and messages[-1].content.strip() in self._answers:
            rank += _IN_FULL
        # Judges have long examples and call no tool; of equal ones the first is taken.
        calls = sum(bool(message.calls) for message in messages)
        return rank, -max(0, len(node.scopes) - 1), calls, int(is_answered)

    def complete(self, chat: ChatTranscript) -> list[str]:
        """Add the root's question and answer where the messages have none or another; returns remarks on it."""
        if self._question and all(message.role != "user" for message in chat.messages):
            chat.messages.insert(0, TraceMessage("user", self._question))
        last = chat.messages[-1]
        if last.role != "assistant" or last.calls:
            # An agent may answer by a tool; then the call of that tool is the last message of its model.
            chat.messages += [TraceMessage("assistant", self._answer)] if self._answer else []
            return []
        if not self._answer or last.content.strip() in self._answers:
            return []
        chat.answer = self._answer
        return ["its answer is the output of its root; the last text of its model differs, and is the final thought"]

    def messages(self, tools: list[_Node]) -> list[TraceMessage]:
        """The messages of a trace of which no message of its model was recorded."""
        question, answer = self._texts
        if question is None:
            raise MalformedRecord("none of its spans has the question")
        calls = [node.content.tool_run.call for node in tools if node.content.tool_run is not None]
        return [
            TraceMessage("user", question),
            *(TraceMessage("assistant", calls=[call]) for call in calls),
            *([TraceMessage("assistant", answer)] if answer else []),
        ]


def _read_texts(text: str | None) -> tuple[str, set[str]]:
    """The text, if it is no JSON object or list, and all texts in it."""
    value = parse_json_text(text or "")
    if not isinstance(value, dict | list):
        return (text or "").strip(), {stripped} if (stripped := (text or "").strip()) else set()
    return "", set(_iterate_texts(value))


def _iterate_texts(value: Any) -> Iterator[str]:
    if isinstance(value, str) and value.strip():
        yield value.strip()
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _iterate_texts(inner)


def _last_calls(models: list[_Node]) -> list[_Node]:
    """The calls of a model that no other call continues; of those with the same messages, the last one."""
    begun: set[int] = set()
    last: dict[int, _Node] = {}
    for node in models:
        digest = 0
        for message in node.content.input_messages:
            begun.add(digest)
            digest = hash((digest, message.role, _message_key(message)))
        last[digest] = node
    return [node for digest, node in last.items() if digest not in begun]


def _message_key(message: TraceMessage) -> str:
    calls = [(call.name, call.arguments) for call in message.calls]
    return json.dumps([message.content, calls], sort_keys=True, default=str)


def _count_unrelated_calls(models: list[_Node], messages: list[TraceMessage]) -> int:
    """How many calls of a model have an output that is not among the messages."""
    keys = {_message_key(message) for message in messages}
    return sum(any(_message_key(message) not in keys for message in node.content.output_messages) for node in models)


def _attach_tool_results(messages: list[TraceMessage], tools: list[_Node]) -> int:
    """Add results, errors, times and ratings of tool spans to the calls; return how many spans had a call."""
    answers = {id(call): answer for answer, call in match_results(messages) if call is not None}
    calls = [call for message in messages for call in message.calls]
    _number_calls(calls)
    for call in calls:
        if id(call) in answers:
            answers[id(call)].call_id = call.id
    open_calls = list(calls)
    used = 0
    for node in tools:
        if node.content.tool_run is None or (place := _find_call(node.content.tool_run.call, open_calls)) is None:
            continue
        call = open_calls.pop(place)
        used += 1
        answer = answers.setdefault(id(call), TraceMessage("tool", call_id=call.id, name=call.name))
        answer.content = answer.content or node.content.tool_run.content or node.span.error or ""
        answer.failed, answer.at = node.span.error is not None, node.span.ended_at
        answer.rating = node.content.tool_run.rating
    present = {id(message) for message in messages}
    messages[:] = [
        item
        for message in messages
        for item in (
            message,
            *(
                answers[id(call)]
                for call in message.calls
                if id(call) in answers and id(answers[id(call)]) not in present
            ),
        )
    ]
    return used


def _number_calls(calls: list[MessageToolCall]) -> None:
    """Give the calls without an id, and those with the id of another one, their own."""
    ids = {call.id for call in calls}
    seen: set[str] = set()
    for number, call in enumerate(calls, start=1):
        if not call.id or call.id in seen:
            call.id = next(name for name in (f"{call.id}#{number}", f"#{number}#{len(ids)}") if name not in ids)
        seen.add(call.id)


def _find_call(run: MessageToolCall, calls: list[MessageToolCall]) -> int | None:
    """The place of the call that a tool ran: of its id, else of its name and arguments, else of its name."""
    by_id = (place for place, call in enumerate(calls) if call is run or (run.id and call.id == run.id))
    by_arguments = (
        place for place, call in enumerate(calls) if (call.name, call.arguments) == (run.name, run.arguments)
    )
    # With another id and other arguments it ran another call.
    is_same_by_name = not run.id or not run.arguments
    by_name = (place for place, call in enumerate(calls) if is_same_by_name and call.name == run.name)
    return next(chain(by_id, by_arguments, by_name), None)
