"""An instance's questions, as records with their query in Prolog."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from worlds.phantomwiki.records import Record, records


@dataclass(frozen=True, slots=True)
class PublishedQuestion:
    """A question as it was published."""

    id: str
    text: str
    answers: tuple[str, ...]
    goals: tuple[str, ...]
    """The query, outermost goal first."""
    variable: str
    """Of the goals, whose values are the answers."""
    template: tuple[str, ...]
    """Its words and gaps, or all of them as one text."""
    type: int
    difficulty: int

    def prolog(self) -> dict[str, Any]:
        """The query as a record has it."""
        return {"query": list(self.goals), "answer": self.variable}

    def to_record(self) -> dict[str, Any]:
        """The record, without the traces of Prolog's proofs (as their option to skip these writes it)."""
        return {
            "id": self.id,
            "question": self.text,
            "solution_traces": "[]",
            "answer": list(self.answers),
            "prolog": self.prolog(),
            "template": list(self.template),
            "type": self.type,
            "difficulty": self.difficulty,
            "is_aggregation_question": self.text.startswith("How many"),
        }


def read_questions(files: Sequence[Path]) -> Iterator[tuple[Record, PublishedQuestion]]:
    """The questions of the files, each with the record that it was read from."""
    known: set[str] = set()
    for file in files:
        for record in records(file):
            question = _question(record)
            if question.id in known:
                raise record.wrong(f"there are two questions with the id {question.id}")
            known.add(question.id)
            yield record, question


def _question(record: Record) -> PublishedQuestion:
    prolog = record.fields.get("prolog")
    if not isinstance(prolog, dict):
        raise record.wrong("the field 'prolog' is no object with a 'query' and an 'answer'")
    query = Record(record.file, record.line, prolog)
    template = record.fields.get("template")
    return PublishedQuestion(
        id=record.text("id"),
        text=record.text("question"),
        answers=tuple(record.texts("answer")),
        goals=tuple(query.texts("query")),
        variable=query.text("answer"),
        template=(record.text("template"),) if isinstance(template, str) else tuple(record.texts("template")),
        type=record.number("type"),
        difficulty=record.number("difficulty"),
    )
