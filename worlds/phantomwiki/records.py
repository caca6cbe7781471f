"""The objects of a JSON list, of JSON Lines or of a Parquet file, each with the line or row at which it begins."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet

from worlds.importers.files import MalformedFile, checked_text, json_list, json_objects, text_field, whole_text

_BEFORE = re.compile(r"[\s,\[]*")


@dataclass(frozen=True, slots=True)
class Record:
    """One object and where it stands, so that what is wrong in it can be named."""

    file: Path
    line: int
    fields: dict[str, Any]

    def wrong(self, reason: str) -> MalformedFile:
        """The error that the object is not what it should be."""
        return MalformedFile(self.file, self.line, reason)

    def text(self, name: str) -> str:
        """A text that it must have."""
        return text_field(self.fields, name, self.file, self.line)

    def number(self, name: str) -> int:
        """A whole number that it must have."""
        value = self.fields.get(name)
        if not isinstance(value, int) or isinstance(value, bool):
            raise self.wrong(f"the field {name!r} is no whole number")
        return value

    def texts(self, name: str) -> list[str]:
        """A list of texts that it must have."""
        value = self.fields.get(name)
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self.wrong(f"the field {name!r} is no list of texts")
        return [checked_text(each, self.file, self.line) for each in value]


def records(file: Path) -> Iterator[Record]:
    """The objects of a .parquet, .jsonl or .json file (the latter two plain or .gz)."""
    if file.suffix == ".parquet":
        yield from _rows(file)
    elif ".jsonl" in file.suffixes:
        for line, fields in json_objects(file):
            yield Record(file, line, fields)
    else:
        yield from _listed(file)


def _listed(file: Path) -> Iterator[Record]:
    # Read once to learn that it is a list, and where it breaks; then once more to know where each object begins.
    whole = json_list(file)
    text, decoder = whole_text(file), json.JSONDecoder()
    line, end = 1, 0
    for fields in whole:
        start = _after(text, end)
        line += text.count("\n", end, start)
        if not isinstance(fields, dict):
            raise MalformedFile(file, line, "the list holds something else than objects")
        yield Record(file, line, fields)
        _, end = decoder.raw_decode(text, start)
        line += text.count("\n", start, end)


def _after(text: str, end: int) -> int:
    found = _BEFORE.match(text, end)
    return found.end() if found else end


def _rows(file: Path) -> Iterator[Record]:
    try:
        rows = pyarrow.parquet.read_table(file).to_pylist()
    except (OSError, pyarrow.ArrowException) as broken:
        reason = str(broken).partition("\n")[0]
        raise MalformedFile(file, None, f"it cannot be read as Parquet ({reason})") from broken
    for number, fields in enumerate(rows, 1):
        yield Record(file, number, fields)
