"""Published questions of an instance, and the parser of their Prolog queries into expressions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fiction.phantomwiki.prolog import PrologSyntaxError, PrologTerm, PrologValue, PrologVariable, parse_goal
from fiction.phantomwiki.records import ATTRIBUTE_FACTS, SourceRecord, ValueCodec, iter_records
from fiction.questions.evaluate import FACT_VALUE_KINDS
from fiction.questions.expressions import Count, Expression, Fact, Having, Named, People, Related
from fiction.universe.relations import RELATIONS


class UnknownPrologGoal(ValueError):
    """A goal is not in the published grammar, or is not connected to the goals after it."""


def parse_query(goals: Sequence[str], answer: str, values: ValueCodec) -> Expression:
    """Parse a query (goals, outermost first); UnknownPrologGoal names the goal that cannot be parsed."""
    reader = _GoalReader(values)
    if not goals:
        raise UnknownPrologGoal("there is no goal")
    for goal in reversed(goals):
        try:
            reader.read_goal(parse_goal(goal))
        except (PrologSyntaxError, ValueError) as wrong:
            raise UnknownPrologGoal(f"the goal {goal} cannot be read: {wrong}") from wrong
    if reader.expression is None or reader.bound != answer:
        raise UnknownPrologGoal(f"the goal {goals[0]} does not give the answer {answer}")
    return reader.expression


class _GoalReader:
    """Reads goals from the innermost outwards; each uses the variable that the previous one bound."""

    def __init__(self, values: ValueCodec) -> None:
        self.expression: Expression | None = None
        self.bound: str | None = None
        self._values = values

    def read_goal(self, goal: PrologTerm) -> None:
        """Apply the next goal to the expression read so far."""
        match goal:
            case PrologTerm(
                "aggregate_all",
                (PrologTerm("count", ()), PrologTerm("distinct", (PrologTerm() as counted,)), PrologVariable(count)),
            ):
                of, _ = self._read_relation(counted)
                self.expression, self.bound = Count(of, each=True), count
            case PrologTerm(name, (_, _)) if name in RELATIONS:
                self.expression, self.bound = self._read_relation(goal)
            case PrologTerm(name, (PrologVariable(who), str(text))) if (
                name in ATTRIBUTE_FACTS and self.expression is None
            ):
                fact = ATTRIBUTE_FACTS[name]
                number = self._values.parse_value(FACT_VALUE_KINDS[fact], text)
                self.expression, self.bound = Having(fact, number), who
            case PrologTerm(name, (whose, PrologVariable(value))) if name in ATTRIBUTE_FACTS:
                self.expression, self.bound = Fact(ATTRIBUTE_FACTS[name], self._resolve_subject(whose)), value
            case _:
                raise ValueError("it is neither a relation, an attribute nor a count of a relation")

    def _read_relation(self, goal: PrologTerm) -> tuple[Related, str]:
        match goal:
            case PrologTerm(name, (whose, PrologVariable(who))) if name in RELATIONS:
                return Related(name, self._resolve_subject(whose)), who
        raise ValueError("the second argument of a relation is no variable")

    def _resolve_subject(self, whose: PrologValue) -> People:
        if isinstance(whose, str):
            if self.expression is not None:
                raise ValueError("it does not use the result of the goals after it")
            return Named(self._values.parse_value("person", whose))
        if not isinstance(whose, PrologVariable) or whose.name != self.bound:
            raise ValueError("no goal after it binds its subject")
        if not isinstance(self.expression, (Having, Related)):
            raise ValueError("its subject is no person")  # noqa: TRY004 - the query is wrong, not its type
        return self.expression


@dataclass(frozen=True, slots=True)
class PublishedQuestion:
    """A question as published."""

    id: str
    text: str
    answers: tuple[str, ...]
    goals: tuple[str, ...]
    """Goals of the query, outermost first."""
    variable: str
    """Variable of the goals whose values are the answers."""
    template: tuple[str, ...]
    """Words and placeholders, or a single text."""
    type: int
    difficulty: int

    def encode_query(self) -> dict[str, Any]:
        """Encode the query for a record."""
        return {"query": list(self.goals), "answer": self.variable}

    def to_record(self) -> dict[str, Any]:
        """Encode the question as a record without solution traces (the published option to skip them)."""
        return {
            "id": self.id,
            "question": self.text,
            "solution_traces": "[]",
            "answer": list(self.answers),
            "prolog": self.encode_query(),
            "template": list(self.template),
            "type": self.type,
            "difficulty": self.difficulty,
            "is_aggregation_question": self.text.startswith("How many"),
        }


def read_questions(files: Sequence[Path]) -> Iterator[tuple[SourceRecord, PublishedQuestion]]:
    """Read questions, each with its record; ids must be unique."""
    seen_ids: set[str] = set()
    for file in files:
        for record in iter_records(file):
            question = _parse_question(record)
            if question.id in seen_ids:
                raise record.malformed_error(f"there are two questions with the id {question.id}")
            seen_ids.add(question.id)
            yield record, question


def _parse_question(record: SourceRecord) -> PublishedQuestion:
    prolog = record.fields.get("prolog")
    if not isinstance(prolog, dict):
        raise record.malformed_error("the field 'prolog' is no object with a 'query' and an 'answer'")
    query = SourceRecord(record.file, record.line, prolog)
    template = record.fields.get("template")
    return PublishedQuestion(
        id=record.require_text("id"),
        text=record.require_text("question"),
        answers=tuple(record.require_texts("answer")),
        goals=tuple(query.require_texts("query")),
        variable=query.require_text("answer"),
        template=(record.require_text("template"),)
        if isinstance(template, str)
        else tuple(record.require_texts("template")),
        type=record.require_number("type"),
        difficulty=record.require_number("difficulty"),
    )
