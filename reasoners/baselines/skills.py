"""The skills of the baselines: requests, replies and their checks."""

from collections.abc import Generator, Sequence
from typing import Any, TypeVar

from pydantic import BaseModel, Field

from showhow.llm.structured_output import ReplyText
from showhow.reasoners.base import Branch, Move, NoUsableReply, Parallel, QuestionRefused, ReasonerError, Task
from showhow.reasoners.skills.skill import Skill, SkillCall, SkillResult
from showhow.reasoners.skills.values import (
    AnswersReply,
    AnswerValue,
    ReasonedQuotingReply,
    ReasonedReply,
    SourcePassage,
    check_answers,
)
from showhow.reasoners.sources import SOURCE_TOOLS, BareQuestion, PassageQuestion, list_sources

ALL_SOURCES = "all"
SOURCE_OPTIONS = {
    "text": "the articles, as in the published baselines",
    "web": "the web pages",
    "graph": "the knowledge graph",
    ALL_SOURCES: "every source whose tools are offered",
}
"""The values of the option `source` with a description."""
EXEMPLAR_CHOICES = {
    "none": "no exemplar",
    "phantomwiki": "ten fixed ones from a world of 25 people, as in PhantomWiki",
}
"""The values of the option `exemplars` with a description."""
_PACKAGE = "showhow.reasoners.baselines"
ReplyT = TypeVar("ReplyT", bound=BaseModel)
AnswersT = TypeVar("AnswersT", bound=AnswersReply)


class ArticlesQuestion(BaseModel):
    """A question behind all articles, so that the prompts of all questions begin alike and servers can cache them."""

    passages: list[SourcePassage]
    question: str


class FollowUpAnswer(BaseModel):
    """A follow-up question that was looked up, with its answers."""

    question: str
    answers: list[AnswerValue]
    unknown: bool = False


class SelfAskRequest(BaseModel):
    """A question with its answered follow-ups, and the one that was just looked up with its passages."""

    question: str
    answered: list[FollowUpAnswer] = Field(default_factory=list)
    pending: str | None = None
    passages: list[SourcePassage] = Field(default_factory=list)
    left: int
    """How many follow-ups may still be asked."""


class SelfAskReply(BaseModel):
    """The answer to the pending follow-up, then the next follow-up or the final answer."""

    intermediate: AnswersReply | None = None
    follow_up: ReplyText | None = None
    final: AnswersReply | None = None

    @property
    def next_question(self) -> str:
        """The next follow-up; empty if there is none."""
        return (self.follow_up or "").strip()


def fold_sentence(text: str) -> str:
    """A sentence without differences of case and spacing."""
    return " ".join(text.casefold().split())


def _check_optional(reply: AnswersReply | None, passages: Sequence[SourcePassage]) -> str | None:
    return None if reply is None else check_answers(reply, passages)


def _check_self_ask(request: SelfAskRequest, reply: SelfAskReply) -> str | None:
    if request.pending is None and reply.intermediate is not None:
        return "No follow-up was asked yet; the intermediate answer has to be null."
    if request.pending is not None and reply.intermediate is None:
        return f"The follow-up {request.pending!r} has no intermediate answer; give one, or say that it is unknown."
    if bool(reply.next_question) == (reply.final is not None):
        return "Give either the next follow-up or the final answer, and null for the other."
    if reply.next_question and not request.left:
        return "No follow-up is left; give the final answer."
    asked = {fold_sentence(answer.question) for answer in request.answered} | {fold_sentence(request.pending or "")}
    if reply.next_question and fold_sentence(reply.next_question) in asked:
        return f"The follow-up {reply.next_question!r} was asked before; ask what is still open, or give the answer."
    return _check_optional(reply.intermediate, request.passages) or _check_optional(reply.final, ())


class ReasonSentenceRequest(BaseModel):
    """A question, the reasoning so far and the passages that were gathered."""

    question: str
    sentences: list[str] = Field(default_factory=list)
    passages: list[SourcePassage] = Field(default_factory=list)


class ReasonSentenceReply(BaseModel):
    """The next sentence of the reasoning; `final` if it states the answer."""

    sentence: ReplyText
    final: AnswersReply | None = None


def _check_sentence(request: ReasonSentenceRequest, reply: ReasonSentenceReply) -> str | None:
    if not reply.sentence.strip():
        return "The sentence is empty."
    if fold_sentence(reply.sentence) in {fold_sentence(sentence) for sentence in request.sentences}:
        return "The sentence was written before; go on with the next one, or state the answer."
    return _check_optional(reply.final, request.passages)


COT_ANSWER: Skill[BareQuestion, ReasonedReply] = Skill(
    "cot_answer",
    2,
    "I reason from my own knowledge.",
    _PACKAGE,
    BareQuestion,
    ReasonedReply,
    lambda _request, reply: check_answers(reply, ()),
)
COT_RAG: Skill[PassageQuestion, ReasonedQuotingReply] = Skill(
    "cot_rag",
    3,
    "I reason from what was retrieved.",
    _PACKAGE,
    PassageQuestion,
    ReasonedQuotingReply,
    lambda request, reply: check_answers(reply, request.passages),
)
IN_CONTEXT: Skill[ArticlesQuestion, ReasonedQuotingReply] = Skill(
    "in_context",
    3,
    "I reason from all articles.",
    _PACKAGE,
    ArticlesQuestion,
    ReasonedQuotingReply,
    lambda request, reply: check_answers(reply, request.passages),
)
IN_CONTEXT_PLAIN: Skill[ArticlesQuestion, AnswersReply] = Skill(
    "in_context_plain",
    1,
    "I answer from all articles.",
    _PACKAGE,
    ArticlesQuestion,
    AnswersReply,
    lambda request, reply: check_answers(reply, request.passages),
)
SELF_ASK: Skill[SelfAskRequest, SelfAskReply] = Skill(
    "self_ask",
    2,
    "I ask the next follow-up, or answer.",
    _PACKAGE,
    SelfAskRequest,
    SelfAskReply,
    _check_self_ask,
)
REASON_SENTENCE: Skill[ReasonSentenceRequest, ReasonSentenceReply] = Skill(
    "reason_sentence",
    2,
    "I write the next sentence of my reasoning.",
    _PACKAGE,
    ReasonSentenceRequest,
    ReasonSentenceReply,
    _check_sentence,
)


def require_sources(task: Task, source: str) -> list[str]:
    """The sources of the option `source` that the task offers; ReasonerError if there is none."""
    offered = list_sources(task)
    sources = offered if source == ALL_SOURCES else [name for name in offered if name == source]
    if not sources:
        kinds = SOURCE_TOOLS if source == ALL_SOURCES else {source: SOURCE_TOOLS[source]}
        tools = ", or ".join(" and ".join(names) for names in kinds.values())
        raise ReasonerError(f"This baseline needs the tools {tools}. Offer them, or choose another option source.")
    return sources


def ask_together(calls: Sequence[SkillCall[Any, ReplyT]]) -> Generator[Move, Any, list[SkillResult[ReplyT]]]:
    """Ask several calls at the same time; the results are in the order of the calls."""
    results: list[SkillResult[ReplyT]] = yield Parallel([Branch(call.node, _ask_once(call)) for call in calls])
    return results


def _ask_once(call: SkillCall[Any, ReplyT]) -> Generator[Move, Any, SkillResult[ReplyT]]:
    result: SkillResult[ReplyT] = yield call
    return result


def require_reply(result: SkillResult[ReplyT]) -> ReplyT:
    """The reply of a call; NoUsableReply if no attempt was usable, also where the skill has a fallback."""
    if result.reply is None or result.fallback is not None:
        raise NoUsableReply(f"The model gave no usable reply: {result.error}")
    return result.reply


def require_answers(result: SkillResult[AnswersT], question: str, expected_calls: int) -> AnswersT:
    """The reply of an answering call; NoUsableReply if there is none, QuestionRefused if the answers are unknown.

    The refusal tells how many model calls the method was expected to make up to this one.
    """
    reply = require_reply(result)
    if reply.unknown:
        raise QuestionRefused(f"The model does not know the answer to: {question}", expected_calls)
    return reply


def reasons_of(reply: AnswersReply) -> str:
    """The reasons of a reply that has some; else empty."""
    return reply.reasons if isinstance(reply, ReasonedReply) else ""
