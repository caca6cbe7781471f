"""OpenTelemetry spans with the GenAI semantic conventions: gen_ai.input.messages, gen_ai.tool.name and so on."""

from collections.abc import Iterator
from typing import Any

from fewshot_library.formats.chat import MessageToolCall, TraceMessage, to_json_text
from fewshot_library.formats.format import FileHead, TraceFormat
from fewshot_library.formats.json_documents import MalformedRecord
from fewshot_library.formats.spans import SpanContent, SpanToolRun, TraceSpan, parse_json_text, span_trace_reader

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
