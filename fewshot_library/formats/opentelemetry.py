"""Spans: OpenTelemetry's GenAI conventions (gen_ai.input.messages), and OpenInference's (llm.input_messages)."""

from collections.abc import Iterator
from typing import Any

from showhow.fewshot_library.formats.chat import MessageToolCall, TraceMessage
from showhow.fewshot_library.formats.content_parts import expand_content, read_arguments, result_text
from showhow.fewshot_library.formats.conversations import ROLE_ALIASES
from showhow.fewshot_library.formats.format import FileHead, TraceFormat
from showhow.fewshot_library.formats.span_conversations import span_trace_reader
from showhow.fewshot_library.formats.spans import (
    SpanContent,
    SpanToolRun,
    TraceSpan,
    as_numbered_list,
    is_numbered,
    nest_keys,
    parse_json_text,
)
from showhow.fewshot_library.formats.thoughts import THOUGHT_NAMES
from showhow.fewshot_library.formats.tool_calls import add_calls

TOOL_OPERATION, AGENT_OPERATION = "execute_tool", "invoke_agent"
_OLDER_NAMES = {"gen_ai.input.messages": "gen_ai.prompt", "gen_ai.output.messages": "gen_ai.completion"}
"""The attributes before the conventions had messages, which instrumentations still write."""


def _decode_span(span: TraceSpan) -> SpanContent:
    content = SpanContent(annotations=[annotation] if (annotation := span.get("gen_ai.evaluation")) else [])
    name = span.get_text("gen_ai.tool.name")
    if name is not None and span.get("gen_ai.operation.name") in (TOOL_OPERATION, None):
        result = span.get("gen_ai.tool.call.result")
        content.tool_run = SpanToolRun(_decode_run(span, name), None if result is None else result_text(result))
        content.is_apart = True
        return content
    before = [*_system_messages(span), *_decode_messages(span, "gen_ai.input.messages", content.remarks)]
    output = list(_decode_messages(span, "gen_ai.output.messages", content.remarks, "assistant"))
    if not before and not output:
        before, output = _decode_events(span)
    if span.get("gen_ai.operation.name") == AGENT_OPERATION:
        # An agent's span has only the first and last message of what its model spans have in full.
        content.input_text = next((message.content for message in reversed(before) if message.role == "user"), None)
        content.output_text = output[-1].content if output and output[-1].content else None
        content.is_apart = True
        return content
    content.input_messages, content.output_messages = before, output
    content.tools = [
        _tool_definition(tool) for tool in span.get_list("gen_ai.tool.definitions") if isinstance(tool, dict)
    ]
    return content


def _decode_run(span: TraceSpan, name: str) -> MessageToolCall:
    # The text of a tool's only argument need not be JSON.
    arguments, _ = read_arguments(span.get("gen_ai.tool.call.arguments"))
    return MessageToolCall(span.get_text("gen_ai.tool.call.id") or "", name, arguments)


def _tool_definition(raw: dict[str, Any]) -> dict[str, Any]:
    """The tool definition as chat models take it; the convention does not nest the function."""
    return raw if "function" in raw else {"type": "function", "function": {k: v for k, v in raw.items() if k != "type"}}


def _system_messages(span: TraceSpan) -> Iterator[TraceMessage]:
    parts = span.get_list("gen_ai.system_instructions")
    if content := parts or span.get_text("gen_ai.system_instructions"):
        separated = [content] if isinstance(content, str) else content
        texts = [expand_content(TraceMessage("system"), [part], "gen_ai.system_instructions")[0] for part in separated]
        remarks = [remark for text in texts for remark in text.remarks]
        yield TraceMessage("system", "\n\n".join(text.content for text in texts if text.content), remarks=remarks)


def _decode_messages(span: TraceSpan, path: str, remarks: list[str], role: str = "user") -> Iterator[TraceMessage]:
    """The messages of an attribute; `role` is that of the first one if it names none."""
    path = path if span.get(path) else _OLDER_NAMES[path]
    value = span.get(path)
    single = parse_json_text(value) if isinstance(value, str) else value
    # Some agents write a single message without a list.
    listed = [single] if isinstance(single, dict) and not is_numbered(single) else span.get_list(path)
    if value and not listed and value != "[]":
        remarks.append(f"{path} of the span {span.name[:80]!r} is no list of messages, and was left out")
    for number, raw in enumerate(listed):
        place = f"{path}.{number}"
        if not isinstance(raw, dict):
            remarks.append(f"{place} is no message, and was left out")
            continue
        parts = as_numbered_list(raw.get("parts"))
        kinds = {str(part.get("type")) for part in parts if isinstance(part, dict)}
        guessed = "tool" if "tool_call_response" in kinds else "assistant" if "tool_call" in kinds else role
        message = _start_message(raw, guessed, place)
        add_calls(message, as_numbered_list(raw.get("tool_calls")), place)
        content = [{"type": "", **part} if isinstance(part, dict) else part for part in parts]
        for decoded in expand_content(message, content or raw.get("content"), place):
            role = role if "output" in path or "completion" in path else _next_role(decoded)
            yield decoded


def _decode_events(span: TraceSpan) -> tuple[list[TraceMessage], list[TraceMessage]]:
    """The messages before the reply and those of the reply, which older conventions recorded as events."""
    sides: tuple[list[TraceMessage], list[TraceMessage]] = ([], [])
    listed = [(str(raw.get("event.name")), raw) for raw in span.get_list("events") if isinstance(raw, dict)]
    for name, fields in [*span.events, *listed]:
        body = fields.get("gen_ai.event.content", fields.get("body", fields))
        body = parse_json_text(body) if isinstance(body, str) else body
        is_reply = name == "gen_ai.choice"
        if not isinstance(body, dict) or not (is_reply or (name.startswith("gen_ai.") and name.endswith(".message"))):
            continue
        inner = body.get("message")
        raw = inner if is_reply and isinstance(inner, dict) else body
        role = "assistant" if is_reply else name.split(".")[1]
        message = _start_message({"role": role, **raw}, role, name)
        message.call_id = _text(raw.get("tool_call_id")) or (_text(raw.get("id")) if role == "tool" else None)
        calls = raw.get("tool_calls")
        add_calls(message, as_numbered_list(parse_json_text(calls) if isinstance(calls, str) else calls), name)
        sides[is_reply].extend(expand_content(message, raw.get("content"), name))
    return sides


def _start_message(raw: dict[str, Any], guessed_role: str, place: str) -> TraceMessage:
    """A message with its role and its thoughts; one that names no role has that which its content or order tells."""
    role = raw.get("role")
    fields = {name: raw[name] for name in THOUGHT_NAMES if raw.get(name)}
    call_id = _text(raw.get("tool_call_id"))
    if isinstance(role, str) and role:
        return TraceMessage(ROLE_ALIASES.get(role, role), rest=fields, call_id=call_id)
    remark = f"{place} has no role, and was taken for a message of the role {guessed_role}"
    return TraceMessage(guessed_role, rest=fields, call_id=call_id, remarks=[remark])


def _next_role(message: TraceMessage) -> str:
    """The role that a message without one has behind this message."""
    return "assistant" if message.role in ("user", "tool") else "user"


def _sniff(head: FileHead) -> bool:
    return any("gen_ai" in key or (key.endswith(".key") and '"gen_ai.' in head.text) for key in head.keys)


OPENTELEMETRY = TraceFormat(
    "opentelemetry", "OpenTelemetry GenAI spans as JSON", _sniff, span_trace_reader("opentelemetry", _decode_span)
)


def _decode_openinference_span(span: TraceSpan) -> SpanContent:
    kind = str(span.get("openinference.span.kind") or "").upper()
    annotations = [_unwrap(annotation, "annotation") for annotation in span.get_list("annotations")]
    span_content = SpanContent(annotations=annotations, is_apart=kind not in ("LLM", "CHAIN", "UNKNOWN", ""))
    if kind == "LLM":
        remarks = span_content.remarks
        span_content.input_messages = [*_decode_openinference_messages(span, "llm.input_messages", remarks)]
        span_content.output_messages = [
            *_decode_openinference_messages(span, "llm.output_messages", remarks, "assistant")
        ]
        schemas = [_unwrap(tool, "tool").get("json_schema") for tool in span.get_list("llm.tools")]
        span_content.tools = [
            tool
            for tool in (parse_json_text(s) if isinstance(s, str) else s for s in schemas)
            if isinstance(tool, dict)
        ]
    elif kind == "TOOL":
        name = span.get_text("tool.name") or span.name
        # The text of a tool's only argument need not be JSON.
        arguments, _ = read_arguments(span.get("input.value") or span.get("tool.parameters"))
        call_id = span.get_text("tool.id") or span.get_text("tool_call.id") or ""
        value = span.get("output.value")
        content = None if value is None else result_text(value)
        match parse_json_text(content or ""):
            # Tools of LangChain return a LangChain message with the id of the call.
            case {"data": {"content": str(text), "tool_call_id": str(message_call_id)}}:
                content, call_id = text, message_call_id
        span_content.tool_run = SpanToolRun(
            MessageToolCall(call_id, name, arguments), content, _find_rating(annotations)
        )
    elif kind in ("AGENT", "CHAIN", "UNKNOWN", ""):
        span_content.input_text = span.get_text("input.value")
        span_content.output_text = span.get_text("output.value")
    return span_content


def _decode_openinference_messages(
    span: TraceSpan, path: str, remarks: list[str], role: str = "user"
) -> Iterator[TraceMessage]:
    """The messages of an attribute; `role` is that of the first one if it names none."""
    for number, element in enumerate(span.get_list(path)):
        raw, place = _unwrap(nest_keys(element), "message"), f"{path}.{number}"
        if not raw:
            remarks.append(f"{place} is no message, and was left out")
            continue
        raw_calls = as_numbered_list(raw.get("tool_calls"))
        message = _start_message(raw, "tool" if raw.get("tool_call_id") else "assistant" if raw_calls else role, place)
        message.name = _text(raw.get("name"))
        for raw_call in raw_calls:
            call = _unwrap(raw_call, "tool_call")
            function = call.get("function")
            if isinstance(function, dict) and _text(function.get("name")):
                arguments, problem = read_arguments(function.get("arguments"))
                message.calls.append(MessageToolCall(_text(call.get("id")) or "", function["name"], arguments, problem))
            else:
                message.remarks.append(f"a call of {place} names no function, and was left out")
        content = raw.get("content")
        if content is None:
            content = [_unwrap(part, "message_content") for part in as_numbered_list(raw.get("contents"))] or None
        for decoded in expand_content(message, content, place):
            role = role if path.endswith("output_messages") else _next_role(decoded)
            yield decoded


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _unwrap(raw: Any, name: str) -> dict[str, Any]:
    """The value under the name that the convention repeats in each element of a list."""
    nested = nest_keys(raw)
    value = nested.get(name) if isinstance(nested, dict) else None
    return value if isinstance(value, dict) else {}


def _find_rating(annotations: list[dict[str, Any]]) -> int | None:
    """The score by a human annotator, if it is a whole number from 1 to 5."""
    for annotation in annotations:
        score = annotation.get("score")
        if annotation.get("annotator_kind") == "HUMAN" and isinstance(score, int | float) and score in (1, 2, 3, 4, 5):
            return int(score)
    return None


def _sniff_openinference(head: FileHead) -> bool:
    return any("openinference" in key or (key.endswith(".key") and "openinference" in head.text) for key in head.keys)


OPENINFERENCE = TraceFormat(
    "openinference",
    "OpenInference spans as JSON",
    _sniff_openinference,
    span_trace_reader("openinference", _decode_openinference_span),
)
