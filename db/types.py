"""The base of all tables, and column types that behave alike on SQLite and PostgreSQL and return the stored value.

Also the text of a task with its attachments, which are stored apart.
"""

import json
import re
import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

from sqlalchemy import JSON, DateTime, Dialect, Index, MetaData, Text, text
from sqlalchemy.orm import DeclarativeBase, Mapped, MappedAsDataclass, mapped_column
from sqlalchemy.types import TypeDecorator
from uuid_utils.compat import uuid7

from showhow.db.run_spec import RunResult, RunSpec, StoredValue
from showhow.guard.redaction import NOTHING_SECRET, Redactor

MAX_TEXT_CHARACTERS = 4 * 1024 * 1024
"""The length of a text, alone or within JSON: of a thought, an argument, an observation, a part of a prompt ..."""
MAX_JSON_CHARACTERS = 4 * MAX_TEXT_CHARACTERS
"""The length of all texts and keys of a JSON value, such as a step's arguments or data, together."""
MAX_TAGS, MAX_TAG_CHARACTERS = 10, 60
"""The most tags of a question and the length of each: an index of PostgreSQL takes no longer texts."""
UNSTORABLE_CHARACTERS = re.compile("[\x00\ud800-\udfff]")


class UnstorableValue(ValueError):
    """A value that is too long, or cannot be stored exactly: a NUL, an unpaired surrogate, NaN, a key without text."""


_REDACTOR_ATTRIBUTE = "showhow_redactor"


def set_redactor(dialect: Dialect, redactor: Redactor) -> None:
    """Have every text that goes to this dialect's database, also within JSON and in conditions, pass the redactor."""
    # Each engine has a dialect of its own, which is all that a column type is told of the database.
    setattr(dialect, _REDACTOR_ATTRIBUTE, redactor)


def redactor_of_dialect(dialect: Dialect) -> Redactor:
    """What removes secrets from texts for this dialect's database."""
    redactor: Redactor = getattr(dialect, _REDACTOR_ATTRIBUTE, NOTHING_SECRET)
    return redactor


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
    """Text without secrets that is returned as it was stored; UnstorableValue for text that cannot be."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is None:
            return None
        check_storable_text(value)
        # str() stores the value of a StrEnum member; psycopg would store its name.
        return redactor_of_dialect(dialect).redact(str(value))


class ExactJson(TypeDecorator[Any]):
    """JSON that is returned as it was stored; UnstorableValue for a value for which this is impossible.

    The database removes secrets when it writes the value as text.
    """

    impl = JSON(none_as_null=True)
    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> Any:
        check_storable_json(value)
        return value


class ValueJson(ExactJson):
    """A StoredValue as JSON."""

    cache_ok = True

    def __init__(self, kind: type[StoredValue]) -> None:
        super().__init__()
        self.kind = kind

    def process_bind_param(self, value: StoredValue | None, dialect: Dialect) -> Any:
        return super().process_bind_param(None if value is None else value.to_json(), dialect)

    def process_result_value(self, value: Any, dialect: Dialect) -> StoredValue | None:
        return None if value is None else self.kind.from_json(value)


class TagList(TypeDecorator[list[str]]):
    """Short texts of one line in alphabetical order: JSON in a column of text, which every database can compare."""

    impl = ExactText
    cache_ok = True

    def process_bind_param(self, value: list[str] | None, dialect: Dialect) -> str | None:
        if value is None:
            return None
        if len(value) > MAX_TAGS or any(tag != " ".join(tag.split())[:MAX_TAG_CHARACTERS] or not tag for tag in value):
            raise UnstorableValue(
                f"tags are at most {MAX_TAGS}, each of 1 to {MAX_TAG_CHARACTERS} characters on a line"
            )
        return dump_json(sorted(set(value)))

    def process_result_value(self, value: str | None, dialect: Dialect) -> list[str] | None:
        return None if value is None else list(json.loads(value))


def dump_json(value: Any) -> str:
    """Serialize a value as JSON columns do."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def load_json(text: str) -> Any:
    """Parse one JSON value; ValueError for text that is none, and for a value that cannot be stored, such as 1e999."""
    try:
        value = json.loads(text)
    except RecursionError as error:
        raise UnstorableValue(_TOO_DEEP) from error
    check_storable_json(value)
    return value


_TOO_DEEP = "the data is nested too deeply to be stored; flatten it"


def check_storable_text(value: str) -> None:
    """Raise UnstorableValue if the text is too long, or has a NUL or an unpaired surrogate."""
    if len(value) > MAX_TEXT_CHARACTERS:
        raise UnstorableValue(
            f"the text has {len(value):,} characters, and at most {MAX_TEXT_CHARACTERS:,} can be stored; shorten it"
        )
    if value.isascii() and "\0" not in value:
        return
    if match := UNSTORABLE_CHARACTERS.search(value):
        raise UnstorableValue(
            f"the text has the character U+{ord(match.group()):04X} at position {match.start()}, which cannot be "
            "stored; remove it"
        )


def check_storable_json(value: Any) -> None:
    """Raise UnstorableValue if the value is no JSON, is too long or nested too deeply, or has an unstorable text."""
    try:
        length = _measure_storable_json(value)
    except RecursionError as error:
        raise UnstorableValue(_TOO_DEEP) from error
    if length > MAX_JSON_CHARACTERS:
        raise UnstorableValue(
            f"the data has {length:,} characters, and at most {MAX_JSON_CHARACTERS:,} can be stored; shorten it"
        )


def _measure_storable_json(value: Any) -> int:
    """Return the number of characters of all texts and keys; UnstorableValue for a value that cannot be stored."""
    if isinstance(value, str):
        # A question may have thousands of texts; a call for each takes most of the time of an evaluation's start.
        if len(value) > MAX_TEXT_CHARACTERS or "\0" in value or not value.isascii():
            check_storable_text(value)
        return len(value)
    length = 0
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise UnstorableValue(f"the data has the key {key!r}, which is not text and would be returned as text")
            length += _measure_storable_json(key) + _measure_storable_json(inner)
        return length
    if isinstance(value, list):
        for inner in value:
            length += _measure_storable_json(inner)
        return length
    if isinstance(value, float) and value - value != 0:
        raise UnstorableValue(f"the data has the number {value}, which JSON cannot represent; leave it out")
    if value is not None and not isinstance(value, bool | int | float):
        raise UnstorableValue(
            f"the data has a {type(value).__name__}, which is not a JSON value; convert it to text first"
        )
    return 1


_MAX_ID = (1 << 128) - 1


@lru_cache(maxsize=100_000)
def _monotonic_reading(moment: datetime) -> float:
    """The reading of the monotonic clock at that moment; the clock of the machine is asked once, at the first call."""
    return time.monotonic() - max(0.0, (utc_now() - moment).total_seconds())


def seconds_since(moment: datetime) -> float:
    """Seconds from a stored moment until now.

    Call it once soon after the moment was stored, such as when a page shows it: a clock that is set from then on
    changes nothing in this process.
    """
    started = _monotonic_reading(moment)
    return time.monotonic() - started


def id_after(last: UUID | None) -> UUID:
    """Return a new id that sorts after `last`, so that rows are in the order of their ids.

    Ids begin with the time; while the clock says that `last` is yet to come, the id that follows it is taken.
    """
    new = uuid7()
    # Only an imported row can have the highest id; nothing sorts after it.
    return new if last is None or last < new or last.int == _MAX_ID else UUID(int=last.int + 1)


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)


def partial_index(condition: str, name: str, *columns: str, unique: bool = False) -> Index:
    """Define an index of the rows for which the condition holds."""
    return Index(name, *columns, unique=unique, sqlite_where=text(condition), postgresql_where=text(condition))


class Base(MappedAsDataclass, DeclarativeBase, kw_only=True):
    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(column_0_label)s",
            "uq": "uq_%(table_name)s_%(column_0_name)s",
            "ck": "ck_%(table_name)s_%(constraint_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map = {  # noqa: RUF012 - SQLAlchemy requires this form
        str: ExactText,
        datetime: UtcDateTime,
        dict[str, Any]: ExactJson,
        list[str]: ExactJson,
        list[list[str]]: ExactJson,
        list[dict[str, Any]]: ExactJson,
        RunSpec: ValueJson(RunSpec),
        RunResult: ValueJson(RunResult),
    }


REMOVAL_MARK = "removal_id"
"""The column of Removable, which is no part of what a row says: it is not exported, imported or compared."""


class Removable(MappedAsDataclass, kw_only=True):
    """Rows that can be archived and deleted: a marked one is in no result unless a query asks for it."""

    removal_id: Mapped[UUID | None] = mapped_column(default=None, init=False, repr=False)
    """The removal (removals.py) that took it away; one that is not stored any more waits to be deleted for good."""


def join_attachments(text: str, attachments: Any) -> str:
    """The text with its attachments; the text alone for anything but an object of them."""
    parts = [text]
    for name, value in attachments.items() if isinstance(attachments, dict) else ():
        parts.append(f"{name}:\n{value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)}")
    return "\n\n".join(parts)


SUMMARY_CHARACTERS = 140
"""The length of the attachments in a summary."""


def summarize_task(text: str, attachments: Any) -> str:
    """The text with the beginning of its attachments, which may be all that tells two tasks apart, on one line."""
    attached = " ".join(join_attachments("", attachments).split())
    if len(attached) > SUMMARY_CHARACTERS:
        attached = f"{attached[:SUMMARY_CHARACTERS]} …"
    return f"{text} · {attached}" if attached else text
