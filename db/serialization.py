"""Convert rows to JSON values and back without loss, and insert many at once.

A field that a later version added is omitted if it has its default. So a row of an earlier version is exported
unchanged, and an earlier version can read every row without the newer fields.
"""

from collections.abc import Sequence
from dataclasses import MISSING, fields
from datetime import UTC, datetime
from functools import cache
from math import isfinite
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints
from uuid import UUID

from sqlalchemy import Insert
from sqlalchemy.orm import Session, make_transient_to_detached
from sqlalchemy.orm.attributes import set_committed_value

from showhow.db.models import Judgement, Project, Question, Run, Step
from showhow.db.run_spec import RunResult, RunSpec, StoredValue
from showhow.db.types import REMOVAL_MARK, Base, UnstorableValue, check_storable_text

ModelType = TypeVar("ModelType", bound=Base)

MAX_INTEGER = 2**31 - 1
"""The maximum of an integer column in every database."""
ADDED_FIELDS: dict[type[Base], dict[str, Any]] = {
    Step: {"error_kind": None, "node": None, "skill": None},
    Judgement: {"step_id": None},
    Project: {"instruction": "", "answer_format": {}, "allows_questions": False, "shows_gold": False},
    Question: {"tags": []},
    Run: {
        "questions_hash": None,
        "concurrency": None,
        "is_paused": False,
        "title": "",
        "note": "",
    },
}
"""Fields that are omitted if they have these defaults."""


class InvalidRecord(ValueError):
    """The values are not a valid row: a field is unknown, missing or of another type."""


def field_values(row: Base) -> dict[str, Any]:
    """Return the fields of a row by name."""
    return {name: getattr(row, name) for name in _field_names(type(row))}


@cache
def _field_names(kind: type[Base]) -> tuple[str, ...]:
    return tuple(column.name for column in fields(kind) if column.name != REMOVAL_MARK)


def insert_rows(session: Session, kind: type[Base], rows: Sequence[dict[str, Any]]) -> None:
    """Insert the rows unchanged, keys and versions included; each row has every column of the table."""
    if rows:
        session.execute(kind.__table__.insert(), list(rows))  # type: ignore[attr-defined]


def insert_row(session: Session, row: Base) -> None:
    """Insert a new row that has its key: what adding it to the session does, at a fraction of the CPU time."""
    values = field_values(row)
    session.connection().execute(_build_insert(type(row)), values)
    # Defaults are not set in the row until they are stored.
    for name in values.keys() - vars(row).keys():
        set_committed_value(row, name, values[name])
    make_transient_to_detached(row)
    session.add(row)


@cache
def _build_insert(kind: type[Base]) -> Insert:
    return kind.__table__.insert()  # type: ignore[attr-defined, no-any-return]


def to_json_fields(row: Base) -> dict[str, Any]:
    """Convert the row's fields to JSON values."""
    added = ADDED_FIELDS.get(type(row), {})
    values = field_values(row)
    return {name: _to_json_value(value) for name, value in values.items() if name not in added or value != added[name]}


def _to_json_value(value: Any) -> Any:
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, StoredValue):
        return value.to_json()
    return value.isoformat() if isinstance(value, datetime) else value


def from_json_fields(kind: type[ModelType], plain: Any) -> ModelType:
    """Build the row of these fields; InvalidRecord names an invalid one."""
    name = kind.__name__.lower()
    if not isinstance(plain, dict):
        raise InvalidRecord(f"the {name} is not a JSON object")
    types = field_types(kind)
    if unknown := sorted(plain.keys() - types.keys()):
        raise InvalidRecord(f"the {name} has an unknown field {unknown[0]!r}")
    if missing := sorted((_required_fields(kind) | ({"id"} & types.keys())) - plain.keys()):
        raise InvalidRecord(f"the {name} has no {missing[0]!r}")
    return kind(**{field: _parse_value(f"the {name}'s {field}", types[field], value) for field, value in plain.items()})


@cache
def field_types(kind: type[Base]) -> dict[str, tuple[Any, ...]]:
    """Return the Python types that each field may have."""
    hints = get_type_hints(kind)
    types = {}
    for name in _field_names(kind):
        (inner,) = get_args(hints[name])
        types[name] = get_args(inner) if isinstance(inner, UnionType) else (inner,)
    return types


@cache
def _required_fields(kind: type[Base]) -> frozenset[str]:
    return frozenset(f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING)


def _parse_value(label: str, allowed: tuple[Any, ...], value: Any) -> Any:
    try:
        converted = _convert_value(allowed, value)
    except UnstorableValue as error:
        raise InvalidRecord(f"{label}: {error}") from error
    except (ValueError, OverflowError) as error:
        raise InvalidRecord(
            f"{label} is {str(value)[:60]!r}, which cannot be stored as one ({str(error)[:120]})"
        ) from error
    if type(converted) not in [get_origin(kind) or kind for kind in allowed]:
        expected = " or ".join("null" if kind is NoneType else getattr(kind, "__name__", str(kind)) for kind in allowed)
        raise InvalidRecord(f"{label} is of the kind {type(value).__name__}, not {expected}")
    if isinstance(converted, list):
        (item_type,) = get_args(allowed[0])
        if not all(isinstance(item, get_origin(item_type) or item_type) for item in converted):
            raise InvalidRecord(f"{label} contains an item of another kind")
    return converted


def _convert_value(allowed: tuple[Any, ...], value: Any) -> Any:
    """Convert a JSON value to the column's type; ValueError for a value that no column can store."""
    if isinstance(value, str) and UUID in allowed:
        return UUID(value)
    if isinstance(value, str) and datetime in allowed:
        # A time without a zone is refused, because it would be read as local time.
        time = datetime.fromisoformat(value)
        if time.tzinfo is None:
            raise ValueError("it has no time zone")
        return time.astimezone(UTC)
    if isinstance(value, dict) and allowed[0] in (RunSpec, RunResult):
        return allowed[0].from_json(value)
    if isinstance(value, str):
        check_storable_text(value)
    if type(value) is int and abs(value) > MAX_INTEGER:
        raise ValueError("it is too large")
    if type(value) is int and float in allowed:
        return float(value)
    if type(value) is float and not isfinite(value):
        raise ValueError("it is not a finite number")
    return value
