"""Published questions of an instance: chains of relations from one start, and the parser of their Prolog queries."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fiction.phantomwiki.prolog import (
    PrologSyntaxError,
    PrologTerm,
    PrologValue,
    PrologVariable,
    parse_goal,
    quote_string,
)
from fiction.phantomwiki.records import (
    ATTRIBUTE_FACTS,
    ATTRIBUTE_WORDS,
    FACT_ATTRIBUTES,
    SourceRecord,
    ValueCodec,
    iter_records,
)
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
        except (PrologSyntaxError, ValueError) as error:
            raise UnknownPrologGoal(f"the goal {goal} cannot be read: {error}") from error
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
        raise ValueError("the second argument of a relation is not a variable")

    def _resolve_subject(self, subject: PrologValue) -> People:
        if isinstance(subject, str):
            if self.expression is not None:
                raise ValueError("it does not use the result of the goals after it")
            return Named(self._values.parse_value("person", subject))
        if not isinstance(subject, PrologVariable) or subject.name != self.bound:
            raise ValueError("no goal after it binds its subject")
        if not isinstance(self.expression, (Having, Related)):
            raise ValueError("its subject is not a person")  # noqa: TRY004 - the query is wrong, not its type
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
        raise record.malformed_error("the field 'prolog' is not an object with a 'query' and an 'answer'")
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


WHO, WHAT, HOW_MANY = "who", "what", "how many"
GRAMMAR_DEPTH = 20
"""Depth of the grammar in the paper's evaluation."""


@dataclass(frozen=True, slots=True)
class RelationChain:
    """A question of the published grammar; `target` is the attribute of WHAT or the counted relation of HOW_MANY."""

    kind: str
    target: str | None
    relations: tuple[str, ...]
    """Outermost first."""
    start: Named | Having

    def build_goals(self, values: ValueCodec) -> tuple[list[str], str]:
        """Build the query (goals, outermost first) and its answer variable."""
        variable_number, goals = 2 if self.kind == WHO else 3, []
        if self.kind == WHAT:
            goals.append((str(self.target), "Y_2"))
        elif self.kind == HOW_MANY:
            goals.append((str(self.target), "Y_1"))
        for relation in self.relations:
            goals.append((relation, f"Y_{variable_number}"))
            variable_number += 2
        goal_texts = []
        for number, (name, variable) in enumerate(goals):
            subject = goals[number + 1][1] if number + 1 < len(goals) else f"Y_{variable_number}"
            if number + 1 == len(goals) and isinstance(self.start, Named):
                subject = quote_string(values.format_value("person", self.start.person))
            goal_texts.append(f"{name}({subject}, {variable})")
        if isinstance(self.start, Having):
            goal_texts.append(
                f"{FACT_ATTRIBUTES[self.start.fact]}(Y_{variable_number}, {quote_string(self._value(values))})"
            )
        if self.kind == HOW_MANY:
            goal_texts[0] = f"aggregate_all(count, distinct({goal_texts[0]}), Count_1)"
            return goal_texts, "Count_1"
        return goal_texts, "Y_2"

    def build_template(self) -> list[str]:
        """Words and numbered placeholders of its template."""
        number = 3 if self.kind == WHO else 4
        tokens = {
            WHO: ["Who is"],
            WHAT: ["What is", "the", "<attribute_name>_3", "of"],
            HOW_MANY: ["How many", "<relation_plural>_2", "does"],
        }[self.kind]
        for _ in self.relations:
            tokens += ["the", f"<relation>_{number}", "of"]
            number += 2
        if isinstance(self.start, Named):
            tokens.append(f"<name>_{number - 1}")
        else:
            tokens += ["the person whose", f"<attribute_name>_{number}", "is", f"<attribute_value>_{number}"]
        return [*tokens, "have", "?"] if self.kind == HOW_MANY else [*tokens, "?"]

    def format_text(self, values: ValueCodec) -> str:
        """The English text."""
        path = "".join(f"the {RELATIONS[relation].singular} of " for relation in self.relations)
        if isinstance(self.start, Named):
            start = values.format_value("person", self.start.person)
        else:
            start = f"the person whose {ATTRIBUTE_WORDS[FACT_ATTRIBUTES[self.start.fact]]} is {self._value(values)}"
        if self.kind == WHO:
            return f"Who is {path}{start}?"
        if self.kind == WHAT:
            return f"What is the {ATTRIBUTE_WORDS[str(self.target)]} of {path}{start}?"
        return f"How many {RELATIONS[str(self.target)].plural} does {path}{start} have?"

    def template_number(self, depth: int = GRAMMAR_DEPTH) -> int:
        """Number of its template in a grammar of this depth."""
        last, deepest = self.depth - 1, depth - 1
        before = {WHO: 0, WHAT: deepest - 2, HOW_MANY: 2 * deepest - 5}[self.kind]
        return before + deepest - last

    @property
    def depth(self) -> int:
        """Minimum depth of a grammar that contains it."""
        number = (3 if self.kind == WHO else 4) + 2 * len(self.relations)
        return number if isinstance(self.start, Named) else number + 1

    def _value(self, values: ValueCodec) -> str:
        assert isinstance(self.start, Having)  # noqa: S101 - narrows the type; callers check it
        return values.format_value(FACT_VALUE_KINDS[self.start.fact], self.start.value)


def to_chain(expression: Expression) -> RelationChain | None:
    """Convert an expression to a chain; None if the published grammar cannot express it."""
    match expression:
        case Fact(fact, of) if fact in FACT_ATTRIBUTES:
            return _build_chain(WHAT, FACT_ATTRIBUTES[fact], of)
        case Count(Related(relation, of)) if relation in RELATIONS:
            return _build_chain(HOW_MANY, relation, of)
        case Related() | Having():
            return _build_chain(WHO, None, expression)
    return None


def _build_chain(kind: str, target: str | None, people: People) -> RelationChain | None:
    relations, start = [], people
    while isinstance(start, Related):
        relations.append(start.relation)
        start = start.of
    if not set(relations) <= RELATIONS.keys():
        return None
    if isinstance(start, Named):
        # "What is the hobby of Ann Lee?" has one goal and is not in the published grammar.
        return None if kind == WHAT and not relations else RelationChain(kind, target, tuple(relations), start)
    if isinstance(start, Having) and start.fact in FACT_ATTRIBUTES:
        return RelationChain(kind, target, tuple(relations), start)
    return None
