"""Chain-of-Knowledge (Li et al., ICLR 2024): where samples disagree, sources correct the rationales one by one."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import BaseModel, Field

from showhow.db.models import SPAN_SKILL
from showhow.llm.structured_output import ReplyText
from showhow.reasoners.base import (
    Action,
    CallBudget,
    Fan,
    FinalAnswer,
    Move,
    NoUsableReply,
    QuestionRefused,
    ReasonerGenerator,
    StepCompletion,
    Task,
    fit_to_budget,
)
from showhow.reasoners.baselines.single_call import CotScOptions, most_frequent_reply
from showhow.reasoners.baselines.skills import (
    ALL_SOURCES,
    ask_together,
    fold_sentence,
    require_answers,
    require_reply,
    require_sources,
)
from showhow.reasoners.geek.agent import NOT_FOUND
from showhow.reasoners.geek.skills import CONCLUDE, ConcludeReply, ExcavatedFact, StateRequest
from showhow.reasoners.humaniq.options import (
    OWN_KNOWLEDGE_OPTIONS,
    AgentOptionsError,
    check_at_least,
    check_choices,
    check_positive,
    choice,
)
from showhow.reasoners.retrieval import Retriever
from showhow.reasoners.skills.skill import Fallback, Skill, SkillCall, SkillResult
from showhow.reasoners.skills.values import OWN_KNOWLEDGE, AnswersReply, SourcePassage, check_answers, conclude
from showhow.reasoners.sources import BareQuestion, RetrievalQuery, SelectSourcesRequest, choose_sources

MAX_RATIONALES = 20


@dataclass(frozen=True, slots=True)
class ChainOfKnowledgeOptions(CotScOptions):
    """The options of Chain-of-Knowledge.

    `own=free` is the published method. The default asks for one draft and never for the agreement of samples, which
    would answer from the model's memory: a method that reads sources is compared here by what it reads.
    """

    samples: int = 10
    """Chains of thought that are sampled, as in the paper, whose code takes 5."""
    agreement: float = 0.5
    """The share of samples that must have an answer for it to need no sources."""
    articles: int = 3
    """Articles or pages read after a search."""
    own: str = choice("never", OWN_KNOWLEDGE_OPTIONS)
    """Whether the model's own knowledge may answer: never, free."""
    skill_shots: int = 0
    """Answered requests of other questions that each skill is shown."""

    def __post_init__(self) -> None:
        CotScOptions.__post_init__(self)
        check_positive(articles=self.articles)
        check_at_least(0, skill_shots=self.skill_shots)
        check_choices(self)
        if not 0 < self.agreement <= 1:
            raise AgentOptionsError(f"agreement is {self.agreement}; it must be above 0 and at most 1")


class _Rationales(BaseModel):
    rationales: list[ReplyText]
    """The sentences of the reasoning, each with one fact."""


# The fields of the last base class come first in the schema: a model has to reason before it answers.
class DraftReply(AnswersReply, _Rationales):
    """Rationales, each with one fact, then the answers that follow from them."""


class NextRationaleRequest(BaseModel):
    """A question, the rationales that were corrected, and those that were drafted to follow."""

    question: str
    corrected: list[str]
    draft: list[str]


class NextRationaleReply(BaseModel):
    """The next rationale."""

    rationale: ReplyText
    """The next sentence of the reasoning."""

    def __str__(self) -> str:
        return self.rationale


class CorrectRationaleRequest(BaseModel):
    """A rationale to correct by passages, and those before it."""

    question: str
    corrected: list[str]
    rationale: str
    passages: list[SourcePassage]


class CorrectedRationaleReply(BaseModel):
    """A rationale as the passages have it; unchanged and `unknown` if they do not tell."""

    rationale: ReplyText
    """The sentence as the passages have it."""
    support: list[ReplyText] = Field(default_factory=list)
    """The ids of the passages that state it; none if it follows from the rationales before."""
    unknown: bool = False
    """Whether the passages do not tell whether it is right."""

    def __str__(self) -> str:
        return f"not told: {self.rationale}" if self.unknown else self.rationale


def _check_draft(_request: BareQuestion, reply: DraftReply) -> str | None:
    if not reply.rationales or not all(rationale.strip() for rationale in reply.rationales):
        return "There is no rationale, or an empty one; write at least one sentence, and no empty ones."
    if len(reply.rationales) > MAX_RATIONALES:
        return f"There are {len(reply.rationales)} rationales; write at most {MAX_RATIONALES}."
    return check_answers(reply, ())


def _check_next(request: NextRationaleRequest, reply: NextRationaleReply) -> str | None:
    if not reply.rationale.strip():
        return "The rationale is empty."
    if fold_sentence(reply.rationale) in {fold_sentence(rationale) for rationale in request.corrected}:
        return "The rationale was written before; go on with the next fact."
    return None


def _check_correction(request: CorrectRationaleRequest, reply: CorrectedRationaleReply) -> str | None:
    if not reply.rationale.strip():
        return "The rationale is empty; repeat it if it needs no correction."
    if reply.unknown and reply.support:
        return "The reply names passages and says that they do not tell; give one of the two."
    return check_answers(AnswersReply(answers=[], support=reply.support), request.passages)


_PACKAGE = "showhow.reasoners.baselines"
DRAFT_RATIONALES: Skill[BareQuestion, DraftReply] = Skill(
    "draft_rationales",
    2,
    "I draft a reasoning from my own knowledge.",
    _PACKAGE,
    BareQuestion,
    DraftReply,
    _check_draft,
)
NEXT_RATIONALE: Skill[NextRationaleRequest, NextRationaleReply] = Skill(
    "next_rationale",
    2,
    "I write the next rationale after the corrected ones.",
    _PACKAGE,
    NextRationaleRequest,
    NextRationaleReply,
    _check_next,
    Fallback("the drafted rationale", lambda request: NextRationaleReply(rationale=request.draft[0])),
    draft=lambda request: NextRationaleReply(rationale=request.draft[0]),
)
CORRECT_RATIONALE: Skill[CorrectRationaleRequest, CorrectedRationaleReply] = Skill(
    "correct_rationale",
    2,
    "I correct the rationale by what was retrieved.",
    _PACKAGE,
    CorrectRationaleRequest,
    CorrectedRationaleReply,
    _check_correction,
    Fallback("not told", lambda request: CorrectedRationaleReply(rationale=request.rationale, unknown=True)),
    draft=lambda request: CorrectedRationaleReply(rationale=request.rationale),
)


@dataclass(frozen=True, slots=True)
class ChainOfKnowledge:
    """The reasoner; one instance can solve many tasks at the same time."""

    options: ChainOfKnowledgeOptions = field(default_factory=ChainOfKnowledgeOptions)
    name: str = field(default="chain-of-knowledge", init=False)

    def solve(self, task: Task) -> ReasonerGenerator:
        """Draft, answer if the samples agree, else correct the rationales of a draft and answer from them."""
        return (yield from _ChainRun(self.options, task).run())


class _ChainRun:
    """The run of one question."""

    def __init__(self, options: ChainOfKnowledgeOptions, task: Task) -> None:
        self._options = options
        self._task = task
        self._offered = require_sources(task, ALL_SOURCES)
        self._retriever = Retriever(task, options.articles)
        self._facts: list[ExcavatedFact] = []
        self._passage_sources: dict[str, str] = {}
        self._own: set[int] = set()
        """The rationales that rest on the model's own knowledge."""
        self._expected_calls = 0
        self._details: dict[str, Any] = {}

    def run(self) -> ReasonerGenerator:
        """Draft, correct and conclude."""
        draft, share = yield from self._draft()
        if self._options.own == "free" and share >= self._options.agreement and not draft.unknown:
            conclusion = conclude(draft.answers, (), {OWN_KNOWLEDGE}, " ".join(draft.rationales))
            details = conclusion.details | self._details
            return FinalAnswer(conclusion.answers, details=details, expected_model_calls=self._expected_calls)
        request = SelectSourcesRequest(question=self._task.question)
        sources, calls = yield from choose_sources(self._offered, request, "domains", None)
        self._expected_calls += calls
        cost = CallBudget(2, 2 * len(sources))
        fan = Fan("rationales", len(draft.rationales), cost, CallBudget(1, 0), least=0)
        rationales = draft.rationales[: (yield from fit_to_budget(self._task, fan, "budget/rationales", None))]
        for position in range(len(rationales)):
            yield from self._add_rationale(rationales[position:], sources)
        return (yield from self._conclude())

    def _draft(self) -> Generator[Move, Any, tuple[DraftReply, float]]:
        """The first draft with the answers that most samples have, and the share of the samples that have them."""
        request = BareQuestion(question=self._task.question)
        if self._options.own == "never":
            self._expected_calls += 1
            self._details = {"closed_book": "left out, since own=never"}
            result: SkillResult[DraftReply] = yield SkillCall(DRAFT_RATIONALES, request, "draft/0")
            return require_reply(result), 1
        # A choice of sources, a rationale and the answer come after the samples.
        fan = Fan("samples", self._options.samples, CallBudget(1, 0), CallBudget(4, 0))
        samples = yield from fit_to_budget(self._task, fan, "budget/samples", None)
        self._expected_calls += samples
        skill = replace(DRAFT_RATIONALES, temperature=self._options.temperature)
        results = yield from ask_together(
            [SkillCall(skill, request, f"draft/{number}", sample=number) for number in range(samples)]
        )
        drafts = [result.reply for result in results if result.reply is not None]
        if not drafts:
            raise NoUsableReply(f"The model gave no usable reply in any sample: {results[0].error}")
        draft, count = most_frequent_reply(drafts)
        self._details = {"samples": samples, "samples_agreeing": count}
        return draft, count / samples

    def _add_rationale(self, draft: Sequence[str], sources: Sequence[str]) -> Generator[Move, Any, None]:
        """Correct the first of these rationales, which is written anew after corrected ones, in a span of its own."""
        number = len(self._facts) + 1
        place, corrected = f"rationale/{number}", [fact.fact for fact in self._facts if not fact.unknown]
        opened = yield Action(draft[0], node=place, skill=SPAN_SKILL, open=True, reuse=True)
        rationale = draft[0]
        if self._facts:
            self._expected_calls += 1
            request = NextRationaleRequest(question=self._task.question, corrected=corrected, draft=list(draft))
            written: SkillResult[NextRationaleReply] = yield SkillCall(
                NEXT_RATIONALE, request, f"{place}/next", opened.step_id
            )
            rationale = rationale if written.reply is None else written.reply.rationale
        passages = yield from self._retriever.retrieve(sources, RetrievalQuery(rationale, ()), place, opened.step_id)
        self._passage_sources |= {passage.id: passage.source for passage in passages}
        self._expected_calls += 1
        correction = CorrectRationaleRequest(
            question=self._task.question, corrected=corrected, rationale=rationale, passages=passages
        )
        result: SkillResult[CorrectedRationaleReply] = yield SkillCall(
            CORRECT_RATIONALE, correction, f"{place}/correct", opened.step_id
        )
        fact, how = self._to_fact(number, result.reply or CorrectedRationaleReply(rationale=rationale, unknown=True))
        self._facts.append(fact)
        yield StepCompletion(
            opened.step_id, fact.fact, {"draft": draft[0], "rationale": rationale, "how": how, **fact.model_dump()}
        )

    def _to_fact(self, number: int, reply: CorrectedRationaleReply) -> tuple[ExcavatedFact, str]:
        """A corrected rationale as a fact, and what it rests on; "not told" if it rests on nothing."""
        if reply.unknown and self._options.own == "never":
            return ExcavatedFact(number=number, question="", fact=NOT_FOUND, answers=[], unknown=True), "not told"
        how, support = "sources", list(reply.support)
        if reply.unknown:
            how = "own knowledge"
            self._own.add(number)
        elif not support:
            how = "earlier rationales"
            support = [id_ for fact in self._facts for id_ in fact.support]
            if self._own:
                self._own.add(number)
        return ExcavatedFact(number=number, question="", fact=reply.rationale, answers=[], support=support), how

    def _conclude(self) -> ReasonerGenerator:
        """Answer from the corrected rationales."""
        if all(fact.unknown for fact in self._facts):
            raise QuestionRefused(
                f"The sources tell none of the rationales that lead to: {self._task.question}", self._expected_calls
            )
        self._expected_calls += 1
        request = StateRequest(question=self._task.question, state=self._facts)
        result: SkillResult[ConcludeReply] = yield SkillCall(CONCLUDE, request, "answer")
        reply = require_answers(result, self._task.question, self._expected_calls)
        used = [fact for fact in self._facts if not fact.unknown and (not reply.used or fact.number in reply.used)]
        support = [id_ for fact in used for id_ in fact.support]
        sources = {self._passage_sources[id_] for id_ in support}
        if any(fact.number in self._own for fact in used):
            sources.add(OWN_KNOWLEDGE)
        steps = [int(id_.partition(".")[0]) for id_ in support]
        conclusion = conclude(reply.answers, steps, sources, reply.reasons)
        details = conclusion.details | self._details | ({"own_rationales": sorted(self._own)} if self._own else {})
        return FinalAnswer(conclusion.answers, details=details, expected_model_calls=self._expected_calls)
