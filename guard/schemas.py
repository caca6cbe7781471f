"""Values and JSON Schemas that are foreign: checked in a bounded worker, with the schema's regular expressions.

A schema may hold a pattern that takes years, or refer to itself in ways that double the work at each level.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from showhow.guard.worker import WorkFailed, WorkLimits, run_bounded

SCHEMA_LIMITS = WorkLimits(seconds=2.0, megabytes=256, reply_bytes=100_000)
"""What one check may use."""
MAX_SCHEMA_CHARACTERS = 1_000_000
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
TOO_DEEP = "it is nested too deeply, or the schema refers to itself without end"


class UncheckedValue(Exception):
    """It cannot be said whether a value has its schema, or a schema is one; the message is a clause with the reason."""


@dataclass(frozen=True, slots=True)
class SchemaViolation:
    """Where a value does not fit its schema, and how."""

    path: tuple[str | int, ...]
    json_path: str
    """The same as a text: $.answers[0]."""
    message: str


def find_violation(schema: Mapping[str, Any], value: Any, *, newest: bool = False) -> SchemaViolation | None:
    """The violation that says most; None if the JSON value fits. UncheckedValue if the check cannot end.

    The draft is the one that the schema names; `newest` has 2020-12 for all.
    """
    try:
        texts = json.dumps(schema), json.dumps(value)
    except RecursionError as error:
        raise UncheckedValue(TOO_DEEP) from error
    violation = _run("showhow.guard.schema_checks:find_violation", *texts, newest)
    return None if violation is None else SchemaViolation(tuple(violation[0]), *violation[1:])


def find_schema_error(schema: Mapping[str, Any], *, newest: bool = False) -> str | None:
    """Why this is no JSON Schema; None if it is one. UncheckedValue if the check cannot end."""
    try:
        text = json.dumps(schema)
    except RecursionError as error:
        raise UncheckedValue(TOO_DEEP) from error
    if len(text) > MAX_SCHEMA_CHARACTERS:
        return f"it has {len(text):,} characters, and at most {MAX_SCHEMA_CHARACTERS:,} are read"
    message: str | None = _run("showhow.guard.schema_checks:find_schema_error", text, newest)
    return message


def refers_elsewhere(schema: Any) -> bool:
    """Whether a part of the schema refers to another document; none is ever fetched."""
    if isinstance(schema, Mapping):
        references = [reference for name in _REFERENCES if isinstance(reference := schema.get(name), str)]
        return not all(reference.startswith("#") for reference in references) or any(
            map(refers_elsewhere, schema.values())
        )
    return isinstance(schema, list) and any(map(refers_elsewhere, schema))


def _run(function: Any, *arguments: Any) -> Any:
    try:
        return run_bounded(function, *arguments, limits=SCHEMA_LIMITS)
    except WorkFailed as error:
        raise UncheckedValue(str(error)) from error
