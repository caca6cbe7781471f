"""Read input files, plain or gzipped; errors name the file, the line and the cause.

Only regular files are opened: a pipe would block, a device may never end, and a socket or a folder cannot be read. The
bounds on what is read are those of `guard/input_bounds.py` and `guard/json_input.py`.
"""

import codecs
import gzip
import io
import math
import os
import re
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

from showhow.guard.files import open_regular
from showhow.guard.input_bounds import (
    HINT,
    MAX_DOCUMENT_BYTES,
    MAX_LINE_BYTES,
    ExpansionBudget,
    InputBoundExceeded,
    is_unbounded,
)
from showhow.guard.json_input import MalformedJson, iterate_json_list, load_json
from showhow.worlds.folder import WorldError

DECOMPRESSION_ERRORS = (gzip.BadGzipFile, EOFError, zlib.error)
"""Errors of decompressing a file: not gzip, truncated, corrupt."""
PARQUET_MAGIC = b"PAR1"
READ_ERRORS = (OSError, *DECOMPRESSION_ERRORS)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_BYTES_OF_LINE = 50


class MalformedFile(WorldError):
    """An input file is malformed; names the file, the line if known, and the cause."""

    def __init__(self, file: Path, line: int | None, reason: str) -> None:
        location = f"{file}, line {line}" if line is not None else str(file)
        super().__init__(f"{location}: {reason}. Nothing was imported; correct the file and import it again.")
        self.file, self.line, self.reason = file, line, reason


def open_bytes(file: Path) -> io.BufferedReader:
    """Open a file for reading bytes; decompressed if its name ends in .gz, up to the bound of its expansion."""
    try:
        stream = open_regular(file)
    except OSError as error:
        raise MalformedFile(file, None, f"it cannot be read ({error.strerror or error})") from error
    return io.BufferedReader(_Decompressed(stream)) if file.suffix == ".gz" else stream


class _Decompressed(io.RawIOBase):
    """What a gzipped file expands to; InputBoundExceeded beyond its bound."""

    def __init__(self, packed: BinaryIO) -> None:
        self._packed = packed
        self._budget = ExpansionBudget(os.fstat(packed.fileno()).st_size)
        self._stream = gzip.GzipFile(fileobj=packed, mode="rb")

    def readable(self) -> bool:
        """It is only read."""
        return True

    def seekable(self) -> bool:
        """It is unpacked again from its beginning for an earlier place."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a place in what it expands to."""
        return self._stream.seek(offset, whence)

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer with what follows."""
        data = self._stream.read(len(buffer))
        # Blank lines take a byte, and work and memory all the same.
        self._budget.spend(len(data) + _BYTES_OF_LINE * data.count(b"\n"))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close both files; gzip closes only files that it opened itself."""
        try:
            self._stream.close()
        finally:
            self._packed.close()
            super().close()


@contextmanager
def reading(file: Path, line: int | None = None) -> Iterator[None]:
    """Turn whatever keeps a file from being read into MalformedFile."""
    try:
        yield
    except READ_ERRORS as error:
        raise MalformedFile(file, line, f"it cannot be decompressed or read ({error})") from error
    except MalformedJson as error:
        at_line = line if line is not None else error.line
        raise MalformedFile(file, at_line, f"invalid JSON: {error.reason.lower()} at column {error.column}") from error
    except InputBoundExceeded as error:
        raise MalformedFile(file, line, str(error)) from error
    except ValueError as error:
        raise MalformedFile(file, line, f"invalid JSON: {error}") from error


def iter_nonblank_lines(file: Path) -> Iterator[tuple[int, str]]:
    """The non-blank lines with their numbers from 1, without line ends and byte order mark."""
    return ((number, text) for number, text in iter_lines(file) if text.strip())


def iter_lines(file: Path) -> Iterator[tuple[int, str]]:
    """The lines with their numbers from 1, without line ends and byte order mark."""
    return ((number, decode_line(raw, file, number)) for number, raw in iter_raw_lines(file))


def iter_raw_lines(file: Path) -> Iterator[tuple[int, bytes]]:
    """The lines with their numbers from 1 as bytes, with their line ends."""
    with open_bytes(file) as stream:
        number = 0
        while raw := _read_line(stream, file, number + 1):
            number += 1
            yield number, raw


def decode_line(raw: bytes, file: Path, number: int) -> str:
    """The text of a line without its end and, in line 1, the byte order mark; MalformedFile if it is not UTF-8."""
    try:
        text = raw.decode("utf-8-sig" if number == 1 else "utf-8")
    except UnicodeDecodeError as error:
        raise MalformedFile(file, number, f"it is not UTF-8 (byte {error.start + 1} of the line)") from error
    return text.rstrip("\r\n")


def _read_line(stream: BinaryIO | io.BufferedReader, file: Path, number: int) -> bytes:
    with reading(file, number):
        raw = stream.readline(MAX_LINE_BYTES + 1)
    if len(raw) > MAX_LINE_BYTES:
        raise MalformedFile(file, number, f"the line is longer than {MAX_LINE_BYTES // 2**20} MB")
    return raw


def iter_json_objects(file: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSON Lines file with their line numbers."""
    for number, text in iter_nonblank_lines(file):
        record = parse_json(text, file, number)
        if not isinstance(record, dict):
            raise MalformedFile(file, number, f"a JSON object is required, not {_describe_type(record)}")
        yield number, record


def read_text_file(file: Path) -> str:
    """The content of a UTF-8 file, plain or gzipped, that has to be read as a whole."""
    with open_bytes(file) as stream, reading(file):
        content = stream.read(MAX_DOCUMENT_BYTES + 1)
        if len(content) > MAX_DOCUMENT_BYTES and not is_unbounded():
            raise InputBoundExceeded(
                f"it is longer than {MAX_DOCUMENT_BYTES // 2**20} MB, and has to be read as a whole; {HINT}"
            )
        try:
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise MalformedFile(file, None, f"it is not UTF-8 (byte {error.start + 1})") from error


def iter_json_list(file: Path) -> Iterator[tuple[int, Any]]:
    """The elements of a JSON list with the lines on which they begin; one is in memory at a time.

    MalformedFile if the file contains another value, after the elements before the error.
    """
    with open_bytes(file) as stream, reading(file):
        yield from iterate_json_list(_text_reader(stream, file))


def iter_parquet_rows(file: Path) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file as JSON; null, which fills the fields that a row lacks, NaN and bytes are left out."""
    # It takes 0.3 s to load, and few files are Parquet.
    import pyarrow  # noqa: PLC0415

    from showhow.guard.parquet_input import iterate_rows, open_parquet  # noqa: PLC0415

    try:
        with open_regular(file) as stream, open_parquet(stream) as table:
            yield from map(_to_json, iterate_rows(table, stream))
    except (OSError, pyarrow.ArrowException) as error:
        reason = str(error).partition("\n")[0]
        raise MalformedFile(file, None, f"it cannot be read as Parquet ({reason})") from error
    except InputBoundExceeded as error:
        raise MalformedFile(file, None, str(error)) from error


def read_parquet_info(file: Path) -> Any:
    """What a Parquet file of the hub says of its data set, such as the features; None of any other file."""
    import pyarrow  # noqa: PLC0415

    from showhow.guard.parquet_input import open_parquet  # noqa: PLC0415

    try:
        with open_regular(file) as stream, open_parquet(stream) as table:
            described = load_json((table.schema_arrow.metadata or {}).get(b"huggingface", b"{}"))
    except (OSError, pyarrow.ArrowException, ValueError):
        # Reading its rows says why it cannot be read.
        return None
    return described.get("info") if isinstance(described, dict) else None


def _to_json(value: Any) -> Any:
    match value:
        case dict():
            converted = {name: _to_json(field) for name, field in value.items()}
            return {name: field for name, field in converted.items() if field is not None}
        case list() | tuple():
            return [_to_json(element) for element in value]
        case datetime() | date() | time():
            return value.isoformat()
        case Decimal():
            return str(value)
    is_json = isinstance(value, str | bool | int) or (isinstance(value, float) and not math.isnan(value))
    return value if is_json else None


def iter_records(file: Path) -> Iterator[tuple[int | None, Any]]:
    """The records of Parquet, a JSON list or JSON Lines, with the lines on which they begin; None in Parquet."""
    with open_bytes(file) as stream, reading(file):
        is_parquet = stream.peek(len(PARQUET_MAGIC)).startswith(PARQUET_MAGIC)
    if is_parquet:
        return ((None, row) for row in iter_parquet_rows(file))
    _, first_line = next(iter_nonblank_lines(file), (0, ""))
    return iter_json_list(file) if first_line.lstrip().startswith("[") else iter_json_objects(file)


def _text_reader(stream: BinaryIO | io.BufferedReader, file: Path) -> Callable[[int], str]:
    decoder = codecs.getincrementaldecoder("utf-8-sig")()
    read_bytes = 0

    def read(size: int) -> str:
        nonlocal read_bytes
        text = ""
        while not text and (data := stream.read(size)):
            try:
                text = decoder.decode(data)
            except UnicodeDecodeError as error:
                place = read_bytes + error.start + 1
                raise MalformedFile(file, None, f"it is not UTF-8 (near byte {place:,})") from error
            read_bytes += len(data)
        return text

    return read


def parse_json(text: str, file: Path, line: int | None, *, unique_names: bool = False) -> Any:
    """Parse JSON; MalformedFile names the line and column of an error.

    With `unique_names` also for an object with two fields of the same name, of which JSON keeps the last one.
    """
    with reading(file, line):
        return load_json(text, unique_names=unique_names)


def restore_rows(value: Any) -> Any:
    """The list that a column of the hub holds as JSON text, or as an object with a list for each field; else the value.

    An element is then an object with the element of each of those lists.
    """
    if isinstance(value, str) and value.lstrip()[:1] in ("[", "{"):
        try:
            value = load_json(value)
        except ValueError:
            return value
    if isinstance(value, dict) and value and all(isinstance(column, list) for column in value.values()):
        columns: list[list[Any]] = list(value.values())
        if len({len(column) for column in columns}) == 1:
            return [dict(zip(value, row, strict=True)) for row in zip(*columns, strict=True)]
    return value


def _describe_type(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}
    return names.get(type(value), "a number")


def require_text_field(record: dict[str, Any], name: str, file: Path, line: int | None) -> str:
    """The text in a required field; MalformedFile if it is missing, blank or not a text."""
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
    """The text; MalformedFile if it contains NUL or lone surrogates, which databases cannot store."""
    if _UNSTORABLE.search(text):
        raise MalformedFile(file, line, "a text contains NUL or half of a surrogate pair")
    return text
