"""A question read from a file, and the type of a question format."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """A question with its gold answers {"text", "entity", "aliases"}; "aliases" may be missing.

    A correct answer names all gold answers. A hop of the decomposition has "subject", "subject_id", "relation", "pid",
    "object", "object_id" and possibly more. `details` holds the remaining fields of the file.
    """

    text: str
    source_id: str | None = None
    dataset: str | None = None
    split: str | None = None
    kind: str | None = None
    gold_answers: list[dict[str, Any]] = field(default_factory=list)
    decomposition: list[dict[str, Any]] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class QuestionFormat:
    """A format of question files."""

    name: str
    """The value of `--format`."""
    read: Callable[[Path], Iterator[QuestionRecord]]
    """Reads the questions; MalformedFile names the file, the line and the reason."""
    sniff: Callable[[str, str], bool] | None = None
    """Whether a file with this name (without .gz) and this first line has the format; None: only by its name."""


def parse_aliases(aliases: Any) -> list[str] | None:
    """The distinct aliases of a gold answer; None if the value is not a list of texts."""
    if not isinstance(aliases, list) or not all(isinstance(alias, str) for alias in aliases):
        return None
    return list(dict.fromkeys(alias.strip() for alias in aliases if alias.strip()))
