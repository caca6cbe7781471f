"""Spans: OpenTelemetry's GenAI conventions (gen_ai.input.messages), and OpenInference's (llm.input_messages)."""

from collections.abc import Iterator
from typing import Any

from fewshot_library.formats.chat import MessageToolCall, TraceMessage, to_json_text
from fewshot_library.formats.format import FileHead, TraceFormat
from fewshot_library.formats.json_documents import MalformedRecord, validate_shape
from fewshot_library.formats.openai import OpenAIMessage, decode_message
from fewshot_library.formats.spans import (
    SpanContent,
    SpanToolRun,
    TraceSpan,
    nest_keys,
    parse_json_text,
    span_trace_reader,
)

TOOL_OPERATION, AGENT_OPERATION = "execute_tool", "invoke_agent"


def _decode_span(span: TraceSpan) -> SpanContent:
    content = SpanContent(annotations=[annotation] if (annotation := span.get("gen_ai.evaluation")) else [])
    name = span.get_text("gen_ai.tool.name")
    if name is not None and span.get("gen_ai.operation.name") in (TOOL_OPERATION, None):
        content.tool_run = SpanToolRun(_decode_call(span, name), _result_text(span.get("gen_ai.tool.call.result")))
        return content
    before = [*_system_messages(span), *_decode_messages(span, "gen_ai.input.messages")]
    output = list(_decode_messages(span, "gen_ai.output.messages"))
    if span.get("gen_ai.operation.name") == AGENT_OPERATION:
        # An agent's span has only the first and last message of what its model spans have in full.
        content.input_text = next((message.content for message in reversed(before) if message.role == "user"), None)
        content.final_answer = content.output_text = output[-1].content if output and output[-1].content else None
        return content
    content.input_messages, content.output_messages = before, output
    content.tools = [
        _tool_definition(tool) for tool in span.get_list("gen_ai.tool.definitions") if isinstance(tool, dict)
    ]
    return content


def _decode_call(span: TraceSpan, name: str) -> MessageToolCall:
    arguments = span.get("gen_ai.tool.call.arguments")
    return MessageToolCall(span.get_text("gen_ai.tool.call.id") or span.id, name, _decode_arguments(arguments))


def _decode_arguments(raw: Any) -> dict[str, Any]:
    arguments = parse_json_text(raw) if isinstance(raw, str) else raw
    if arguments is None:
        return {}
    return arguments if isinstance(arguments, dict) else {"input": arguments}


def _result_text(raw: Any) -> str | None:
    return raw if isinstance(raw, str) or raw is None else to_json_text(raw)


def _tool_definition(raw: dict[str, Any]) -> dict[str, Any]:
    """The tool definition as chat models take it; the convention does not nest the function."""
    return raw if "function" in raw else {"type": "function", "function": {k: v for k, v in raw.items() if k != "type"}}


def _system_messages(span: TraceSpan) -> Iterator[TraceMessage]:
    parts = span.get_list("gen_ai.system_instructions")
    if not parts and (text := span.get_text("gen_ai.system_instructions")):
        parts = [{"content": text}]
    texts = [part["content"] for part in parts if isinstance(part, dict) and isinstance(part.get("content"), str)]
    if texts:
        yield TraceMessage("system", "\n\n".join(texts))


def _decode_messages(span: TraceSpan, path: str) -> Iterator[TraceMessage]:
    value = span.get(path)
    single = parse_json_text(value) if isinstance(value, str) else value
    # Some agents write a single message without a list.
    listed = [single] if isinstance(single, dict) and "role" in single else span.get_list(path)
    for number, raw in enumerate(listed):
        place = f"{path}.{number}"
        if not isinstance(raw, dict) or not isinstance(raw.get("role"), str):
            raise MalformedRecord(f"{place} has no role")
        yield from _decode_message(raw, place)


def _decode_message(raw: dict[str, Any], place: str) -> Iterator[TraceMessage]:
    """Yield the message, and another one for each tool result in it."""
    parts = raw.get("parts", [{"type": "text", "content": raw.get("content")}])
    if not isinstance(parts, list):
        raise MalformedRecord(f"{place}.parts is not a list")
    message = TraceMessage({"developer": "system"}.get(raw["role"], raw["role"]))
    if message.role not in ("system", "user", "assistant", "tool"):
        raise MalformedRecord(f"{place} has the role {message.role!r}, not one of system, user, assistant, tool")
    answers: list[TraceMessage] = []
    for number, part in enumerate(parts):
        if isinstance(part, dict) and part.get("type") == "tool_call_response":
            result = _result_text(part.get("response", part.get("result"))) or ""
            answers.append(TraceMessage("tool", result, call_id=part.get("id")))
        else:
            _add_part(message, part, f"{place}.parts.{number}")
    yield from answers
    if message.content or message.reasoning or message.calls or not answers:
        yield message


def _add_part(message: TraceMessage, part: Any, place: str) -> None:
    """Add a part to the message."""
    match part:
        case {"type": "text", "content": str(text)}:
            message.content += text
        case {"type": "reasoning", "content": str(thought)}:
            message.reasoning += ("\n\n" if message.reasoning else "") + thought
        case {"type": "tool_call", "name": str(name)}:
            message.calls.append(
                MessageToolCall(str(part.get("id") or place), name, _decode_arguments(part.get("arguments")))
            )
        case _:
            kind = part.get("type") if isinstance(part, dict) else type(part).__name__
            raise MalformedRecord(f"{place} is of the kind {kind!r}, which traces do not support")


def _sniff(head: FileHead) -> bool:
    return any("gen_ai" in key or (key.endswith(".key") and '"gen_ai.' in head.text) for key in head.keys)


OPENTELEMETRY = TraceFormat(
    "opentelemetry", "OpenTelemetry GenAI spans as JSON", _sniff, span_trace_reader("opentelemetry", _decode_span)
)


ROLE_ALIASES = {"human": "user", "ai": "assistant", "model": "assistant"}


def _decode_openinference_span(span: TraceSpan) -> SpanContent:
    kind = str(span.get("openinference.span.kind") or "").upper()
    annotations = [_unwrap(annotation, "annotation") for annotation in span.get_list("annotations")]
    span_content = SpanContent(
        input_text=span.get_text("input.value"), output_text=span.get_text("output.value"), annotations=annotations
    )
    if kind == "LLM":
        span_content.input_messages = _decode_openinference_messages(span, "llm.input_messages")
        span_content.output_messages = _decode_openinference_messages(span, "llm.output_messages")
        schemas = [_unwrap(tool, "tool").get("json_schema") for tool in span.get_list("llm.tools")]
        span_content.tools = [
            tool
            for tool in (parse_json_text(s) if isinstance(s, str) else s for s in schemas)
            if isinstance(tool, dict)
        ]
    elif kind == "TOOL":
        name = span.get_text("tool.name") or span.name
        arguments = parse_json_text(span.get_text("input.value") or span.get_text("tool.parameters") or "{}")
        call_id = span.get_text("tool.id") or span.get_text("tool_call.id") or span.id
        named_arguments = arguments if isinstance(arguments, dict) else {"input": arguments}
        content = span.get_text("output.value")
        match parse_json_text(content or ""):
            # Tools of LangChain return a LangChain message with the id of the call.
            case {"data": {"content": str(text), "tool_call_id": str(message_call_id)}}:
                content, call_id = text, message_call_id
        call = MessageToolCall(call_id, name, named_arguments)
        span_content.tool_run = SpanToolRun(call, content, _find_rating(annotations))
    return span_content


def _decode_openinference_messages(span: TraceSpan, path: str) -> list[TraceMessage]:
    return [
        _decode_openinference_message(nest_keys(message), f"{path}.{number}", number)
        for number, message in enumerate(span.get_list(path))
    ]


def _decode_openinference_message(raw: Any, place: str, number: int) -> TraceMessage:
    message = _unwrap(raw, "message")
    calls = [_unwrap(call, "tool_call") for call in _as_list(message.get("tool_calls"))]
    role = message.get("role")
    plain = {
        "role": ROLE_ALIASES.get(role, role) if isinstance(role, str) else role,
        "content": message["content"] if "content" in message else _message_parts(message.get("contents")),
        "tool_calls": [{"id": call.get("id"), "function": call.get("function")} for call in calls] or None,
        "tool_call_id": message.get("tool_call_id"),
        "name": message.get("name"),
    }
    try:
        return decode_message(validate_shape(OpenAIMessage, plain), number + 1)[0]
    except MalformedRecord as error:
        raise MalformedRecord(f"{place}: {error}") from error


def _message_parts(raw: Any) -> Any:
    return [_unwrap(part, "message_content") for part in _as_list(raw)] or None


def _as_list(raw: Any) -> list[Any]:
    if isinstance(raw, dict) and raw and all(key.isdigit() for key in raw):
        return [raw[key] for key in sorted(raw, key=int)]
    return raw if isinstance(raw, list) else []


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
