"""What a format of trace files is: it knows its own files, reads them, writes them and counts what is lost."""

import io
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TextIO

from db.trace_record import TraceRecord
from db.types import UnstorableValue, check_storable_text
from fewshot_library.formats.export import TraceExport
from fewshot_library.formats.head import FileHead

# How many records are named that were left out for the same reason.
MAX_LISTED_PLACES = 3


class FormatError(Exception):
    """A file cannot be read; the message names the file, the place and the reason, and nothing of it is taken."""


@dataclass(frozen=True, slots=True)
class RefusedRecord:
    """One record that was left out, and why."""

    place: str
    reason: str


@dataclass(frozen=True, slots=True)
class RecordRemark:
    """What is odd about the record that follows, which is taken in all the same."""

    place: str
    text: str


ReadResult = TraceRecord | RefusedRecord | RecordRemark


@dataclass(slots=True)
class ExportLosses:
    """What a format could not keep: each kind of thing with how often, and the records that it left out."""

    written: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    refused: list[RefusedRecord] = field(default_factory=list)

    def summary_lines(self) -> list[str]:
        """The losses for people, a line each."""
        places: dict[str, list[str]] = {}
        for refusal in self.refused:
            places.setdefault(refusal.reason, []).append(refusal.place)
        lost = [f"the format has no place for {what} ({count})" for what, count in sorted(self.lost.items())]
        return lost + [f"left out: {_list_places(listed)}: {reason}" for reason, listed in places.items()]


def _list_places(places: list[str]) -> str:
    return ", ".join(places[:MAX_LISTED_PLACES]) + (
        f" and {len(places) - MAX_LISTED_PLACES} more" if len(places) > MAX_LISTED_PLACES else ""
    )


@dataclass(frozen=True, slots=True)
class TraceFormat:
    """A format by its functions; `read` or `write` is None where only the other makes sense."""

    name: str
    purpose: str
    sniff: Callable[[FileHead], bool] | None = None
    """Whether a file that begins like this is one of its own; None where it is only written."""
    read: Callable[[Path], Iterator[ReadResult]] | None = None
    write: Callable[[TraceExport, BinaryIO], ExportLosses] | None = None


def text_writer(
    write: Callable[[TraceExport, TextIO], ExportLosses],
) -> Callable[[TraceExport, BinaryIO], ExportLosses]:
    """The writer of a text as one of bytes: UTF-8, lines ended alike on every machine."""

    def written(export: TraceExport, stream: BinaryIO) -> ExportLosses:
        text = io.TextIOWrapper(stream, encoding="utf-8", newline="\n", write_through=True)
        try:
            return write(export, text)
        finally:
            # Else the wrapper would close the file, which is its owner's to close.
            text.detach()

    return written


def open_text(path: Path) -> TextIO:
    """The file, open for reading as UTF-8; some editors put a mark before the first character, which is passed over."""
    try:
        # Line ends stay as they are: a carriage return in a thought is no line end of the file's.
        return path.open(encoding="utf-8-sig", newline="\n")
    except OSError as failed:
        raise FormatError(f"{path} cannot be opened: {failed.strerror}") from failed


def read_json_list(path: Path) -> list[Any]:
    """The records of a file that is one JSON list."""
    try:
        with open_text(path) as stream:
            records = json.load(stream)
    except json.JSONDecodeError as wrong:
        raise FormatError(f"{path}, line {wrong.lineno}: no JSON ({wrong.msg})") from wrong
    except (UnicodeDecodeError, RecursionError) as wrong:
        raise FormatError(f"{path}: no JSON in UTF-8 ({wrong})") from wrong
    if not isinstance(records, list):
        raise FormatError(f"{path}: a list of records is expected, not a {type(records).__name__}")
    return records


def find_unstorable_field(raw: dict[str, Any]) -> str | None:
    """Which field of the record holds what no database keeps, and what that is."""
    for name, value in raw.items():
        try:
            check_storable_text(str(name))
            check_storable_text(value if isinstance(value, str) else "")
        except UnstorableValue as refused:
            return f"its {name!r}: {refused}"
    return None
