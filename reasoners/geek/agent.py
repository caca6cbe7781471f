"""The GEEK reasoner: rounds of sub-question and fact until the facts suffice; lanes explore several ways and vote."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from showhow.db.models import SPAN_SKILL
from showhow.reasoners.base import (
    Action,
    Branch,
    CallBudget,
    Fan,
    FinalAnswer,
    Move,
    NoUsableReply,
    Parallel,
    QuestionRefused,
    ReasonerError,
    ReasonerGenerator,
    StepCompletion,
    Task,
    ask_skill,
    fit_to_budget,
)
from showhow.reasoners.geek.options import GeekOptions
from showhow.reasoners.geek.skills import (
    CONCLUDE,
    DECOMPOSE,
    EXTRACT,
    NEEDS_RETRIEVAL,
    NEXT_ACTION,
    SELF_ANSWER,
    ConcludeReply,
    DecomposeReply,
    DecomposeRequest,
    ExcavatedFact,
    ExtractRequest,
    FactReply,
    NeedsRetrievalReply,
    PlannedStep,
    StateRequest,
    SubquestionRequest,
    drop_references,
    fill_numbers,
    fold_question,
    known_references,
    list_references,
)
from showhow.reasoners.retrieval import Retriever
from showhow.reasoners.skills.skill import SkillCall, SkillResult, list_shots
from showhow.reasoners.skills.values import (
    OWN_KNOWLEDGE,
    WITHOUT_SUPPORT,
    SourcePassage,
    conclude,
    distinct_passages,
    distinct_values,
    format_values,
    lacks_support,
)
from showhow.reasoners.sources import (
    WIDER_RETRIEVALS,
    RetrievalQuery,
    SelectSourcesRequest,
    choose_sources,
    list_sources,
)

NOT_FOUND = "The sources do not tell it."
BRANCHING_ROUNDS = 2
"""The rounds in which an exploring run may branch."""


@dataclass(frozen=True, slots=True)
class _LaneResult:
    """How one lane ended."""

    reply: ConcludeReply
    state: tuple[ExcavatedFact, ...]
    failure: str | None = None
    """Why the model has no usable reply that concludes; None if it has one."""

    @property
    def key(self) -> frozenset[str]:
        """What lanes with the same answers share."""
        return frozenset(answer.key for answer in self.reply.answers) if not self.reply.unknown else frozenset({"?"})

    @property
    def cited(self) -> set[int]:
        """The positions of the steps that state its facts."""
        return {int(id_.partition(".")[0]) for fact in self.state for id_ in fact.support}

    @property
    def rests_on_model(self) -> bool:
        """Whether no source states a fact, nor the facts that it follows from."""
        stated = [fact.support or list_references(fact.question) or fact.unknown for fact in self.state]
        return not all(stated) or not self.cited


LaneGenerator = Generator[Move, Any, list[_LaneResult]]


@dataclass(frozen=True, slots=True)
class Geek:
    """The reasoner; one instance can solve many tasks at the same time."""

    options: GeekOptions = field(default_factory=GeekOptions)
    name: str = field(default="geek", init=False)

    def solve(self, task: Task) -> ReasonerGenerator:
        """Excavate facts lane by lane, and answer by the vote of the lanes."""
        sources = list_sources(task)
        if not sources and self.options.asks_sources:
            raise ReasonerError(
                "GEEK needs the tools of a source: wikisearch and read, websearch and read, or getWikiDataID, "
                "generateQuery and runQuery. Offer them in the project."
            )
        return (yield from _Excavation(self.options, task, sources).run())


class _Excavation:
    """The run of one question."""

    def __init__(self, options: GeekOptions, task: Task, sources: Sequence[str]) -> None:
        self._options = options
        self._task = task
        self._sources = sources
        self._retriever = Retriever(task, options.passages, screened=options.documents)
        self._expected_calls = 0
        self._open_lanes = 1
        self._passage_sources: dict[str, str] = {}
        self._own = True if options.own == "free" else None
        self._failures: list[str] = []
        """Why replies that state facts were not usable."""

    def run(self) -> ReasonerGenerator:
        """Follow all lanes, vote, and answer."""
        if self._options.decompose == "off":
            lanes = yield from self._end_lane((), "lane/1", None)
        else:
            lanes = yield from self._continue_lane((), "lane", None)
        return self._conclude(lanes)

    def _continue_lane(
        self, state: tuple[ExcavatedFact, ...], lane: str, span: UUID | None, planned_steps: int | None = None
    ) -> LaneGenerator:
        """Continue a lane with these facts to its end, or to the ends of the lanes that it branches into.

        The step that follows if it goes as planned, with so many sub-questions left, is made while that is decided.
        """
        place = f"{lane}/{len(state) + 1}"
        if len(state) >= self._options.rounds:
            return (yield from self._end_lane(state, place, span))
        self._expected_calls += 1
        request = StateRequest(question=self._task.question, state=list(state))
        deciding = SkillCall(NEXT_ACTION, request, f"{place}/next", span)
        ending = self._plan_conclusion(state, place, span)
        likely = ending if planned_steps == 0 else self._plan_round(state, f"{place}/decompose", span)
        calls = [deciding, likely] if self._task.may_guess_for(likely.skill.name) else [deciding]
        decided, *guessed = yield Parallel([Branch(call.skill.name, ask_skill(call)) for call in calls])
        if decided.reply is None:
            raise ReasonerError(f"GEEK cannot decide how to go on: {decided.error}")
        if decided.reply.finish:
            return (yield from self._end_lane(state, place, span, guessed if likely is ending else ()))
        width = self._full_width(state)
        if likely is ending or not guessed:
            width = yield from self._fit_to_budget(state, place, span)
            if not width:
                return (yield from self._end_lane(state, place, span))
            guessed = [(yield self._plan_round(state, f"{place}/decompose", span))]
        plans = yield from self._plan_ways(guessed[0], width, state, place, span)
        if not plans:
            return (yield from self._end_lane(state, place, span))
        if len(plans) == 1:
            return (yield from self._follow(plans[0], state, lane, span))
        self._open_lanes += len(plans) - 1
        branches = [
            Branch(str(number), self._follow(plan, state, f"{lane}.{number}", span))
            for number, plan in enumerate(plans, 1)
        ]
        results: list[list[_LaneResult]] = yield Parallel(branches)
        return [result for lanes in results for result in lanes]

    def _full_width(self, state: Sequence[ExcavatedFact]) -> int:
        return self._options.explore if len(state) < BRANCHING_ROUNDS else 1

    def _plan_ways(
        self,
        first: SkillResult[DecomposeReply],
        width: int,
        state: Sequence[ExcavatedFact],
        place: str,
        span: UUID | None,
    ) -> Generator[Move, Any, list[list[PlannedStep]]]:
        """The steps of so many ways to go on, each by a call that is told the others; none if nothing is left to ask.

        A beam of a language model would be one call; servers offer none.
        """
        self._expected_calls += 1
        if first.reply is None:
            raise NoUsableReply(f"GEEK has no next sub-question: {first.error}")
        ways: dict[str, list[PlannedStep]] = {}
        planned: SkillResult[DecomposeReply] = first
        while planned.reply is not None and (steps := planned.reply.list_open_steps(state)):
            if (key := fold_question(steps[0].question)) in ways:
                break
            ways[key] = steps
            if len(ways) == width:
                break
            self._expected_calls += 1
            others = [way[0].question for way in ways.values()]
            planned = yield self._plan_round(state, f"{place}/decompose{len(ways) + 1}", span, others)
        return list(ways.values())

    def _plan_round(
        self, state: Sequence[ExcavatedFact], node: str, span: UUID | None, others: Sequence[str] = ()
    ) -> SkillCall[Any, Any]:
        """The call for a way to go on that begins otherwise than the others."""
        planning = DecomposeRequest(question=self._task.question, state=list(state), others=list(others))
        # A shot decomposes a whole question, which is the task of the first round only.
        shots = () if state or others else list_shots(DECOMPOSE, self._task.demonstrations)
        return SkillCall(DECOMPOSE, planning, node, span, shots=shots)

    def _plan_conclusion(self, state: Sequence[ExcavatedFact], place: str, span: UUID | None) -> SkillCall[Any, Any]:
        request = StateRequest(question=self._task.question, state=list(state), own=self._own)
        return SkillCall(CONCLUDE, request, f"{place}/conclude", span)

    def _fit_to_budget(
        self, state: tuple[ExcavatedFact, ...], place: str, span: UUID | None
    ) -> Generator[Move, Any, int]:
        """How many different sub-questions this round may follow; 0 if the lane has to conclude from its facts."""
        width = self._full_width(state)
        sources = len(self._sources)
        # The sub-question, whether to retrieve, where, and the fact; then whether to go on, and the conclusion.
        a_lane = CallBudget(5 + (sources > 1), sources * 2)
        lanes = Fan("sub-questions of a round", width, a_lane, sharers=self._open_lanes, least=0)
        return (yield from fit_to_budget(self._task, lanes, f"{place}/budget", span))

    def _follow(
        self, steps: Sequence[PlannedStep], state: tuple[ExcavatedFact, ...], lane: str, span: UUID | None
    ) -> LaneGenerator:
        """Answer the first sub-question of a plan, and continue from there."""
        fact = yield from self._excavate(steps[0], state, f"{lane}/{len(state) + 1}", span)
        return (yield from self._continue_lane((*state, fact), lane, span, len(steps) - 1))

    def _excavate(
        self, step: PlannedStep, state: tuple[ExcavatedFact, ...], place: str, parent: UUID | None
    ) -> Generator[Move, Any, ExcavatedFact]:
        """Answer a sub-question in a span of its own."""
        question = fill_numbers(step.question, state)
        opened = yield Action(question, parent=parent, node=place, skill=SPAN_SKILL, open=True, reuse=True)
        fact, how = yield from self._find_fact(step, question, state, place, opened.step_id)
        yield StepCompletion(
            opened.step_id,
            fact.fact,
            {**fact.model_dump(), "question": question, "planned": step.question, "pseudo": step.pseudo, "how": how},
        )
        return fact

    def _find_fact(
        self, step: PlannedStep, question: str, state: tuple[ExcavatedFact, ...], place: str, span: UUID
    ) -> Generator[Move, Any, tuple[ExcavatedFact, str]]:
        references = dict(known_references(step.question, state))
        asked = SubquestionRequest(
            question=question, planned=step.question, references=references, state=list(state), own=self._own
        )
        number = len(state) + 1
        if self._options.retrieve == "off":
            return (yield from self._answer_itself(number, step, asked, place, span))
        # Most sub-questions are looked up, so their sources are chosen while that is being decided.
        selecting = choose_sources(self._sources, SelectSourcesRequest(question=question), f"{place}/select", span)
        needing = ask_skill(SkillCall(NEEDS_RETRIEVAL, asked, f"{place}/needs", span))
        decided, (sources, calls) = yield Parallel([Branch("needs", needing), Branch("select", selecting)])
        needs: NeedsRetrievalReply | None = decided.reply
        self._expected_calls += 1 + calls
        # Nothing follows from no fact, unless the model may know it itself.
        is_known = self._own or any(not fact.unknown for fact in state)
        if needs is not None and not needs.retrieve and is_known:
            return (yield from self._answer_itself(number, step, asked, place, span))
        heads = distinct_values(value for values in references.values() for value in values)
        words = drop_references(step.question) if heads else ""
        context = self._task.question if self._options.search == "both" else ""
        query = RetrievalQuery(question, heads, words, names=step.names, context=context)
        passages: list[SourcePassage] = yield from self._retriever.retrieve(sources, query, place, span)
        reply = yield from self._extract(step, asked, passages, place, span)
        self._expected_calls += 1
        if self._options.second_look == "off":
            return _to_fact(number, step, reply), "retrieved"
        others = [source for source in self._sources if source not in sources]
        if (reply is None or reply.unknown) and others:
            passages += yield from self._retriever.retrieve(others, query, f"{place}/other", span)
            reply = yield from self._extract(step, asked, passages, f"{place}/other", span)
        if (reply is None or reply.unknown) and (yield from self._may_look_again(asked, place, span)):
            wider = yield from self._retriever.retrieve_wider(self._sources, query, f"{place}/again", span)
            passages = distinct_passages([*passages, *wider])
            reply = yield from self._extract(step, asked, passages, f"{place}/again", span)
            return _to_fact(number, step, reply), "wider search"
        return _to_fact(number, step, reply), "retrieved"

    def _answer_itself(
        self, number: int, step: PlannedStep, asked: SubquestionRequest, place: str, span: UUID
    ) -> Generator[Move, Any, tuple[ExcavatedFact, str]]:
        self._expected_calls += 1
        own = yield from self._retriever.ask_for_answers(SkillCall(SELF_ANSWER, asked, f"{place}/self", span))
        self._note_failure(own)
        return _to_fact(number, step, own.reply), "concluded"

    def _note_failure(self, result: SkillResult[Any]) -> None:
        if result.fallback is not None and result.error not in (None, WITHOUT_SUPPORT):
            self._failures.append(str(result.error))

    def _may_look_again(self, asked: SubquestionRequest, place: str, span: UUID) -> Generator[Move, Any, bool]:
        """Whether what is asked about is known, and the budget has room for a wider retrieval and one more call."""
        if any(fact.unknown and fact.number in asked.references for fact in asked.state):
            return False
        cost = CallBudget(1, WIDER_RETRIEVALS * len(self._sources))
        look = Fan("wider retrievals", 1, cost, CallBudget(2, 0), self._open_lanes, least=0)
        return bool((yield from fit_to_budget(self._task, look, f"{place}/again/budget", span)))

    def _extract(
        self,
        step: PlannedStep,
        asked: SubquestionRequest,
        passages: Sequence[SourcePassage],
        place: str,
        span: UUID,
    ) -> Generator[Move, Any, FactReply | None]:
        self._passage_sources |= {passage.id: passage.source for passage in passages}
        request = ExtractRequest(**asked.model_dump(exclude={"own"}), pseudo=step.pseudo, passages=list(passages))
        extracted = yield from self._retriever.ask_for_answers(SkillCall(EXTRACT, request, f"{place}/extract", span))
        self._note_failure(extracted)
        return extracted.reply

    def _end_lane(
        self,
        state: tuple[ExcavatedFact, ...],
        place: str,
        span: UUID | None,
        guessed: Sequence[SkillResult[ConcludeReply]] = (),
    ) -> LaneGenerator:
        """The answers of a lane, by a call unless it was made before."""
        self._expected_calls += 1
        self._open_lanes -= 1
        concluded = guessed[0] if guessed else (yield self._plan_conclusion(state, place, span))
        reply = concluded.reply or ConcludeReply(reasons="", answers=[], unknown=True)
        return [_LaneResult(reply, state, concluded.error if concluded.fallback else None)]

    def _conclude(self, lanes: Sequence[_LaneResult]) -> FinalAnswer:
        usable = [lane for lane in lanes if lane.failure is None]
        if not usable:
            raise NoUsableReply(f"The model gave no usable conclusion: {lanes[0].failure}")
        winner, votes = _vote(usable)
        if winner.reply.unknown and self._failures:
            raise NoUsableReply(f"The facts do not tell the answer, and replies were not usable: {self._failures[0]}")
        if winner.reply.unknown:
            raise QuestionRefused(f"The facts do not tell the answer to: {self._task.question}", self._expected_calls)
        sources = {self._passage_sources[id_] for fact in winner.state for id_ in fact.support}
        if not self._own and not sources and lacks_support(winner.reply):
            raise QuestionRefused(
                f"No source states what the answer rests on: {self._task.question}", self._expected_calls
            )
        if self._own and winner.rests_on_model:
            sources.add(OWN_KNOWLEDGE)
        conclusion = conclude(winner.reply.answers, winner.cited, sources, winner.reply.reasons)
        details = conclusion.details | ({"votes": votes} if len(lanes) > 1 else {})
        return FinalAnswer(conclusion.answers, details=details, expected_model_calls=self._expected_calls)


def _to_fact(number: int, step: PlannedStep, reply: FactReply | None) -> ExcavatedFact:
    if reply is None or reply.unknown:
        return ExcavatedFact(number=number, question=step.question, fact=NOT_FOUND, answers=[], unknown=True)
    fact = reply.fact or f"{step.question} {format_values(reply.answers)}."
    return ExcavatedFact(
        number=number, question=step.question, fact=fact, answers=reply.answers, support=list(reply.support)
    )


def _vote(lanes: Sequence[_LaneResult]) -> tuple[_LaneResult, dict[str, int]]:
    """The lane whose answers most lanes share; of a tie the better supported one, then the first."""
    votes: dict[frozenset[str], list[_LaneResult]] = {}
    for lane in lanes:
        votes.setdefault(lane.key, []).append(lane)
    groups = sorted(votes.values(), key=lambda group: (-len(group), -max(len(lane.cited) for lane in group)))
    counts = {format_values(group[0].reply.answers): len(group) for group in groups}
    return groups[0][0], counts
