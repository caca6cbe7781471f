"""The format of a project's answers: free text, a value of a JSON Schema, or none."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from hashlib import sha256
from typing import Any

from showhow.db.database import Conflict
from showhow.db.types import dump_json, load_json
from showhow.db.unanswerable import normalize_unanswerable
from showhow.guard.schemas import UncheckedValue, find_schema_error, find_violation, refers_elsewhere


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
            problem = _find_schema_problem(dump_json(schema)) if schema else None
        except ValueError as error:
            raise Conflict(f"the answer schema cannot be stored ({error}); correct it") from error
        except RecursionError as error:
            raise Conflict("the answer schema is nested too deeply; flatten it") from error
        if problem:
            raise Conflict(f"the answer schema {problem}")
        return cls(AnswerKind(kind), dict(schema))

    def to_json(self) -> dict[str, Any]:
        """The format as a project stores it: {} for free text."""
        if self.kind == AnswerKind.TEXT:
            return {}
        return {"kind": str(self.kind)} | ({"schema": self.schema} if self.kind == AnswerKind.JSON else {})

    def normalize(self, text: str) -> str:
        """The answer as it is stored; InvalidAnswer if it does not have this format.

        That the question cannot be answered is an answer in every format (db/unanswerable.py).
        A schema is foreign work, so it is to be checked before a transaction begins; within one, the answer that has
        been checked is known.
        """
        text = text.strip()
        if self.kind == AnswerKind.NONE:
            return ""
        if not text:
            raise InvalidAnswer("Enter a final answer, or say why the question cannot be answered.")
        if unanswerable := normalize_unanswerable(text):
            return unanswerable
        return text if self.kind == AnswerKind.TEXT else self._normalize_json(text)

    def _normalize_json(self, text: str) -> str:
        try:
            value = load_json(text)
        except ValueError as error:
            raise InvalidAnswer(f"The answer is not JSON: {error}. Write one JSON value.") from error
        normalized = dump_json(value)
        key = sha256(f"{dump_json(self.schema)}\n{normalized}".encode()).digest()
        if key in _FITTING:
            return normalized
        try:
            violation = find_violation(self.schema, value, newest=True)
        except UncheckedValue as error:
            raise InvalidAnswer(
                f"The answer could not be checked against the answer schema of the project: {error}. Shorten the "
                "answer, or have the schema corrected; nothing else is lost."
            ) from error
        if violation is not None:
            raise InvalidAnswer(f"The answer does not fit the schema at {violation.json_path}: {violation.message}.")
        _remember(key)
        return normalized


_FITTING: dict[bytes, None] = {}
"""The digests of the last answers that fit their schemas, the oldest first."""
_MAX_FITTING = 1024


def _remember(key: bytes) -> None:
    _FITTING[key] = None
    for oldest in list(_FITTING)[: len(_FITTING) - _MAX_FITTING]:
        _FITTING.pop(oldest, None)


@lru_cache(maxsize=64)
def _find_schema_problem(schema_text: str) -> str:
    """What is wrong with the schema, as a clause; empty if nothing is.

    Cached, since all traces of an imported file may have the same project.
    """
    schema = load_json(schema_text)
    try:
        error = find_schema_error(schema, newest=True)
    except UncheckedValue as unchecked:
        return f"could not be checked: {unchecked}; simplify it"
    if error is not None:
        return f"is not a JSON Schema: {error}; correct it"
    if refers_elsewhere(schema):
        return "refers to another document, which is never fetched; copy what it needs"
    return ""
