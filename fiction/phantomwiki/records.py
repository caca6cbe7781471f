"""The objects of a JSON list, of JSON Lines or of a Parquet file, each with the line or row at which it begins.

How an instance writes what a universe numbers: people by title, days as 0929-10-28, attributes under their names.
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from fiction.questions.evaluate import ExpressionAnswer
from fiction.questions.names import NameFormatter
from fiction.universe.universe import NONE, Universe
from worlds.importers.files import (
    MalformedFile,
    iter_json_objects,
    read_json_list,
    read_text_file,
    require_storable_text,
    require_text_field,
)

ATTRIBUTE_FACTS = {"dob": "birth", "job": "job", "hobby": "hobby"}
"""The universe's fact of an attribute, by the attribute's name in queries."""
FACT_ATTRIBUTES = {fact: attribute for attribute, fact in ATTRIBUTE_FACTS.items()}
ATTRIBUTE_WORDS = {"dob": "date of birth", "job": "occupation", "hobby": "hobby"}
"""What questions call an attribute."""
_DAY_PATTERN = re.compile(r"\d{4}-\d{2}-\d{2}")


def parse_day(text: str) -> int:
    """The ordinal of a day; ValueError for what is none."""
    try:
        # Python reads other forms of ISO dates as well.
        day = date.fromisoformat(text) if _DAY_PATTERN.fullmatch(text) else None
    except ValueError:
        day = None
    if day is None:
        raise ValueError(f"{text!r} is no day; days are written like 0929-10-28")
    return day.toordinal()


class ValueCodec:
    """Reads and writes the people and values of one universe."""

    def __init__(self, universe: Universe) -> None:
        self.universe = universe
        self._names = NameFormatter(universe, plain=True)

    @cached_property
    def _numbers_by_text(self) -> dict[str, dict[str, int]]:
        universe = self.universe
        listed = {"person": universe.titles, "job": universe.jobs, "hobby": universe.hobbies}
        return {kind: {text: number for number, text in enumerate(texts)} for kind, texts in listed.items()}

    def parse_value(self, kind: str, text: str) -> int:
        """The number of a person, job or hobby, or the ordinal of a day; ValueError where there is none."""
        if kind == "day":
            return parse_day(text)
        number = self._numbers_by_text[kind].get(text)
        if number is None:
            raise ValueError(f"there is no {kind} {text!r}")
        return number

    def format_value(self, kind: str, number: int) -> str:
        """How an instance writes it."""
        return self._names.answer_text(kind, number)

    def format_answers(self, answer: ExpressionAnswer) -> list[str]:
        """The answers as an instance lists them: each once, sorted as texts."""
        return self.format_values(answer.kind, answer.values)

    def format_values(self, kind: str, numbers: Iterable[int]) -> list[str]:
        """How an instance writes several, sorted as texts."""
        return sorted(self.format_value(kind, int(number)) for number in numbers)

    def iter_attributes(self) -> Iterator[str]:
        """The job and the hobby of everybody, which an instance states once more without saying whose they are."""
        for kind, numbers in (("job", self.universe.job), ("hobby", self.universe.hobby)):
            yield from (self.format_value(kind, number) for number in numbers.tolist() if number > NONE)


_SEPARATOR_PATTERN = re.compile(r"[\s,\[]*")


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """One object and where it stands, so that what is wrong in it can be named."""

    file: Path
    line: int
    fields: dict[str, Any]

    def malformed_error(self, reason: str) -> MalformedFile:
        """The error that the object is not what it should be."""
        return MalformedFile(self.file, self.line, reason)

    def require_text(self, name: str) -> str:
        """A text that it must have."""
        return require_text_field(self.fields, name, self.file, self.line)

    def require_number(self, name: str) -> int:
        """A whole number that it must have."""
        value = self.fields.get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.malformed_error(f"the field {name!r} is no whole number")
        return value

    def require_texts(self, name: str) -> list[str]:
        """A list of texts that it must have."""
        value = self.fields.get(name)
        if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
            raise self.malformed_error(f"the field {name!r} is no list of texts")
        return [require_storable_text(text, self.file, self.line) for text in value]


def iter_records(file: Path) -> Iterator[SourceRecord]:
    """The objects of a .parquet, .jsonl or .json file (the latter two plain or .gz)."""
    if file.suffix == ".parquet":
        yield from _iter_parquet_records(file)
    elif ".jsonl" in file.suffixes:
        for line, fields in iter_json_objects(file):
            yield SourceRecord(file, line, fields)
    else:
        yield from _iter_json_records(file)


def _iter_json_records(file: Path) -> Iterator[SourceRecord]:
    # Read once to learn that it is a list, and where it breaks; then once more to know where each object begins.
    whole = read_json_list(file)
    text, decoder = read_text_file(file), json.JSONDecoder()
    line, end = 1, 0
    for fields in whole:
        start = _skip_separators(text, end)
        line += text.count("\n", end, start)
        if not isinstance(fields, dict):
            raise MalformedFile(file, line, "the list holds something else than objects")
        yield SourceRecord(file, line, fields)
        _, end = decoder.raw_decode(text, start)
        line += text.count("\n", start, end)


def _skip_separators(text: str, end: int) -> int:
    match = _SEPARATOR_PATTERN.match(text, end)
    return match.end() if match else end


def _iter_parquet_records(file: Path) -> Iterator[SourceRecord]:
    try:
        rows = pyarrow.parquet.read_table(file).to_pylist()
    except (OSError, pyarrow.ArrowException) as broken:
        reason = str(broken).partition("\n")[0]
        raise MalformedFile(file, None, f"it cannot be read as Parquet ({reason})") from broken
    for number, fields in enumerate(rows, 1):
        yield SourceRecord(file, number, fields)
