"""Readers of question files by the name of their format."""

from collections.abc import Callable, Iterator
from pathlib import Path

from evaluation.datasets import multihop, plain
from evaluation.datasets.record import QuestionRecord
from worlds.folder import WorldError
from worlds.importers.files import MalformedFile, iter_nonblank_lines

QuestionReader = Callable[[Path], Iterator[QuestionRecord]]

QUESTION_FORMATS: dict[str, QuestionReader] = {
    "jsonl": plain.read_jsonl,
    "csv": plain.read_csv,
    "2wiki": multihop.read_multihop,
    "hotpotqa": multihop.read_multihop,
}


class UnknownQuestionFormat(WorldError):
    """No reader has that name."""


def read_questions(file: Path, form: str = "auto") -> list[QuestionRecord]:
    """Every question of the file; a malformed line is an error with file, line and reason, and gives none."""
    if form == "auto":
        form = _detect_format(file)
    if form not in QUESTION_FORMATS:
        known = ", ".join(QUESTION_FORMATS)
        raise UnknownQuestionFormat(f"There is no format {form!r} of questions; there are auto, {known}.")
    found = list(QUESTION_FORMATS[form](file))
    if not found:
        raise MalformedFile(file, None, "the file holds no question")
    return found


def _detect_format(file: Path) -> str:
    if file.name.removesuffix(".gz").endswith(".csv"):
        return "csv"
    _, first = next(iter_nonblank_lines(file), (0, ""))
    return "2wiki" if first.lstrip().startswith("[") else "jsonl"
