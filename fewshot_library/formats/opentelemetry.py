"""Spans as OpenTelemetry's conventions for generative AI name them: gen_ai.input.messages, gen_ai.tool.name."""

from collections.abc import Iterator
from typing import Any

from fewshot_library.formats.chat import Call, Message, in_json
from fewshot_library.formats.conversation import Told, ToolUse, spans_reader
from fewshot_library.formats.documents import Malformed
from fewshot_library.formats.format import Format
from fewshot_library.formats.head import Head
from fewshot_library.formats.spans import Span, parsed

TOOL, AGENT = "execute_tool", "invoke_agent"


def _tell(span: Span) -> Told:
    told = Told(annotations=[found] if (found := span.get("gen_ai.evaluation")) else [])
    name = span.text("gen_ai.tool.name")
    if name is not None and span.get("gen_ai.operation.name") in (TOOL, None):
        told.use = ToolUse(_call(span, name), _result(span.get("gen_ai.tool.call.result")))
        return told
    before = [*_system(span), *_messages(span, "gen_ai.input.messages")]
    said = list(_messages(span, "gen_ai.output.messages"))
    if span.get("gen_ai.operation.name") == AGENT:
        # An agent's span tells the ends of what its model's spans tell whole.
        told.asked = next((each.content for each in reversed(before) if each.role == "user"), None)
        told.concluded = told.answered = said[-1].content if said and said[-1].content else None
        return told
    told.before, told.said = before, said
    told.tools = [_definition(each) for each in span.listed("gen_ai.tool.definitions") if isinstance(each, dict)]
    return told


def _call(span: Span, name: str) -> Call:
    arguments = span.get("gen_ai.tool.call.arguments")
    return Call(span.text("gen_ai.tool.call.id") or span.id, name, _arguments(arguments))


def _arguments(raw: Any) -> dict[str, Any]:
    found = parsed(raw) if isinstance(raw, str) else raw
    if found is None:
        return {}
    return found if isinstance(found, dict) else {"input": found}


def _result(raw: Any) -> str | None:
    return raw if isinstance(raw, str) or raw is None else in_json(raw)


def _definition(raw: dict[str, Any]) -> dict[str, Any]:
    """The tool as chat models take it; the convention has its parts beside the type."""
    return raw if "function" in raw else {"type": "function", "function": {k: v for k, v in raw.items() if k != "type"}}


def _system(span: Span) -> Iterator[Message]:
    parts = span.listed("gen_ai.system_instructions")
    if not parts and (whole := span.text("gen_ai.system_instructions")):
        parts = [{"content": whole}]
    texts = [part["content"] for part in parts if isinstance(part, dict) and isinstance(part.get("content"), str)]
    if texts:
        yield Message("system", "\n\n".join(texts))


def _messages(span: Span, path: str) -> Iterator[Message]:
    found = span.get(path)
    single = parsed(found) if isinstance(found, str) else found
    # Some agents tell a single message as it is, and not in a list.
    listed = [single] if isinstance(single, dict) and "role" in single else span.listed(path)
    for number, raw in enumerate(listed):
        place = f"{path}.{number}"
        if not isinstance(raw, dict) or not isinstance(raw.get("role"), str):
            raise Malformed(f"{place} has no role")
        yield from _message(raw, place)


def _message(raw: dict[str, Any], place: str) -> Iterator[Message]:
    """The message, and one more for each answer of a tool that it holds."""
    parts = raw.get("parts", [{"type": "text", "content": raw.get("content")}])
    if not isinstance(parts, list):
        raise Malformed(f"{place}.parts is no list")
    message = Message({"developer": "system"}.get(raw["role"], raw["role"]))
    if message.role not in ("system", "user", "assistant", "tool"):
        raise Malformed(f"{place} has the role {message.role!r}, which is none of system, user, assistant, tool")
    answers: list[Message] = []
    for number, part in enumerate(parts):
        if isinstance(part, dict) and part.get("type") == "tool_call_response":
            seen = _result(part.get("response", part.get("result"))) or ""
            answers.append(Message("tool", seen, call_id=part.get("id")))
        else:
            _add(message, part, f"{place}.parts.{number}")
    yield from answers
    if message.content or message.reasoning or message.calls or not answers:
        yield message


def _add(message: Message, part: Any, place: str) -> None:
    """Add what the part says to the message."""
    match part:
        case {"type": "text", "content": str(text)}:
            message.content += text
        case {"type": "reasoning", "content": str(thought)}:
            message.reasoning += ("\n\n" if message.reasoning else "") + thought
        case {"type": "tool_call", "name": str(name)}:
            message.calls.append(Call(str(part.get("id") or place), name, _arguments(part.get("arguments"))))
        case _:
            kind = part.get("type") if isinstance(part, dict) else type(part).__name__
            raise Malformed(f"{place} is of the kind {kind!r}, which a trace cannot hold")


def _sniff(head: Head) -> bool:
    return any("gen_ai" in key or (key.endswith(".key") and '"gen_ai.' in head.text) for key in head.keys)


OPENTELEMETRY = Format(
    "opentelemetry", "OpenTelemetry GenAI spans as JSON", _sniff, spans_reader("opentelemetry", _tell)
)
