"""One argument of a tool: what it takes, read off the JSON Schema of the arguments, and how writing becomes a value."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

KIND_BY_JSON_TYPE = {
    "string": "text",
    "number": "number",
    "integer": "whole number",
    "boolean": "yes/no",
    "array": "list",
}
BOOLEAN_VALUES = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
_MAX_REFERENCE_DEPTH = 20
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
    item_kind: str = "text"
    """The kind of a list's items: id (written with commas or spaces between), text (one a line), number ...; of json
    it is text where words that are no JSON are taken too."""

    def parse(self, written: Any) -> Any:
        """The value that was written, "5" as 5 where a number is wanted; ValueError says what is wrong with it.

        What is no text is a value already.
        """
        if not isinstance(written, str):
            return written
        if self.kind == "list":
            return self._parse_items(written)
        if self.kind == "json" and self.item_kind == "text":
            return _parse_json_or_text(written)
        return _parse_value(self.kind, written, self.choices)

    def _parse_items(self, written: str) -> list[Any]:
        if written.lstrip().startswith("["):
            found = _parse_value("json", written, ())
            return found if isinstance(found, list) else [found]
        parts = written.replace(",", " ").split() if self.item_kind == "id" else written.splitlines()
        return [_parse_value(self.item_kind, part, self.choices) for part in (part.strip() for part in parts) if part]

    def format(self, value: Any) -> str:
        """The value as it is written in a form; `read` takes it back."""
        if value is None:
            return ""
        if self.kind == "json" or (self.kind == "list" and any("\n" in str(item) for item in value)):
            return json.dumps(value, ensure_ascii=False)
        if self.kind == "list":
            return (", " if self.item_kind == "id" else "\n").join(_format_scalar(item) for item in value)
        return _format_scalar(value)


def _format_scalar(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _parse_value(kind: str, written: str, choices: tuple[Any, ...]) -> Any:
    if kind in ("text", "id"):
        return written
    read = {"number": _parse_number, "whole number": _parse_integer, "yes/no": _parse_boolean, "json": _parse_json}
    return _parse_choice(written, choices) if kind == "choice" else read[kind](written.strip())


def _parse_number(written: str) -> float | int:
    try:
        found = float(written)
    except ValueError:
        raise ValueError(f"{written!r} is no number") from None
    if not math.isfinite(found):
        raise ValueError(f"{written!r} is no number that can be kept")
    return int(written) if written.lstrip("+-").isdecimal() else found


def _parse_integer(written: str) -> int:
    try:
        return int(written)
    except ValueError:
        raise ValueError(f"{written!r} is no whole number") from None


def _parse_boolean(written: str) -> bool:
    if written.casefold() not in BOOLEAN_VALUES:
        raise ValueError(f"{written!r} is neither yes nor no")
    return BOOLEAN_VALUES[written.casefold()]


def _parse_json(written: str) -> Any:
    try:
        return json.loads(written)
    except json.JSONDecodeError as wrong:
        raise ValueError(f"no valid JSON: {wrong.msg.lower()} at line {wrong.lineno}, column {wrong.colno}") from None


def _parse_json_or_text(written: str) -> Any:
    try:
        return json.loads(written)
    except json.JSONDecodeError:
        return written


def _parse_choice(written: str, choices: tuple[Any, ...]) -> Any:
    for choice in choices:
        if str(choice) == written.strip():
            return choice
    raise ValueError(f"{written!r} is none of {', '.join(map(str, choices))}")


def parse_parameters(schema: Mapping[str, Any]) -> tuple[Parameter, ...]:
    """The arguments that a JSON Schema describes, in its order."""
    required = set(schema.get("required", ()))
    told: Mapping[str, Any] = schema.get("properties", {})
    return tuple(_parse_parameter(name, about, required=name in required, root=schema) for name, about in told.items())


def _parse_parameter(name: str, told: Any, *, required: bool, root: Mapping[str, Any]) -> Parameter:
    found = _resolve_schema(told, root)
    told = told if isinstance(told, Mapping) else {}
    kind, choices = _classify_schema(found)
    item = "text" if _accepts_text(found) else "json"
    if kind == "list":
        inner = _resolve_schema(found.get("items", {"type": "string"}), root)
        item, choices = _classify_schema(inner)
        # A list of lists or of things has no lines of its own.
        kind, item = ("json", "json") if item in ("json", "list") else ("list", item)
    return Parameter(
        name,
        kind,
        hint=" ".join(str(told.get("description") or found.get("description") or "").split()),
        required=required,
        default=told.get("default", found.get("default")),
        choices=choices,
        item_kind=item,
    )


def _classify_schema(found: Mapping[str, Any]) -> tuple[str, tuple[Any, ...]]:
    if "const" in found:
        return "choice", (found["const"],)
    if isinstance(found.get("enum"), list):
        return "choice", tuple(one for one in found["enum"] if one is not None)
    types = found.get("type")
    named = [one for one in types if one != "null"] if isinstance(types, list) else [types]
    return (KIND_BY_JSON_TYPE.get(str(named[0]), "json") if len(named) == 1 else "json"), ()


def _accepts_text(found: Mapping[str, Any]) -> bool:
    types = found.get("type", "string" if not {"anyOf", "oneOf", "properties"} & found.keys() else None)
    forms = [one for key in ("anyOf", "oneOf") for one in found.get(key, ()) if isinstance(one, Mapping)]
    return "string" in (types if isinstance(types, list) else [types]) or any(map(_accepts_text, forms))


def _resolve_schema(told: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """What is told of an argument, references followed and "or nothing" left away; {} where that has no single form."""
    found: Any = told
    for _ in range(_MAX_REFERENCE_DEPTH):
        if not isinstance(found, Mapping):
            return {}
        forms = [one for key in ("anyOf", "oneOf", "allOf") for one in found.get(key, ()) if one != {"type": "null"}]
        if "$ref" in found:
            found = _resolve_reference(str(found["$ref"]), root)
        elif len(forms) == 1:
            found = forms[0]
        else:
            return found
    return {}


def _resolve_reference(reference: str, root: Mapping[str, Any]) -> Any:
    found: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        found = found.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found
