"""The skills of walks through a graph: requests, replies, their checks, and the records of what a walk pruned."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar
from uuid import UUID

from pydantic import BaseModel, Field

from showhow.llm.structured_output import ReplyText
from showhow.reasoners.base import ReasonerError, Task
from showhow.reasoners.pdrr.skills import ChosenRelation
from showhow.reasoners.skills.skill import Fallback, Skill
from showhow.reasoners.skills.values import (
    AnswerValue,
    GraphFact,
    OfferedRelation,
    ReasonedReply,
    SourcePassage,
    check_answers,
    format_values,
)
from showhow.reasoners.sources import BareQuestion

OWN_CHOICES = {
    "never": "answers rest on the graph only",
    "fallback": "else the model itself answers, as published",
}
STEP_TOOLS = ("getWikiDataID", "getRelationsAsHead", "getRelationsAsTail")
VALUE_TOOLS = (*STEP_TOOLS, "getTailEntities", "getHeadEntities")
MAX_CANDIDATES, SAMPLED = 20, 5
"""Of more facts of one relation than the first number, so many are drawn; the published code draws without a seed."""
MAX_TOPICS = 5
"""Topics of one question; a walk begins at all of them."""
_PACKAGE = "showhow.reasoners.baselines"

ScoredT = TypeVar("ScoredT", "WeighedRelation", "WeighedFact")


class TopicsReply(BaseModel):
    """The names of the things at which a walk begins; none if the question names nothing."""

    topics: list[ReplyText]
    """Names in the question at which the walk begins."""

    def __str__(self) -> str:
        return ", ".join(self.topics)


class ObjectivesReply(TopicsReply):
    """What has to be found out, in order, and the names at which to begin."""

    objectives: list[ReplyText]
    """What has to be found out, in order."""

    def __str__(self) -> str:
        return "\n".join([*self.objectives, f"begin at: {', '.join(self.topics)}"])


class Objective(BaseModel):
    """A part of the question, and what the walk has shown of it."""

    objective: ReplyText
    """A part of the question, repeated as it was given."""
    finding: ReplyText = ""
    """What the facts show of it."""
    done: bool = False
    """Whether the facts answer this part."""


class WalkState(BaseModel):
    """A question, the entities at which the walk began, its objectives if it has some, and the facts it kept."""

    question: str
    topics: list[AnswerValue]
    objectives: list[Objective] = Field(default_factory=list)
    walked: list[GraphFact] = Field(default_factory=list)


class EntityRelation(OfferedRelation):
    """A relation of the entity whose id is `of`."""

    of: str

    @property
    def plain(self) -> OfferedRelation:
        """The relation without its entity."""
        return OfferedRelation(id=self.id, label=self.label, direction=self.direction)


class RelationScoresRequest(WalkState):
    """Entities that the walk has reached, and their relations."""

    known: list[AnswerValue]
    relations: list[EntityRelation]


class ScoredRelation(ChosenRelation):
    """How likely it is that a relation of the entity `of` leads to the answer, from 0 to 1."""

    of: ReplyText
    """The id of the entity that has the relation."""
    # Without a default: a relation without a score must not count as certain.
    score: float
    """How likely it is that the relation leads to the answer, from 0 to 1."""


class RelationScores(BaseModel):
    """The scores of relations; one that is left out has the score 0."""

    relations: list[ScoredRelation]
    """The scores of relations; one that is left out has the score 0."""

    def __str__(self) -> str:
        scores = (f"{scored.id} of {scored.of}: {scored.score:g}" for scored in self.relations if scored.score > 0)
        return ", ".join(scores) or "no relation"


class WeighedRelation(EntityRelation):
    """A relation at which a walk looked: its score, and whether it was not followed."""

    score: float = 0.0
    pruned: bool = True


class FactScoresRequest(WalkState):
    """Facts that the walk has reached and may keep."""

    candidates: list[GraphFact]


class ScoredFact(BaseModel):
    """How likely it is that a fact leads to the answer, from 0 to 1."""

    id: ReplyText
    """The id of a candidate: STEP.NUMBER."""
    score: float
    """How likely it is that the fact leads to the answer, from 0 to 1."""


class FactScores(BaseModel):
    """The scores of facts; one that is left out has the score 0."""

    facts: list[ScoredFact]
    """The scores of facts; one that is left out has the score 0."""

    def __str__(self) -> str:
        return ", ".join(f"{scored.id}: {scored.score:g}" for scored in self.facts if scored.score > 0) or "no fact"


class WeighedFact(BaseModel):
    """A fact at which a walk looked: its score, and whether it was not kept."""

    fact: GraphFact
    score: float = 0.0
    pruned: bool = True


@dataclass(slots=True)
class WalkStand:
    """An entity at which the walk stands, and its relations; its step is open until the hop ends."""

    entity: AnswerValue
    place: str
    span: UUID
    relations: list[WeighedRelation] = field(default_factory=list)


@dataclass(slots=True)
class WalkTrail:
    """A relation that was followed from an entity; its step is open until the hop ends."""

    relation: WeighedRelation
    place: str
    span: UUID
    facts: list[WeighedFact]
    total: int | None
    drawn_from: int | None = None
    """The number of facts of which a sample was drawn."""


def keep_best(candidates: Sequence[ScoredT], width: int | None = None) -> list[ScoredT]:
    """Mark all but the best `width` candidates with a score above 0 as pruned; the earlier of equal ones is better."""
    ranked = sorted((candidate for candidate in candidates if candidate.score > 0), key=lambda entry: -entry.score)
    for candidate in ranked[:width]:
        candidate.pruned = False
    return ranked[:width]


def draw_sample(facts: Sequence[GraphFact], limit: int, seed: str) -> list[GraphFact]:
    """All facts if there are at most `limit`; else SAMPLED of them in their order, which the seed determines."""
    if len(facts) <= limit:
        return list(facts)
    chosen = sorted(Random(seed).sample(range(len(facts)), SAMPLED))  # noqa: S311 - repeatable, no secret
    return [facts[number] for number in chosen]


def fact_key(fact: GraphFact) -> tuple[str, str, str, str]:
    """What the same fact has in common at every step that lists it."""
    return fact.known.key, fact.relation.id, fact.relation.direction, fact.other.key


def dump_record(value: BaseModel) -> dict[str, Any]:
    """A value as the data of a step."""
    return value.model_dump(exclude_none=True)


def encode_trail(trail: WalkTrail, seed: int) -> dict[str, Any]:
    """A followed relation as the data of its step."""
    drawn = {"of": trail.drawn_from, "drawn": len(trail.facts), "seed": seed}
    return {
        "relation": trail.relation.model_dump(),
        "facts": [dump_record(entry) for entry in trail.facts],
        "total": trail.total,
        **({"sample": drawn} if trail.drawn_from is not None else {}),
    }


def describe_trail(trail: WalkTrail, seed: int) -> str:
    """A followed relation as the observation of its step."""
    kept = format_values([entry.fact.other for entry in trail.facts if not entry.pruned])
    if trail.drawn_from is None:
        return f"{kept} of {len(trail.facts)}"
    return f"{kept} of {len(trail.facts)}, which were drawn from {trail.drawn_from} with the seed {seed}"


class EnoughReply(BaseModel):
    """Whether the kept facts suffice to answer."""

    reasons: ReplyText
    """The reason in one sentence."""
    enough: bool
    """Whether the kept facts suffice to answer."""

    def __str__(self) -> str:
        return f"{'Enough' if self.enough else 'Not enough'}: {self.reasons}"


class MemoryReply(BaseModel):
    """The objectives with what the facts show of each."""

    objectives: list[Objective]
    """The given objectives in their order, with what the facts show of each."""

    def __str__(self) -> str:
        return "\n".join(f"{entry.objective} {entry.finding or '(open)'}" for entry in self.objectives)


class ReflectRequest(WalkState):
    """A walk whose facts do not suffice, and the entities of earlier hops to which it can go back."""

    frontier: list[AnswerValue]
    earlier: list[AnswerValue]
    left: int
    """How often the walk may still go back."""


class ReflectReply(BaseModel):
    """The ids of the earlier entities to go back to; none to go on with the frontier alone."""

    reasons: ReplyText
    """The reason in one sentence."""
    entities: list[ReplyText]
    """Ids of earlier entities to go back to; none to go on with the frontier alone."""

    def __str__(self) -> str:
        return f"Go back to {', '.join(self.entities)}" if self.entities else "Go on"


class ReasonWalkRequest(WalkState):
    """The facts of a walk with passages about the entities it reached, and the hops that are left."""

    passages: list[SourcePassage] = Field(default_factory=list)
    left: int


class WalkVerdict(ReasonedReply):
    """The answers, or else a clue to what has to be looked up next."""

    clue: ReplyText = ""
    """What has to be looked up next, if the answers are unknown."""

    def __str__(self) -> str:
        return f"Next: {self.clue or 'one hop further'}" if self.unknown else super().__str__()


def _check_topics(_request: BareQuestion, reply: TopicsReply) -> str | None:
    if any(not topic.strip() for topic in reply.topics):
        return "A topic is empty; leave it out."
    if len(reply.topics) > MAX_TOPICS:
        return f"There are {len(reply.topics)} topics; name at most {MAX_TOPICS}."
    return None


def _check_objectives(request: BareQuestion, reply: ObjectivesReply) -> str | None:
    if not any(objective.strip() for objective in reply.objectives):
        return "There is no objective; write at least one."
    return _check_topics(request, reply)


def _check_scores(scores: Iterable[float]) -> str | None:
    outside = next((score for score in scores if not 0 <= score <= 1), None)
    return None if outside is None else f"The score {outside:g} is not from 0 to 1."


def _check_relation_scores(request: RelationScoresRequest, reply: RelationScores) -> str | None:
    offered = {(relation.of, relation.id, relation.direction) for relation in request.relations}
    for scored in reply.relations:
        if (scored.of, scored.id, scored.direction) not in offered:
            return (
                f"The relation {scored.id} as {scored.direction} of {scored.of} was not offered; choose from the list."
            )
    return _check_scores(scored.score for scored in reply.relations)


def _check_fact_scores(request: FactScoresRequest, reply: FactScores) -> str | None:
    offered = {fact.id for fact in request.candidates}
    if strange := [scored.id for scored in reply.facts if scored.id not in offered]:
        return f"There is no fact {strange[0]} among the candidates; use their ids."
    return _check_scores(scored.score for scored in reply.facts)


def _check_memory(request: WalkState, reply: MemoryReply) -> str | None:
    if [entry.objective for entry in reply.objectives] != [entry.objective for entry in request.objectives]:
        return "The objectives differ from the given ones; repeat each as it is, in the same order."
    return None


def _check_reflection(request: ReflectRequest, reply: ReflectReply) -> str | None:
    offered = {value.key for value in request.earlier}
    strange = [key for key in reply.entities if key not in offered]
    return f"There is no earlier entity {strange[0]}; use the ids of the list." if strange else None


def _check_verdict(request: ReasonWalkRequest, reply: WalkVerdict) -> str | None:
    return check_answers(reply, [*(fact.passage for fact in request.walked), *request.passages])


def _score_no_relation(request: RelationScoresRequest) -> RelationScores:
    """A row of every offered relation with the score 0."""
    rows = (relation.model_dump(include={"of", "id", "direction"}) for relation in request.relations)
    return RelationScores(relations=[ScoredRelation(**row, score=0.0) for row in rows])


TOPICS: Skill[BareQuestion, TopicsReply] = Skill(
    "topics", 2, "I name the things at which the walk begins.", _PACKAGE, BareQuestion, TopicsReply, _check_topics
)
OBJECTIVES: Skill[BareQuestion, ObjectivesReply] = Skill(
    "objectives", 2, "I split the question into objectives.", _PACKAGE, BareQuestion, ObjectivesReply, _check_objectives
)
SCORE_RELATIONS: Skill[RelationScoresRequest, RelationScores] = Skill(
    "score_relations",
    2,
    "I score relations by whether they lead to the answer.",
    _PACKAGE,
    RelationScoresRequest,
    RelationScores,
    _check_relation_scores,
    Fallback("no relation", lambda _request: RelationScores(relations=[])),
    draft=_score_no_relation,
)
SCORE_FACTS: Skill[FactScoresRequest, FactScores] = Skill(
    "score_facts",
    2,
    "I score facts by whether they lead to the answer.",
    _PACKAGE,
    FactScoresRequest,
    FactScores,
    _check_fact_scores,
    Fallback("no fact", lambda _request: FactScores(facts=[])),
    draft=lambda request: FactScores(facts=[ScoredFact(id=fact.id, score=0.0) for fact in request.candidates]),
)
ENOUGH: Skill[WalkState, EnoughReply] = Skill(
    "enough",
    2,
    "I decide whether the facts suffice.",
    _PACKAGE,
    WalkState,
    EnoughReply,
    fallback=Fallback("not enough", lambda _request: EnoughReply(reasons="No usable reply.", enough=False)),
)
ANSWER_WALK: Skill[WalkState, ReasonedReply] = Skill(
    "answer_walk",
    2,
    "I answer from the facts of the walk.",
    _PACKAGE,
    WalkState,
    ReasonedReply,
    lambda request, reply: check_answers(reply, [fact.passage for fact in request.walked]),
)
MEMORY: Skill[WalkState, MemoryReply] = Skill(
    "memory",
    2,
    "I note what the facts show of each objective.",
    _PACKAGE,
    WalkState,
    MemoryReply,
    _check_memory,
    Fallback("unchanged", lambda request: MemoryReply(objectives=request.objectives)),
    draft=lambda request: MemoryReply(objectives=request.objectives),
)
REFLECT: Skill[ReflectRequest, ReflectReply] = Skill(
    "reflect",
    2,
    "I decide whether to go back to an earlier entity.",
    _PACKAGE,
    ReflectRequest,
    ReflectReply,
    _check_reflection,
    Fallback("go on", lambda _request: ReflectReply(reasons="No usable reply.", entities=[])),
)
REASON_WALK: Skill[ReasonWalkRequest, WalkVerdict] = Skill(
    "reason_walk", 2, "I answer, or say what to look up next.", _PACKAGE, ReasonWalkRequest, WalkVerdict, _check_verdict
)


def require_tools(task: Task, method: str, names: Iterable[str]) -> None:
    """Raise ReasonerError if the task does not offer all of these tools."""
    offered = {tool.name for tool in task.tools}
    if missing := [name for name in names if name not in offered]:
        raise ReasonerError(f"{method} needs the tools {', '.join(missing)}. Offer them in the project.")
