"""Finds the passages and rows that state facts of a generated world."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from showhow.fiction.generator.articles import load_prose_style
from showhow.fiction.questions.evaluate import FACT_VALUE_KINDS, GENDERED_RELATIONS
from showhow.fiction.questions.reasoning import DIRECT_REASONING, ReasoningNode
from showhow.fiction.questions.wording import FACT_LABELS
from showhow.oracles.gold_traces.attempt import PLACE_RELATIONS, relation_pairs
from showhow.oracles.gold_traces.lookups import ArticleFactReader, WebPageFactReader
from showhow.oracles.reasoning import (
    GoldOperation,
    GoldReasoning,
    UnknownOperation,
    combine_operands,
    last_leaf,
    list_property_ids,
)
from showhow.reasoners.skills.values import AnswerValue, SourcePassage, distinct_values
from showhow.worlds.lexicon.kinship import gendered_words
from showhow.worlds.sentences import split_sentences

_INVERSE_RELATIONS = {
    **dict.fromkeys(("parent", "father", "mother"), "child"),
    "child": "parent",
    **{relation: relation for relation in ("spouse", "sibling", "friend")},
}
"""What a relation between people is as seen from the other side."""
_SIBLING_RELATIONS = frozenset({"sibling", *gendered_words("sibling")})


@dataclass(frozen=True, slots=True)
class StatedAnswers:
    """What passages state of the answers of an operation."""

    answers: list[AnswerValue]
    support: list[str]
    """The ids of the passages that state them."""
    missing: int
    """The facts that no passage states."""


class FactFinder:
    """Finds the passages and rows that state facts of a generated world."""

    def __init__(self, gold: GoldReasoning) -> None:
        self._gold = gold
        self._articles = ArticleFactReader(gold.things, load_prose_style(plain=gold.world.plain))
        self._pages = WebPageFactReader(gold.things)

    def find_stated(
        self, operation: GoldOperation, heads: Sequence[AnswerValue], passages: Sequence[SourcePassage]
    ) -> StatedAnswers:
        """The answers of an operation that passages state; facts that none states are missing.

        A row without a column for the relation states that of its query.
        """
        answers = self._gold.apply(operation, heads)
        if operation.kind == "named":
            named = {answer: passage for answer in answers if (passage := self._find_title(answer, passages))}
            return StatedAnswers([*named], list(dict.fromkeys(named.values())), len(answers) - len(named))
        if len(heads) > 1:
            # A row with one cell does not say to which of several things it belongs.
            passages = [passage for passage in passages if passage.source != "graph" or " | " in passage.text]
        is_about_values = operation.kind in ("inverse", "by day")
        support: dict[str, None] = {}
        missing: set[tuple[str, str]] = set()
        for relation, head, value in self._list_facts(operation, heads):
            fact = _Fact(relation, head, value, is_about_values)
            stating = self._find_stating(passages, fact)
            support |= dict.fromkeys(stating)
            if not stating:
                ends = self._gold.to_value(fact.head_kind, head), self._gold.to_value(fact.value_kind, value)
                missing.add((ends[0].key, ends[1].key))
        # Of a filter the head itself is the answer.
        lost = {key for pair in missing for key in pair[:1]} if operation.kind == "filter" else set[str]()
        stated = [
            answer
            for answer in answers
            if answer.key not in lost and not missing & set(_list_ends(operation, answer, missing))
        ]
        return StatedAnswers(stated, list(support), len(missing))

    def _find_stating(self, passages: Sequence[SourcePassage], fact: "_Fact") -> list[str]:
        """The passage that states a fact, or those that state it together: siblings have a parent in common."""
        stating = next((passage for passage in passages if self._states(passage, fact)), None)
        if stating is not None:
            return [stating.id]
        if fact.relation not in _SIBLING_RELATIONS:
            return []
        for _, parent in sorted(relation_pairs(self._gold.things.universe, "parent", [fact.head])):
            both = [self._find_stating(passages, _Fact("parent", child, parent)) for child in (fact.head, fact.value)]
            if all(both):
                return [id_ for ids in both for id_ in ids]
        return []

    def _list_facts(self, operation: GoldOperation, heads: Sequence[AnswerValue]) -> Iterator[tuple[str, int, int]]:
        """The facts (relation, head, value) that an operation rests on."""
        universe = self._gold.things.universe
        numbers = [place[1] for place in map(self._gold.locate, heads) if place is not None]
        if operation.kind in ("inverse", "by day"):
            values = [operation.value] if operation.kind == "by day" else numbers
            for value in values:
                for row in universe.find_people_with(operation.relation, value).tolist():
                    yield operation.relation, row, value
            return
        for head, value in sorted(relation_pairs(universe, operation.relation, numbers)):
            yield operation.relation, head, value

    def _states(self, passage: SourcePassage, fact: "_Fact") -> bool:
        if passage.source == "graph":
            return self._row_states(passage, fact)
        things = self._gold.things
        sentences = split_sentences(passage.text)
        if fact.relation in PLACE_RELATIONS:
            town = things.sentence_text(fact.head_kind, fact.head)
            place = f"{things.sentence_text(fact.value_kind, fact.value)}."
            return any(place in sentence and (town == passage.title or town in sentence) for sentence in sentences)
        if passage.source == "web":
            return bool(self._pages.find_stated_pairs(fact.relation, {(fact.head, fact.value)}, sentences))
        # "She was born on ..." is about the subject of the article.
        return any(
            passage.title == things.sentence_text("person", side.head)
            and self._articles.find_stated_values(side.relation, side.head, [side.value], sentences)
            for side in fact.sides
        )

    def _row_states(self, row: SourcePassage, fact: "_Fact") -> bool:
        """Whether a row states a fact by its relation; one without a relation by the things that its query found."""
        columns, cells = row.title.split(", "), row.text.split(" | ")
        ends = [
            (side, self._gold.to_value(side.head_kind, side.head), self._gold.to_value(side.value_kind, side.value))
            for side in fact.sides
        ]
        if len(cells) == 3 and columns[1:2] == ["relation"]:
            return any(
                _mentions(cells[0], head)
                and _mentions(cells[2], value)
                and any(_names_id(cells[1], id_) for id_ in list_property_ids(side.relation))
                for side, head, value in ends
            )
        _, head, value = ends[0]
        if len(cells) == 2:
            return _mentions(row.text, head) and _mentions(row.text, value)
        return _mentions(row.text, head if fact.is_about_value else value)

    @staticmethod
    def shows_id(answer: AnswerValue, passages: Sequence[SourcePassage]) -> bool:
        """Whether a passage has the id of an answer."""
        return answer.entity is not None and any(_names_id(passage.text, answer.entity) for passage in passages)

    @staticmethod
    def _find_title(answer: AnswerValue, passages: Sequence[SourcePassage]) -> str | None:
        """The first passage of the article about a thing, or its row."""
        return next(
            (passage.id for passage in passages if answer.text in passage.title or _mentions(passage.text, answer)),
            None,
        )


class RetrievedFacts:
    """What the requests of a run show of what they ask for: each operation's answers that passages beside it state."""

    def __init__(self, gold: GoldReasoning, finder: FactFinder) -> None:
        self._gold = gold
        self._finder = finder
        self.is_unused = True
        """Whether no request had passages."""
        self._asked: set[tuple[GoldOperation, frozenset[tuple[str, int] | None]]] = set()
        """The operations that were asked for, with the things that they were about."""
        self._stated: dict[tuple[str, str], set[tuple[str | None, str]]] = {}
        """The (owner, answer) keys that were stated, by the kind and the relation of the operation."""

    def add(
        self, passages: Sequence[SourcePassage], asked: Sequence[tuple[GoldOperation, Sequence[AnswerValue]]]
    ) -> list[str]:
        """Note what a request shows and the operations that it asks for; the ids of the passages that state these."""
        stating: dict[str, None] = {}
        self.is_unused = False
        for operation, heads in asked:
            try:
                stated = self._finder.find_stated(operation, heads, passages)
            except UnknownOperation:
                continue
            self._asked.add((operation, frozenset(map(self._gold.locate, heads))))
            keys = self._stated.setdefault((operation.kind, operation.relation), set())
            keys |= {(answer.of, answer.key) for answer in stated.answers}
            stating |= dict.fromkeys(stated.support)
        return [*stating]

    def conclude(self) -> tuple[list[AnswerValue] | None, str | None]:
        """The answers that follow from what was retrieved alone; None if it does not tell them. And what it lacks."""
        values: dict[ReasoningNode, list[AnswerValue]] = {}
        lacks: str | None = None
        for leaf in self._gold.root.leaves():
            inputs = [values[last_leaf(node)] for node in leaf.inputs]
            if leaf.operator == DIRECT_REASONING:
                values[leaf] = combine_operands(leaf, inputs)
                continue
            operation, heads = self._gold.operation_of(leaf), distinct_values(inputs[0]) if inputs else []
            values[leaf] = self._gold.apply(operation, heads)
            if leaf.needs_retrieval:
                keys = self._stated.get((operation.kind, operation.relation), set())
                stated = [value for value in values[leaf] if (value.of, value.key) in keys]
                if lacks is None and len(stated) < len(values[leaf]):
                    was_asked = (operation, frozenset(map(self._gold.locate, heads))) in self._asked
                    words = FACT_LABELS.get(operation.relation, operation.relation)
                    lacks = f"no passage states every {words}" if was_asked else f"the {words} was not asked for"
                values[leaf] = stated
        answers = distinct_values(values[last_leaf(self._gold.root)])
        return (answers if answers or lacks is None else None), lacks


@dataclass(frozen=True, slots=True)
class _Fact:
    """A fact of the universe: the value that a relation has for a person or a town."""

    relation: str
    head: int
    value: int
    is_about_value: bool = False
    """Whether the question is about the value, so that the head is the answer."""

    @property
    def head_kind(self) -> str:
        return "town" if self.relation in PLACE_RELATIONS else "person"

    @property
    def value_kind(self) -> str:
        return FACT_VALUE_KINDS.get(self.relation, self.relation if self.relation in PLACE_RELATIONS else "person")

    @property
    def sides(self) -> "list[_Fact]":
        """The fact, and the same fact as seen from its value if that is a person."""
        inverse = _INVERSE_RELATIONS.get(GENDERED_RELATIONS.get(self.relation, (self.relation, None))[0])
        return [self] if inverse is None else [self, _Fact(inverse, self.value, self.head)]


def _list_ends(
    operation: GoldOperation, answer: AnswerValue, missing: Collection[tuple[str, str]]
) -> list[tuple[str, str]]:
    """The facts, given by the keys of head and value, that an answer may rest on."""
    if operation.kind == "by day":
        return [pair for pair in missing if pair[0] == answer.key]
    return [(answer.key, answer.of or "")] if operation.kind == "inverse" else [(answer.of or "", answer.key)]


def _mentions(text: str, value: AnswerValue) -> bool:
    """Whether a row or a cell has a value, by its id if it has one."""
    return value.text in text if value.entity is None else _names_id(text, value.entity)


def _names_id(text: str, id_: str) -> bool:
    return f"({id_})" in text or text.startswith(f"{id_}:")
