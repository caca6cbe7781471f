"""Following the gold reasoning from operation to operation, each in the sources that tell it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluation.gold_traces import attempt
from evaluation.gold_traces.attempt import GoldAttempt, GoldTraceError, ValuePairs, people_with_fact, relation_pairs
from evaluation.gold_traces.graph_steps import GraphLookup
from evaluation.gold_traces.text_steps import TextLookup
from evaluation.gold_traces.web_steps import WebLookup
from fiction.questions.names import ThingCatalog
from fiction.questions.reasoning import DIRECT_REASONING, RELATE, SEARCH, ReasoningNode
from fiction.universe.universe import GRAPH, TEXT, WEB, Universe

SourceLookup = GraphLookup | TextLookup | WebLookup
_CHILD_RELATIONS = {"sibling": "child", "sister": "daughter", "brother": "son"}
MAX_ARTICLES = 12
"""Things whose articles or pages are read one by one for one operation."""


@dataclass(frozen=True, slots=True)
class GoldSource:
    """One source: its bit, what it tells, and how it is asked."""

    bit: int
    universe: Universe
    lookup: SourceLookup


class GoldFollower:
    """Leads one attempt through the operations; `known` is what the sources together tell."""

    def __init__(self, attempt: GoldAttempt, things: ThingCatalog, sources: Sequence[GoldSource]) -> None:
        self._attempt, self._known, self._sources = attempt, things, sources
        lookups = [source.lookup for source in sources]
        self._graph = next((way for way in lookups if isinstance(way, GraphLookup)), None)
        self._text = next((way for way in lookups if isinstance(way, TextLookup)), None)

    def follow(self, leaves: Sequence[ReasoningNode]) -> None:
        """Look everything up that the operations rest on; Stuck when the sources do not show it."""
        place = 0
        while place < len(leaves):
            place += self._operate(leaves, place)

    def _operate(self, leaves: Sequence[ReasoningNode], place: int) -> int:
        """Do the operation in that place, and those behind it that the same query does; how many were done."""
        leaf = leaves[place]
        if leaf.operator == DIRECT_REASONING:
            if leaf is not leaves[-1]:
                self._attempt.add_finding(attempt.describe_finding(self._known, leaf))
            return 1
        if leaf.operator == SEARCH:
            self._search(leaf)
            return 1
        if leaf.operator == RELATE and leaf.is_inverse:
            self._require_equal(
                leaf, self._look_up_subjects(leaf, int(leaf.inputs[0].values[0])), set(leaf.values.tolist())
            )
            return 1
        heads = leaf.inputs[0].values.tolist()
        if not heads:
            return 1
        run = self._graph_chain(leaves, place)
        if self._graph is not None and run and (len(run) > 1 or len(heads) == 1):
            observed = self._graph.chain(run, heads)
            self._require_equal(run[-1], observed, set(run[-1].values.tolist()))
            return len(run)
        self._look_up(leaf, heads)
        return 1

    def _search(self, leaf: ReasoningNode) -> None:
        if leaf.relation:
            self._require_equal(leaf, self._look_up_subjects(leaf, leaf.day), set(leaf.values.tolist()))
        elif self._text is not None and leaf.kind == "person":
            self._text.search_start(leaf.kind, int(leaf.values[0]))
        elif self._graph is not None:
            self._graph.find_id(leaf.kind, int(leaf.values[0]))

    def _graph_chain(self, leaves: Sequence[ReasoningNode], place: int) -> list[ReasoningNode]:
        """The operations from there on of which each takes the answers of the one before and the graph tells all."""
        run: list[ReasoningNode] = []
        for leaf, after in zip(leaves[place:], [*leaves[place + 1 :], None], strict=True):
            if leaf.operator != RELATE or leaf.is_inverse or not self._all_in_graph(leaf):
                break
            if run and _answer_node(leaf.inputs[0]) is not run[-1]:
                break
            if run and any(run[-1] in map(_answer_node, later.inputs) for later in leaves if later is not leaf):
                # Who was found on the way is asked for once more.
                break
            # Who is the first or last by it needs the day of each.
            if after is not None and after.relation in ("earliest", "latest"):
                break
            run.append(leaf)
        return run

    def _all_in_graph(self, leaf: ReasoningNode) -> bool:
        heads = leaf.inputs[0].values.tolist()
        expected = self._pairs(leaf, heads)
        return any(
            source.bit == GRAPH and relation_pairs(source.universe, leaf.relation, heads) == expected
            for source in self._sources
        )

    def _pairs(self, leaf: ReasoningNode, heads: Sequence[int]) -> ValuePairs:
        return relation_pairs(self._known.universe, leaf.relation, heads)

    def _look_up(self, leaf: ReasoningNode, heads: Sequence[int]) -> None:
        """Ask the sources, one after the other, for what each tells of the heads."""
        expected = self._pairs(leaf, heads)
        if leaf.relation in _CHILD_RELATIONS and expected != self._stated_pairs(leaf, heads):
            self._look_up_siblings(leaf, heads, expected)
            return
        observed: ValuePairs = set()
        for number, source in enumerate(self._sources):
            mine = relation_pairs(source.universe, leaf.relation, heads) - observed
            # Where none tells anything the first source is asked, to see that there is nothing.
            telling = sorted({head for head, _ in mine}) or ([] if expected or number else list(heads))
            if not telling:
                continue
            if source.bit != GRAPH and len(telling) > MAX_ARTICLES:
                raise GoldTraceError(
                    f"{len(telling)} {'articles' if source.bit == TEXT else 'searches'} would have to be read"
                )
            observed |= source.lookup.forward(leaf, telling)
        self._require_equal(leaf, observed, expected)

    def _stated_pairs(self, leaf: ReasoningNode, heads: Sequence[int]) -> ValuePairs:
        # The web names no siblings: they are whoever has a parent in common.
        stating = [source for source in self._sources if source.bit != WEB]
        return {pair for source in stating for pair in relation_pairs(source.universe, leaf.relation, heads)}

    def _look_up_siblings(self, leaf: ReasoningNode, heads: Sequence[int], expected: ValuePairs) -> None:
        """Find siblings over the parents, whom other sources may tell than the siblings' own."""
        universe = self._known.universe
        parents = sorted({parent for _, parent in relation_pairs(universe, "parent", heads)})
        up = _relation_node(leaf.inputs[0], "parent", parents)
        self._look_up(up, heads)
        child = _CHILD_RELATIONS[leaf.relation]
        children = sorted({observed for _, observed in relation_pairs(universe, child, parents)})
        self._look_up(_relation_node(up, child, children), parents)
        self._require_equal(leaf, {pair for pair in expected if pair[1] in children}, expected)

    def _look_up_subjects(self, leaf: ReasoningNode, value: int) -> set[int]:
        expected = set(leaf.values.tolist())
        observed: set[int] = set()
        for number, source in enumerate(self._sources):
            mine = people_with_fact(source.universe, leaf.relation, value) & expected - observed
            if mine or not (expected or number):
                observed |= source.lookup.backward(leaf, value)
        return observed

    def _require_equal(self, leaf: ReasoningNode, observed: object, expected: object) -> None:
        if observed != expected:
            question = attempt.node_question(self._known, leaf)
            raise GoldTraceError(
                f"the observations show {_set_size(observed)} of {_set_size(expected)} answers to {question!r}"
            )
        self._attempt.add_finding(attempt.describe_finding(self._known, leaf))


def _answer_node(node: ReasoningNode) -> ReasoningNode:
    """The operation that gives the answers of a node."""
    *_, observed = node.leaves()
    return observed


def _relation_node(head: ReasoningNode, relation: str, people: list[int]) -> ReasoningNode:
    question = (f"Who is the {relation} of ", head, "?")
    return ReasoningNode(RELATE, question, (head, relation), "person", np.array(people, np.int32), relation)


def _set_size(observed: object) -> int:
    return len(observed) if isinstance(observed, set) else 0
