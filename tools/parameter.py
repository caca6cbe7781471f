"""The parameters of a tool, read from the JSON Schema of its arguments; they parse and format what a form holds."""

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
"""How many references to references are followed."""


@dataclass(frozen=True, slots=True, init=False)
class Accepts:
    """The annotation of a tool's parameter with the kinds of clicked values that it takes.

    Kinds are title, entity, address and query; none for a parameter that takes typed text only. A list that accepts
    entities holds entity ids.
    """

    kinds: tuple[str, ...]

    def __init__(self, *kinds: str) -> None:
        object.__setattr__(self, "kinds", kinds)


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter; `kind` is text, number, whole number, yes/no, choice, list or json; `hint` is for the form."""

    name: str
    kind: str
    hint: str = ""
    required: bool = True
    default: Any = None
    """The value that the tool uses if the argument is left out."""
    choices: tuple[Any, ...] = ()
    """The values of a choice, or of the items of a list of choices."""
    item_kind: str = "text"
    """The kind of a list's items: id (separated by commas or spaces), text (one per line), number ...; text for json
    that may also be plain text."""
    accepts: tuple[str, ...] | None = None
    """The kinds of clicked values that it takes; None if it does not say."""

    def parse(self, written: Any) -> Any:
        """Convert text to the parameter's type, "5" to 5 for a number; other values stay; ValueError if it cannot."""
        if not isinstance(written, str):
            return written
        if self.kind == "list":
            return self._parse_items(written)
        if self.kind == "json" and self.item_kind == "text":
            return _parse_json_or_text(written)
        return _parse_value(self.kind, written, self.choices)

    def _parse_items(self, written: str) -> list[Any]:
        if written.lstrip().startswith("["):
            value = _parse_value("json", written, ())
            return value if isinstance(value, list) else [value]
        parts = written.replace(",", " ").split() if self.item_kind == "id" else written.splitlines()
        return [_parse_value(self.item_kind, part, self.choices) for part in (part.strip() for part in parts) if part]

    def format(self, value: Any) -> str:
        """Format a value for a form; `parse` converts it back."""
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
    parsers = {"number": _parse_number, "whole number": _parse_integer, "yes/no": _parse_boolean, "json": _parse_json}
    return _parse_choice(written, choices) if kind == "choice" else parsers[kind](written.strip())


def _parse_number(written: str) -> float | int:
    try:
        number = float(written)
    except ValueError:
        raise ValueError(f"{written!r} is no number") from None
    if not math.isfinite(number):
        raise ValueError(f"{written!r} is no finite number")
    return int(written) if written.lstrip("+-").isdecimal() else number


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
    """Return the parameters that a JSON Schema describes, in its order."""
    required = set(schema.get("required", ()))
    properties: Mapping[str, Any] = schema.get("properties", {})
    return tuple(
        _parse_parameter(name, field, required=name in required, root=schema) for name, field in properties.items()
    )


def _parse_parameter(name: str, field: Any, *, required: bool, root: Mapping[str, Any]) -> Parameter:
    resolved = _resolve_schema(field, root)
    field = field if isinstance(field, Mapping) else {}
    kind, choices = _classify_schema(resolved)
    item_kind = "text" if _accepts_text(resolved) else "json"
    if kind == "list":
        items = _resolve_schema(resolved.get("items", {"type": "string"}), root)
        item_kind, choices = _classify_schema(items)
        # A list of lists or of objects cannot be written one item per line.
        kind, item_kind = ("json", "json") if item_kind in ("json", "list") else ("list", item_kind)
    return Parameter(
        name,
        kind,
        hint=" ".join(str(field.get("description") or resolved.get("description") or "").split()),
        required=required,
        default=field.get("default", resolved.get("default")),
        choices=choices,
        item_kind=item_kind,
    )


def _classify_schema(schema: Mapping[str, Any]) -> tuple[str, tuple[Any, ...]]:
    if "const" in schema:
        return "choice", (schema["const"],)
    if isinstance(schema.get("enum"), list):
        return "choice", tuple(one for one in schema["enum"] if one is not None)
    types = schema.get("type")
    names = [one for one in types if one != "null"] if isinstance(types, list) else [types]
    return (KIND_BY_JSON_TYPE.get(str(names[0]), "json") if len(names) == 1 else "json"), ()


def _accepts_text(schema: Mapping[str, Any]) -> bool:
    types = schema.get("type", "string" if not {"anyOf", "oneOf", "properties"} & schema.keys() else None)
    forms = [one for key in ("anyOf", "oneOf") for one in schema.get(key, ()) if isinstance(one, Mapping)]
    return "string" in (types if isinstance(types, list) else [types]) or any(map(_accepts_text, forms))


def _resolve_schema(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema with its references followed and "or null" removed; {} if it has no single form."""
    for _ in range(_MAX_REFERENCE_DEPTH):
        if not isinstance(schema, Mapping):
            return {}
        forms = [one for key in ("anyOf", "oneOf", "allOf") for one in schema.get(key, ()) if one != {"type": "null"}]
        if "$ref" in schema:
            schema = _resolve_reference(str(schema["$ref"]), root)
        elif len(forms) == 1:
            schema = forms[0]
        else:
            return schema
    return {}


def _resolve_reference(reference: str, root: Mapping[str, Any]) -> Any:
    target: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        target = target.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(target, Mapping) else None
    return target
