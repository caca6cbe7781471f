"""Read input files, plain or gzipped; errors name the file, the line and the cause."""

import gzip
import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from worlds.folder import WorldError

MAX_LINE_BYTES = 64 * 1024 * 1024
"""Bytes; a longer line is no record but a file of another kind, and is not read into memory."""

DECOMPRESSION_ERRORS = (gzip.BadGzipFile, EOFError, zlib.error)
"""What unpacking a file may raise: none of its kind, cut off, altered."""
READ_ERRORS = (OSError, *DECOMPRESSION_ERRORS)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class MalformedFile(WorldError):
    """An input file is malformed; names the file, the line if known, and the cause."""

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


def iter_nonblank_lines(file: Path) -> Iterator[tuple[int, str]]:
    """The lines that hold something, numbered from 1, without their ends and without a byte order mark."""
    return ((number, text) for number, text in iter_lines(file) if text.strip())


def iter_lines(file: Path) -> Iterator[tuple[int, str]]:
    """The lines, blank ones too, numbered from 1, without their ends and without a byte order mark."""
    with open_bytes(file) as stream:
        number = 0
        while raw := _read_line(stream, file, number + 1):
            number += 1
            try:
                text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as wrong:
                raise MalformedFile(file, number, f"it is not UTF-8 (byte {wrong.start + 1} of the line)") from wrong
            yield number, text.rstrip("\r\n")


def _read_line(stream: BinaryIO | gzip.GzipFile, file: Path, number: int) -> bytes:
    try:
        raw = stream.readline(MAX_LINE_BYTES + 1)
    except READ_ERRORS as broken:
        raise MalformedFile(file, number, f"it cannot be unpacked or read ({broken})") from broken
    if len(raw) > MAX_LINE_BYTES:
        raise MalformedFile(file, number, f"the line is longer than {MAX_LINE_BYTES // 2**20} MB")
    return raw


def iter_json_objects(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON Lines file with their line numbers."""
    for number, text in iter_nonblank_lines(file):
        record = parse_json(text, file, number)
        if not isinstance(record, dict):
            raise MalformedFile(file, number, f"a JSON object is needed, this is {_describe_type(record)}")
        yield number, record


def read_text_file(file: Path) -> str:
    """All that a text file holds."""
    with open_bytes(file) as stream:
        try:
            return stream.read().decode("utf-8-sig")
        except UnicodeDecodeError as wrong:
            raise MalformedFile(file, None, f"it is not UTF-8 (byte {wrong.start + 1})") from wrong
        except READ_ERRORS as broken:
            raise MalformedFile(file, None, f"it cannot be unpacked or read ({broken})") from broken


def read_json_list(file: Path) -> list[Any]:
    """The list that a JSON file holds."""
    document = parse_json(read_text_file(file), file, None)
    if not isinstance(document, list):
        raise MalformedFile(file, None, f"a JSON list is needed, this is {_describe_type(document)}")
    return document


def parse_json(text: str, file: Path, line: int | None) -> Any:
    """The JSON value of a text; MalformedFile says where it breaks."""
    try:
        return json.loads(text, parse_constant=_reject_constant)
    except RecursionError as deep:
        raise MalformedFile(file, line, "the JSON is nested too deeply") from deep
    except json.JSONDecodeError as wrong:
        where = line if line is not None else wrong.lineno
        raise MalformedFile(file, where, f"no JSON: {wrong.msg.lower()} at column {wrong.colno}") from wrong
    except ValueError as wrong:
        raise MalformedFile(file, line, f"no JSON: {wrong}") from wrong


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON number")


def _describe_type(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def require_text_field(record: dict[str, Any], name: str, file: Path, line: int | None) -> str:
    """A text that the record must have and that must not be blank."""
    value = record.get(name)
    if not isinstance(value, str) or not value.strip():
        reason = (
            "is missing"
            if value is None
            else "is blank"
            if isinstance(value, str)
            else f"is {_describe_type(value)}, not a text"
        )
        raise MalformedFile(file, line, f"the field {name!r} {reason}")
    return require_storable_text(value, file, line)


def require_storable_text(text: str, file: Path, line: int | None) -> str:
    """The text if it can be stored; MalformedFile otherwise."""
    if _UNSTORABLE.search(text):
        raise MalformedFile(file, line, "a text holds a NUL or half of a surrogate pair")
    return text
