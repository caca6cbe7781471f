"""Published questions of an instance: chains of relations from one start, and the parser of their Prolog queries."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from showhow.fiction.phantomwiki.prolog import (
    PrologSyntaxError,
    PrologTerm,
    PrologValue,
    PrologVariable,
    parse_goal,
    quote_string,
)
from showhow.fiction.phantomwiki.records import (
    ATTRIBUTE_FACTS,
    ATTRIBUTE_WORDS,
    FACT_ATTRIBUTES,
    SourceRecord,
    ValueCodec,
    iter_records,
)
from showhow.fiction.questions.evaluate import FACT_VALUE_KINDS
from showhow.fiction.questions.expressions import Count, Expression, Fact, Having, Named, People, Related
from showhow.fiction.universe.relations import RELATIONS, find_related, get_relation
from showhow.fiction.universe.universe import NONE
from showhow.guard.json_input import load_json


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
    counts: bool | None = None
    """Whether it is stated to be an aggregation question; None if nothing is stated."""
    solutions: tuple[dict[str, str | int], ...] = ()
    """The solution traces: values by variable; none if they were not published."""

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
        counts=_parse_optional_truth(record, "is_aggregation_question"),
        solutions=tuple(_parse_solutions(record)),
    )


def _parse_optional_truth(record: SourceRecord, name: str) -> bool | None:
    value = record.fields.get(name)
    if value is not None and not isinstance(value, bool):
        raise record.malformed_error(f"the field {name!r} is neither true nor false")
    return value


def _parse_solutions(record: SourceRecord) -> Iterator[dict[str, str | int]]:
    """The solution traces, published as JSON in a text; "[]" if they were skipped."""
    text = record.fields.get("solution_traces")
    if text is None:
        return
    try:
        solutions = load_json(record.require_text("solution_traces"))
    except ValueError as error:
        raise record.malformed_error(f"the field 'solution_traces' is invalid JSON ({error})") from error
    if not isinstance(solutions, list):
        raise record.malformed_error("the field 'solution_traces' is not a list")
    for solution in solutions:
        if not isinstance(solution, dict) or not all(type(value) in (str, int) for value in solution.values()):
            raise record.malformed_error("a solution trace is not an object of names and numbers by variable")
        yield solution


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


@dataclass(frozen=True, slots=True)
class _SolutionStep:
    """One goal: `variable` takes the values of `name` for the subject, or their number if it `counts` them."""

    name: str
    subject: str | None
    """A name; None if the subject is the value of the step before."""
    variable: str
    counts: bool = False
    value: str | None = None
    """The value that a first goal requires; then its variable takes the people who have it."""


class SolutionPaths:
    """Checks solution traces of queries over one universe: the values that their variables take together."""

    def __init__(self, values: ValueCodec) -> None:
        self._values = values
        self._cache: dict[tuple[_SolutionStep, str | int | None], frozenset[str | int]] = {}

    def check(
        self, goals: Sequence[str], solutions: Sequence[Mapping[str, str | int]]
    ) -> tuple[list[Mapping[str, str | int]], int]:
        """Return the solutions that do not satisfy the goals (outermost first), and the number of all that do."""
        steps = [_read_step(parse_goal(goal)) for goal in reversed(goals)]
        variables = {step.variable for step in steps}
        wrong = [one for one in solutions if one.keys() != variables or not self._satisfies(steps, one)]
        # Every variable depends on the one before only, so that paths are counted without being listed.
        paths: Counter[str | int | None] = Counter({None: 1})
        for step in steps:
            extended: Counter[str | int | None] = Counter()
            for subject, count in paths.items():
                extended.update(dict.fromkeys(self._find_values(step, subject), count))
            paths = extended
        return wrong, paths.total()

    def _satisfies(self, steps: Sequence[_SolutionStep], solution: Mapping[str, str | int]) -> bool:
        subject: str | int | None = None
        for step in steps:
            if solution[step.variable] not in self._find_values(step, subject):
                return False
            subject = solution[step.variable]
        return True

    def _find_values(self, step: _SolutionStep, subject: str | int | None) -> frozenset[str | int]:
        key = step, None if step.subject is not None else subject
        if key not in self._cache:
            self._cache[key] = frozenset(self._iter_values(step, step.subject or subject))
        return self._cache[key]

    def _iter_values(self, step: _SolutionStep, subject: str | int | None) -> Iterator[str | int]:
        universe, fact = self._values.universe, ATTRIBUTE_FACTS.get(step.name)
        if fact is not None and step.value is not None:
            people = universe.find_people_with(fact, self._values.parse_value(FACT_VALUE_KINDS[fact], step.value))
            yield from (self._values.format_value("person", row) for row in people.tolist())
            return
        row = self._values.parse_value("person", str(subject))
        if fact is not None:
            number = int(getattr(universe, fact)[row])
            if number > NONE:
                yield self._values.format_value(FACT_VALUE_KINDS[fact], number)
            return
        related = find_related(universe, get_relation(step.name), np.array([row], np.int32)).tolist()
        if step.counts:
            yield len(related)
        else:
            yield from (self._values.format_value("person", relative) for relative in related)


def _read_step(goal: PrologTerm) -> _SolutionStep:
    """Read a goal; ValueError if it is none of the published grammar."""
    match goal:
        case PrologTerm("aggregate_all", (_, PrologTerm("distinct", (PrologTerm(name, (subject, _)),)), variable)):
            counts = True
        case PrologTerm(name, (PrologVariable(who), str(value))):
            return _SolutionStep(name, None, who, value=value)
        case PrologTerm(name, (subject, variable)):
            counts = False
        case _:
            raise UnknownPrologGoal(f"the goal {goal.name} is not in the published grammar")
    if not isinstance(variable, PrologVariable):
        raise UnknownPrologGoal(f"the goal {goal.name} gives its result no variable")
    return _SolutionStep(name, subject if isinstance(subject, str) else None, variable.name, counts)
