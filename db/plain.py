"""Nouns as JSON values and back, exactly."""

from dataclasses import MISSING, fields
from datetime import datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints
from uuid import UUID

from db.bulk import values
from db.models import Base
from db.types import UnstorableText, check_storable

Noun = TypeVar("Noun", bound=Base)


class BrokenNoun(ValueError):
    """The values make no noun: a field is unknown, missing or of another kind."""


def to_plain(noun: Base) -> dict[str, Any]:
    """The noun's fields as JSON values."""
    return {name: _plain(value) for name, value in values(noun).items()}


def _plain(value: Any) -> Any:
    if isinstance(value, UUID):
        return str(value)
    return value.isoformat() if isinstance(value, datetime) else value


def from_plain(kind: type[Noun], plain: Any) -> Noun:
    """The noun of these fields; BrokenNoun names the one that is wrong."""
    name = kind.__name__.lower()
    if not isinstance(plain, dict):
        raise BrokenNoun(f"the {name} is no JSON object")
    known = _kinds(kind)
    if unknown := sorted(plain.keys() - known.keys()):
        raise BrokenNoun(f"the {name} has an unknown field {unknown[0]!r}")
    if missing := sorted((_required(kind) | ({"id"} & known.keys())) - plain.keys()):
        raise BrokenNoun(f"the {name} has no {missing[0]!r}")
    return kind(**{field: _value(f"the {name}'s {field}", known[field], value) for field, value in plain.items()})


@cache
def _kinds(kind: type[Base]) -> dict[str, tuple[type, ...]]:
    """The Python types that each field may have."""
    hints = get_type_hints(kind)
    found = {}
    for field in fields(kind):
        (inner,) = get_args(hints[field.name])
        allowed = get_args(inner) if isinstance(inner, UnionType) else (inner,)
        found[field.name] = tuple(get_origin(each) or each for each in allowed)
    return found


@cache
def _required(kind: type[Base]) -> frozenset[str]:
    return frozenset(f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING)


def _value(place: str, allowed: tuple[type, ...], value: Any) -> Any:
    made = value
    try:
        if isinstance(value, str) and UUID in allowed:
            made = UUID(value)
        elif isinstance(value, str) and datetime in allowed:
            made = datetime.fromisoformat(value)
        elif type(value) is int and float in allowed:
            made = float(value)
        elif isinstance(value, str):
            check_storable(value)
    except UnstorableText as refused:
        raise BrokenNoun(f"{place}: {refused}") from refused
    except ValueError as wrong:
        raise BrokenNoun(f"{place} is {value[:60]!r}, which is no {allowed[0].__name__}") from wrong
    if type(made) not in allowed:
        wanted = " or ".join("null" if each is NoneType else each.__name__ for each in allowed)
        raise BrokenNoun(f"{place} is of the kind {type(value).__name__}, not {wanted}")
    if isinstance(made, datetime) and made.tzinfo is None:
        raise BrokenNoun(f"{place} is {value!r}, which names no time zone")
    return made
