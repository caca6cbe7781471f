"""The reader: replies to skills with what the passages of a request state, read by the rules of generated worlds."""

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from evaluation.gold_reasoning import GoldOperation, GoldReasoning
from evaluation.gold_skills import OracleResponder
from evaluation.gold_traces.attempt import PLACE_RELATIONS, relation_pairs
from evaluation.gold_traces.lookups import ArticleFactReader, WebPageFactReader
from fiction.generator.articles import load_prose_style
from fiction.questions.evaluate import FACT_VALUE_KINDS
from reasoners.atomr.agent import OperateRequest
from reasoners.baselines.skills import ReasonSentenceReply, SelfAskReply, SelfAskRequest
from reasoners.geek.skills import ExtractRequest
from reasoners.pdrr.skills import CompleteRequest
from reasoners.skills.shared_skills import BareQuestion
from reasoners.skills.skill import SkillAttempt, SkillCall, SkillReply
from reasoners.skills.values import AnswersReply, AnswerValue, SourcePassage
from worlds.lexicon.kinship import gendered_words
from worlds.sentences import split_sentences

_SIBLING_RELATIONS = frozenset({"sibling", *gendered_words("sibling")})
AskedOperation = tuple[GoldOperation, list[AnswerValue]]
"""An operation, and the things that it is about."""
AnswersT = TypeVar("AnswersT", bound=AnswersReply)


class ReaderResponder:
    """Replies with the gold reasoning of one question as far as the passages of the request state its facts."""

    name = "reader"

    def __init__(self, gold: GoldReasoning) -> None:
        self._gold = gold
        self._oracle = OracleResponder(gold)
        self._facts = FactFinder(gold)

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

        A table is complete: if its rows have the answers of an operation, it states what the operation needs to know.
        """
        answers = self._gold.apply(operation, heads)
        rows = [passage for passage in passages if passage.source == "graph"]
        listed = [self._find_row(answer, rows) for answer in answers]
        if answers and None not in listed:
            return [row for row in listed if row is not None]
        if operation.kind == "named":
            named = [self._find_title(answer, passages) for answer in answers]
            return None if None in named else [passage for passage in named if passage is not None]
        support: list[str] = []
        for relation, head, value in self._list_facts(operation, heads):
            asked = self._gold.to_value("person", head) if operation.kind in ("inverse", "by day") else None
            row = None if asked is None else self._find_row(asked, rows)
            stating = [row] if row is not None else self._find_stating(passages, relation, head, value)
            if not stating:
                return None
            support += stating
        return list(dict.fromkeys(support))

    def _find_stating(self, passages: Sequence[SourcePassage], relation: str, head: int, value: int) -> list[str]:
        """The passage that states a fact, or those that state it together: siblings have a parent in common."""
        stating = next((passage for passage in passages if self._states(passage, relation, head, value)), None)
        if stating is not None:
            return [stating.id]
        if relation not in _SIBLING_RELATIONS:
            return []
        for _, parent in sorted(relation_pairs(self._gold.things.universe, "parent", [head])):
            both = [self._find_stating(passages, "parent", child, parent) for child in (head, value)]
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

    def _states(self, passage: SourcePassage, relation: str, head: int, value: int) -> bool:
        things = self._gold.things
        kind = FACT_VALUE_KINDS.get(relation, relation if relation in PLACE_RELATIONS else "person")
        if passage.source == "graph":
            return _mentions(passage, self._gold.to_value(kind, value))
        sentences = split_sentences(passage.text)
        if relation in PLACE_RELATIONS:
            return any(f"{things.sentence_text(kind, value)}." in sentence for sentence in sentences)
        if passage.source == "web":
            return bool(self._pages.find_stated_pairs(relation, {(head, value)}, sentences))
        # "She was born on ..." is about the subject of the article.
        return passage.title == things.sentence_text("person", head) and bool(
            self._articles.find_stated_values(relation, head, [value], sentences)
        )

    @staticmethod
    def _find_row(answer: AnswerValue, rows: Sequence[SourcePassage]) -> str | None:
        return next((row.id for row in rows if _mentions(row, answer)), None)

    @staticmethod
    def _find_title(answer: AnswerValue, passages: Sequence[SourcePassage]) -> str | None:
        """The first passage of the article about a thing, or its row."""
        return next(
            (passage.id for passage in passages if answer.text in passage.title or _mentions(passage, answer)), None
        )


def _mentions(row: SourcePassage, value: AnswerValue) -> bool:
    """Whether a row has a value, by its id if it has one."""
    if value.entity is not None:
        return f"({value.entity})" in row.text or row.text.startswith(f"{value.entity}:")
    return value.text in row.text


def say_unknown(reply: AnswersT) -> AnswersT:
    """The reply without answers."""
    return reply.model_copy(update={"answers": [], "support": [], "unknown": True})
