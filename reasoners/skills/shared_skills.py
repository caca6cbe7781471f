"""Skills that several reasoners use: choose sources, and answer from what was retrieved."""

from typing import Any

from pydantic import BaseModel, Field

from llm.structured_output import ReplyText
from reasoners.skills.skill import Fallback, Skill
from reasoners.skills.values import AnswersReply, OperandValue, QuotingReply, SourcePassage, check_answers


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
    version=1,
    description="I choose where to look.",
    package="reasoners.skills",
    request_type=SelectSourcesRequest,
    reply_type=SelectSourcesReply,
    check=_check_sources,
    fallback=Fallback("all sources", _select_all),
    draft=_select_all,
)


class PassageQuestion(BaseModel):
    """A question, and the passages to answer it from."""

    question: str
    passages: list[SourcePassage]


def _check_passage_answers(request: PassageQuestion, reply: AnswersReply) -> str | None:
    return check_answers(reply, request.passages)


DIRECT_RAG: Skill[PassageQuestion, QuotingReply] = Skill(
    name="direct_rag",
    version=2,
    description="I answer from what was retrieved.",
    package="reasoners.skills",
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
    version=1,
    description="I answer from my own knowledge.",
    package="reasoners.skills",
    request_type=BareQuestion,
    reply_type=AnswersReply,
    check=_check_bare_answers,
    fallback=Fallback("unknown", lambda _request: AnswersReply(answers=[], unknown=True)),
)
