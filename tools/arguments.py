"""Arguments of tools: parameters from a JSON Schema, ids in all their forms, the sources they need, ToolError."""

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BeforeValidator

from showhow.worlds.source import ErrorKind, GraphSource, TextSource, WebSource, World
from showhow.worlds.terms import shorten_iri, strip_marks

KIND_BY_JSON_TYPE = {
    "string": "text",
    "number": "number",
    "integer": "whole number",
    "boolean": "yes/no",
    "array": "list",
}
BOOLEAN_VALUES = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}
_MAX_REFERENCE_DEPTH = 20
"""Maximum length of a chain of references."""
_ENTITY_PREFIX = re.compile(r"(?:wd|wdt|p|ps|entity):(?=[QPL][1-9])")
_WRAPPING_CHARACTERS = "[](){}<>\"'"


@dataclass(frozen=True, slots=True, init=False)
class Accepts:
    """Annotates a tool's parameter with the kinds of clicked values that it accepts.

    Kinds are title, entity, relation, address and query; none for a parameter that accepts typed text only. A list
    that accepts entities contains ids.
    """

    kinds: tuple[str, ...]

    def __init__(self, *kinds: str) -> None:
        object.__setattr__(self, "kinds", kinds)


@dataclass(frozen=True, slots=True)
class Label:
    """Annotates a tool's parameter with the label of its field, where its name does not say what it is."""

    text: str


class NotOffered:
    """Annotates a tool's parameter that forms and models are not asked for."""


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
    """The kinds of clicked values that it accepts; None if the tool does not declare them."""
    title: str = ""
    """The declared label; "" for one made of the name."""

    @property
    def label(self) -> str:
        """The label of its field, and of the argument in a step."""
        return self.title or label_of_name(self.name)

    def parse(self, value: Any) -> Any:
        """Convert text to the parameter's type, "5" to 5 for a number; ValueError if it cannot be converted.

        Values of other types are returned unchanged.
        """
        if not isinstance(value, str):
            return value
        if self.kind == "list":
            return self._parse_items(value)
        if self.kind == "json" and self.item_kind == "text":
            return _parse_json_or_text(value)
        return _parse_value(self.kind, value, self.choices)

    def _parse_items(self, text: str) -> list[Any]:
        if text.lstrip().startswith("["):
            value = _parse_value("json", text, ())
            return value if isinstance(value, list) else [value]
        parts = text.replace(",", " ").split() if self.item_kind == "id" else text.splitlines()
        return [_parse_value(self.item_kind, part, self.choices) for part in (part.strip() for part in parts) if part]

    def format(self, value: Any) -> str:
        """Format a value for a form; `parse` converts it back."""
        if value is None:
            return ""
        if self.kind == "json":
            return json.dumps(value, ensure_ascii=False)
        if self.kind == "list":
            # The default of a schema, or an answer from before it, may be a single item.
            return self._format_items(value if isinstance(value, list) else [value])
        return _format_scalar(value)

    def _format_items(self, items: list[Any]) -> str:
        text = (", " if self.item_kind == "id" else "\n").join(_format_scalar(item) for item in items)
        try:
            is_exact = self._parse_items(text) == items
        except ValueError:
            is_exact = False
        return text if is_exact else json.dumps(items, ensure_ascii=False)


def label_of_name(name: str) -> str:
    """A label made of the name of a parameter or a tool, such as "Entity ids" of entity_ids."""
    words = name.replace("_", " ").replace("-", " ").strip()
    return f"{words[:1].upper()}{words[1:]}" or name


def _format_scalar(value: Any) -> str:
    return ("yes" if value else "no") if isinstance(value, bool) else str(value)


def _parse_value(kind: str, text: str, choices: tuple[Any, ...]) -> Any:
    if kind in ("text", "id"):
        return text
    parsers = {"number": _parse_number, "whole number": _parse_integer, "yes/no": _parse_boolean, "json": _parse_json}
    return _parse_choice(text, choices) if kind == "choice" else parsers[kind](text.strip())


def _parse_number(text: str) -> float | int:
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None
    if not math.isfinite(number):
        raise ValueError(f"{text!r} is not a finite number")
    return int(text) if text.lstrip("+-").isdecimal() else number


def _parse_integer(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None


def _parse_boolean(text: str) -> bool:
    if text.casefold() not in BOOLEAN_VALUES:
        raise ValueError(f"{text!r} is neither yes nor no")
    return BOOLEAN_VALUES[text.casefold()]


def _parse_json(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise ValueError(f"invalid JSON: {error.msg.lower()} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise ValueError("the JSON is nested too deeply") from None


def _parse_json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _parse_choice(text: str, choices: tuple[Any, ...]) -> Any:
    for choice in choices:
        if str(choice) == text.strip():
            return choice
    raise ValueError(f"{text!r} is none of {', '.join(map(str, choices))}")


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
        choices = tuple(value for value in schema["enum"] if value is not None)
        return "choice" if choices else "json", choices
    types = schema.get("type")
    names = [name for name in types if name != "null"] if isinstance(types, list) else [types]
    return (KIND_BY_JSON_TYPE.get(str(names[0]), "json") if len(names) == 1 else "json"), ()


def _accepts_text(schema: Mapping[str, Any]) -> bool:
    types = schema.get("type", "string" if not {"anyOf", "oneOf", "properties"} & schema.keys() else None)
    variants = [variant for variant in _list_variants(schema, "anyOf", "oneOf") if isinstance(variant, Mapping)]
    return "string" in (types if isinstance(types, list) else [types]) or any(map(_accepts_text, variants))


def _list_variants(schema: Mapping[str, Any], *keywords: str) -> list[Any]:
    # Older drafts do not have all of these keywords, and allow anything under the others.
    return [variant for key in keywords if isinstance(schema.get(key), list) for variant in schema[key]]


def _resolve_schema(schema: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema with its references followed and "or null" removed; {} if it is not an object or refers to itself."""
    for _ in range(_MAX_REFERENCE_DEPTH):
        if not isinstance(schema, Mapping):
            return {}
        variants = [
            variant for variant in _list_variants(schema, "anyOf", "oneOf", "allOf") if variant != {"type": "null"}
        ]
        if "$ref" in schema:
            schema = _resolve_reference(str(schema["$ref"]), root)
        elif len(variants) == 1:
            schema = variants[0]
        else:
            return schema
    return {}


def _resolve_reference(reference: str, root: Mapping[str, Any]) -> Any:
    target: Any = root
    for part in reference.removeprefix("#").split("/")[1:]:
        target = target.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(target, Mapping) else None
    return target


class ToolError(Exception):
    """A tool call failed; the message is one sentence with the reason and what to do next."""

    def __init__(self, message: str, kind: ErrorKind = ErrorKind.OTHER) -> None:
        super().__init__(message)
        self.kind = kind


def split_ids(value: object) -> object:
    """Split a text of ids, "Q1, Q2", "[Q1, Q2]" or one per line, into a list; other values are returned unchanged."""
    if not isinstance(value, str):
        return value
    return [part for part in (part.strip(_WRAPPING_CHARACTERS) for part in re.split(r"[,\s]+", value)) if part]


SPLIT_IDS_VALIDATOR = BeforeValidator(split_ids)


def normalize_id(id_text: str) -> str:
    """Normalize an id: Q42 for wd:Q42 and for the full IRI; other IRIs are returned unchanged."""
    text = _ENTITY_PREFIX.sub("", strip_marks(id_text).strip(_WRAPPING_CHARACTERS))
    return shorten_iri(text.replace("https://www.wikidata.org/", "http://www.wikidata.org/", 1))


def require_text(world: World, tool: str) -> TextSource:
    """Return the world's articles; ToolError if it has none."""
    if world.text is None:
        raise ToolError(
            f"{tool} needs articles, and the world {world.name} has none; query its graph with runQuery instead.",
            ErrorKind.UNAVAILABLE,
        )
    return world.text


def require_graph(world: World, tool: str) -> GraphSource:
    """Return the world's graph; ToolError if it has none."""
    if world.graph is None:
        raise ToolError(
            f"{tool} needs a graph, and the world {world.name} has none; use wikisearch and read instead.",
            ErrorKind.UNAVAILABLE,
        )
    return world.graph


def require_web(world: World, tool: str) -> WebSource:
    """Return the world's web pages; ToolError if it has none."""
    if world.web is None:
        raise ToolError(
            f"{tool} needs web pages, and the world {world.name} has none; use the other tools instead.",
            ErrorKind.UNAVAILABLE,
        )
    return world.web
