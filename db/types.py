"""Column types that behave alike on SQLite and PostgreSQL."""

from datetime import UTC, datetime

from sqlalchemy import DateTime, Dialect, Text
from sqlalchemy.types import TypeDecorator


class UnstorableText(ValueError):
    """A text holds a character that no database keeps exactly: a NUL or half of a surrogate pair."""


class UtcDateTime(TypeDecorator[datetime]):
    """An aware moment, stored in UTC; a naive one is refused."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        if value.tzinfo is None:
            raise ValueError(f"a moment without a time zone cannot be stored: {value.isoformat()}")
        return value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class ExactText(TypeDecorator[str]):
    """Text that comes back as it went in; what could not is refused before it is written."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is not None:
            check_storable(value)
        return value


def check_storable(value: str) -> None:
    """Raise UnstorableText, naming the place, when `value` holds a NUL or an unpaired surrogate."""
    for place, character in enumerate(value):
        if character == "\x00" or "\ud800" <= character <= "\udfff":
            raise UnstorableText(
                f"the text has the character U+{ord(character):04X} at place {place}, which cannot be stored; remove it"
            )
