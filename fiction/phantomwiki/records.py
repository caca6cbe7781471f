"""Records of JSON, JSON Lines and Parquet files with their line numbers, and the text format of an instance's values.

An instance writes people by title, days as 0929-10-28, and attributes by name.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

from showhow.fiction.questions.evaluate import ExpressionAnswer
from showhow.fiction.questions.names import NameFormatter
from showhow.fiction.universe.universe import NONE, Universe
from showhow.worlds.input_files import (
    MalformedFile,
    iter_json_list,
    iter_json_objects,
    iter_parquet_rows,
    require_storable_text,
    require_text_field,
)

ATTRIBUTE_FACTS = {"dob": "birth", "job": "job", "hobby": "hobby"}
"""Fact of the universe by the name of the attribute in queries."""
FACT_ATTRIBUTES = {fact: attribute for attribute, fact in ATTRIBUTE_FACTS.items()}
ATTRIBUTE_WORDS = {"dob": "date of birth", "job": "occupation", "hobby": "hobby"}
"""Nouns for attributes in questions."""
_DAY_PATTERN = re.compile(r"\d{4}-\d{2}-\d{2}")


def parse_day(text: str) -> int:
    """Parse a day such as 0929-10-28 to its ordinal; ValueError if it is malformed."""
    try:
        # date.fromisoformat accepts other ISO forms as well.
        day = date.fromisoformat(text) if _DAY_PATTERN.fullmatch(text) else None
    except ValueError:
        day = None
    if day is None:
        raise ValueError(f"{text!r} is not a valid day; write days like 0929-10-28")
    return day.toordinal()


class ValueCodec:
    """Parses and formats people and values of one universe."""

    def __init__(self, universe: Universe) -> None:
        self.universe = universe
        self._names = NameFormatter(universe, plain=True)

    @cached_property
    def _numbers_by_text(self) -> dict[str, dict[str, int]]:
        universe = self.universe
        listed = {"person": universe.titles, "job": universe.jobs, "hobby": universe.hobbies}
        return {kind: {text: number for number, text in enumerate(texts)} for kind, texts in listed.items()}

    def parse_value(self, kind: str, text: str) -> int:
        """Row or index of a person, job or hobby, or ordinal of a day; ValueError if there is none."""
        if kind == "day":
            return parse_day(text)
        number = self._numbers_by_text[kind].get(text)
        if number is None:
            raise ValueError(f"there is no {kind} {text!r}")
        return number

    def format_value(self, kind: str, number: int) -> str:
        """Format a value as instances do."""
        return self._names.answer_text(kind, number)

    def format_answers(self, answer: ExpressionAnswer) -> list[str]:
        """Format answers as instances do: distinct, sorted as texts."""
        return self.format_values(answer.kind, answer.values)

    def format_values(self, kind: str, numbers: Iterable[int]) -> list[str]:
        """Format several values, sorted as texts."""
        return sorted(self.format_value(kind, int(number)) for number in numbers)

    def iter_attributes(self) -> Iterator[str]:
        """Jobs, then hobbies, of all people: the bare attributes that an instance repeats."""
        for kind, numbers in (("job", self.universe.job), ("hobby", self.universe.hobby)):
            yield from (self.format_value(kind, number) for number in numbers.tolist() if number > NONE)


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """One object with its file and line, for error messages."""

    file: Path
    line: int
    fields: dict[str, Any]

    def malformed_error(self, reason: str) -> MalformedFile:
        """The error for a malformed object."""
        return MalformedFile(self.file, self.line, reason)

    def require_text(self, name: str) -> str:
        """A required text field."""
        return require_text_field(self.fields, name, self.file, self.line)

    def require_number(self, name: str) -> int:
        """A required integer field."""
        value = self.fields.get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.malformed_error(f"the field {name!r} is not a whole number")
        return value

    def require_texts(self, name: str) -> list[str]:
        """A required list of texts."""
        value = self.fields.get(name)
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise self.malformed_error(f"the field {name!r} is not a list of texts")
        return [require_storable_text(text, self.file, self.line) for text in value]


def iter_records(file: Path) -> Iterator[SourceRecord]:
    """Iterate the objects of a .parquet, .jsonl or .json file (the latter two plain or .gz)."""
    if file.suffix == ".parquet":
        rows: Iterable[tuple[int, Any]] = enumerate(iter_parquet_rows(file), 1)
    else:
        rows = iter_json_objects(file) if ".jsonl" in file.suffixes else iter_json_list(file)
    for line, fields in rows:
        if not isinstance(fields, dict):
            raise MalformedFile(file, line, "the list contains something other than objects")
        yield SourceRecord(file, line, fields)
