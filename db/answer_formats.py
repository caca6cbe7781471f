"""The format of a project's answers: free text, a value of a JSON Schema, or none."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, best_match
from referencing import Registry
from referencing.exceptions import Unresolvable

from db.database import Conflict
from db.types import dump_json, load_json


class InvalidAnswer(Conflict, ValueError):
    """An answer is missing or does not have the project's format; the message says why and what to do."""


class AnswerKind(StrEnum):
    """What the answers of a project are."""

    TEXT = "text"
    JSON = "json"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class AnswerFormat:
    """The format of a project's answers: free text, a value of a JSON Schema, or no answers."""

    kind: AnswerKind = AnswerKind.TEXT
    schema: dict[str, Any] = field(default_factory=dict)
    """The JSON Schema of the values; without references to other documents."""

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> "AnswerFormat":
        """Read the format that a project stores; Conflict if its kind is unknown, or its schema no JSON Schema."""
        kind, schema = stored.get("kind", AnswerKind.TEXT), stored.get("schema", {})
        if kind not in list(AnswerKind):
            raise Conflict(f"the answer kind {kind!r} is none of {', '.join(AnswerKind)}; choose one of them")
        if not isinstance(schema, dict):
            raise Conflict("the answer schema is not a JSON object; correct it")
        try:
            _check_schema(dump_json(schema))
        except ValueError as error:
            raise Conflict(f"the answer schema cannot be stored ({error}); correct it") from error
        except RecursionError as error:
            raise Conflict("the answer schema is nested too deeply; flatten it") from error
        return cls(AnswerKind(kind), dict(schema))

    def to_json(self) -> dict[str, Any]:
        """The format as a project stores it: {} for free text."""
        if self.kind == AnswerKind.TEXT:
            return {}
        return {"kind": str(self.kind)} | ({"schema": self.schema} if self.kind == AnswerKind.JSON else {})

    def normalize(self, text: str) -> str:
        """The answer as it is stored; InvalidAnswer if it does not have this format."""
        text = text.strip()
        if self.kind == AnswerKind.NONE:
            return ""
        if not text:
            raise InvalidAnswer("Enter a final answer, or say what could not be found.")
        return text if self.kind == AnswerKind.TEXT else dump_json(self._parse_value(text))

    def _parse_value(self, text: str) -> Any:
        try:
            value = load_json(text)
        except ValueError as error:
            raise InvalidAnswer(f"The answer is not JSON: {error}. Write one JSON value.") from error
        try:
            violation = best_match(Draft202012Validator(self.schema, registry=Registry()).iter_errors(value))
        except Unresolvable as error:
            raise InvalidAnswer(f"The answer schema of the project refers to {error}, which it lacks.") from error
        except RecursionError as error:
            raise InvalidAnswer(
                "The answer is nested too deeply to be checked, or the answer schema of the project refers to itself "
                "without end; flatten the answer, or correct the schema."
            ) from error
        except OverflowError as error:
            raise InvalidAnswer(
                "The answer has a number that is too large for its schema; write a smaller one."
            ) from error
        if violation is not None:
            raise InvalidAnswer(
                f"The answer does not fit the schema at {violation.json_path}: {violation.message[:300]}."
            )
        return value


@lru_cache(maxsize=64)
def _check_schema(schema_text: str) -> None:
    # Cached, since all traces of an imported file may have the same project.
    schema = load_json(schema_text)
    try:
        Draft202012Validator.check_schema(schema, format_checker=Draft202012Validator.FORMAT_CHECKER)
    except SchemaError as error:
        raise Conflict(f"the answer schema is not a JSON Schema: {error.message[:300]}; correct it") from error
    if any(not reference.startswith("#") for reference in _list_references(schema)):
        raise Conflict("the answer schema refers to another document, which is never fetched; copy what it needs")


def _list_references(schema: Any) -> Iterator[str]:
    if isinstance(schema, Mapping):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        for part in schema.values():
            yield from _list_references(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _list_references(part)
