"""Walks through a graph, and the baseline that walks with a beam: Think-on-Graph (ToG).

A walk begins at the entities that the question names. At each hop it lists the relations of the entities at which it
stands, follows those that a skill scores best, and keeps the best facts; the other ends of these are the next entities.
The published methods are given the first entities; here a call names them.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
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
    Parallel,
    QuestionRefused,
    ReasonerError,
    ReasonerGenerator,
    StepCompletion,
    Task,
    fit_to_budget,
)
from showhow.reasoners.baselines.graph_skills import (
    ANSWER_WALK,
    ENOUGH,
    MAX_CANDIDATES,
    OWN_CHOICES,
    REASON_WALK,
    SCORE_FACTS,
    SCORE_RELATIONS,
    TOPICS,
    VALUE_TOOLS,
    EntityRelation,
    FactScoresRequest,
    Objective,
    ReasonWalkRequest,
    RelationScoresRequest,
    WalkStand,
    WalkState,
    WalkTrail,
    WalkVerdict,
    WeighedFact,
    WeighedRelation,
    describe_trail,
    draw_sample,
    dump_record,
    encode_trail,
    fact_key,
    keep_best,
    require_tools,
)
from showhow.reasoners.baselines.skills import require_answers, require_reply
from showhow.reasoners.humaniq.options import check_at_least, check_choices, check_positive, choice
from showhow.reasoners.retrieval import Retriever
from showhow.reasoners.skills.skill import ReplyT, RequestT, Skill, SkillCall, SkillResult
from showhow.reasoners.skills.values import (
    OWN_KNOWLEDGE,
    AnswerValue,
    GraphFact,
    ReasonedReply,
    SourcePassage,
    conclude,
    conclude_from_passages,
    distinct_values,
    format_values,
)
from showhow.reasoners.sources import DIRECT_ANSWER, BareQuestion


class GraphWalk:
    """The walk of one question: where it began, the facts that it kept, and the calls that its shape takes."""

    def __init__(
        self, task: Task, seed: int = 0, temperature: float | None = None, sample_from: int = MAX_CANDIDATES
    ) -> None:
        self.task = task
        self.retriever = Retriever(task)
        self.topics: list[AnswerValue] = []
        self.objectives: list[Objective] = []
        self.walked: list[GraphFact] = []
        self.expected_calls = 0
        self._seed = seed
        self._temperature = temperature
        self._sample_from = sample_from

    @property
    def state(self) -> dict[str, Any]:
        """The fields that all requests share."""
        return {
            "question": self.task.question,
            "topics": self.topics,
            "objectives": self.objectives,
            "walked": list(self.walked),
        }

    def ask(
        self, skill: Skill[RequestT, ReplyT], request: RequestT, node: str, parent: UUID | None = None
    ) -> Generator[Move, Any, SkillResult[ReplyT]]:
        """Ask a skill; its call is one of those that the method takes."""
        if self._temperature is not None:
            skill = replace(skill, temperature=self._temperature)
        self.expected_calls += 1
        result: SkillResult[ReplyT] = yield SkillCall(skill, request, node, parent)
        return result

    def ask_or_fall_back(
        self, skill: Skill[RequestT, ReplyT], request: RequestT, node: str, parent: UUID | None = None
    ) -> Generator[Move, Any, ReplyT]:
        """The reply of a skill that has a fallback."""
        result = yield from self.ask(skill, request, node, parent)
        if result.reply is None:
            raise ReasonerError(f"The skill {skill.name} gave neither a reply nor a fallback.")
        return result.reply

    def name_topics(self) -> Generator[Move, Any, list[AnswerValue]]:
        """Ask for the names at which the walk begins, and link them."""
        result = yield from self.ask(TOPICS, BareQuestion(question=self.task.question), "topics")
        reply = require_reply(result)
        return (yield from self.begin(reply.topics))

    def begin(self, names: Sequence[str]) -> Generator[Move, Any, list[AnswerValue]]:
        """Link the names of the question to entities; QuestionRefused if there are none, or none in the graph."""
        distinct = list(dict.fromkeys(name.strip() for name in names))
        if not distinct:
            raise QuestionRefused(
                f"No walk can begin, since nothing is named in the question: {self.task.question}", self.expected_calls
            )
        ids: list[str | None] = yield Parallel(
            [
                Branch(str(number), self.retriever.link(name, f"link/{number}", None))
                for number, name in enumerate(distinct)
            ]
        )
        self.topics = [AnswerValue(text=name, entity=id_) for name, id_ in zip(distinct, ids, strict=True) if id_]
        if not self.topics:
            raise QuestionRefused(
                f"The graph has no entity named {' or '.join(distinct)}, so no walk can begin.", self.expected_calls
            )
        return self.topics

    def open_hop(self, number: int, frontier: Sequence[AnswerValue]) -> Generator[Move, Any, tuple[str, UUID]]:
        """Begin the step of a hop; returns its place and id."""
        place = f"hop/{number}"
        thought = f"Hop {number} from {format_values(frontier)}"
        opened = yield Action(thought, node=place, skill=SPAN_SKILL, open=True, reuse=True)
        return place, opened.step_id

    def fit_entities(
        self, hop: int, entities: Sequence[AnswerValue], cost: CallBudget, rest: CallBudget
    ) -> Generator[Move, Any, list[AnswerValue]]:
        """The first entities of a hop that the budget has room for; none if it has no room for a hop.

        `cost` is what an entity needs, `rest` what the hop and an answer need besides.
        """
        least = CallBudget(cost.model_calls + rest.model_calls, cost.retrievals + rest.retrievals)
        place = f"hop/{hop}/budget"
        hops = Fan("hops", min(1, len(entities)), least, least=0)
        if not (yield from fit_to_budget(self.task, hops, f"{place}/hop", None)):
            return []
        fan = Fan("entities", len(entities), cost, rest, least=0)
        return list(entities[: (yield from fit_to_budget(self.task, fan, f"{place}/entities", None))])

    def fit_relations(
        self, relations: Sequence[WeighedRelation], place: str, span: UUID, calls: tuple[CallBudget, CallBudget]
    ) -> Generator[Move, Any, list[WeighedRelation]]:
        """The best relations that the budget has room for; the others are pruned. `calls`: of each, and of the rest."""
        fan = Fan("relations", len(relations), *calls, least=0)
        count = yield from fit_to_budget(self.task, fan, f"{place}/budget/relations", span)
        for relation in relations[count:]:
            relation.pruned = True
        return list(relations[:count])

    def stand_at(
        self, entities: Sequence[AnswerValue], place: str, span: UUID, *, score: bool
    ) -> Generator[Move, Any, list[WalkStand]]:
        """List the relations of the entities at the same time; `score` asks about those of each in a call."""
        branches = [
            Branch(str(number), self._stand_at_one(entity, f"{place}/{number}", span, score=score))
            for number, entity in enumerate(entities, 1)
        ]
        stands: list[WalkStand] = yield Parallel(branches)
        return stands

    def _stand_at_one(
        self, entity: AnswerValue, place: str, parent: UUID, *, score: bool
    ) -> Generator[Move, Any, WalkStand]:
        opened = yield Action(entity.text, parent=parent, node=place, skill=SPAN_SKILL, open=True, reuse=True)
        stand = WalkStand(entity, place, opened.step_id)
        offered = yield from self.retriever.list_relations([entity], place, stand.span)
        stand.relations = [WeighedRelation(of=entity.key, **relation.model_dump()) for relation in offered]
        if score:
            yield from self.score_relations([stand], place, stand.span)
        return stand

    def score_relations(self, stands: Sequence[WalkStand], place: str, parent: UUID) -> Generator[Move, Any, None]:
        """Score all relations of these entities by one call, if there are any."""
        relations = [relation for stand in stands for relation in stand.relations]
        if not relations:
            return
        request = RelationScoresRequest(
            **self.state,
            known=[stand.entity for stand in stands],
            relations=[EntityRelation(**relation.model_dump(exclude={"score", "pruned"})) for relation in relations],
        )
        reply = yield from self.ask_or_fall_back(SCORE_RELATIONS, request, f"{place}/relations", parent)
        scores = {(scored.of, scored.id, scored.direction): scored.score for scored in reply.relations}
        for relation in relations:
            relation.score = scores.get((relation.of, relation.id, relation.direction), 0.0)

    def follow(
        self,
        stands: Sequence[WalkStand],
        follow_one: Callable[[WalkStand, WeighedRelation, str], Generator[Move, Any, WalkTrail]],
    ) -> Generator[Move, Any, list[WalkTrail]]:
        """Follow all relations that are not pruned at the same time, each in a step of its own."""
        branches = [
            Branch(f"{stand.place}/r{number}", follow_one(stand, relation, f"{stand.place}/r{number}"))
            for stand in stands
            for number, relation in enumerate(stand.relations, 1)
            if not relation.pruned
        ]
        trails: list[WalkTrail] = yield Parallel(branches)
        return trails

    def follow_one(self, stand: WalkStand, relation: WeighedRelation, place: str) -> Generator[Move, Any, WalkTrail]:
        """List the facts of one relation of an entity; of very many a sample."""
        thought = f"{stand.entity.text}: {relation.label}"
        opened = yield Action(thought, parent=stand.span, node=place, skill=SPAN_SKILL, open=True, reuse=True)
        facts, total = yield from self.retriever.list_neighbours(stand.entity, relation.plain, place, opened.step_id)
        sample = draw_sample(facts, self._sample_from, repr((self._seed, self.task.question, place)))
        trail = WalkTrail(relation, place, opened.step_id, [WeighedFact(fact=fact) for fact in sample], total)
        trail.drawn_from = len(facts) if len(sample) < len(facts) else None
        return trail

    def follow_all(
        self, entities: Sequence[AnswerValue], relation: WeighedRelation, place: str, parent: UUID
    ) -> Generator[Move, Any, WalkTrail]:
        """Query the facts of one relation of all these entities at once."""
        opened = yield Action(relation.label, parent=parent, node=place, skill=SPAN_SKILL, open=True, reuse=True)
        others, rows = yield from self.retriever.follow_relation(
            relation.id, relation.direction, entities, place, opened.step_id
        )
        by_key = {entity.key: entity for entity in entities}
        facts = [
            GraphFact(id=row.id, known=by_key[other.of or ""], relation=relation.plain, other=other)
            for other, row in zip(others, rows, strict=True)
        ]
        return WalkTrail(relation, place, opened.step_id, [WeighedFact(fact=fact) for fact in facts], len(facts))

    def score_facts(
        self, facts: Sequence[WeighedFact], place: str, parent: UUID, weight: float = 1.0
    ) -> Generator[Move, Any, None]:
        """Score these facts by one call, if there are any; `weight` is the score of their relation."""
        if not facts:
            return
        request = FactScoresRequest(**self.state, candidates=[entry.fact for entry in facts])
        reply = yield from self.ask_or_fall_back(SCORE_FACTS, request, f"{place}/facts", parent)
        scores = {scored.id: scored.score for scored in reply.facts}
        for entry in facts:
            entry.score = weight * scores.get(entry.fact.id, 0.0)

    def keep(self, facts: Iterable[GraphFact]) -> list[AnswerValue]:
        """Keep facts as walked, each once; returns the entities to which they lead."""
        known = {fact_key(fact) for fact in self.walked}
        kept = list(facts)
        self.walked += [fact for key, fact in {fact_key(fact): fact for fact in kept}.items() if key not in known]
        return distinct_values(fact.other for fact in kept if fact.other.entity is not None)

    def close_hop(
        self,
        span: UUID,
        stands: Sequence[WalkStand],
        trails: Sequence[WalkTrail],
        ends: tuple[Sequence[AnswerValue], int],
    ) -> Generator[Move, Any, None]:
        """Complete the steps of a hop with what was scored, kept and pruned.

        `ends` are the entities to which it leads, and the number of facts and entities beyond the limits.
        """
        for trail in trails:
            yield StepCompletion(trail.span, describe_trail(trail, self._seed), encode_trail(trail, self._seed))
        for stand in stands:
            followed = [relation.label for relation in stand.relations if not relation.pruned]
            observation = ", ".join(followed) or "no relation is followed"
            relations = [relation.model_dump() for relation in stand.relations]
            yield StepCompletion(stand.span, observation, {"entity": dump_record(stand.entity), "relations": relations})
        frontier, left_out = ends
        observation = f"leads to {format_values(frontier)}" + (f"; {left_out} more were left out" if left_out else "")
        data = {"frontier": [dump_record(value) for value in frontier], "left_out": left_out}
        yield StepCompletion(span, observation, data)

    def answer(self) -> ReasonerGenerator:
        """Answer from the kept facts by a call of its own."""
        result = yield from self.ask(ANSWER_WALK, WalkState(**self.state), "answer")
        reply = require_reply(result)
        if reply.unknown:
            raise QuestionRefused(
                f"The facts of the walk do not tell the answer to: {self.task.question}", self.expected_calls
            )
        return self.conclude(reply)

    def conclude(self, reply: ReasonedReply, passages: Sequence[SourcePassage] = ()) -> FinalAnswer:
        """The final answer, which cites the facts and passages that support it."""
        evidence = [*(fact.passage for fact in self.walked), *passages]
        conclusion = conclude_from_passages(reply, evidence, reply.reasons)
        return FinalAnswer(conclusion.answers, details=conclusion.details, expected_model_calls=self.expected_calls)

    def ask_enough(self, place: str) -> Generator[Move, Any, bool]:
        """Whether the kept facts suffice."""
        reply = yield from self.ask_or_fall_back(ENOUGH, WalkState(**self.state), f"{place}/enough")
        return reply.enough

    def ask_verdict(
        self, place: str, left: int, passages: Sequence[SourcePassage] = ()
    ) -> Generator[Move, Any, WalkVerdict]:
        """The answers, or a clue to what has to be looked up next."""
        request = ReasonWalkRequest(**self.state, passages=list(passages), left=left)
        result = yield from self.ask(REASON_WALK, request, f"{place}/reason")
        return require_reply(result)

    def end_without_answer(self, own: str, hops: int) -> ReasonerGenerator:
        """Answer from own knowledge if the option allows it; else QuestionRefused."""
        if own == "never":
            raise QuestionRefused(
                f"A walk of {hops} {'hop' if hops == 1 else 'hops'} did not reach the answer to: {self.task.question}",
                self.expected_calls,
            )
        result = yield from self.ask(DIRECT_ANSWER, BareQuestion(question=self.task.question), "own")
        reply = require_answers(result, self.task.question, self.expected_calls)
        conclusion = conclude(reply.answers, (), {OWN_KNOWLEDGE})
        return FinalAnswer(conclusion.answers, details=conclusion.details, expected_model_calls=self.expected_calls)


@dataclass(frozen=True, slots=True)
class TogOptions:
    """The options of Think-on-Graph, with the published width and depth."""

    width: int = 3
    """Relations that a hop follows, and facts that it keeps."""
    depth: int = 3
    """The most hops from the entities of the question."""
    own: str = choice("never", OWN_CHOICES)
    """Whether own knowledge answers at the end: never, fallback."""
    seed: int = 0
    """The seed of samples of many facts."""
    skill_shots: int = 0
    """Answered requests of other questions that each skill is shown."""

    def __post_init__(self) -> None:
        check_positive(width=self.width, depth=self.depth)
        check_at_least(0, skill_shots=self.skill_shots)
        check_choices(self)


@dataclass(frozen=True, slots=True)
class Tog:
    """A beam over relations and facts, which are scored against the question; enough facts end it."""

    options: TogOptions = field(default_factory=TogOptions)
    name: str = field(default="tog", init=False)

    def solve(self, task: Task) -> ReasonerGenerator:
        """Walk until the facts suffice."""
        require_tools(task, "ToG", VALUE_TOOLS)
        walk = GraphWalk(task, self.options.seed)
        frontier = yield from walk.name_topics()
        hop = 0
        # The relations of an entity are a call, and so are the facts of a relation; then enough, and the answer.
        calls = CallBudget(1, 2), CallBudget(3, 1)
        while hop < self.options.depth and (frontier := (yield from walk.fit_entities(hop + 1, frontier, *calls))):
            hop += 1
            kept, frontier = yield from self._make_hop(walk, hop, frontier)
            if kept and (yield from walk.ask_enough(f"hop/{hop}")):
                return (yield from walk.answer())
        return (yield from walk.end_without_answer(self.options.own, hop))

    def _make_hop(
        self, walk: GraphWalk, number: int, entities: Sequence[AnswerValue]
    ) -> Generator[Move, Any, tuple[int, list[AnswerValue]]]:
        """Make one hop; returns the number of facts that were kept, and the entities to which they lead."""
        place, span = yield from walk.open_hop(number, entities)
        stands = yield from walk.stand_at(entities, place, span, score=True)
        best = keep_best([relation for stand in stands for relation in stand.relations], self.options.width)
        yield from walk.fit_relations(best, place, span, (CallBudget(1, 1), CallBudget(2, 0)))

        def follow_and_score(
            stand: WalkStand, relation: WeighedRelation, trail_place: str
        ) -> Generator[Move, Any, WalkTrail]:
            trail = yield from walk.follow_one(stand, relation, trail_place)
            yield from walk.score_facts(trail.facts, trail.place, trail.span, relation.score)
            return trail

        trails = yield from walk.follow(stands, follow_and_score)
        kept = keep_best([fact for trail in trails for fact in trail.facts], self.options.width)
        frontier = walk.keep(entry.fact for entry in kept)
        yield from walk.close_hop(span, stands, trails, (frontier, 0))
        return len(kept), frontier
