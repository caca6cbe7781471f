"""Column types that behave alike on SQLite and PostgreSQL and return exactly the stored value."""

import json
import re
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import JSON, DateTime, Dialect, Text
from sqlalchemy.types import TypeDecorator

UNSTORABLE_CHARACTERS = re.compile("[\x00\ud800-\udfff]")


class UnstorableValue(ValueError):
    """A value that cannot be stored exactly: a NUL, an unpaired surrogate, NaN, or a key that is not text."""


class UtcDateTime(TypeDecorator[datetime]):
    """A time with a time zone, stored in UTC; a naive one raises ValueError."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a time without a time zone cannot be stored: {value.isoformat()}")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class ExactText(TypeDecorator[str]):
    """Text that is returned as it was stored; UnstorableValue for text for which this is impossible."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is None:
            return None
        check_storable_text(value)
        # str() stores the value of a StrEnum member; psycopg would store its name.
        return str(value)


class ExactJson(TypeDecorator[Any]):
    """JSON that is returned as it was stored; UnstorableValue for a value for which this is impossible."""

    impl = JSON(none_as_null=True)
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        try:
            _check_storable_json(value)
        except RecursionError as error:
            raise UnstorableValue("the data is nested too deeply to be stored; flatten it") from error
        return value


def dump_json(value: Any) -> str:
    """Serialize a value as JSON columns do."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def check_storable_text(value: str) -> None:
    """Raise UnstorableValue with the position if the text has a NUL or an unpaired surrogate."""
    if match := UNSTORABLE_CHARACTERS.search(value):
        raise UnstorableValue(
            f"the text has the character U+{ord(match.group()):04X} at position {match.start()}, which cannot be "
            "stored; remove it"
        )


def _check_storable_json(value: Any) -> None:
    if isinstance(value, str):
        check_storable_text(value)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise UnstorableValue(f"the data has the key {key!r}, which is not text and would be returned as text")
            check_storable_text(key)
            _check_storable_json(inner)
    elif isinstance(value, list):
        for inner in value:
            _check_storable_json(inner)
    elif isinstance(value, float) and value - value != 0:
        raise UnstorableValue(f"the data has the number {value}, which JSON cannot represent; leave it out")
    elif value is not None and not isinstance(value, bool | int | float):
        raise UnstorableValue(
            f"the data has a {type(value).__name__}, which is not a JSON value; convert it to text first"
        )
