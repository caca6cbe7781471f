"""Readers of question files; a new format has a module here and a line in QUESTION_FORMATS."""

from pathlib import Path

from evaluation.datasets.multihop import HOTPOTQA, TWO_WIKI
from evaluation.datasets.plain import CSV, JSONL
from evaluation.datasets.record import QuestionFormat, QuestionRecord
from worlds.folder import WorldError
from worlds.importers.files import MalformedFile, iter_nonblank_lines

QUESTION_FORMATS: dict[str, QuestionFormat] = {
    question_format.name: question_format
    for question_format in (
        JSONL,
        CSV,
        TWO_WIKI,
        HOTPOTQA,
    )
}
AUTO = "auto"
"""The format is detected from the file."""


class UnknownQuestionFormat(WorldError):
    """There is no question format with this name."""


def list_format_names() -> str:
    """The values of `--format`, for help texts and messages."""
    return ", ".join((AUTO, *QUESTION_FORMATS))


def read_questions(file: Path, format_name: str = AUTO) -> list[QuestionRecord]:
    """Read all questions of a file; MalformedFile names the file, the line and the reason."""
    if format_name == AUTO:
        format_name = _detect_format(file)
    if format_name not in QUESTION_FORMATS:
        raise UnknownQuestionFormat(
            f"There is no format {format_name!r} of questions; the formats are {list_format_names()}."
        )
    questions = list(QUESTION_FORMATS[format_name].read(file))
    if not questions:
        raise MalformedFile(file, None, "the file holds no question")
    return questions


def _detect_format(file: Path) -> str:
    name = file.name.removesuffix(".gz")
    by_name = (form.name for form in QUESTION_FORMATS.values() if form.sniff and form.sniff(name, ""))
    if match := next(by_name, None):
        return match
    _, line = next(iter_nonblank_lines(file), (0, ""))
    by_content = (form.name for form in QUESTION_FORMATS.values() if form.sniff and form.sniff(name, line))
    return next(by_content, JSONL.name)
