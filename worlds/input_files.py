"""Read input files, plain or gzipped; errors name the file, the line and the cause.

Only regular files are opened: a pipe would block, a device may never end, and a socket or a folder cannot be read.
"""

import errno
import gzip
import json
import os
import re
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from worlds.folder import WorldError

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
MAX_LINE_BYTES = 64 * 1024 * 1024
"""A longer line means a file of another kind, which is not read into memory."""
MAX_DOCUMENT_BYTES = 1024 * 1024 * 1024
"""A file that has to be read as a whole may be as long, after it was decompressed."""
DECOMPRESSION_ERRORS = (gzip.BadGzipFile, EOFError, zlib.error)
"""Errors of decompressing a file: not gzip, truncated, corrupt."""
READ_ERRORS = (OSError, *DECOMPRESSION_ERRORS)
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


def open_regular_file(path: Path) -> BinaryIO:
    """Open the file for reading bytes, without waiting; OSError if it is no regular file or cannot be opened."""
    return open(path, "rb", opener=_open_without_blocking)


def _open_without_blocking(path: str, flags: int) -> int:
    # Opening alone may act on a device, so the path is checked first; it may be replaced before it is opened, so the
    # descriptor is checked as well.
    _require_regular(os.stat(path))  # noqa: PTH116 - an opener is given a text
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    try:
        _require_regular(os.fstat(descriptor))
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def _require_regular(status: os.stat_result) -> None:
    for is_kind, kind in _KINDS:
        if is_kind(status.st_mode):
            raise OSError(errno.EINVAL, f"it is {kind}, and only regular files are read")


class MalformedFile(WorldError):
    """An input file is malformed; names the file, the line if known, and the cause."""

    def __init__(self, file: Path, line: int | None, reason: str) -> None:
        location = f"{file}, line {line}" if line is not None else str(file)
        super().__init__(f"{location}: {reason}. Nothing was imported; correct the file and import it again.")
        self.file, self.line, self.reason = file, line, reason


def open_bytes(file: Path) -> BinaryIO | gzip.GzipFile:
    """Open a file for reading bytes; decompressed if its name ends in .gz."""
    try:
        stream = open_regular_file(file)
    except OSError as error:
        raise MalformedFile(file, None, f"it cannot be read ({error.strerror or error})") from error
    return _OwnedGzipFile(stream) if file.suffix == ".gz" else stream


class _OwnedGzipFile(gzip.GzipFile):
    """A gzipped file that closes the file it reads from; gzip closes only files that it opened itself."""

    def __init__(self, stream: BinaryIO) -> None:
        super().__init__(fileobj=stream, mode="rb")
        self._stream = stream

    def close(self) -> None:
        """Close both files."""
        try:
            super().close()
        finally:
            self._stream.close()


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


def _read_line(stream: BinaryIO | gzip.GzipFile, file: Path, number: int) -> bytes:
    try:
        raw = stream.readline(MAX_LINE_BYTES + 1)
    except READ_ERRORS as error:
        raise MalformedFile(file, number, f"it cannot be decompressed or read ({error})") from error
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
    """The content of a UTF-8 file, plain or gzipped."""
    with open_bytes(file) as stream:
        try:
            content = stream.read(MAX_DOCUMENT_BYTES + 1)
            if len(content) > MAX_DOCUMENT_BYTES:
                reason = f"it is longer than {MAX_DOCUMENT_BYTES // 2**20} MB, and has to be read as a whole"
                raise MalformedFile(file, None, reason)
            return content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise MalformedFile(file, None, f"it is not UTF-8 (byte {error.start + 1})") from error
        except READ_ERRORS as error:
            raise MalformedFile(file, None, f"it cannot be decompressed or read ({error})") from error


def read_json_list(file: Path) -> list[Any]:
    """The list in a JSON file; MalformedFile if it contains another value."""
    document = parse_json(read_text_file(file), file, None)
    if not isinstance(document, list):
        raise MalformedFile(file, None, f"a JSON list is required, not {_describe_type(document)}")
    return document


def parse_json(text: str, file: Path, line: int | None, *, unique_names: bool = False) -> Any:
    """Parse JSON; MalformedFile names the line and column of an error.

    With `unique_names` also for an object with two fields of the same name, of which JSON keeps the last one.
    """
    try:
        hook = _require_unique_names if unique_names else None
        return json.loads(text, parse_constant=_reject_constant, object_pairs_hook=hook)
    except RecursionError as error:
        raise MalformedFile(file, line, "the JSON is nested too deeply") from error
    except json.JSONDecodeError as error:
        error_line = line if line is not None else error.lineno
        raise MalformedFile(file, error_line, f"invalid JSON: {error.msg.lower()} at column {error.colno}") from error
    except ValueError as error:
        raise MalformedFile(file, line, f"invalid JSON: {error}") from error


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not a JSON number")


def _require_unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"an object has {repeated!r} twice")
    return fields


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
