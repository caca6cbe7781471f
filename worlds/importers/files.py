"""Reading files that others made: plain or gzipped, and where exactly they are wrong."""

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from worlds.folder import WorldError

LONGEST_LINE = 64 * 1024 * 1024
"""Bytes; a longer line is no record but a file of another kind, and is not read into memory."""

DAMAGED = (gzip.BadGzipFile, EOFError, zlib.error)
"""What unpacking a file may raise: none of its kind, cut off, altered."""
UNREADABLE = (OSError, *DAMAGED)
_UNKEEPABLE = re.compile("[\x00\ud800-\udfff]")


class MalformedFile(WorldError):
    """A file is not what it should be: which, where (if known), and why."""

    def __init__(self, file: Path, line: int | None, reason: str) -> None:
        place = f"{file}, line {line}" if line is not None else str(file)
        super().__init__(f"{place}: {reason}. Nothing was imported; mend the file and import it again.")
        self.file, self.line, self.reason = file, line, reason


def open_bytes(file: Path) -> BinaryIO | gzip.GzipFile:
    """The file's bytes, unpacked where its name ends in .gz."""
    try:
        if file.suffix == ".gz":
            return gzip.open(file, "rb")
        return file.open("rb")
    except OSError as missing:
        raise MalformedFile(file, None, f"it cannot be read ({missing.strerror or missing})") from missing


def lines(file: Path) -> Iterator[tuple[int, str]]:
    """The lines that hold something, numbered from 1, without their ends and without a byte order mark."""
    return ((number, text) for number, text in all_lines(file) if text.strip())


def all_lines(file: Path) -> Iterator[tuple[int, str]]:
    """The lines, blank ones too, numbered from 1, without their ends and without a byte order mark."""
    with open_bytes(file) as stream:
        number = 0
        while raw := _next_line(stream, file, number + 1):
            number += 1
            try:
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as wrong:
                raise MalformedFile(file, number, f"it is not UTF-8 (byte {wrong.start + 1} of the line)") from wrong
            yield number, text.rstrip("\r\n")


def _next_line(stream: BinaryIO | gzip.GzipFile, file: Path, number: int) -> bytes:
    try:
        raw = stream.readline(LONGEST_LINE + 1)
    except UNREADABLE as broken:
        raise MalformedFile(file, number, f"it cannot be unpacked or read ({broken})") from broken
    if len(raw) > LONGEST_LINE:
        raise MalformedFile(file, number, f"the line is longer than {LONGEST_LINE // 2**20} MB")
    return raw


def json_objects(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON Lines file with their line numbers."""
    for number, text in lines(file):
        found = parse_json(text, file, number)
        if not isinstance(found, dict):
            raise MalformedFile(file, number, f"a JSON object is needed, this is {_named(found)}")
        yield number, found


def whole_text(file: Path) -> str:
    """All that a text file holds."""
    with open_bytes(file) as stream:
        try:
            return stream.read().decode("utf-8-sig")
        except UnicodeDecodeError as wrong:
            raise MalformedFile(file, None, f"it is not UTF-8 (byte {wrong.start + 1})") from wrong
        except UNREADABLE as broken:
            raise MalformedFile(file, None, f"it cannot be unpacked or read ({broken})") from broken


def json_list(file: Path) -> list[Any]:
    """The list that a JSON file holds."""
    found = parse_json(whole_text(file), file, None)
    if not isinstance(found, list):
        raise MalformedFile(file, None, f"a JSON list is needed, this is {_named(found)}")
    return found


def parse_json(text: str, file: Path, line: int | None) -> Any:
    """The JSON value of a text; MalformedFile says where it breaks."""
    try:
        return json.loads(text, parse_constant=_no_constant)
    except RecursionError as deep:
        raise MalformedFile(file, line, "the JSON is nested too deeply") from deep
    except json.JSONDecodeError as wrong:
        where = line if line is not None else wrong.lineno
        raise MalformedFile(file, where, f"no JSON: {wrong.msg.lower()} at column {wrong.colno}") from wrong
    except ValueError as wrong:
        raise MalformedFile(file, line, f"no JSON: {wrong}") from wrong


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _named(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def text_field(record: dict[str, Any], name: str, file: Path, line: int | None) -> str:
    """A text that the record must have and that must not be blank."""
    value = record.get(name)
    if not isinstance(value, str) or not value.strip():
        said = (
            "is missing"
            if value is None
            else "is blank"
            if isinstance(value, str)
            else f"is {_named(value)}, not a text"
        )
        raise MalformedFile(file, line, f"the field {name!r} {said}")
    return checked_text(value, file, line)


def checked_text(text: str, file: Path, line: int | None) -> str:
    """The text, if it can be kept and shown."""
    if _UNKEEPABLE.search(text):
        raise MalformedFile(file, line, "a text holds a NUL or half of a surrogate pair")
    return text
