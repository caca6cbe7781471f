"""One argument of a tool: what it takes, read off the JSON Schema of the arguments, and how writing becomes a value."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

KINDS = {"string": "text", "number": "number", "integer": "whole number", "boolean": "yes/no", "array": "list"}
BOOLEANS = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
_DEEPEST = 20
"""References that refer to references are followed so far."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """An argument; `kind` is text, number, whole number, yes/no, choice, list or json; `hint` is for the form."""

    name: str
    kind: str
    hint: str = ""
    required: bool = True
    default: Any = None
    """What the tool takes where an argument that is not required is left out."""
    choices: tuple[Any, ...] = ()
    """Of a choice, and of a list of choices."""
    item: str = "text"
    """The kind of a list's items: id (written with commas or spaces between), text (one a line), number ...; of json
    it is text where words that are no JSON are taken too."""

    def read(self, written: Any) -> Any:
        """The value that was written, "5" as 5 where a number is wanted; ValueError says what is wrong with it.

        What is no text is a value already.
        """
        if not isinstance(written, str):
            return written
        if self.kind == "list":
            return self._items(written)
        if self.kind == "json" and self.item == "text":
            return _json_or_text(written)
        return _value(self.kind, written, self.choices)

    def _items(self, written: str) -> list[Any]:
        if written.lstrip().startswith("["):
            found = _value("json", written, ())
            return found if isinstance(found, list) else [found]
        parts = written.replace(",", " ").split() if self.item == "id" else written.splitlines()
        return [_value(self.item, part, self.choices) for part in (part.strip() for part in parts) if part]

    def write(self, value: Any) -> str:
        """The value as it is written in a form; `read` takes it back."""
        if value is None:
            return ""
        if self.kind == "json" or (self.kind == "list" and any("\n" in str(item) for item in value)):
            return json.dumps(value, ensure_ascii=False)
        if self.kind == "list":
            return (", " if self.item == "id" else "\n").join(_word(item) for item in value)
        return _word(value)


def _word(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _value(kind: str, written: str, choices: tuple[Any, ...]) -> Any:
    if kind in ("text", "id"):
        return written
    read = {"number": _number, "whole number": _whole, "yes/no": _boolean, "json": _json}
    return _choice(written, choices) if kind == "choice" else read[kind](written.strip())


def _number(written: str) -> float | int:
    try:
        found = float(written)
    except ValueError:
        raise ValueError(f"{written!r} is no number") from None
    if not math.isfinite(found):
        raise ValueError(f"{written!r} is no number that can be kept")
    return int(written) if written.lstrip("+-").isdecimal() else found


def _whole(written: str) -> int:
    try:
        return int(written)
    except ValueError:
        raise ValueError(f"{written!r} is no whole number") from None


def _boolean(written: str) -> bool:
    if written.casefold() not in BOOLEANS:
        raise ValueError(f"{written!r} is neither yes nor no")
    return BOOLEANS[written.casefold()]


def _json(written: str) -> Any:
    try:
        return json.loads(written)
    except json.JSONDecodeError as wrong:
        raise ValueError(f"no valid JSON: {wrong.msg.lower()} at line {wrong.lineno}, column {wrong.colno}") from None


def _json_or_text(written: str) -> Any:
    try:
        return json.loads(written)
    except json.JSONDecodeError:
        return written


def _choice(written: str, choices: tuple[Any, ...]) -> Any:
    for choice in choices:
        if str(choice) == written.strip():
            return choice
    raise ValueError(f"{written!r} is none of {', '.join(map(str, choices))}")


def parameters_of(schema: Mapping[str, Any]) -> tuple[Parameter, ...]:
    """The arguments that a JSON Schema describes, in its order."""
    required = set(schema.get("required", ()))
    told: Mapping[str, Any] = schema.get("properties", {})
    return tuple(_parameter(name, about, required=name in required, root=schema) for name, about in told.items())


def _parameter(name: str, told: Any, *, required: bool, root: Mapping[str, Any]) -> Parameter:
    found = _plain(told, root)
    told = told if isinstance(told, Mapping) else {}
    kind, choices = _kind(found)
    item = "text" if _takes_text(found) else "json"
    if kind == "list":
        inner = _plain(found.get("items", {"type": "string"}), root)
        item, choices = _kind(inner)
        # A list of lists or of things has no lines of its own.
        kind, item = ("json", "json") if item in ("json", "list") else ("list", item)
    return Parameter(
        name,
        kind,
        hint=" ".join(str(told.get("description") or found.get("description") or "").split()),
        required=required,
        default=told.get("default", found.get("default")),
        choices=choices,
        item=item,
    )


def _kind(found: Mapping[str, Any]) -> tuple[str, tuple[Any, ...]]:
    if "const" in found:
        return "choice", (found["const"],)
    if isinstance(found.get("enum"), list):
        return "choice", tuple(one for one in found["enum"] if one is not None)
    types = found.get("type")
    named = [one for one in types if one != "null"] if isinstance(types, list) else [types]
    return (KINDS.get(str(named[0]), "json") if len(named) == 1 else "json"), ()


def _takes_text(found: Mapping[str, Any]) -> bool:
    types = found.get("type", "string" if not {"anyOf", "oneOf", "properties"} & found.keys() else None)
    forms = [one for key in ("anyOf", "oneOf") for one in found.get(key, ()) if isinstance(one, Mapping)]
    return "string" in (types if isinstance(types, list) else [types]) or any(map(_takes_text, forms))


def _plain(told: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is told of an argument, references followed and "or nothing" left away; {} where that has no single form."""
    found: Any = told
    for _ in range(_DEEPEST):
        if not isinstance(found, Mapping):
            return {}
        forms = [one for key in ("anyOf", "oneOf", "allOf") for one in found.get(key, ()) if one != {"type": "null"}]
        if "$ref" in found:
            found = _referred(str(found["$ref"]), root)
        elif len(forms) == 1:
            found = forms[0]
        else:
            return found
    return {}


def _referred(reference: str, root: Mapping[str, Any]) -> Any:
    found: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found
