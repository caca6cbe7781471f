"""The reader: replies to skills with what the passages of a request state, read by the rules of generated worlds."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from showhow.fiction.generator.articles import load_prose_style
from showhow.fiction.questions.evaluate import FACT_VALUE_KINDS, GENDERED_RELATIONS
from showhow.oracles.gold_traces.attempt import PLACE_RELATIONS, relation_pairs
from showhow.oracles.gold_traces.lookups import ArticleFactReader, WebPageFactReader
from showhow.oracles.reasoning import GoldOperation, GoldReasoning, list_property_ids
from showhow.oracles.skills import OracleResponder
from showhow.reasoners.atomr.skills import OperateRequest
from showhow.reasoners.baselines.skills import ReasonSentenceReply, SelfAskReply, SelfAskRequest
from showhow.reasoners.geek.skills import ExtractRequest
from showhow.reasoners.pdrr.skills import CompleteRequest
from showhow.reasoners.skills.skill import SkillAttempt, SkillCall, SkillReply
from showhow.reasoners.skills.values import AnswersReply, AnswerValue, SourcePassage
from showhow.reasoners.sources import BareQuestion, PassageQuestion
from showhow.worlds.lexicon.kinship import gendered_words
from showhow.worlds.sentences import split_sentences

_INVERSE_RELATIONS = {
    **dict.fromkeys(("parent", "father", "mother"), "child"),
    "child": "parent",
    **{relation: relation for relation in ("spouse", "sibling", "friend")},
}
"""What a relation between people is as seen from the other side."""
_SIBLING_RELATIONS = frozenset({"sibling", *gendered_words("sibling")})
AskedOperation = tuple[GoldOperation, list[AnswerValue]]
"""An operation, and the things that it is about."""
AnswersT = TypeVar("AnswersT", bound=AnswersReply)


class ReaderResponder:
    """Replies with the gold reasoning of one question as far as the passages of the request state its facts.

    Its plans are those of gold traces: who meets two conditions is looked for among the few who meet one of them.
    """

    name = "reader"

    def __init__(self, gold: GoldReasoning) -> None:
        self._gold = gold.narrow()
        self._oracle = OracleResponder(self._gold)
        self._facts = FactFinder(self._gold)

    def reply(self, call: SkillCall[Any, Any], rejections: Sequence[SkillAttempt]) -> SkillReply:
        """The reply of the oracle with the passages that state it; unknown if they do not state all of it."""
        value = self._oracle.reply(call, rejections).value
        request = call.request
        if isinstance(value, SelfAskReply) and value.intermediate is not None:
            value = value.model_copy(update={"intermediate": self._read(value.intermediate, request)})
        elif isinstance(value, ReasonSentenceReply) and value.final is not None:
            value = value.model_copy(update={"final": self._read(value.final, request)})
        elif isinstance(value, AnswersReply):
            rests_on_unknown = any(fact.unknown for fact in getattr(request, "state", ()))
            value = say_unknown(value) if rests_on_unknown else self._read(value, request)
        return SkillReply("" if value is None else value.model_dump_json(exclude_none=True), value)

    def _read(self, reply: AnswersT, request: Any) -> AnswersT:
        if reply.unknown or (not isinstance(request, BareQuestion) and not hasattr(request, "passages")):
            return reply
        support = None
        if not isinstance(request, BareQuestion):
            support = self._find_support(self._list_operations(request), request.passages)
        if support is None:
            return say_unknown(reply)
        return reply.model_copy(update={"support": support})

    def _list_operations(self, request: Any) -> list[AskedOperation]:
        """The operations whose facts a reply to the request rests on."""
        if isinstance(request, OperateRequest | CompleteRequest | ExtractRequest):
            return [self._oracle.find_operation(request)]
        if isinstance(request, SelfAskRequest):
            return [self._oracle.find_follow_up(request)]
        if isinstance(request, PassageQuestion) and (leaf := self._oracle.find_filled_leaf(request.question)):
            return self._oracle.list_operations(leaf)
        return self._oracle.list_operations()

    def _find_support(
        self, operations: Sequence[AskedOperation], passages: Sequence[SourcePassage]
    ) -> list[str] | None:
        """The ids of the passages that state the facts of the operations; None unless all facts are stated."""
        support: dict[str, None] = {}
        for operation, heads in operations:
            stating = self._facts.find_passages(operation, heads, passages)
            if stating is None:
                return None
            support |= dict.fromkeys(stating)
        return list(support)


class FactFinder:
    """Finds the passages and rows that state facts of a generated world."""

    def __init__(self, gold: GoldReasoning) -> None:
        self._gold = gold
        self._articles = ArticleFactReader(gold.things, load_prose_style(plain=gold.world.plain))
        self._pages = WebPageFactReader(gold.things)

    def find_passages(
        self, operation: GoldOperation, heads: Sequence[AnswerValue], passages: Sequence[SourcePassage]
    ) -> list[str] | None:
        """The ids of the passages that state what an operation needs to know; None if something is missing.

        A row without a column for the relation states that of its query.
        """
        answers = self._gold.apply(operation, heads)
        if operation.kind == "named":
            named = [self._find_title(answer, passages) for answer in answers]
            return None if None in named else [passage for passage in named if passage is not None]
        if len(heads) > 1:
            # A row with one cell does not say to which of several things it belongs.
            passages = [passage for passage in passages if passage.source != "graph" or " | " in passage.text]
        is_about_values = operation.kind in ("inverse", "by day")
        support: list[str] = []
        for relation, head, value in self._list_facts(operation, heads):
            stating = self._find_stating(passages, _Fact(relation, head, value, is_about_values))
            if not stating:
                return None
            support += stating
        return list(dict.fromkeys(support))

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
    def _find_title(answer: AnswerValue, passages: Sequence[SourcePassage]) -> str | None:
        """The first passage of the article about a thing, or its row."""
        return next(
            (passage.id for passage in passages if answer.text in passage.title or _mentions(passage.text, answer)),
            None,
        )


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


def _mentions(text: str, value: AnswerValue) -> bool:
    """Whether a row or a cell has a value, by its id if it has one."""
    return value.text in text if value.entity is None else _names_id(text, value.entity)


def _names_id(text: str, id_: str) -> bool:
    return f"({id_})" in text or text.startswith(f"{id_}:")


def say_unknown(reply: AnswersT) -> AnswersT:
    """The reply without answers."""
    return reply.model_copy(update={"answers": [], "support": [], "unknown": True})
