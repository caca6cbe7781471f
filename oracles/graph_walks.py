"""Gold replies to the skills of walks through a graph.

A walk is judged by the operations of the gold tree: which of them its facts carry out from the topics that it was
given. A relation or a fact on the way scores 1, any other 0. The facts are enough when every operation is carried out,
and those that count or compare have all their operands; the answer is what the facts reach.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from showhow.fiction.questions.reasoning import DIRECT_REASONING, FILTER, RELATE, SEARCH, ReasoningNode
from showhow.fiction.questions.wording import FACT_LABELS
from showhow.oracles.reasoning import (
    INVERSE_SUFFIX,
    GoldReasoning,
    UnknownOperation,
    combine_operands,
    last_leaf,
    list_property_ids,
)
from showhow.reasoners.baselines.graph_skills import (
    EnoughReply,
    FactScores,
    FactScoresRequest,
    MemoryReply,
    ObjectivesReply,
    ReasonWalkRequest,
    ReflectReply,
    ReflectRequest,
    RelationScores,
    RelationScoresRequest,
    ScoredFact,
    ScoredRelation,
    TopicsReply,
    WalkState,
    WalkVerdict,
)
from showhow.reasoners.skills.values import (
    AnswerValue,
    GraphFact,
    OfferedRelation,
    ReasonedReply,
    distinct_values,
    format_values,
)
from showhow.reasoners.sources import BareQuestion

Values = dict[ReasoningNode, list[AnswerValue]]
"""The values of each operation."""


def name_topics(gold: GoldReasoning, _request: BareQuestion) -> TopicsReply:
    """The things that the question names."""
    return TopicsReply(topics=_list_topics(gold))


def write_objectives(gold: GoldReasoning, _request: BareQuestion) -> ObjectivesReply:
    """The sub-questions, and the things that the question names."""
    return ObjectivesReply(objectives=[text for _, text in gold.subquestions], topics=_list_topics(gold))


def score_relations(gold: GoldReasoning, request: RelationScoresRequest) -> RelationScores:
    """1 for a relation that carries out an operation from its entity, and that the walk has not followed yet."""
    walk = _GoldWalk(gold, request)
    entities = {value.key: value for value in request.known}
    return RelationScores(
        relations=[
            ScoredRelation(
                of=relation.of,
                id=relation.id,
                direction=relation.direction,
                score=float(walk.leads_on(entities[relation.of], relation)),
            )
            for relation in request.relations
        ]
    )


def score_facts(gold: GoldReasoning, request: FactScoresRequest) -> FactScores:
    """1 for a fact that carries out an operation."""
    walk = _GoldWalk(gold, request)
    return FactScores(facts=[ScoredFact(id=fact.id, score=float(walk.uses(fact))) for fact in request.candidates])


def judge_enough(gold: GoldReasoning, request: WalkState) -> EnoughReply:
    """Whether every operation is carried out."""
    open_texts = _GoldWalk(gold, request).open_texts
    return EnoughReply(reasons=f"{len(open_texts)} facts are open.", enough=not open_texts)


def answer_walk(gold: GoldReasoning, request: WalkState) -> ReasonedReply:
    """What the facts reach; unknown if they are not enough."""
    walk = _GoldWalk(gold, request)
    if walk.open_texts:
        return ReasonedReply(reasons="The facts are not enough.", answers=[], unknown=True)
    return ReasonedReply(reasons="The facts state it.", answers=walk.answers, support=walk.support)


def note_findings(gold: GoldReasoning, request: WalkState) -> MemoryReply:
    """The values of each sub-question, as far as the facts reach them."""
    walk = _GoldWalk(gold, request)
    leaves = {text: leaf for leaf, text in gold.subquestions}
    return MemoryReply(
        objectives=[
            entry
            if entry.objective not in leaves or not walk.reached[leaves[entry.objective]]
            else entry.model_copy(
                update={
                    "finding": format_values(walk.reached[leaves[entry.objective]]),
                    "done": walk.is_done(leaves[entry.objective]),
                }
            )
            for entry in request.objectives
        ]
    )


def reflect(gold: GoldReasoning, request: ReflectRequest) -> ReflectReply:
    """The earlier entities from which an operation is open."""
    walk = _GoldWalk(gold, request)
    entities = [value.key for value in request.earlier if walk.has_open_operation(value)]
    return ReflectReply(reasons=f"{len(entities)} entities have open facts.", entities=entities)


def reason_walk(gold: GoldReasoning, request: ReasonWalkRequest) -> WalkVerdict:
    """What the facts reach; if they are not enough, the next open sub-question as the clue."""
    walk = _GoldWalk(gold, request)
    if walk.open_texts:
        return WalkVerdict(reasons="Facts are open.", answers=[], unknown=True, clue=walk.open_texts[0])
    return WalkVerdict(reasons="The facts state it.", answers=walk.answers, support=walk.support)


def _list_topics(gold: GoldReasoning) -> list[str]:
    return list(dict.fromkeys(_topic_name(gold, leaf) for leaf in gold.root.leaves() if _is_named(leaf)))


def _is_named(leaf: ReasoningNode) -> bool:
    return leaf.operator == SEARCH and not leaf.relation


def _topic_name(gold: GoldReasoning, leaf: ReasoningNode) -> str:
    return gold.to_value(leaf.kind, int(leaf.values[0])).text


def _inputs(leaf: ReasoningNode) -> list[ReasoningNode]:
    """The operations whose answers a leaf takes."""
    return [last_leaf(node) for node in leaf.inputs]


def _states(leaf: ReasoningNode, relation: OfferedRelation) -> bool:
    """Whether a relation, followed from a known value, carries out the operation."""
    if leaf.operator == FILTER:
        return relation.direction == "head" and relation.id in list_property_ids(FACT_LABELS[leaf.relation])
    if leaf.operator != RELATE:
        return False
    words = str(leaf.arguments[-1]).removesuffix(INVERSE_SUFFIX if leaf.is_inverse else "")
    return relation.direction == ("tail" if leaf.is_inverse else "head") and relation.id in list_property_ids(words)


class _GoldWalk:
    """The operations of the gold tree that the facts of a walk carry out."""

    def __init__(self, gold: GoldReasoning, state: WalkState) -> None:
        self._gold = gold
        self._state = state
        self._leaves = list(gold.root.leaves())
        self.complete = self._evaluate(self._apply)
        """What the operations give from the topics by all facts of the universe."""
        self.reached = self._evaluate(self._walk_operation)
        """What the facts of the walk show of it."""

    @property
    def answers(self) -> list[AnswerValue]:
        """The answers that the facts reach."""
        return distinct_values(self.reached[self._leaves[-1]])

    @property
    def support(self) -> list[str]:
        """The ids of the facts that carry out operations."""
        return [fact.id for fact in self._state.walked if self.uses(fact)]

    @property
    def open_texts(self) -> list[str]:
        """The names at which the walk did not begin, and the sub-questions that the facts do not answer."""
        names = [f"Who or what is {_topic_name(self._gold, leaf)}?" for leaf in self._leaves if self._is_missing(leaf)]
        return names + [text for leaf, text in self._gold.subquestions if not self.is_done(leaf)]

    def _is_missing(self, leaf: ReasoningNode) -> bool:
        return _is_named(leaf) and not self.reached[leaf]

    def is_done(self, leaf: ReasoningNode) -> bool:
        """Whether the operation is carried out: with some value if there is one; a computation with all operands."""
        if leaf.operator == DIRECT_REASONING and leaf.relation != "both":
            return all(_keys(self.reached[node]) == _keys(self.complete[node]) for node in _inputs(leaf))
        return bool(self.reached[leaf]) or not self.complete[leaf]

    def uses(self, fact: GraphFact) -> bool:
        """Whether the fact carries out an operation from a value at which the walk can be."""
        return any(
            _states(leaf, fact.relation) and self._stands_before(leaf, fact.known) and self._gives(leaf, fact)
            for leaf in self._leaves
        )

    def leads_on(self, value: AnswerValue, relation: OfferedRelation) -> bool:
        """Whether the relation carries out an operation from the value, and the walk has no fact of it yet."""
        walked = {(fact.known.key, fact.relation.id, fact.relation.direction) for fact in self._state.walked}
        return (value.key, relation.id, relation.direction) not in walked and any(
            _states(leaf, relation) and self._stands_before(leaf, value) and self._apply_to(leaf, value)
            for leaf in self._leaves
        )

    def has_open_operation(self, value: AnswerValue) -> bool:
        """Whether an operation has values from this one, and the walk has none of them."""
        return any(
            leaf.operator in {RELATE, FILTER}
            and self._stands_before(leaf, value)
            and self._apply_to(leaf, value)
            and not any(fact.known.key == value.key and _states(leaf, fact.relation) for fact in self._state.walked)
            for leaf in self._leaves
        )

    def _stands_before(self, leaf: ReasoningNode, value: AnswerValue) -> bool:
        """Whether the value is one that the operation takes."""
        return any(value.key in _keys(self._passing(node)) for node in _inputs(leaf))

    def _passing(self, node: ReasoningNode) -> list[AnswerValue]:
        """The values of an operation at which the walk can be; a condition need not be looked up before going on."""
        if node.operator in {FILTER, DIRECT_REASONING}:
            before = {key for earlier in _inputs(node) for key in _keys(self._passing(earlier))}
            return [value for value in self.complete[node] if value.key in before]
        return self.reached[node]

    def _gives(self, leaf: ReasoningNode, fact: GraphFact) -> bool:
        given = self._apply_to(leaf, fact.known)
        return bool(given) if leaf.operator == FILTER else fact.other.key in _keys(given)

    def _evaluate(self, carry_out: Callable[[ReasoningNode, list[list[AnswerValue]]], list[AnswerValue]]) -> Values:
        """The values of all operations in order, each from those before."""
        values: Values = {}
        for leaf in self._leaves:
            if _is_named(leaf):
                name = _topic_name(self._gold, leaf)
                values[leaf] = [topic for topic in self._state.topics if topic.text == name]
            else:
                values[leaf] = carry_out(leaf, [values[node] for node in _inputs(leaf)])
        return values

    def _apply(self, leaf: ReasoningNode, inputs: Sequence[list[AnswerValue]]) -> list[AnswerValue]:
        if leaf.operator == DIRECT_REASONING:
            return combine_operands(leaf, inputs)
        if not inputs:
            return self._gold.apply(self._gold.operation_of(leaf), ())
        return [answer for value in inputs[0] for answer in self._apply_to(leaf, value)]

    def _apply_to(self, leaf: ReasoningNode, value: AnswerValue) -> list[AnswerValue]:
        """The values of an operation about one thing; none about a thing that the universe does not have."""
        try:
            return self._gold.apply(self._gold.operation_of(leaf), [value])
        except UnknownOperation:
            return []

    def _walk_operation(self, leaf: ReasoningNode, inputs: Sequence[list[AnswerValue]]) -> list[AnswerValue]:
        if leaf.operator == DIRECT_REASONING:
            return combine_operands(leaf, inputs)
        if not inputs:
            return []
        facts = [fact for fact in self._state.walked if _states(leaf, fact.relation)]
        reached: list[AnswerValue] = []
        for value in inputs[0]:
            others = {fact.other.key for fact in facts if fact.known.key == value.key}
            given = self._apply_to(leaf, value)
            if leaf.operator == FILTER:
                reached += given if others else []
            else:
                reached += [answer for answer in given if answer.key in others]
        return reached


def _keys(values: Sequence[AnswerValue]) -> set[str]:
    return {value.key for value in values}


GRAPH_WALK_REPLIES: Mapping[str, Callable[[GoldReasoning, Any], BaseModel]] = {
    "topics": name_topics,
    "objectives": write_objectives,
    "score_relations": score_relations,
    "score_facts": score_facts,
    "enough": judge_enough,
    "answer_walk": answer_walk,
    "memory": note_findings,
    "reflect": reflect,
    "reason_walk": reason_walk,
}
"""The gold replies by the names of the skills."""
