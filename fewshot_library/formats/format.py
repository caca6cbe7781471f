"""What a format of trace files is: it knows its own files, reads them, writes them and counts what is lost."""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from db.record import TraceRecord


class FormatError(Exception):
    """A file cannot be read; the message names the file, the place and the reason, and nothing of it is taken."""


@dataclass(frozen=True, slots=True)
class Refused:
    """One record that was left out, and why."""

    place: str
    reason: str


@dataclass(slots=True)
class Losses:
    """What a format could not keep: each kind of thing with how often, and the records that it left out."""

    written: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    refused: list[Refused] = field(default_factory=list)

    def told(self) -> list[str]:
        """The losses for people, a line each."""
        return [f"not kept: {what} ({count})" for what, count in sorted(self.lost.items())] + [
            f"left out: {each.place}: {each.reason}" for each in self.refused
        ]


@dataclass(frozen=True, slots=True)
class Format:
    """A format by its functions; `write` is None where only reading makes sense."""

    name: str
    purpose: str
    sniff: Callable[[str], bool]
    """Whether a file that begins like this is one of its own."""
    read: Callable[[Path], Iterator[TraceRecord | Refused]]
    write: Callable[[Iterable[TraceRecord], TextIO], Losses] | None = None


def opened_text(path: Path) -> TextIO:
    """The file, open for reading as UTF-8."""
    try:
        return path.open(encoding="utf-8")
    except OSError as failed:
        raise FormatError(f"{path} cannot be opened: {failed.strerror}") from failed


def json_records(path: Path) -> list[Any]:
    """The records of a file that is one JSON list."""
    try:
        with opened_text(path) as stream:
            found = json.load(stream)
    except json.JSONDecodeError as wrong:
        raise FormatError(f"{path}, line {wrong.lineno}: no JSON ({wrong.msg})") from wrong
    except (UnicodeDecodeError, RecursionError) as wrong:
        raise FormatError(f"{path}: no JSON in UTF-8 ({wrong})") from wrong
    if not isinstance(found, list):
        raise FormatError(f"{path}: a list of records is expected, not a {type(found).__name__}")
    return found
