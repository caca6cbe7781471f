"""The PDRR reasoner: a question becomes triples, whose unknowns are completed as sets, in chains or in a beam."""

from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
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
    Task,
    fit_to_budget,
)
from showhow.reasoners.pdrr.facts import (
    GRAPH_STEP_TOOLS,
    VALUE_TOOLS,
    OpenTriple,
    TripleFactFinder,
    TripleFacts,
    close_triple,
)
from showhow.reasoners.pdrr.options import GOLD_STRUCTURES, PdrrOptions
from showhow.reasoners.pdrr.skills import (
    ANSWER_TRIPLES,
    BEST_CHAIN,
    PRUNE_TRIPLES,
    STRUCTURE,
    TRIPLES,
    AnswerTriplesRequest,
    BestChainReply,
    BestChainRequest,
    CandidateFact,
    CompletedTriple,
    NumberedChain,
    OfferedFact,
    PdrrQuestion,
    PruneTriplesReply,
    PruneTriplesRequest,
    Structure,
    StructureReply,
    TriplesReply,
    TriplesRequest,
)
from showhow.reasoners.pdrr.triples import (
    ScheduledTriple,
    fits_end,
    is_unknown,
    join_values,
    list_ancestors,
    name_owners,
    schedule_independently,
    schedule_triples,
)
from showhow.reasoners.skills.skill import SkillCall, SkillResult, list_shots
from showhow.reasoners.skills.values import (
    OWN_KNOWLEDGE,
    WITHOUT_SUPPORT,
    AnswerValue,
    ReasonedReply,
    SourcePassage,
    conclude,
    conclude_from_passages,
    distinct_values,
    lacks_support,
)
from showhow.reasoners.sources import list_sources

MAX_FACTS_SHOWN = 100
"""Facts that the prompt of the answer shows."""


@dataclass(frozen=True, slots=True)
class Pdrr:
    """The reasoner; one instance can solve many tasks at the same time."""

    options: PdrrOptions = field(default_factory=PdrrOptions)
    name: str = field(default="pdrr", init=False)

    def solve(self, task: Task) -> ReasonerGenerator:
        """Predict the structure, write the triples, complete them, and answer."""
        offered = {tool.name for tool in task.tools}
        sources = [source for source in list_sources(task) if source != "graph" and self.options.texts == "on"]
        tools = GRAPH_STEP_TOOLS if self.options.mode == "set" else (*GRAPH_STEP_TOOLS, *VALUE_TOOLS)
        has_graph = offered.issuperset(tools)
        if not has_graph and not sources and self.options.retrieve == "on":
            texts = ", or the tools that search texts" if self.options.texts == "on" else ""
            raise ReasonerError(f"PDRR needs {', '.join(tools)}{texts}. Offer them in the project.")
        as_sentences = self.options.facts == "sentences"
        finder = TripleFactFinder(task, sources, self.options.passages, has_graph=has_graph, as_sentences=as_sentences)
        return (yield from _TripleRun(self.options, task, finder).run())


@dataclass(frozen=True, slots=True)
class _Chain:
    """Facts that continue from each other, one for each triple that has one so far."""

    facts: Mapping[int, CandidateFact] = field(default_factory=dict)
    """By the number of the triple."""
    values: Mapping[str, AnswerValue] = field(default_factory=dict)
    """By the unknown."""
    score: float = 1.0
    """The product of the scores of its facts."""
    missing: int = 0
    """Triples for which it has no fact."""

    @property
    def rank(self) -> tuple[int, float]:
        """Orders chains, the best one first."""
        return self.missing, -self.score

    def extend(self, entry: ScheduledTriple, fact: CandidateFact, score: float) -> "_Chain":
        """The chain with a fact of one more triple."""
        values = {**self.values, entry.other_end: fact.other} if is_unknown(entry.other_end) else self.values
        return replace(self, facts={**self.facts, entry.number: fact}, values=values, score=self.score * score)

    def to_json(self, *, pruned: bool) -> dict[str, Any]:
        """The chain as the step of its last triple stores it."""
        return {"facts": "; ".join(map(str, self.facts.values())), "score": self.score, "pruned": pruned}


@dataclass(slots=True)
class _ChainStep:
    """What one chain has of a triple: the facts that fit it, of which those that are kept have a score."""

    chain: _Chain
    place: str
    facts: TripleFacts = field(default_factory=TripleFacts)
    fitting: list[CandidateFact] = field(default_factory=list)
    kept: list[tuple[CandidateFact, float]] = field(default_factory=list)


class _TripleRun:
    """Completes the triples of one question."""

    def __init__(self, options: PdrrOptions, task: Task, finder: TripleFactFinder) -> None:
        self._options = options
        self._task = task
        self._finder = finder
        self._scheduled: Sequence[ScheduledTriple] = ()
        self._values: dict[str, list[AnswerValue]] = {}
        self._facts = finder.completed
        self._expected_calls = 2

    def run(self) -> ReasonerGenerator:
        """Complete the triples in the order that they allow, and answer."""
        structure = yield from self._find_structure()
        request = TriplesRequest(question=self._task.question, structure=structure)
        shots = list_shots(TRIPLES, self._task.demonstrations)
        decomposed: SkillResult[TriplesReply] = yield SkillCall(TRIPLES, request, "triples", shots=shots)
        if decomposed.reply is None:
            raise NoUsableReply(f"The question could not be written as triples: {decomposed.error}")
        plan = decomposed.reply
        # Sets and beams follow the order that the triples themselves have; the published method that of the structure.
        if self._options.retrieve == "off":
            self._facts.update({number: TripleFacts() for number in range(len(plan.triples))})
        elif self._options.mode == "set":
            yield from self._complete_together(schedule_triples(plan.triples), self._options.relations)
        elif self._options.mode == "published" and structure == "parallel":
            scheduled = schedule_independently(plan.triples)
            yield from self._leave_out(plan, {entry.number for entry in scheduled})
            yield from self._complete_together(scheduled, 1)
        else:
            yield from self._follow_chains(plan)
        return (yield from self._answer(plan))

    def _find_structure(self) -> Generator[Move, Any, Structure]:
        """The structure that the question is decomposed by: predicted, that of the data set, or the same for all."""
        option = self._options.structure
        if option == "predicted":
            self._expected_calls += 1
            request = PdrrQuestion(question=self._task.question)
            predicted: SkillResult[StructureReply] = yield SkillCall(STRUCTURE, request, "structure")
            return "parallel" if predicted.reply is None else predicted.reply.structure
        if option == "gold":
            option = GOLD_STRUCTURES.get((self._task.gold_type or "").casefold(), "")
            if not option:
                types = ", ".join(GOLD_STRUCTURES)
                raise ReasonerError(f"structure=gold needs a question whose data set tells its type: {types}.")
        return "chain" if option == "chain" else "parallel"

    def _leave_out(self, plan: TriplesReply, completed: Collection[int]) -> Generator[Move, Any, None]:
        """Leave triples without an end that the question names without facts, as a step of the trace tells."""
        for number, triple in enumerate(plan.triples):
            if number not in completed:
                self._facts[number] = TripleFacts(kept=[])
                yield Action(
                    f"I go on without {triple}: the question names none of its ends.",
                    node=f"triple/{number + 1}/left_out",
                    data={"triple": triple.model_dump()},
                    reuse=True,
                )

    def _complete_together(self, scheduled: Sequence[ScheduledTriple], keep: int) -> Generator[Move, Any, None]:
        """Complete all triples, each as soon as its known end is; QuestionRefused if the budget is too small."""
        fan = Fan("triples", len(scheduled), self._finder.triple_cost, CallBudget(1, 0), least=0)
        if (yield from fit_to_budget(self._task, fan, "budget/triples", None)) < len(scheduled):
            raise self._refuse_for_budget()
        self._finder.reserved_calls = len(scheduled) + 1
        self._scheduled = scheduled
        yield from self._complete_all("", keep)
        if self._finder.unread:
            raise self._refuse_for_budget()

    def _look_again(self) -> Generator[Move, Any, bool]:
        """Complete the triples anew from a wider retrieval; returns whether the budget has room for that."""
        cost = CallBudget(1, self._finder.wider_retrievals)
        fan = Fan("triples to look up again", len(self._scheduled), cost, CallBudget(1, 0), least=0)
        if (yield from fit_to_budget(self._task, fan, "budget/again", None)) < len(self._scheduled):
            return False
        before = self._finder.completions
        yield from self._complete_all("/again", None)
        self._expected_calls += self._finder.completions - before + 1
        return True

    def _complete_all(self, suffix: str, keep: int | None) -> Generator[Move, Any, None]:
        """Complete the triples, each as soon as its known end is; anew if no number of relations to keep is given."""
        triples: dict[int, OpenTriple] = {}
        for entry in self._scheduled:
            place, span = yield from self._open(entry, suffix)
            triples[entry.number] = OpenTriple(entry, place, span)
        self._finder.triples = triples
        yield Parallel(
            [
                Branch(str(number), self._complete(triple, keep), frozenset(map(str, triple.entry.after)))
                for number, triple in triples.items()
            ]
        )
        self._values = self._join(self._scheduled)

    def _refuse_for_budget(self) -> QuestionRefused:
        return QuestionRefused(
            f"The budget has no room for all facts that lead to the answer to: {self._task.question}",
            self._expected_calls - 1 + self._finder.expected_calls,
        )

    def _complete(self, triple: OpenTriple, keep: int | None) -> Generator[Move, Any, None]:
        """Complete one triple in its span."""
        entry, place, span = triple.entry, triple.place, triple.span
        # Only what it waited for is joined here, so that what is looked up and shown does not depend on who is faster.
        sources = list_ancestors(entry, self._scheduled)
        if is_unknown(entry.known_end):
            known = self._join(sources)[entry.known_end]
        else:
            known = yield from self._finder.know(entry.known_end, place, span)
        if keep is None:
            facts = yield from self._finder.look_again(triple, known)
        elif self._options.mode == "set":
            facts = yield from self._finder.find_for_set(triple, known, keep)
        else:
            facts = yield from self._finder.find_for_value(entry, known[0], keep, place, span)
        facts.pairs = name_owners(facts.pairs, known)
        self._facts[entry.number] = facts
        values = self._join([*sources, entry])
        yield close_triple(span, entry, facts, {end: values[end] for end in entry.triple.unknowns})

    def _open(self, entry: ScheduledTriple, suffix: str = "") -> Generator[Move, Any, tuple[str, UUID]]:
        place = f"triple/{entry.number + 1}{suffix}"
        opened = yield Action(str(entry.triple), node=place, skill=SPAN_SKILL, open=True, reuse=True)
        return place, opened.step_id

    def _join(self, entries: Sequence[ScheduledTriple]) -> dict[str, list[AnswerValue]]:
        """The values of the unknowns of completed triples."""
        return join_values([(entry, self._facts[entry.number].pairs) for entry in entries])

    def _follow_chains(self, plan: TriplesReply) -> Generator[Move, Any, None]:
        """Complete the triples one after the other, of each chain with few facts; set what the chains have of them."""
        chains, was_cut = [_Chain()], False
        scheduled = schedule_triples(plan.triples)
        for position, entry in enumerate(scheduled):
            left = len(scheduled) - position - 1
            chains, is_cut = yield from self._extend_chains(entry, chains, left)
            was_cut |= is_cut
        if all(chain.missing for chain in chains) and (was_cut or self._finder.unread):
            raise self._refuse_for_budget()
        if self._options.best_chain == "on" and len(chains) > 1:
            chains = yield from self._choose_chain(plan, chains)
        for entry in scheduled:
            facts = self._facts[entry.number]
            own = [chain.facts[entry.number] for chain in chains if entry.number in chain.facts]
            facts.kept = list(dict.fromkeys(own))
            support = {id_ for fact in facts.kept for id_ in fact.support}
            facts.passages = [passage for passage in facts.passages if passage.id in support]
        unknowns = dict.fromkeys(unknown for triple in plan.triples for unknown in triple.unknowns)
        self._values = {unknown: _bound_values(unknown, chains) for unknown in unknowns}

    def _extend_chains(
        self, entry: ScheduledTriple, chains: Sequence[_Chain], triples_left: int
    ) -> Generator[Move, Any, tuple[list[_Chain], bool]]:
        """Add a fact of this triple to each chain, which may branch; returns the chains, and whether some were cut."""
        # A chain without the known end goes on with an empty triple, which takes no call.
        going_on = sorted(
            (chain for chain in chains if not is_unknown(entry.known_end) or entry.known_end in chain.values),
            key=lambda chain: chain.rank,
        )
        broken = [chain for chain in chains if chain not in going_on]
        place, span = yield from self._open(entry)
        ending = 1 + (self._options.best_chain == "on")
        # Of a chain the relations both ways and the facts, then one chain to the end; a name is looked up once.
        reserve = CallBudget(2 * triples_left + ending, 3 * triples_left + 1)
        fan = Fan("chains", len(going_on), CallBudget(2, 3), reserve, least=0)
        affordable = yield from fit_to_budget(self._task, fan, f"{place}/budget", span)
        self._finder.reserved_calls = 2 * (affordable + triples_left) + ending
        named = None
        if not is_unknown(entry.known_end) and affordable:
            (named,) = yield from self._finder.know(entry.known_end, place, span)
        steps = [_ChainStep(chain, f"{place}/chain{number}") for number, chain in enumerate(going_on[:affordable], 1)]
        yield Parallel([Branch(step.place, self._find_fitting(step, entry, named, span)) for step in steps])
        yield from self._prune(steps, entry, span)
        extended = [step.chain.extend(entry, fact, score) for step in steps for fact, score in step.kept]
        without = [step.chain for step in steps if not step.kept] + broken
        extended += [replace(chain, missing=chain.missing + 1) for chain in without]
        extended.sort(key=lambda chain: chain.rank)
        kept = extended[: self._options.width] if self._options.mode == "beam" else extended
        cut = extended[len(kept) :] + going_on[affordable:]
        facts = TripleFacts(
            passages=[passage for step in steps for passage in step.facts.passages],
            relations=list(dict.fromkeys(relation for step in steps for relation in step.facts.relations)),
            from_graph=all(step.facts.from_graph for step in steps),
            kept=list(dict.fromkeys(fact for step in steps for fact, _ in step.kept)),
            left_out=sum(step.facts.left_out for step in steps),
        )
        self._facts[entry.number] = facts
        values = {unknown: _bound_values(unknown, kept) for unknown in entry.triple.unknowns}
        rows = [chain.to_json(pruned=False) for chain in kept] + [chain.to_json(pruned=True) for chain in cut]
        yield close_triple(span, entry, facts, values, rows)
        return kept, affordable < len(going_on)

    def _find_fitting(
        self, step: _ChainStep, entry: ScheduledTriple, named: AnswerValue | None, span: UUID
    ) -> Generator[Move, Any, None]:
        """Find the facts of a triple about the value that a chain has, and those that fit the chain."""
        known = named or step.chain.values[entry.known_end]
        step.facts = yield from self._finder.find_for_value(entry, known, self._options.relations, step.place, span)
        bound = step.chain.values.get(entry.other_end)
        step.fitting = [
            fact
            for fact in step.facts.kept or ()
            if fits_end(fact.other.text, entry.other_end) and (bound is None or fact.other.key == bound.key)
        ]

    def _prune(self, steps: Sequence[_ChainStep], entry: ScheduledTriple, span: UUID) -> Generator[Move, Any, None]:
        """Choose the facts to keep: of a beam among all chains, else of each chain that has too many."""
        if self._options.mode == "beam":
            keep, has_room = self._options.width, sum(len(step.fitting) for step in steps) <= self._options.width
            crowded = [] if has_room else [step for step in steps if step.fitting]
        else:
            keep = self._options.triples
            crowded = [step for step in steps if len(step.fitting) > keep]
        for step in steps:
            if step not in crowded:
                step.kept = [(fact, 1.0) for fact in step.fitting]
        self._expected_calls += len(crowded)
        yield Parallel([Branch(step.place, self._prune_one(step, entry, keep, span)) for step in crowded])

    def _prune_one(self, step: _ChainStep, entry: ScheduledTriple, keep: int, span: UUID) -> Generator[Move, Any, None]:
        offered = dict(enumerate(step.fitting, 1))
        request = PruneTriplesRequest(
            question=self._task.question,
            triple=entry.triple,
            known=step.fitting[0].known,
            known_is="subject" if entry.from_subject else "object",
            facts=[
                OfferedFact(number=number, relation=fact.relation, other=fact.other) for number, fact in offered.items()
            ],
            keep=keep,
        )
        pruned: SkillResult[PruneTriplesReply] = yield SkillCall(PRUNE_TRIPLES, request, f"{step.place}/prune", span)
        self._finder.note_failure(pruned)
        chosen = [] if pruned.reply is None else pruned.reply.facts
        step.kept = [(offered[choice.number], choice.score) for choice in chosen if choice.score > 0]

    def _choose_chain(self, plan: TriplesReply, chains: Sequence[_Chain]) -> Generator[Move, Any, list[_Chain]]:
        """The chain that a call chooses."""
        self._expected_calls += 1
        numbered = dict(enumerate(sorted(chains, key=lambda chain: chain.rank), 1))
        request = BestChainRequest(
            question=self._task.question,
            triples=plan.triples,
            answer=plan.answer,
            chains=[
                NumberedChain(number=number, facts=list(chain.facts.values())) for number, chain in numbered.items()
            ],
        )
        chosen: SkillResult[BestChainReply] = yield SkillCall(BEST_CHAIN, request, "best_chain")
        number = None if chosen.reply is None else chosen.reply.chain
        return list(chains) if number is None else [numbered[number]]

    def _answer(self, plan: TriplesReply) -> ReasonerGenerator:
        question = self._task.question
        answered, passages = yield from self._ask_answer(plan, "answer")
        is_unknown_to_model = answered.fallback is None and answered.reply is not None and answered.reply.unknown
        may_look = self._options.mode == "set" and self._options.retrieve == "on" and is_unknown_to_model
        if may_look and (yield from self._look_again()):
            answered, passages = yield from self._ask_answer(plan, "answer/again")
        calls, reply = self._expected_calls + self._finder.expected_calls, answered.reply
        is_bare = answered.error == WITHOUT_SUPPORT if reply is None or answered.fallback else lacks_support(reply)
        if is_bare and self._options.own == "never":
            raise QuestionRefused(f"The model names no fact on which its answer rests to: {question}", calls)
        if answered.fallback is not None:
            raise NoUsableReply(f"The model gave no usable answer: {answered.error}")
        if reply is None or reply.unknown:
            if self._finder.failures:
                reason = self._finder.failures[0]
                raise NoUsableReply(f"The facts do not tell the answer, and replies were not usable: {reason}")
            raise QuestionRefused(f"The facts do not tell the answer to: {question}", calls)
        if self._options.own == "free" and not reply.support:
            conclusion = conclude(reply.answers, (), {OWN_KNOWLEDGE}, reply.reasons)
        else:
            conclusion = conclude_from_passages(reply, passages, reply.reasons)
        return FinalAnswer(conclusion.answers, details=conclusion.details, expected_model_calls=calls)

    def _ask_answer(
        self, plan: TriplesReply, place: str
    ) -> Generator[Move, Any, tuple[SkillResult[ReasonedReply], list[SourcePassage]]]:
        """The reply to the completed triples, and the passages that it may rest on."""
        passages = list(
            {passage.id: passage for _, facts in sorted(self._facts.items()) for passage in facts.passages}.values()
        )
        request = AnswerTriplesRequest(
            question=self._task.question,
            triples=[
                CompletedTriple(
                    triple=triple,
                    relations=self._facts[number].relations,
                    facts=[passage.id for passage in self._facts[number].passages],
                    from_graph=self._facts[number].from_graph,
                    kept=None if self._options.facts == "sentences" else self._facts[number].kept,
                )
                for number, triple in enumerate(plan.triples)
            ],
            answer=plan.answer,
            values=self._values,
            passages=passages[:MAX_FACTS_SHOWN],
            own=True if self._options.own == "free" else None,
        )
        answered: SkillResult[ReasonedReply] = yield SkillCall(ANSWER_TRIPLES, request, place)
        return answered, passages


def _bound_values(unknown: str, chains: Sequence[_Chain]) -> list[AnswerValue]:
    """The different values that chains have of an unknown."""
    return distinct_values(chain.values[unknown] for chain in chains if unknown in chain.values)
