"""Spans with OpenInference attributes: llm.input_messages, llm.output_messages, tool.name, annotations."""

from typing import Any

from fewshot_library.formats.chat import MessageToolCall, TraceMessage
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

ROLE_ALIASES = {"human": "user", "ai": "assistant", "model": "assistant"}


def _decode_span(span: TraceSpan) -> SpanContent:
    kind = str(span.get("openinference.span.kind") or "").upper()
    annotations = [_unwrap(annotation, "annotation") for annotation in span.get_list("annotations")]
    span_content = SpanContent(
        input_text=span.get_text("input.value"), output_text=span.get_text("output.value"), annotations=annotations
    )
    if kind == "LLM":
        span_content.input_messages = _decode_messages(span, "llm.input_messages")
        span_content.output_messages = _decode_messages(span, "llm.output_messages")
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


def _decode_messages(span: TraceSpan, path: str) -> list[TraceMessage]:
    return [
        _decode_message(nest_keys(message), f"{path}.{number}", number)
        for number, message in enumerate(span.get_list(path))
    ]


def _decode_message(raw: Any, place: str, number: int) -> TraceMessage:
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
        return decode_message(validate_shape(OpenAIMessage, plain), number + 1)
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


def _sniff(head: FileHead) -> bool:
    return any("openinference" in key or (key.endswith(".key") and "openinference" in head.text) for key in head.keys)


OPENINFERENCE = TraceFormat(
    "openinference", "OpenInference spans as JSON", _sniff, span_trace_reader("openinference", _decode_span)
)
