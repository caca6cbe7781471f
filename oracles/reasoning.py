"""The gold reasoning of one generated question, its operations over the facts of the universe, and where they stand.

gold = GoldReasoning(world, question.text, question.details)
gold.apply(gold.find_operation("Relate", arguments), heads)
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

from showhow.fiction.questions.decomposition import TripleDecomposition, build_subquestions, number_nodes
from showhow.fiction.questions.evaluate import FACT_VALUE_KINDS, GENDERED_RELATIONS
from showhow.fiction.questions.expressions import (
    Expression,
    Only,
    child_expressions,
    decode_expression,
    encode_expression,
)
from showhow.fiction.questions.names import format_english_date
from showhow.fiction.questions.reasoning import (
    DIRECT_REASONING,
    FILTER,
    RELATE,
    SEARCH,
    ReasoningBuilder,
    ReasoningNode,
)
from showhow.fiction.questions.wording import FACT_LABELS, condition_phrase
from showhow.fiction.universe.items import ITEM_KINDS, PROPERTY_IDS
from showhow.fiction.universe.relations import PARTNER, RELATIONS
from showhow.fiction.universe.universe import ALL_SOURCES, Universe
from showhow.oracles.gold_traces.attempt import PLACE_RELATIONS, relation_pairs
from showhow.oracles.gold_traces.traces import GoldWorld, narrow_expression
from showhow.reasoners.pdrr.skills import CandidateFact, OfferedFact, PruneTriplesRequest
from showhow.reasoners.pdrr.triples import (
    ScheduledTriple,
    Triple,
    is_unknown,
    join_values,
    name_owners,
    schedule_triples,
    select_joined,
)
from showhow.reasoners.skills.set_operations import Operation, OperationUndefined, combine_answers
from showhow.reasoners.skills.values import AnswerValue, OperandValue, distinct_values

INVERSE_SUFFIX = " of"
"""Ends the relation from a value to the people who have it: occupation of."""
_FORWARD_RELATIONS = {
    **{label: fact for fact, label in FACT_LABELS.items()},
    **{name: name for name in PLACE_RELATIONS},
    **{relation.singular: relation.name for relation in (*RELATIONS.values(), PARTNER)},
}
_INVERSE_RELATIONS = {f"{label}{INVERSE_SUFFIX}": fact for fact, label in FACT_LABELS.items()}


class UnknownOperation(Exception):
    """The gold facts do not say what is asked for."""


@dataclass(frozen=True, slots=True)
class GoldOperation:
    """An operation over the universe: named, by day, forward, inverse or filter."""

    kind: str
    relation: str = ""
    values: tuple[int, ...] = ()
    """The people of `named`."""
    test: str = "is"
    value: int = 0
    """The number that `filter` compares with, or the day of `by day`."""

    @property
    def subject_kind(self) -> str:
        """The kind of the things that it is about."""
        if self.kind == "inverse":
            return FACT_VALUE_KINDS[self.relation]
        return "town" if self.relation in PLACE_RELATIONS else "person"

    def apply(self, universe: Universe, heads: Sequence[tuple[str, int]]) -> list[tuple[str | None, str, int]]:
        """The (key of the head, kind, number) of each answer about the heads, given as (key, number)."""
        if self.kind == "named":
            return [(None, "person", value) for value in self.values]
        if self.kind == "by day":
            return [(None, "person", row) for row in universe.find_people_with(self.relation, self.value).tolist()]
        if self.kind == "inverse":
            people = [(key, universe.find_people_with(self.relation, number).tolist()) for key, number in heads]
            return [(key, "person", row) for key, rows in people for row in rows]
        if self.kind == "filter":
            return [(key, "person", number) for key, number in heads if self._holds(universe, number)]
        kind = FACT_VALUE_KINDS.get(self.relation, self.relation if self.relation in PLACE_RELATIONS else "person")
        return [
            (key, kind, value)
            for key, number in heads
            for _, value in sorted(relation_pairs(universe, self.relation, [number]))
        ]

    def _holds(self, universe: Universe, person: int) -> bool:
        value = int(getattr(universe, self.relation)[person])
        if self.test == "is":
            return value == self.value
        return 0 <= value < self.value if self.test == "before" else value > self.value


class GoldReasoning:
    """The gold reasoning of one question of a generated world."""

    def __init__(self, world: GoldWorld, text: str, details: Mapping[str, Any]) -> None:
        self.world = world
        self.text = text
        self.things = world.things_known_to(ALL_SOURCES)
        self.expression: Expression = decode_expression(details["expression"])
        self.reasoning = ReasoningBuilder(self.things)
        self.root = self.reasoning.build_tree(self.expression, text)

    def narrow(self) -> "GoldReasoning":
        """The same question, reasoned as gold traces are: of two groups of people, the smaller one is filtered."""
        expression = narrow_expression(self.expression, self.things.universe)
        return GoldReasoning(self.world, self.text, {"expression": encode_expression(expression)})

    @cached_property
    def numbers(self) -> dict[ReasoningNode, int]:
        """The nodes of the tree with their numbers, breadth first."""
        return number_nodes(self.root)

    def question_of(self, node: ReasoningNode) -> str:
        """The question of a node, in which [3] stands for the answers of node 3."""
        return "".join(part if isinstance(part, str) else f"[{self.numbers[part]}]" for part in node.question)

    @cached_property
    def subquestions(self) -> list[tuple[ReasoningNode, str]]:
        """The operations that need a sub-question, in order, each with its text."""
        leaves = [leaf for leaf in self.root.leaves() if leaf.needs_retrieval or leaf.operator != SEARCH]
        texts = [entry["question"] for entry in build_subquestions(self.reasoning, self.root)]
        return list(zip(leaves, texts, strict=True))

    @cached_property
    def triples(self) -> tuple[Triple, ...]:
        """The gold triples."""
        return tuple(
            Triple(subject=subject, relation=relation, object=object_)
            for subject, relation, object_ in TripleDecomposition(self.things).decompose(self.expression)
        )

    @cached_property
    def root_answers(self) -> list[AnswerValue]:
        """The gold answers."""
        return [self.to_value(self.root.kind, number) for number in self.root.values.tolist()]

    @cached_property
    def _conditions(self) -> dict[str, Only]:
        """The conditions of the question by their wording."""
        conditions: dict[str, Only] = {}
        pending = [self.expression]
        while pending:
            expression = pending.pop()
            pending += child_expressions(expression)
            if isinstance(expression, Only):
                value = self.things.sentence_text(FACT_VALUE_KINDS[expression.fact], expression.value)
                conditions[condition_phrase(expression.fact, expression.test, value)] = expression
        return conditions

    @cached_property
    def _people_by_name(self) -> dict[str, list[int]]:
        people: dict[str, list[int]] = {}
        universe = self.things.universe
        for names in (universe.titles, universe.names):
            for row, name in enumerate(names):
                people.setdefault(name.casefold(), []).append(row)
        return people

    def to_value(self, kind: str, number: int, of: str | None = None) -> AnswerValue:
        """A thing of the universe as an answer."""
        return AnswerValue(
            text=self.things.answer_text(kind, number), entity=self.things.entity_id(kind, number), of=of
        )

    def locate(self, value: AnswerValue) -> tuple[str, int] | None:
        """The key and the number of a thing that an answer names; None if the universe has none or several."""
        place = self._find_place(value)
        # What belongs to a thing says so by its id, however the thing was named.
        return None if place is None else (self.to_value(*place).key, place[1])

    def _find_place(self, value: AnswerValue) -> tuple[str, int] | None:
        """The kind and the number of the thing of an answer: that of its id, else the only person or thing so named."""
        items = self.things.items
        if value.entity is not None:
            try:
                return items.locate(value.entity)
            except KeyError:
                return None
        rows = set(self._people_by_name.get(value.text.casefold(), ()))
        if rows:
            return ("person", rows.pop()) if len(rows) == 1 else None
        places = [
            (kind, number)
            for kind in ITEM_KINDS
            for number, label in enumerate(items.labels(kind))
            if label == value.text
        ]
        return places[0] if len(places) == 1 else None

    def _is_kind(self, value: AnswerValue, kind: str) -> bool:
        """Whether a value is of a kind; one that nothing is named is taken for a person."""
        place = self._find_place(value)
        return kind == ("person" if place is None else place[0])

    def find_day(self, values: Sequence[AnswerValue]) -> int | None:
        """The day (ordinal) that is the only value, if the question names it; else None."""
        days = {format_english_date(leaf.day): leaf.day for leaf in self.root.leaves() if leaf.day >= 0}
        return days.get(values[0].text) if len(values) == 1 else None

    def find_operation(self, op: str, args: Sequence[OperandValue]) -> GoldOperation:
        """The operation that a request asks for; UnknownOperation if the gold reasoning does not know it."""
        words = args[-1].text or ""
        if op == RELATE and words in _INVERSE_RELATIONS:
            return GoldOperation("inverse", _INVERSE_RELATIONS[words])
        if op == RELATE and words in _FORWARD_RELATIONS:
            return GoldOperation("forward", _FORWARD_RELATIONS[words])
        if op == FILTER and words in self._conditions:
            condition = self._conditions[words]
            return GoldOperation("filter", condition.fact, test=condition.test, value=condition.value)
        if op == SEARCH:
            for leaf in self.root.leaves():
                if leaf.operator == SEARCH and list(leaf.arguments) == [operand.text for operand in args]:
                    return self.operation_of(leaf)
        raise UnknownOperation(f"{op} {words}")

    def find_completion(
        self, relation: str, known: Sequence[AnswerValue], *, from_subject: bool
    ) -> tuple[GoldOperation, list[AnswerValue]]:
        """The operation that completes a triple from its known end, and the things that it is about."""
        words = relation if from_subject else f"{relation}{INVERSE_SUFFIX}"
        operation = self.find_operation(RELATE, [OperandValue(values=list(known)), OperandValue(text=words)])
        day = self.find_day(known)
        if day is not None:
            return replace(operation, kind="by day", value=day), []
        return operation, list(known)

    def operation_of(self, leaf: ReasoningNode) -> GoldOperation:
        """The operation of a leaf of the tree that is no direct reasoning."""
        if leaf.operator == SEARCH and leaf.relation:
            return GoldOperation("by day", leaf.relation, value=leaf.day)
        if leaf.operator == SEARCH:
            return GoldOperation("named", leaf.kind, tuple(leaf.values.tolist()))
        if leaf.operator == FILTER:
            condition = self._conditions[str(leaf.arguments[1])]
            return GoldOperation("filter", condition.fact, test=condition.test, value=condition.value)
        return GoldOperation("inverse" if leaf.is_inverse else "forward", leaf.relation)

    def apply(
        self, operation: GoldOperation, heads: Sequence[AnswerValue], universe: Universe | None = None
    ) -> list[AnswerValue]:
        """The answers of an operation about the heads; UnknownOperation for a head that the universe does not have."""
        located = [self.locate(head) for head in heads]
        if operation.kind == "named":
            return [self.to_value(operation.relation, value) for value in operation.values]
        if None in located:
            raise UnknownOperation(f"there is no {heads[located.index(None)].text}")
        subject = operation.subject_kind
        if operation.kind != "by day" and (strange := [head for head in heads if not self._is_kind(head, subject)]):
            raise UnknownOperation(f"{strange[0].text} is no {subject}")
        numbers = [place for place in located if place is not None]
        answers = operation.apply(universe or self.things.universe, numbers)
        return [self.to_value(kind, number, key) for key, kind, number in answers]

    def complete_triple(
        self, entry: ScheduledTriple, values: Mapping[str, Sequence[AnswerValue]]
    ) -> list[AnswerValue] | None:
        """The values of the other end that the facts of the universe tell, with their owners; None if it has no such.

        The known end is named, or has the given values.
        """
        known = values.get(entry.known_end) if is_unknown(entry.known_end) else self.name_thing(entry.known_end)
        if known is None:
            return None
        try:
            completion = self.find_completion(entry.triple.relation, known, from_subject=entry.from_subject)
            return name_owners(self.apply(*completion), known)
        except UnknownOperation:
            return None

    def name_thing(self, name: str) -> list[AnswerValue] | None:
        """The thing of the universe, or the day, that has this name; None if there is none, or several things."""
        value = AnswerValue(text=name)
        if self.find_day([value]) is not None:
            return [value]
        place = self._find_place(value)
        return None if place is None else [self.to_value(*place)]


class GoldTriples:
    """The gold triples of a question with the facts of the universe that complete them."""

    def __init__(self, gold: GoldReasoning) -> None:
        self._gold = gold

    def select_facts(self, request: PruneTriplesRequest) -> tuple[list[OfferedFact], bool]:
        """The offered facts that state the triple and lead on to the answer, and True.

        If there are none, those that state the triple, and False.
        """
        from_subject = request.known_is == "subject"
        try:
            completion = self._gold.find_completion(request.triple.relation, [request.known], from_subject=from_subject)
            others = {value.key for value in self._gold.apply(*completion)}
        except UnknownOperation:
            return [], False
        stating = [fact for fact in request.facts if fact.other.key in others]
        leading = [fact for fact in stating if self.leads_on(request.triple, request.known, fact.other)]
        return leading or stating, bool(leading)

    def leads_on(self, triple: Triple, known: AnswerValue, other: AnswerValue) -> bool:
        """Whether a fact of a gold triple is part of what completes all triples."""
        return (self._find_key(known), self._find_key(other)) in self._complete_pairs.get(triple, ())

    def _find_key(self, value: AnswerValue) -> str:
        """The id of a thing, also of one that is given by its name; the text of any other value."""
        named = self._gold.name_thing(value.text) if value.entity is None else None
        return (named or [value])[0].key

    @cached_property
    def _complete_pairs(self) -> dict[Triple, set[tuple[str, str]]]:
        """The (known, other) keys of the facts of each triple that facts of all other triples continue.

        A triple without facts, such as the day of death of the living, continues nothing and rules nothing out.
        """
        completed: list[tuple[ScheduledTriple, list[AnswerValue]]] = []
        for entry in schedule_triples(self._gold.triples):
            pairs = self._gold.complete_triple(entry, join_values(completed))
            if pairs and all(join_values([*completed, (entry, pairs)]).values()):
                completed.append((entry, pairs))
        values = join_values(completed)
        return {
            entry.triple: {(pair.of or "", pair.key) for pair in select_joined(entry, pairs, values)}
            for entry, pairs in completed
        }

    def answer(self, kept: Sequence[Sequence[CandidateFact]]) -> list[AnswerValue] | None:
        """The answers that follow from the facts that are kept of each triple; None if they do not suffice."""
        values: dict[ReasoningNode, list[AnswerValue]] = {}
        for leaf in self._gold.root.leaves():
            inputs = [values[last_leaf(node)] for node in leaf.inputs]
            if leaf.operator == DIRECT_REASONING:
                values[leaf] = combine_operands(leaf, inputs)
                continue
            heads = distinct_values(inputs[0]) if inputs else []
            complete = self._gold.apply(self._gold.operation_of(leaf), heads)
            values[leaf] = complete
            if leaf.needs_retrieval:
                facts = kept[self._triple_numbers[leaf]]
                ends = {frozenset({self._find_key(fact.known), self._find_key(fact.other)}) for fact in facts}
                values[leaf] = [value for value in complete if _is_stated(leaf, value, ends)]
                if complete and not values[leaf]:
                    return None
        return distinct_values(values[last_leaf(self._gold.root)])

    def answer_joined(
        self,
        joined: Mapping[str, Sequence[AnswerValue]],
        read: Callable[[GoldOperation, Sequence[AnswerValue]], Sequence[AnswerValue]],
    ) -> list[AnswerValue] | None:
        """The answers that follow from the values joined for each unknown; None if they are not the gold ones.

        A join leaves out values that nothing continues, such as a living person whose day of death is asked for; of an
        unknown without a value, `read` tells which answers of an operation the facts beside it state.
        """
        values: dict[ReasoningNode, list[AnswerValue]] = {}
        for leaf in self._gold.root.leaves():
            inputs = [values[last_leaf(node)] for node in leaf.inputs]
            if leaf.operator == DIRECT_REASONING:
                values[leaf] = combine_operands(leaf, inputs)
                continue
            heads = distinct_values(inputs[0]) if inputs else []
            operation = self._gold.operation_of(leaf)
            values[leaf] = complete = self._gold.apply(operation, heads)
            end = self._triple_ends[leaf]
            if leaf.needs_retrieval and is_unknown(end):
                keys = {self._find_key(value) for value in joined.get(end) or read(operation, heads)}
                values[leaf] = [value for value in complete if value.key in keys]
        answers = distinct_values(values[last_leaf(self._gold.root)])
        return answers if {value.key for value in answers} == {value.key for value in self._gold.root_answers} else None

    @property
    def _triple_numbers(self) -> dict[ReasoningNode, int]:
        """The operations that need a source with the numbers of the triples that state what they do."""
        return self._matched_triples[0]

    @property
    def _triple_ends(self) -> dict[ReasoningNode, str]:
        """The ends of triples that stand for the answers of each operation."""
        return self._matched_triples[1]

    @cached_property
    def _matched_triples(self) -> tuple[dict[ReasoningNode, int], dict[ReasoningNode, str]]:
        unused = dict(enumerate(self._gold.triples))
        numbers: dict[ReasoningNode, int] = {}
        ends: dict[ReasoningNode, str] = {}
        for leaf in self._gold.root.leaves():
            if not leaf.needs_retrieval:
                ends[leaf] = self._name_end(leaf, ends)
                continue
            words = str(leaf.arguments[-1]) if leaf.operator == RELATE else FACT_LABELS[leaf.relation]
            words = words.removesuffix(INVERSE_SUFFIX) if leaf.is_inverse else words
            known = ends[last_leaf(leaf.inputs[0])] if leaf.inputs else format_english_date(leaf.day)
            from_object = leaf.is_inverse or leaf.operator == SEARCH
            for number, triple in unused.items():
                if (triple.relation, triple.object if from_object else triple.subject) == (words, known):
                    numbers[leaf] = number
                    is_subject = from_object or leaf.operator == FILTER
                    ends[leaf] = triple.subject if is_subject else triple.object
                    del unused[number]
                    break
            else:
                raise UnknownOperation(f"no triple states {self._gold.question_of(leaf)}")
        return numbers, ends

    def _name_end(self, leaf: ReasoningNode, ends: Mapping[ReasoningNode, str]) -> str:
        """How the triples name what a leaf without a source stands for."""
        if leaf.operator == DIRECT_REASONING:
            # The earliest of people by their dates of birth is one of the people, not a date.
            alike = [node for node in leaf.inputs if node.kind == leaf.kind]
            return ends[last_leaf((alike or leaf.inputs)[-1])]
        if leaf.kind == "person":
            return str(self._gold.things.universe.titles[int(leaf.values[0])])
        return str(leaf.arguments[0])


def last_leaf(node: ReasoningNode) -> ReasoningNode:
    """The operation whose answers are those of the node."""
    *_, last = node.leaves()
    return last


def combine_operands(leaf: ReasoningNode, operands: Sequence[Sequence[AnswerValue]]) -> list[AnswerValue]:
    """What follows from the operands of direct reasoning; nothing if it is undefined for them."""
    try:
        return combine_answers(cast(Operation, leaf.relation), operands)
    except OperationUndefined:
        return []


def _is_stated(leaf: ReasoningNode, value: AnswerValue, facts: Collection[frozenset[str]]) -> bool:
    """Whether facts, given by their ends, state an answer of a leaf; a filter's answers are at one of the ends."""
    if leaf.operator in {FILTER, SEARCH}:
        return any(value.key in ends for ends in facts)
    return frozenset({value.of or "", value.key}) in facts


def list_property_ids(words: str) -> set[str]:
    """The properties that state a relation: those of both parents for a parent, of a child for a daughter."""
    if words in _FORWARD_RELATIONS and _FORWARD_RELATIONS[words] in PROPERTY_IDS:
        return {PROPERTY_IDS[_FORWARD_RELATIONS[words]]}
    relation = _FORWARD_RELATIONS.get(words, words)
    base = GENDERED_RELATIONS.get(relation, (relation, None))[0]
    names = ("father", "mother") if base == "parent" else (base,)
    return {PROPERTY_IDS[name] for name in names if name in PROPERTY_IDS}
