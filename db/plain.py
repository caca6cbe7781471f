"""Nouns as JSON values and back, exactly."""

from dataclasses import MISSING, fields
from datetime import UTC, datetime
from functools import cache
from math import isfinite
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints
from uuid import UUID

from db.bulk import values
from db.models import Base
from db.types import UnstorableText, check_storable

Noun = TypeVar("Noun", bound=Base)

# What an integer column holds in every database.
LARGEST = 2**31 - 1


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
    known = kinds(kind)
    if unknown := sorted(plain.keys() - known.keys()):
        raise BrokenNoun(f"the {name} has an unknown field {unknown[0]!r}")
    if missing := sorted((_required(kind) | ({"id"} & known.keys())) - plain.keys()):
        raise BrokenNoun(f"the {name} has no {missing[0]!r}")
    return kind(**{field: _value(f"the {name}'s {field}", known[field], value) for field, value in plain.items()})


@cache
def kinds(kind: type[Base]) -> dict[str, tuple[Any, ...]]:
    """The Python types that each field may have."""
    hints = get_type_hints(kind)
    found = {}
    for field in fields(kind):
        (inner,) = get_args(hints[field.name])
        found[field.name] = get_args(inner) if isinstance(inner, UnionType) else (inner,)
    return found


@cache
def _required(kind: type[Base]) -> frozenset[str]:
    return frozenset(f.name for f in fields(kind) if f.default is MISSING and f.default_factory is MISSING)


def _value(place: str, allowed: tuple[Any, ...], value: Any) -> Any:
    try:
        made = _made(allowed, value)
    except UnstorableText as refused:
        raise BrokenNoun(f"{place}: {refused}") from refused
    except (ValueError, OverflowError) as wrong:
        raise BrokenNoun(f"{place} is {str(value)[:60]!r}, which cannot be stored as one ({wrong})") from wrong
    if type(made) not in [get_origin(each) or each for each in allowed]:
        wanted = " or ".join("null" if each is NoneType else getattr(each, "__name__", str(each)) for each in allowed)
        raise BrokenNoun(f"{place} is of the kind {type(value).__name__}, not {wanted}")
    if isinstance(made, list):
        (item,) = get_args(allowed[0])
        if not all(isinstance(each, get_origin(item) or item) for each in made):
            raise BrokenNoun(f"{place} holds something else than it should")
    return made


def _made(allowed: tuple[Any, ...], value: Any) -> Any:
    """The value as the kind that JSON does not have; what no column holds is a ValueError."""
    if isinstance(value, str) and UUID in allowed:
        return UUID(value)
    if isinstance(value, str) and datetime in allowed:
        # Without a time zone, this raises nothing but gives a moment of the reader's own; so it is refused first.
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise ValueError("it names no time zone")
        return moment.astimezone(UTC)
    if isinstance(value, str):
        check_storable(value)
    if type(value) is int and abs(value) > LARGEST:
        raise ValueError("it is too large")
    if type(value) is int and float in allowed:
        return float(value)
    if type(value) is float and not isfinite(value):
        raise ValueError("it is no finite number")
    return value
