"""The sources of a task, what is looked up in them, and the skills that choose them and answer from what they have."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from showhow.llm.structured_output import ReplyText
from showhow.reasoners.base import Move, Task
from showhow.reasoners.skills.skill import Fallback, Skill, SkillCall, SkillResult
from showhow.reasoners.skills.values import (
    AnswersReply,
    AnswerValue,
    OfferedRelation,
    OperandValue,
    QuotingReply,
    SourcePassage,
    check_answers,
    format_values,
)
from showhow.worlds.lexicon import kinship
from showhow.worlds.lexicon.english import phrase_key
from showhow.worlds.text_normalization import STOP_WORDS

MAX_HEADS = 12
"""How many values of a set are looked up one by one, unless a method looks up more."""
MAX_PHRASINGS = 9
"""Searches for one value by different words, and the words of one search."""
MAX_FACT_RELATIONS = 20
"""Relations whose facts about entities are listed, in each direction."""
MAX_WIDER_SEARCHES, MAX_WIDER_READS = 24, 24
"""Searches of a source, and texts that are read, where the same is looked for again."""
WIDER_RETRIEVALS = MAX_WIDER_SEARCHES + MAX_WIDER_READS
"""What that takes of a source, about."""


class SourceChoice(BaseModel):
    """A source that can be asked."""

    name: str
    description: str


class SelectSourcesRequest(BaseModel):
    """A question, perhaps as an operation with its arguments, and the sources to choose from."""

    question: str
    op: str | None = None
    args: list[OperandValue] = Field(default_factory=list)
    sources: list[SourceChoice] = Field(default_factory=list)
    unsure: Literal["all"] | None = None
    """What to choose where it is not clear which source tells: all of them, as AtomR does; None: the fewest."""


class SelectSourcesReply(BaseModel):
    """The names of the sources to ask."""

    sources: list[ReplyText]
    """Names of offered sources, at least one."""

    def __str__(self) -> str:
        return ", ".join(self.sources)


def _check_sources(request: SelectSourcesRequest, reply: SelectSourcesReply) -> str | None:
    offered = [source.name for source in request.sources]
    unknown = [name for name in reply.sources if name not in offered]
    if unknown:
        return f"There is no source {unknown[0]!r}; choose among {', '.join(offered)}."
    return None if reply.sources else f"No source was chosen; choose at least one of {', '.join(offered)}."


def _select_all(request: SelectSourcesRequest) -> SelectSourcesReply:
    return SelectSourcesReply(sources=[source.name for source in request.sources])


SELECT_SOURCES: Skill[SelectSourcesRequest, SelectSourcesReply] = Skill(
    name="select_sources",
    version=2,
    description="I choose where to look.",
    package="showhow.reasoners.skills",
    request_type=SelectSourcesRequest,
    reply_type=SelectSourcesReply,
    check=_check_sources,
    fallback=Fallback("all sources", _select_all),
    draft=_select_all,
)


SOURCE_TOOLS: Mapping[str, tuple[str, ...]] = {
    "graph": ("getWikiDataID", "generateQuery", "runQuery"),
    "text": ("wikisearch", "read"),
    "web": ("websearch", "read"),
}
"""The sources, and the tools that retrieve from each."""
SOURCE_DESCRIPTIONS = {
    "graph": "a knowledge graph: facts about entities, exact and complete where it has them",
    "text": "articles of an encyclopedia: search, then read",
    "web": "web pages: search, then read; pages may be out of date",
}
_NEUTRAL_DESCRIPTIONS = {
    "graph": "a knowledge graph: facts as triples of a thing, a relation and a value",
    "text": "articles of an encyclopedia",
    "web": "web pages",
}
"""Descriptions that prefer no source, for the rule that chooses all where it is unsure."""


def list_sources(task: Task) -> list[str]:
    """The sources whose tools the task offers."""
    offered = {tool.name for tool in task.tools}
    return [source for source, tools in SOURCE_TOOLS.items() if offered.issuperset(tools)]


def choose_sources(
    sources: Sequence[str], request: SelectSourcesRequest, node: str, parent: UUID | None
) -> Generator[Move, Any, tuple[Sequence[str], int]]:
    """Choose the sources to ask, by the skill if there are several; returns them, and the calls that this takes."""
    if len(sources) < 2:
        return sources, 0
    descriptions = SOURCE_DESCRIPTIONS if request.unsure is None else _NEUTRAL_DESCRIPTIONS
    choices = [SourceChoice(name=name, description=descriptions[name]) for name in sources]
    request = request.model_copy(update={"sources": choices})
    selected: SkillResult[SelectSourcesReply] = yield SkillCall(SELECT_SOURCES, request, node, parent)
    return (sources if selected.reply is None else selected.reply.sources), 1


@dataclass(frozen=True, slots=True)
class SearchedSource:
    """A source of texts: its name, the tool that searches it, and the fields of the hits and of their addresses."""

    name: str
    tool: str
    hits: str
    address: str


TEXTS = SearchedSource("text", "wikisearch", "hits", "title")
PAGES = SearchedSource("web", "websearch", "pages", "address")


@dataclass(frozen=True, slots=True)
class RetrievalQuery:
    """What to look up: the question in full, the values it is about, and the words for what is asked of them."""

    question: str
    heads: Sequence[AnswerValue]
    words: str = ""
    is_name: bool = False
    """Whether the first value is only a name, of which the thing is to be found."""
    names: Sequence[str] = ()
    """The names in a question that is about no values."""
    context: str | None = None
    """What the question is a part of, "" for nothing; then questions are searched for, not values and words."""
    tails: Sequence[AnswerValue] = ()
    """The things whose relation to the values is asked for."""

    @property
    def is_about_each(self) -> bool:
        """Whether the same is asked of each of several values."""
        return len(self.heads) > 1 and format_values(self.heads) in self.question

    def question_about(self, head: AnswerValue | None) -> str:
        """The question about one of the values alone."""
        if head is None or not self.is_about_each:
            return self.question
        return self.question.replace(format_values(self.heads), head.text)

    @property
    def values(self) -> list[AnswerValue]:
        """What it is about: its values, or else the names in it."""
        return list(self.heads) or [AnswerValue(text=name) for name in self.names]

    @property
    def wider_searches(self) -> list[tuple[str, list[str]]]:
        """For each of the first values, or once for all, the question and the searches by other words."""
        if self.is_name or not self.values:
            return [(self.question, list(dict.fromkeys([self.question, self.words or self.question])))]
        values = self.values[:MAX_WIDER_SEARCHES]
        phrases = kinship.phrases_for(self.words or self.question)
        words = dict.fromkeys(word for phrase in phrases for word in phrase.split() if word not in STOP_WORDS)
        count = min(MAX_PHRASINGS, MAX_WIDER_SEARCHES // len(values))
        searches = []
        for value in values:
            question = self.question_about(value)
            texts = [" ".join([value.text, *list(words)[:MAX_PHRASINGS]]), value.text, question]
            texts += [f"{value.text} {phrase}" for phrase in phrases]
            searches.append((question, list(dict.fromkeys(texts))[:count]))
        return searches

    def list_searches(self, most: int) -> list[tuple[AnswerValue | None, str]]:
        """The searches, one for each of the first values, or one for the question."""
        if self.context is not None or not self.heads:
            heads: Sequence[AnswerValue | None] = self.heads[:most] or [None]
            before = f"{self.context}, " if self.context else ""
            return [(head, f"{before}{self.question_about(head)}") for head in heads]
        return [(head, f"{head.text} {self.words}".strip()) for head in self.heads[:most]]


def choose_relations(question: str, offered: Sequence[OfferedRelation]) -> dict[str, list[OfferedRelation]]:
    """The relations whose facts may answer a question, by direction.

    Those that its words name come first. An entity has few facts as the head, of which a question may need any; it may
    be the tail of thousands, of which only those of named relations are chosen.
    """
    named = {word for relation in kinship.named_relations(question) for word in kinship.words_for(relation)}
    words = set(phrase_key(question))
    chosen: dict[str, list[OfferedRelation]] = {"head": [], "tail": []}
    for is_named in (True, False):
        for relation in offered:
            label = relation.label.casefold()
            if is_named == (label in named or words.issuperset(phrase_key(label))) and (
                is_named or relation.direction == "head"
            ):
                chosen[relation.direction].append(relation)
    return {direction: relations[:MAX_FACT_RELATIONS] for direction, relations in chosen.items() if relations}


class PassageQuestion(BaseModel):
    """A question, and the passages to answer it from."""

    question: str
    passages: list[SourcePassage]
    own: bool | None = None
    """Whether the model may answer from its own knowledge where the passages do not tell; None for no."""


def _check_passage_answers(request: PassageQuestion, reply: AnswersReply) -> str | None:
    return check_answers(reply, request.passages)


DIRECT_RAG: Skill[PassageQuestion, QuotingReply] = Skill(
    name="direct_rag",
    version=3,
    description="I answer from what was retrieved.",
    package="showhow.reasoners.skills",
    request_type=PassageQuestion,
    reply_type=QuotingReply,
    check=_check_passage_answers,
    fallback=Fallback("unknown", lambda _request: QuotingReply(answers=[], unknown=True)),
)


class BareQuestion(BaseModel):
    """A question without sources."""

    question: str


def _check_bare_answers(_request: Any, reply: AnswersReply) -> str | None:
    return check_answers(reply, ())


DIRECT_ANSWER: Skill[BareQuestion, AnswersReply] = Skill(
    name="direct_answer",
    version=2,
    description="I answer from my own knowledge.",
    package="showhow.reasoners.skills",
    request_type=BareQuestion,
    reply_type=AnswersReply,
    check=_check_bare_answers,
    fallback=Fallback("unknown", lambda _request: AnswersReply(answers=[], unknown=True)),
)
