"""Reads a world's questions.jsonl: summaries of all questions, and single rows on demand."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from showhow.worlds.folder import WorldError
from showhow.worlds.input_files import MalformedFile, iter_json_objects, open_bytes, parse_json

QUESTIONS_FILE = "questions.jsonl"


@dataclass(frozen=True, slots=True)
class QuestionSummary:
    """Summary of a question; `needs` is formatted as "graph or text + web"."""

    id: str
    text: str
    kind: str
    template: str
    answers: int
    difficulty: int | None
    hops: int | None
    needs: str
    line: int
    start: int
    """Byte offset of its line."""


@dataclass(frozen=True, slots=True)
class QuestionFilter:
    """Filter for questions; a field that is "" or None matches all."""

    text: str = ""
    """Case-insensitive substring of the text, or the id."""
    kind: str = ""
    needs: str = ""
    min_difficulty: int | None = None
    """Minimum difficulty; questions of unknown difficulty always match."""
    max_difficulty: int | None = None

    def matches(self, head: QuestionSummary) -> bool:
        """Whether the question matches."""
        text = self.text.strip().casefold()
        return (
            (not text or text in head.text.casefold() or text == head.id.casefold())
            and self.kind in ("", head.kind)
            and self.needs in ("", head.needs)
            and (head.difficulty is None or self._matches_difficulty(head.difficulty))
        )

    def _matches_difficulty(self, difficulty: int) -> bool:
        low, high = self.min_difficulty, self.max_difficulty
        return (low is None or low <= difficulty) and (high is None or difficulty <= high)


def read_question_rows(folder: Path) -> list[dict[str, Any]]:
    """All questions of a world's folder; WorldError if the file is missing or damaged."""
    file = folder / QUESTIONS_FILE
    try:
        return [row for _, row in iter_json_objects(file)]
    except MalformedFile as error:
        location = f"{file}, line {error.line}" if error.line else str(file)
        raise WorldError(
            f"The questions cannot be read ({location}: {error.reason}); build the world again."
        ) from error


class QuestionFile:
    """The questions of one file, in order; only summaries are held in memory."""

    def __init__(self, file: Path) -> None:
        self._file = file
        heads = []
        start = 0
        with open_bytes(file) as stream:
            for line, raw in enumerate(stream, 1):
                if raw.strip():
                    heads.append(_build_summary(self._parse_row(raw, line), line, start))
                start += len(raw)
        self.heads = tuple(heads)
        self._by_id = {head.id: head for head in reversed(heads)}

    def select(self, question_filter: QuestionFilter) -> list[QuestionSummary]:
        """Summaries of the matching questions, in order."""
        return [head for head in self.heads if question_filter.matches(head)]

    def find(self, question: str) -> QuestionSummary | None:
        """Summary of the question with this id; None if there is none."""
        return self._by_id.get(question)

    def load_row(self, head: QuestionSummary) -> dict[str, Any]:
        """The complete row of a question."""
        with open_bytes(self._file) as stream:
            stream.seek(head.start)
            return self._parse_row(stream.readline(), head.line)

    def _parse_row(self, raw: bytes, line: int) -> dict[str, Any]:
        row = parse_json(raw.decode("utf-8", errors="replace"), self._file, line)
        if not isinstance(row, dict) or not isinstance(row.get("text"), str):
            raise MalformedFile(self._file, line, "it is not a JSON object with a 'text'")
        return row


def _build_summary(row: dict[str, Any], line: int, start: int) -> QuestionSummary:
    answers = row.get("answers")
    return QuestionSummary(
        id=str(row.get("id", line)),
        text=row["text"],
        kind=str(row.get("kind", "")),
        template=str(row.get("template", "")),
        answers=len(answers) if isinstance(answers, list) else 0,
        difficulty=_to_int(row.get("difficulty")),
        hops=_to_int(row.get("hops")),
        needs=format_needs(row.get("needs")),
        line=line,
        start=start,
    )


def format_needs(needs: Any) -> str:
    """Format the sufficient sets of sources: "graph or text + web"."""
    if not isinstance(needs, list):
        return str(needs or "")
    return " or ".join(
        " + ".join(map(str, sources)) if isinstance(sources, list) else str(sources) for sources in needs
    )


def _to_int(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
