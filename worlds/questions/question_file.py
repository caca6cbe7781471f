"""A world's questions.jsonl: what a list shows of every question, and the whole of one when it is asked for."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from worlds.importers.files import MalformedFile, open_bytes, parse_json

QUESTIONS = "questions.jsonl"


@dataclass(frozen=True, slots=True)
class Head:
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


class QuestionFile:
    """The questions of one file in their order; only their heads are held in memory."""

    def __init__(self, file: Path) -> None:
        self._file = file
        found = []
        start = 0
        with open_bytes(file) as stream:
            for line, raw in enumerate(stream, 1):
                if raw.strip():
                    found.append(_head(self._row(raw, line), line, start))
                start += len(raw)
        self.heads = tuple(found)
        self._by_id = {head.id: head for head in reversed(found)}

    def head(self, question: str) -> Head | None:
        """The head of the question of that id, if there is one."""
        return self._by_id.get(question)

    def row(self, head: Head) -> dict[str, Any]:
        """All that the file says of a question."""
        with open_bytes(self._file) as stream:
            stream.seek(head.start)
            return self._row(stream.readline(), head.line)

    def _row(self, raw: bytes, line: int) -> dict[str, Any]:
        row = parse_json(raw.decode("utf-8", errors="replace"), self._file, line)
        if not isinstance(row, dict) or not isinstance(row.get("text"), str):
            raise MalformedFile(self._file, line, "it is no JSON object with a 'text'")
        return row


def _head(row: dict[str, Any], line: int, start: int) -> Head:
    answers = row.get("answers")
    return Head(
        id=str(row.get("id", line)),
        text=row["text"],
        kind=str(row.get("kind", "")),
        template=str(row.get("template", "")),
        answers=len(answers) if isinstance(answers, list) else 0,
        difficulty=_whole(row.get("difficulty")),
        hops=_whole(row.get("hops")),
        needs=needs_in_words(row.get("needs")),
        line=line,
        start=start,
    )


def needs_in_words(needs: Any) -> str:
    """Which sources answer a question: each set of sources that suffices, the sets joined by "or"."""
    if not isinstance(needs, list):
        return str(needs or "")
    return " or ".join(" + ".join(map(str, each)) if isinstance(each, list) else str(each) for each in needs)


def _whole(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
