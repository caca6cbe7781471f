"""Baselines that walk through the graph without a beam: Plan-on-Graph (PoG), StructGPT, Think-on-Graph 2 (ToG-2)."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass, field
from typing import Any

from showhow.reasoners.base import (
    NOTHING,
    Branch,
    CallBudget,
    Fan,
    FinalAnswer,
    Move,
    Parallel,
    ReasonerGenerator,
    Task,
    fit_to_budget,
)
from showhow.reasoners.baselines.graph_skills import (
    MEMORY,
    OBJECTIVES,
    OWN_CHOICES,
    REFLECT,
    STEP_TOOLS,
    VALUE_TOOLS,
    Objective,
    ReflectRequest,
    WalkState,
    WalkTrail,
    WeighedRelation,
    keep_best,
    require_tools,
)
from showhow.reasoners.baselines.graph_walks import GraphWalk
from showhow.reasoners.baselines.single_call import sample_chains, vote_over_sets
from showhow.reasoners.baselines.skills import require_reply
from showhow.reasoners.humaniq.options import (
    AgentOptionsError,
    check_at_least,
    check_choices,
    check_positive,
    check_temperature,
    choice,
)
from showhow.reasoners.skills.values import (
    OWN_KNOWLEDGE,
    AnswerValue,
    SourcePassage,
    conclude,
    distinct_values,
)
from showhow.reasoners.sources import BareQuestion

MAX_LISTED = 20
"""Entities of a set whose relations StructGPT lists; things of one kind have much the same relations."""
MAX_CHOSEN_AMONG = 100
"""Facts of one call in which Plan-on-Graph chooses."""


@dataclass(frozen=True, slots=True)
class PogOptions:
    """The options of Plan-on-Graph, with the published depth, returns and temperature."""

    depth: int = 4
    """The most hops from the entities of the question."""
    breadth: int = 40
    """The most entities to which a hop leads, however many may help; not of the paper."""
    returns: int = 5
    """How often the walk may go back to earlier entities."""
    temperature: float = 0.3
    """The temperature of the calls."""
    own: str = choice("never", OWN_CHOICES)
    """Whether own knowledge answers at the end: never, fallback."""
    skill_shots: int = 0
    """Answered requests of other questions that each skill is shown."""

    def __post_init__(self) -> None:
        check_positive(depth=self.depth, breadth=self.breadth)
        check_at_least(0, returns=self.returns, skill_shots=self.skill_shots)
        check_temperature(self.temperature)
        check_choices(self)


@dataclass(frozen=True, slots=True)
class Pog:
    """A walk as broad as its objectives need, with a memory of what they show; it may go back to earlier entities."""

    options: PogOptions = field(default_factory=PogOptions)
    name: str = field(default="pog", init=False)

    def solve(self, task: Task) -> ReasonerGenerator:
        """Split the question into objectives, and walk until the facts suffice."""
        require_tools(task, "PoG", VALUE_TOOLS)
        walk = GraphWalk(task, temperature=self.options.temperature, sample_from=MAX_CHOSEN_AMONG)
        result = yield from walk.ask(OBJECTIVES, BareQuestion(question=task.question), "objectives")
        plan = require_reply(result)
        walk.objectives = [Objective(objective=objective) for objective in plan.objectives]
        frontier = yield from walk.begin(plan.topics)
        earlier = list(frontier)
        hop = returns = 0
        # The relations of an entity are a call; then the facts, the memory, enough, and the answer.
        calls = CallBudget(1, 2), CallBudget(4, 1)
        while hop < self.options.depth and (frontier := (yield from walk.fit_entities(hop + 1, frontier, *calls))):
            hop += 1
            trails, frontier = yield from self._make_hop(walk, hop, frontier)
            if (yield from walk.ask_enough(f"hop/{hop}")):
                return (yield from walk.answer())
            reached = [entry.fact.other for trail in trails for entry in trail.facts]
            earlier = distinct_values([*earlier, *(value for value in reached if value.entity is not None)])
            if returns < self.options.returns and hop < self.options.depth:
                back = yield from self._reflect(walk, hop, frontier, earlier, self.options.returns - returns)
                returns += bool(back)
                frontier = distinct_values([*frontier, *back])
        return (yield from walk.end_without_answer(self.options.own, hop))

    def _make_hop(
        self, walk: GraphWalk, number: int, entities: Sequence[AnswerValue]
    ) -> Generator[Move, Any, tuple[list[WalkTrail], list[AnswerValue]]]:
        """Follow every relation that may help, keep every fact that may, and note what they show."""
        place, span = yield from walk.open_hop(number, entities)
        stands = yield from walk.stand_at(entities, place, span, score=True)
        best = keep_best([relation for stand in stands for relation in stand.relations])
        yield from walk.fit_relations(best, place, span, (CallBudget(0, 1), NOTHING))
        trails = yield from walk.follow(stands, walk.follow_one)
        facts = [fact for trail in trails for fact in trail.facts]
        shown = facts[:MAX_CHOSEN_AMONG]
        yield from walk.score_facts(shown, place, span)
        reached = walk.keep(entry.fact for entry in keep_best(shown))
        frontier = reached[: self.options.breadth]
        left_out = len(facts) - len(shown) + len(reached) - len(frontier)
        yield from walk.close_hop(span, stands, trails, (frontier, left_out))
        noted = yield from walk.ask_or_fall_back(MEMORY, WalkState(**walk.state), f"{place}/memory")
        walk.objectives = noted.objectives
        return trails, frontier

    @staticmethod
    def _reflect(
        walk: GraphWalk, hop: int, frontier: Sequence[AnswerValue], earlier: Sequence[AnswerValue], left: int
    ) -> Generator[Move, Any, list[AnswerValue]]:
        """The earlier entities to go back to."""
        others = [value for value in earlier if value.key not in {entity.key for entity in frontier}]
        request = ReflectRequest(**walk.state, frontier=list(frontier), earlier=others, left=left)
        reply = yield from walk.ask_or_fall_back(REFLECT, request, f"hop/{hop}/reflect")
        return [value for value in others if value.key in set(reply.entities)]


@dataclass(frozen=True, slots=True)
class StructGptOptions:
    """The options of StructGPT."""

    hops: int = 3
    """The most hops from the entities of the question."""
    relations: int = 4
    """Relations that a hop follows."""
    facts: int = 100
    """Facts of a hop that are shown; those that come later are dropped."""
    skill_shots: int = 0
    """Answered requests of other questions that each skill is shown."""

    def __post_init__(self) -> None:
        check_positive(hops=self.hops, relations=self.relations, facts=self.facts)
        check_at_least(0, skill_shots=self.skill_shots)


@dataclass(frozen=True, slots=True)
class StructGpt:
    """Relations, a choice of them, their facts, and an answer or the next hop; sets of entities stay whole."""

    options: StructGptOptions = field(default_factory=StructGptOptions)
    name: str = field(default="structgpt", init=False)

    def solve(self, task: Task) -> ReasonerGenerator:
        """Walk until the facts answer the question."""
        require_tools(task, "StructGPT", (*STEP_TOOLS, "runQuery"))
        walk = GraphWalk(task)
        frontier = yield from walk.name_topics()
        hop = 0
        # The relations are one call, and the answer is another.
        calls = CallBudget(0, 2), CallBudget(2, 1)
        while hop < self.options.hops and (
            listed := (yield from walk.fit_entities(hop + 1, frontier[:MAX_LISTED], *calls))
        ):
            hop += 1
            kept, frontier = yield from self._make_hop(walk, hop, frontier, len(listed))
            if not kept:
                break
            verdict = yield from walk.ask_verdict(f"hop/{hop}", self.options.hops - hop)
            if not verdict.unknown:
                return walk.conclude(verdict)
        return (yield from walk.end_without_answer("never", hop))

    def _make_hop(
        self, walk: GraphWalk, number: int, entities: Sequence[AnswerValue], listed: int
    ) -> Generator[Move, Any, tuple[int, list[AnswerValue]]]:
        """Follow the relations chosen among those of the first `listed` entities from all entities at once.

        Returns the number of facts, and their other ends.
        """
        place, span = yield from walk.open_hop(number, entities)
        stands = yield from walk.stand_at(entities[:listed], place, span, score=False)
        yield from walk.score_relations(stands, place, span)
        chosen = _choose_relations([relation for stand in stands for relation in stand.relations])
        best = chosen[: self.options.relations]
        followed = yield from walk.fit_relations(best, place, span, (CallBudget(0, 1), NOTHING))
        trails = yield Parallel(
            [
                Branch(str(rank), walk.follow_all(entities, relation, f"{place}/r{rank}", span))
                for rank, relation in enumerate(followed, 1)
            ]
        )
        facts = [entry for trail in trails for entry in trail.facts]
        shown = facts[: self.options.facts]
        for entry in shown:
            entry.pruned = False
        frontier = walk.keep(entry.fact for entry in shown)
        yield from walk.close_hop(span, stands, trails, (frontier, len(facts) - len(shown)))
        return len(shown), frontier


def _choose_relations(relations: Sequence[WeighedRelation]) -> list[WeighedRelation]:
    """The different relations with a score above 0, best first; the same one of several entities counts once."""
    best: dict[tuple[str, str], WeighedRelation] = {}
    for relation in keep_best(relations):
        best.setdefault((relation.id, relation.direction), relation)
    return list(best.values())


@dataclass(frozen=True, slots=True)
class Tog2Options:
    """The options of Think-on-Graph 2, with the published width, depth, agreement and sentences."""

    samples: int = 0
    """Chains of thought that are sampled before the walk, from own knowledge; the paper samples 5."""
    agreement: float = 0.8
    """The share of the samples that ends the run with the answers they have in common."""
    temperature: float = 0.7
    """The temperature of the samples."""
    width: int = 3
    """Relations that a hop follows from an entity, and entities that it keeps."""
    depth: int = 3
    """The most hops from the entities of the question."""
    sentences: int = 10
    """Sentences of articles that are shown."""
    seed: int = 0
    """The seed of samples of many facts."""
    skill_shots: int = 0
    """Answered requests of other questions that each skill is shown."""

    def __post_init__(self) -> None:
        check_positive(width=self.width, depth=self.depth, sentences=self.sentences)
        check_at_least(0, samples=self.samples, skill_shots=self.skill_shots)
        if not 0 < self.agreement <= 1:
            raise AgentOptionsError(f"agreement is {self.agreement}; it must be above 0 and at most 1")
        check_temperature(self.temperature)


@dataclass(frozen=True, slots=True)
class Tog2:
    """A walk whose entities are ranked by the passages of their articles, after a vote of chains of thought."""

    options: Tog2Options = field(default_factory=Tog2Options)
    name: str = field(default="tog-2", init=False)

    def solve(self, task: Task) -> ReasonerGenerator:
        """Vote; without agreement walk until facts and passages answer the question."""
        options = self.options
        require_tools(task, "ToG-2", (*VALUE_TOOLS, "wikisearch", "read"))
        agreed, sampled = (yield from self._vote(task)) if options.samples else (None, 0)
        if agreed is not None:
            return agreed
        walk = GraphWalk(task, options.seed)
        walk.expected_calls = sampled
        frontier = yield from walk.name_topics()
        hop, clue = 0, task.question
        # The relations are one call, and the answer is another; an entity that is reached has an article.
        calls = CallBudget(0, 2), CallBudget(2, 3)
        while hop < options.depth and (frontier := (yield from walk.fit_entities(hop + 1, frontier, *calls))):
            hop += 1
            kept, frontier, passages = yield from self._make_hop(walk, hop, frontier, clue)
            if not kept:
                break
            verdict = yield from walk.ask_verdict(f"hop/{hop}", options.depth - hop, passages)
            if not verdict.unknown:
                return walk.conclude(verdict, passages)
            clue = verdict.clue.strip() or task.question
        return (yield from walk.end_without_answer("never", hop))

    def _vote(self, task: Task) -> Generator[Move, Any, tuple[FinalAnswer | None, int]]:
        """The answers that enough samples have, which rest on own knowledge, or None; and the number of samples."""
        # The topics and a hop come after the samples.
        replies, samples = yield from sample_chains(
            task, self.options.samples, self.options.temperature, CallBudget(3, 0)
        )
        values, votes = vote_over_sets(replies)
        needed = self.options.agreement * samples
        agreed = [value for value in values if votes[value.text] >= needed]
        without_answers = sum(not reply.answers and not reply.unknown for reply in replies)
        if not agreed and without_answers < needed:
            return None, samples
        conclusion = conclude(agreed, (), {OWN_KNOWLEDGE})
        details = conclusion.details | {"votes": dict(votes), "samples": samples}
        return FinalAnswer(conclusion.answers, details=details, expected_model_calls=samples), samples

    def _make_hop(
        self, walk: GraphWalk, number: int, entities: Sequence[AnswerValue], clue: str
    ) -> Generator[Move, Any, tuple[int, list[AnswerValue], list[SourcePassage]]]:
        """Make one hop; returns the number of facts, the best entities and the best sentences about them."""
        width = self.options.width
        place, span = yield from walk.open_hop(number, entities)
        stands = yield from walk.stand_at(entities, place, span, score=False)
        yield from walk.score_relations(stands, place, span)
        best = [relation for stand in stands for relation in keep_best(stand.relations, width)]
        best.sort(key=lambda relation: -relation.score)
        yield from walk.fit_relations(best, place, span, (CallBudget(0, 1), CallBudget(0, 2)))
        trails = yield from walk.follow(stands, walk.follow_one)
        facts = [entry for trail in trails for entry in trail.facts]
        candidates = distinct_values(entry.fact.other for entry in facts if entry.fact.other.entity is not None)
        fan = Fan("articles", len(candidates), CallBudget(0, 2))
        candidates = candidates[: (yield from fit_to_budget(walk.task, fan, f"{place}/budget/articles", span))]
        articles: list[list[tuple[SourcePassage, float]]] = yield Parallel(
            [
                Branch(str(rank), walk.retriever.read_about(value, clue, f"{place}/about{rank}", span))
                for rank, value in enumerate(candidates, 1)
            ]
        )
        ranked = sorted(zip(candidates, articles, strict=True), key=lambda entry: -_best_score(entry[1]))
        scores = {value.key: _best_score(article) for value, article in ranked}
        frontier = [value for value, _ in ranked[:width]]
        keys = {value.key for value in frontier}
        for entry in facts:
            # A date or a number has no article, so it is not ranked.
            entry.score = scores.get(entry.fact.other.key, 0.0)
            entry.pruned = entry.fact.other.entity is not None and entry.fact.other.key not in keys
        kept = [entry.fact for entry in facts if not entry.pruned]
        walk.keep(kept)
        yield from walk.close_hop(span, stands, trails, (frontier, 0))
        sentences = sorted((pair for _, article in ranked[:width] for pair in article), key=lambda pair: -pair[1])
        return len(kept), frontier, [passage for passage, _ in sentences[: self.options.sentences]]


def _best_score(article: Sequence[tuple[SourcePassage, float]]) -> float:
    return max((score for _, score in article), default=0.0)
