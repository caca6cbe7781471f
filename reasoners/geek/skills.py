"""The skills of GEEK: requests, replies and their checks."""

import re
from collections.abc import Mapping, Sequence

from pydantic import BaseModel, Field

from showhow.llm.structured_output import ReplyText
from showhow.reasoners.skills.skill import Fallback, Skill
from showhow.reasoners.skills.values import (
    AnswerValue,
    QuotingReply,
    ReasonedReply,
    SourcePassage,
    check_answers,
    check_supported_answers,
    format_values,
)

_REFERENCE = re.compile(r"#(\d{1,9})")


class ExcavatedFact(BaseModel):
    """A sub-question that was answered; `#2` in it stands for the answers of the second."""

    number: int
    question: ReplyText
    fact: ReplyText
    answers: list[AnswerValue]
    unknown: bool = False
    support: list[str] = Field(default_factory=list)
    """The ids of the passages that state the fact."""


def list_references(question: str) -> list[int]:
    """The numbers of the sub-questions that a question refers to."""
    return [int(number) for number in _REFERENCE.findall(question)]


def fill_numbers(question: str, state: Sequence[ExcavatedFact], limit: int = 10) -> str:
    """The question with `#2` replaced by the answers of the second sub-question, at most `limit` of them.

    Where these are unknown, that sub-question itself stands for them.
    """
    answers: dict[int, str] = {}
    for fact in state:
        asked = _REFERENCE.sub(lambda match: answers.get(int(match[1]), match[0]), fact.question)
        answers[fact.number] = f"({asked})" if fact.unknown else format_values(fact.answers, limit)
    return _REFERENCE.sub(lambda match: answers.get(int(match[1]), match[0]), question)


def fold_question(question: str) -> str:
    """A sub-question without differences of case and spacing."""
    return " ".join(question.casefold().split())


def drop_references(question: str) -> str:
    """The words of a question without its references."""
    return " ".join(_REFERENCE.sub(" ", question).split())


class StateRequest(BaseModel):
    """The question and the facts so far."""

    question: str
    state: list[ExcavatedFact] = Field(default_factory=list)
    own: bool | None = None
    """Whether the model may add what it knows itself; None if not."""


class NextActionReply(BaseModel):
    """Whether the facts suffice to answer, and why."""

    finish: bool
    """Whether the facts suffice to answer."""
    why: ReplyText = ""
    """The reason in one sentence."""

    def __str__(self) -> str:
        return f"{'finish' if self.finish else 'ask more'}: {self.why}"


class DecomposeRequest(StateRequest):
    """The question, the facts so far, and the next sub-questions of the ways to go on that are followed already."""

    others: list[str] = Field(default_factory=list)


class PlannedStep(BaseModel):
    """A sub-question with its pseudo-answer, a guess that retrieval may correct."""

    question: ReplyText
    """The sub-question; #2 in it stands for the answers of the second one."""
    pseudo: ReplyText = ""
    """A guess at its answer, which a fact may replace."""
    names: list[ReplyText] = Field(default_factory=list)
    """The names in the question, as a graph may have them."""


class PlannedLane(BaseModel):
    """All remaining sub-questions of one way to go on."""

    steps: list[PlannedStep]
    """The remaining sub-questions of one way to go on, in order."""


class DecomposeReply(BaseModel):
    """One way to go on, which differs from the others of the request; none if there is no other one."""

    branches: list[PlannedLane]
    """The way to go on; none if there is no other one."""

    def list_open_steps(self, state: Sequence[ExcavatedFact]) -> list[PlannedStep]:
        """The steps of the first way to go on whose sub-questions the facts so far do not answer."""
        asked = {fold_question(fact.question) for fact in state}
        return [
            step for branch in self.branches[:1] for step in branch.steps if fold_question(step.question) not in asked
        ]

    def __str__(self) -> str:
        return "\n".join(
            " / ".join(f"{step.question} ({step.pseudo}?)" for step in branch.steps) for branch in self.branches
        )


def _check_decomposition(request: DecomposeRequest, reply: DecomposeReply) -> str | None:
    if not any(branch.steps for branch in reply.branches[:1]):
        return None if request.others else "There is no next sub-question; give one branch with at least one step."
    # A plan may repeat what was asked before; one that only does so has nothing left to ask.
    for step in reply.list_open_steps(request.state)[:1]:
        if not step.question.strip():
            return "A sub-question is empty."
        if missing := [number for number in list_references(step.question) if not 1 <= number <= len(request.state)]:
            return f"The next sub-question refers to #{missing[0]}, which has no answer yet."
    return None


class SubquestionRequest(StateRequest):
    """A sub-question as it was planned and as it reads with its references filled in."""

    planned: str
    references: dict[int, list[AnswerValue]] = Field(default_factory=dict)


class NeedsRetrievalReply(BaseModel):
    """Whether a source must be asked."""

    retrieve: bool
    """Whether a source must be asked; otherwise the answer follows from the facts so far."""

    def __str__(self) -> str:
        return "look it up" if self.retrieve else "conclude it"


class ExtractRequest(SubquestionRequest):
    """A sub-question, a reference answer that is not necessarily correct, and the passages."""

    pseudo: str
    passages: list[SourcePassage]


class FactReply(QuotingReply):
    """A fact in one sentence with its answers."""

    fact: ReplyText = ""
    """The fact in one sentence."""


def _check_fact(request: ExtractRequest, reply: FactReply) -> str | None:
    return check_supported_answers(reply, request.passages)


class ConcludeReply(ReasonedReply):
    """The reasons, the answers, and the numbers of the facts that they rest on."""

    used: list[int] = Field(default_factory=list)
    """The numbers of the facts that the answers rest on."""


def _check_conclusion(request: StateRequest, reply: ConcludeReply) -> str | None:
    numbers = {fact.number for fact in request.state}
    if strange := [number for number in reply.used if number not in numbers]:
        return f"There is no fact {strange[0]}; name numbers of the facts that were given."
    return check_answers(reply, ())


_PACKAGE = "showhow.reasoners.geek"
NEXT_ACTION: Skill[StateRequest, NextActionReply] = Skill(
    "next_action", 2, "I decide whether the facts suffice.", _PACKAGE, StateRequest, NextActionReply
)


def list_decomposition_shape(reply: DecomposeReply) -> list[str]:
    """The sub-questions of the first way to go on, each by the earlier answers that it refers to."""
    steps = reply.list_open_steps(())
    return [" ".join(["ask", *map(str, list_references(step.question))]) for step in steps]


DECOMPOSE: Skill[DecomposeRequest, DecomposeReply] = Skill(
    "decompose",
    3,
    "I plan the remaining sub-questions.",
    _PACKAGE,
    DecomposeRequest,
    DecomposeReply,
    _check_decomposition,
    shape=list_decomposition_shape,
)
NEEDS_RETRIEVAL: Skill[SubquestionRequest, NeedsRetrievalReply] = Skill(
    "needs_retrieval",
    2,
    "I decide whether to look it up.",
    _PACKAGE,
    SubquestionRequest,
    NeedsRetrievalReply,
    fallback=Fallback("retrieve", lambda _request: NeedsRetrievalReply(retrieve=True)),
)
EXTRACT: Skill[ExtractRequest, FactReply] = Skill(
    "extract",
    3,
    "I take the fact from what was retrieved.",
    _PACKAGE,
    ExtractRequest,
    FactReply,
    _check_fact,
    Fallback("not found", lambda _request: FactReply(answers=[], unknown=True)),
)
SELF_ANSWER: Skill[SubquestionRequest, FactReply] = Skill(
    "self_answer",
    3,
    "I conclude it from the facts so far.",
    _PACKAGE,
    SubquestionRequest,
    FactReply,
    lambda _request, reply: check_answers(reply, ()),
    Fallback("not found", lambda _request: FactReply(answers=[], unknown=True)),
)
CONCLUDE: Skill[StateRequest, ConcludeReply] = Skill(
    "conclude",
    2,
    "I answer the question from the facts.",
    _PACKAGE,
    StateRequest,
    ConcludeReply,
    _check_conclusion,
    Fallback("unknown", lambda _request: ConcludeReply(reasons="", answers=[], unknown=True)),
)


def known_references(planned: str, state: Sequence[ExcavatedFact]) -> Mapping[int, list[AnswerValue]]:
    """The answers of the facts that a planned sub-question refers to."""
    answers = {fact.number: fact.answers for fact in state}
    return {number: answers[number] for number in list_references(planned) if number in answers}
