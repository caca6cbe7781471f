"""A world's questions.jsonl: what a list shows of every question, and the whole of one when it is asked for."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from worlds.folder import WorldError
from worlds.importers.files import MalformedFile, iter_json_objects, open_bytes, parse_json

QUESTIONS_FILE = "questions.jsonl"


@dataclass(frozen=True, slots=True)
class QuestionSummary:
    """What a list shows of a question; `needs` as people write it: "graph or text + web"."""

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
    """Where its line begins in the file, in bytes."""


@dataclass(frozen=True, slots=True)
class QuestionFilter:
    """What a question must be like to be listed; what is "" or None may be anything."""

    text: str = ""
    """Is in the question, whatever the case, or is its id."""
    kind: str = ""
    needs: str = ""
    min_difficulty: int | None = None
    """The least difficulty; a question of unknown difficulty is as difficult as you like."""
    max_difficulty: int | None = None

    def matches(self, head: QuestionSummary) -> bool:
        """Whether the question is like that."""
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
    """All questions of a world's folder; WorldError when their file is missing or damaged."""
    file = folder / QUESTIONS_FILE
    try:
        return [row for _, row in iter_json_objects(file)]
    except MalformedFile as broken:
        place = f"{file}, line {broken.line}" if broken.line else str(file)
        raise WorldError(f"The questions cannot be read ({place}: {broken.reason}); make the world again.") from broken


class QuestionFile:
    """The questions of one file in their order; only their heads are held in memory."""

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
        """The heads of the questions that are like that, in their order."""
        return [head for head in self.heads if question_filter.matches(head)]

    def find(self, question: str) -> QuestionSummary | None:
        """The head of the question of that id, if there is one."""
        return self._by_id.get(question)

    def load_row(self, head: QuestionSummary) -> dict[str, Any]:
        """All that the file says of a question."""
        with open_bytes(self._file) as stream:
            stream.seek(head.start)
            return self._parse_row(stream.readline(), head.line)

    def _parse_row(self, raw: bytes, line: int) -> dict[str, Any]:
        row = parse_json(raw.decode("utf-8", errors="replace"), self._file, line)
        if not isinstance(row, dict) or not isinstance(row.get("text"), str):
            raise MalformedFile(self._file, line, "it is no JSON object with a 'text'")
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
    """Which sources answer a question: each set of sources that suffices, the sets joined by "or"."""
    if not isinstance(needs, list):
        return str(needs or "")
    return " or ".join(
        " + ".join(map(str, sources)) if isinstance(sources, list) else str(sources) for sources in needs
    )


def _to_int(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
