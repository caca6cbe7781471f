"""Spans as OpenInference names them: llm.input_messages, llm.output_messages, tool.name, annotations."""

from typing import Any

from fewshot_library.formats.chat import Call, Message
from fewshot_library.formats.conversation import Told, ToolUse, spans_reader
from fewshot_library.formats.documents import Malformed, shaped
from fewshot_library.formats.format import Format
from fewshot_library.formats.head import Head
from fewshot_library.formats.openai import ChatMessage, message_of
from fewshot_library.formats.spans import Span, parsed, tree

ROLES = {"human": "user", "ai": "assistant", "model": "assistant"}


def _tell(span: Span) -> Told:
    kind = str(span.get("openinference.span.kind") or "").upper()
    annotations = [_under(each, "annotation") for each in span.listed("annotations")]
    told = Told(asked=span.text("input.value"), answered=span.text("output.value"), annotations=annotations)
    if kind == "LLM":
        told.before = _messages(span, "llm.input_messages")
        told.said = _messages(span, "llm.output_messages")
        schemas = [_under(each, "tool").get("json_schema") for each in span.listed("llm.tools")]
        told.tools = [
            tool for tool in (parsed(s) if isinstance(s, str) else s for s in schemas) if isinstance(tool, dict)
        ]
    elif kind == "TOOL":
        name = span.text("tool.name") or span.name
        arguments = parsed(span.text("input.value") or span.text("tool.parameters") or "{}")
        call_id = span.text("tool.id") or span.text("tool_call.id") or span.id
        sound = arguments if isinstance(arguments, dict) else {"input": arguments}
        content = span.text("output.value")
        match parsed(content or ""):
            # LangChain's tools give a message of LangChain's, which knows its call.
            case {"data": {"content": str(inner), "tool_call_id": str(known)}}:
                content, call_id = inner, known
        told.use = ToolUse(Call(call_id, name, sound), content, _rating(annotations))
    return told


def _messages(span: Span, path: str) -> list[Message]:
    return [_message(tree(each), f"{path}.{number}", number) for number, each in enumerate(span.listed(path))]


def _message(raw: Any, place: str, number: int) -> Message:
    told = _under(raw, "message")
    calls = [_under(each, "tool_call") for each in _list(told.get("tool_calls"))]
    role = told.get("role")
    plain = {
        "role": ROLES.get(role, role) if isinstance(role, str) else role,
        "content": told["content"] if "content" in told else _contents(told.get("contents")),
        "tool_calls": [{"id": call.get("id"), "function": call.get("function")} for call in calls] or None,
        "tool_call_id": told.get("tool_call_id"),
        "name": told.get("name"),
    }
    try:
        return message_of(shaped(ChatMessage, plain), number + 1)
    except Malformed as wrong:
        raise Malformed(f"{place}: {wrong}") from wrong


def _contents(raw: Any) -> Any:
    return [_under(each, "message_content") for each in _list(raw)] or None


def _list(raw: Any) -> list[Any]:
    if isinstance(raw, dict) and raw and all(key.isdigit() for key in raw):
        return [raw[key] for key in sorted(raw, key=int)]
    return raw if isinstance(raw, list) else []


def _under(raw: Any, name: str) -> dict[str, Any]:
    """What stands under the name that the convention repeats in each item of a list."""
    grown = tree(raw)
    found = grown.get(name) if isinstance(grown, dict) else None
    return found if isinstance(found, dict) else {}


def _rating(annotations: list[dict[str, Any]]) -> int | None:
    """A person's score, where it is one of our five."""
    for each in annotations:
        score = each.get("score")
        if each.get("annotator_kind") == "HUMAN" and isinstance(score, int | float) and score in (1, 2, 3, 4, 5):
            return int(score)
    return None


def _sniff(head: Head) -> bool:
    return any("openinference" in key or (key.endswith(".key") and "openinference" in head.text) for key in head.keys)


OPENINFERENCE = Format("openinference", "OpenInference spans as JSON", _sniff, spans_reader("openinference", _tell))
