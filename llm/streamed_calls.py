"""Tool calls from the pieces in which servers send them.

OpenAI numbers the calls of a message by `index`, names each once, and sends its arguments in pieces. Other servers
give every call the index 0 or none, repeat names and ids, change ids, send objects, or send what they sent again. What
holds for all of them is the form of the arguments: they are one JSON object. So an object that is complete ends its
call, what does not begin an object continues one, and what equals an earlier call repeats it.
"""

import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

_MAX_CALLS = 1_000
"""A message with more calls has run away; the rest of it is not read."""
StreamedCall = tuple[str | None, str, str]
"""The id, if there is one, the name and the text of the arguments."""


@dataclass(slots=True)
class _Piece:
    """A part of a call, or a whole one; "" for what it leaves out."""

    index: Any
    id: str
    name: str
    arguments: str
    value: dict[str, Any] | None
    """The arguments, if they are complete."""
    is_object: bool
    """Whether the arguments came as an object, not as text."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "_Piece":
        function = value.get("function")
        fields = function if isinstance(function, Mapping) else value
        arguments = fields.get("arguments")
        text = arguments if isinstance(arguments, str) else "" if arguments is None else json.dumps(arguments)
        id_, name = (item if isinstance(item, str) else "" for item in (value.get("id"), fields.get("name")))
        return cls(value.get("index"), id_, name, text, _parse_object(text), isinstance(arguments, Mapping))

    @property
    def begins_object(self) -> bool:
        return self.arguments.lstrip('" \t\n').startswith("{")


@dataclass(slots=True)
class _Call:
    index: Any
    ids: list[str] = field(default_factory=list)
    name: str = ""
    text: str = ""
    value: dict[str, Any] | None = None
    """The arguments, once they are complete."""
    named_again: bool = False
    """Whether its name came again after its arguments, as it does before a second call of the tool."""

    @property
    def is_blank(self) -> bool:
        """Whether it has no arguments yet; some servers send an empty object before the real one."""
        return not self.text.strip() or self.value == {}

    @property
    def is_complete(self) -> bool:
        return bool(self.value)

    def repeats(self, piece: _Piece) -> bool:
        """Whether the piece has nothing but the complete arguments of this call."""
        return self.is_complete and piece.value == self.value

    def add(self, piece: _Piece) -> None:
        if piece.id and piece.id not in self.ids:
            self.ids.append(piece.id)
        if piece.name and piece.name != self.name:
            self.name = piece.name if piece.name.startswith(self.name) else self.name + piece.name
        elif piece.name and not piece.arguments and self.is_complete:
            self.named_again = True
        if not piece.arguments or self.repeats(piece) or (self.is_complete and not piece.arguments.strip()):
            return
        is_cumulative = piece.is_object or piece.arguments.startswith(self.text)
        self.text = piece.arguments if self.is_blank or is_cumulative else self.text + piece.arguments
        self.value = _parse_object(self.text)


def assemble_calls(pieces: Iterable[Mapping[str, Any]], tools: Collection[str] = ()) -> list[StreamedCall]:
    """The calls of a message from their pieces, in the order of their beginnings; `tools` are the offered names."""
    calls: list[_Call] = []
    for value in pieces:
        piece = _Piece.from_json(value)
        call = _find_call(calls, piece, tools)
        if call is None and len(calls) == _MAX_CALLS:
            break
        if call is None:
            previous = calls[-1].name if calls and piece.arguments else ""
            call = _Call(piece.index, name=piece.name or previous)
            calls.append(call)
        call.add(piece)
    return [
        (call.ids[0] if call.ids else None, call.name, call.text or "{}")
        for number, call in enumerate(calls)
        # A name that only came again begins no call.
        if call.name or call.text
        if not (number and not call.text and calls[number - 1].is_complete and calls[number - 1].name == call.name)
    ]


def _find_call(calls: list[_Call], piece: _Piece, tools: Collection[str]) -> _Call | None:
    """The call that the piece continues or repeats; None if it begins one."""
    if not calls:
        return None
    known_id = any(piece.id in call.ids for call in calls)
    known_index = piece.index is None or any(call.index == piece.index for call in calls)
    if piece.name and (known_id or known_index or not piece.id):
        repeated = next((call for call in calls if call.name == piece.name and call.repeats(piece)), None)
        if repeated is not None and (piece.index in (None, repeated.index) or not piece.id or piece.id in repeated.ids):
            return repeated
    same_id = [call for call in calls if piece.id in call.ids]
    same_index = [call for call in calls if piece.index is not None and call.index == piece.index]
    both = [call for call in same_id if call in same_index]
    candidates = both or same_id or same_index or (calls if piece.index is None else [])
    if candidates:
        return candidates[-1] if _continues(candidates[-1], piece, tools) else None
    # A new index is that of a new call, unless the piece can only be a part of one.
    last = calls[-1]
    is_part = bool(piece.arguments) and (not piece.name or (piece.name == last.name and not piece.begins_object))
    is_nothing = not (piece.id or piece.name or piece.arguments)
    return last if is_nothing or (is_part and not last.is_complete) else None


def _continues(call: _Call, piece: _Piece, tools: Collection[str]) -> bool:
    """Whether the piece belongs to the call, whose id or index it has, or after which it comes."""
    is_new_id = bool(piece.id) and bool(call.ids) and piece.id not in call.ids
    if piece.name and call.name and piece.name != call.name:
        # Names come in pieces too, but only before the arguments.
        is_longer = piece.name.startswith(call.name) and call.name not in tools
        return call.is_blank and (is_longer or call.name + piece.name in tools)
    if not call.is_complete:
        is_longer = len(piece.arguments) > len(call.text) and piece.arguments.startswith(call.text)
        begins_call = not piece.arguments or (piece.begins_object and not call.is_blank and not is_longer)
        return not (piece.name and is_new_id and begins_call)
    if not piece.arguments.strip():
        return not (piece.name and is_new_id)
    if call.repeats(piece) or piece.arguments.startswith(call.text) or not piece.begins_object:
        return True
    return not (piece.name or is_new_id or call.named_again)


def _parse_object(text: str) -> dict[str, Any] | None:
    """The object; some servers write its text as a JSON text. None for any other text."""
    if not text.rstrip('" \t\n').endswith("}"):
        # Most pieces end elsewhere, and a long text is not parsed for each of them.
        return None
    try:
        value = json.loads(text)
        value = json.loads(value) if isinstance(value, str) else value
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
