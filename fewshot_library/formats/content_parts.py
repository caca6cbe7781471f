"""Reads the parts of a message's content: texts, thoughts, calls with their results, and others as placeholders.

A part that cannot be read is kept among the further fields of its message, with a placeholder and a remark.
"""

import json
from typing import Any

from showhow.fewshot_library.formats.chat import MessageToolCall, TraceMessage
from showhow.fewshot_library.formats.thoughts import is_thought, read_thought
from showhow.guard.json_input import load_json

_KINDS = ("type", "part_kind", "block_type", "content_type")
_CALL_IDS = ("call_id", "tool_call_id", "tool_use_id", "toolUseId", "toolCallId")
_NAMES = ("name", "toolName", "tool_name")
_ARGUMENTS = ("input", "args", "arguments", "partial_json")
_RESULTS = ("result", "response", "output", "content")
_RESULT_WORDS = ("result", "response", "output", "return")
_TEXTS = ("text", "content", "value", "refusal")
_WRAPPERS = ("result", "output", "error")
"""The only field of an object in which an interface puts a result that is a text, since it takes only objects."""


def read_arguments(raw: Any) -> tuple[dict[str, Any], str]:
    """The arguments of a call, from an object or its JSON text, and why they are not as the model wrote them, if so."""
    value = raw
    # Some servers encode the text once more.
    for _ in range(2):
        if not isinstance(value, str) or not value.strip():
            break
        try:
            value = load_json(value)
        except ValueError as error:
            return {"input": value}, f"its arguments are not JSON ({error}), and were kept as a text"
    if isinstance(value, dict):
        return value, ""
    if value is None or value == [] or (isinstance(value, str) and not value.strip()):
        return {}, ""
    return {"input": value}, "its arguments are no JSON object, and were kept as `input`"


def result_text(value: Any) -> str:
    """The result of a tool as a text: unchanged, or as JSON."""
    # A number that JSON does not have stands in the text as it stood in the file.
    return value if isinstance(value, str) else "" if value is None else json.dumps(value, ensure_ascii=False)


def part_kind(part: dict[str, Any]) -> str:
    """The kind that a part of a content says it is of; empty if it says none."""
    return next((part[name] for name in _KINDS if isinstance(part.get(name), str)), "")


def expand_content(message: TraceMessage, content: Any, place: str) -> list[TraceMessage]:
    """Add a content to its message, and return it with the results of its calls and what followed them, if any.

    `message` has the calls that stand beside the content; they are not added again.
    """
    return _ContentReader(message, place).read(content)


class _ContentReader:
    def __init__(self, message: TraceMessage, place: str) -> None:
        self._place = place
        self._messages = [message]
        # Providers repeat the calls beside the content as parts of it, where the id may be missing or another one.
        self._own_calls = list(message.calls)
        self._repeated_indices: list[Any] = []
        """The indices of such parts; the pieces of a streamed call have its index too."""
        self._streamed: dict[str, tuple[MessageToolCall, str]] = {}
        """Other calls by the indices of their parts, with the text of their arguments so far."""

    def read(self, content: Any) -> list[TraceMessage]:
        first = self._messages[0]
        parts = [part for part in (content if isinstance(content, list) else [content]) if part not in (None, {}, [])]
        # The result of a tool may be a list of objects; the content of others is one of parts.
        is_value = first.role == "tool" or not isinstance(content, list)
        if is_value and not any(isinstance(part, str) or _is_part(part) for part in parts):
            first.content += result_text(content) if parts else ""
            return self._messages
        extras = [self._add(_unwrap(part), number) for number, part in enumerate(parts, start=1)]
        if any(extras):
            first.rest["parts"] = extras
        if len(self._messages) > 1 and not (first.content or first.reasoning or first.calls):
            # A message of a user with nothing but results.
            self._messages[1].rest = first.rest | self._messages[1].rest
            self._messages[1].remarks = [*first.remarks, *self._messages[1].remarks]
            return self._messages[1:]
        return self._messages

    def _add(self, part: Any, number: int) -> dict[str, Any]:
        """Add the part to the last message, or to a new one behind a result; returns its other fields."""
        if isinstance(part, str):
            self._turn().content += part
            return {}
        if not isinstance(part, dict):
            part = {"type": type(part).__name__, "data": part}
        kind = part_kind(part)
        text_name = _first_name(part, _TEXTS)
        result_name = _first_name(part, _RESULTS)
        has_id = any(name in part for name in (*_CALL_IDS, "id"))
        words = [kind.lower()] if kind else part
        is_result = any(word in name for word in _RESULT_WORDS for name in words) and (has_id or bool(result_name))
        is_bare_result = not kind and bool(result_name) and any(name in part for name in _CALL_IDS)
        is_named = bool(_first_text(part, _NAMES)) and not is_result
        # A call with its result, whose kind names the tool.
        is_run = kind.startswith("tool-") and not is_result and "input" in part
        if is_thought(part):
            extra = self._add_thought(part)
        elif kind == "json":
            self._turn().content += result_text(part.get("json", part.get("value")))
            extra = {}
        elif (
            kind.endswith(("text", "prompt"))
            or kind == "refusal"
            or (not kind and not is_bare_result and isinstance(part.get(text_name), str))
        ):
            extra = self._add_text(part, text_name)
        elif (is_named and ("call" in kind.lower() or _first_name(part, _ARGUMENTS))) or is_run:
            extra = self._add_call(part)
        elif is_result or is_bare_result or (result_name and _first_text(part, _CALL_IDS)):
            extra = self._add_result(part, result_name)
        elif "index" in part and part["index"] in self._repeated_indices:
            extra = {}
        elif (piece := _first_text(part, _ARGUMENTS)) and repr(part.get("index")) in self._streamed:
            extra = self._add_piece(repr(part["index"]), piece)
        else:
            extra = self._add_placeholder(part, kind or "unknown", number)
        return extra

    def _turn(self) -> TraceMessage:
        """The message to which a text, a thought or a call belongs."""
        if self._messages[-1].role == "tool" and self._messages[0] is not self._messages[-1]:
            self._messages.append(TraceMessage(self._messages[0].role, at=self._messages[0].at))
        return self._messages[-1]

    def _add_text(self, part: dict[str, Any], text_name: str) -> dict[str, Any]:
        value = part.get(text_name)
        if isinstance(value, list):
            # Some interfaces have several parts in one.
            inner = [self._add(_unwrap(element), number) for number, element in enumerate(value, start=1)]
            return {"parts": inner} if any(inner) else {}
        self._turn().content += _inner_text(value)
        return _others(part, *_KINDS, text_name)

    def _add_thought(self, part: dict[str, Any]) -> dict[str, Any]:
        thought = read_thought({"type": "", **part})
        if thought:
            turn = self._turn()
            turn.reasoning += ("\n\n" if turn.reasoning else "") + thought
        return {name: value for name, value in _others(part, "type").items() if read_thought(value) != thought}

    def _add_call(self, part: dict[str, Any]) -> dict[str, Any]:
        call_id, name = _first_text(part, (*_CALL_IDS, "id")), _first_text(part, _NAMES)
        name = name or part_kind(part).removeprefix("tool-")
        arguments, problem = read_arguments(next((part[key] for key in _ARGUMENTS if part.get(key)), None))
        for own in self._own_calls:
            if own.id == call_id or (own.name == name and (not call_id or own.arguments == arguments)):
                self._repeated_indices.append(part.get("index"))
                self._move_to_turn(own)
                return {}
        call = MessageToolCall(call_id, name, arguments, problem)
        self._turn().calls.append(call)
        if "index" in part and not arguments:
            self._streamed[repr(part["index"])] = call, ""
        if result_name := next((name for name in ("result", "output", "errorText") if part.get(name)), None):
            # A call that the provider ran itself has its result beside it.
            return self._add_result({**part, "call_id": call_id}, result_name)
        return {}

    def _move_to_turn(self, call: MessageToolCall) -> None:
        """Move a call that stands beside the content to its place in it, behind the results of other calls."""
        first, turn = self._messages[0], self._turn()
        if turn is not first and any(other is call for other in first.calls):
            first.calls = [other for other in first.calls if other is not call]
            turn.calls.append(call)

    def _add_piece(self, index: str, piece: str) -> dict[str, Any]:
        """Add a piece of the arguments of a streamed call."""
        call, text = self._streamed[index]
        self._streamed[index] = call, text + piece
        call.arguments, call.problem = read_arguments(text + piece)
        return {}

    def _add_result(self, part: dict[str, Any], result_name: str) -> dict[str, Any]:
        call_id, name = _first_text(part, (*_CALL_IDS, "id")), _first_text(part, _NAMES)
        message = TraceMessage("tool", call_id=call_id or None, name=name or None)
        value = part.get(result_name)
        if isinstance(value, dict):
            given = [name for name, inner in value.items() if inner is not None]
            if len(given) == 1 and given[0] in _WRAPPERS:
                value, result_name = value[given[0]], given[0]
            value = value if given else None
        message.failed = (
            any(part.get(field) for field in ("is_error", "isError", "error", "errorText"))
            or part.get("status") == "error"
            or result_name == "error"
            or (isinstance(value, dict) and part_kind(value).startswith("error"))
        )
        if _ContentReader(message, f"a result in {self._place}").read(value) != [message]:
            # A result of a form that is not known is kept as it stands.
            message.content = result_text(value)
        message.content = message.content or result_text(part.get("error"))
        self._messages.append(message)
        return {}

    def _add_placeholder(self, part: dict[str, Any], kind: str, number: int) -> dict[str, Any]:
        turn = self._turn()
        turn.remarks.append(f"part {number} of {self._place} is of the kind {kind!r}, and was kept but not read")
        if turn.role != "assistant":
            # The answer of a model has only its words.
            turn.content += f"{' ' if turn.content else ''}[{kind}]"
        return part


def _is_part(value: Any) -> bool:
    return isinstance(value, dict) and bool(part_kind(value) or part_kind(_unwrap(value)))


def _unwrap(part: Any) -> Any:
    """A part under its kind, as {"toolUse": {...}}, in the usual form; a text without a kind has one too."""
    if not isinstance(part, dict):
        return part
    kind = part_kind(part)
    if not kind and "text" in part and (isinstance(part["text"], str) or not part["text"]):
        return {**part, "type": "text"}
    if not kind and "json" in part and len(part) == 1:
        return {**part, "type": "json"}
    inner = {name: value for name, value in part.items() if isinstance(value, dict)}
    # Beside the part may stand its signature, and its kind once more.
    if len(inner) == 1:
        name, value = next(iter(inner.items()))
        is_repeated = name != kind and name.lower() == kind.replace("-", "").lower()
        if is_repeated or not (kind or part.keys() & {*_NAMES, *_CALL_IDS, *_RESULTS, *_ARGUMENTS}):
            return {**_others(part, name), "type": kind or name, **value}
    return part


def _first_name(part: dict[str, Any], names: tuple[str, ...]) -> str:
    return next((name for name in names if name in part), "")


def _first_text(part: dict[str, Any], names: tuple[str, ...]) -> str:
    return next((part[name] for name in names if isinstance(part.get(name), str) and part[name]), "")


def _inner_text(value: Any) -> str:
    """The text of a part, which some interfaces put into an object."""
    return result_text(value.get("value") if isinstance(value, dict) else value or None)


def _others(part: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name not in names and value}
