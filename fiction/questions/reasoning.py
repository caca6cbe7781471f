"""Gold reasoning of an expression: a tree of questions, each answered by one operation or by its sub-questions.

All formalisms (atomic tree, triples, sub-questions, traces) are written from these nodes, so they always agree.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatchmethod

import numpy as np

from showhow.fiction.questions import wording
from showhow.fiction.questions.evaluate import (
    FACT_VALUE_KINDS,
    ExpressionEvaluator,
    FactTriple,
    iter_fact_triples,
    iter_place_triples,
    iter_relation_triples,
)
from showhow.fiction.questions.expressions import (
    Both,
    Compare,
    Count,
    Expression,
    Fact,
    Having,
    Judge,
    Most,
    Named,
    Only,
    People,
    Place,
    Related,
    Same,
)
from showhow.fiction.questions.names import ThingCatalog
from showhow.fiction.questions.wording import FACT_LABELS, noun_phrase
from showhow.fiction.universe.relations import (
    BASIC_RELATIONS,
    PARTNER,
    RELATIONS,
    KinshipRelation,
    find_related,
    get_relation,
    sort_unique,
)
from showhow.fiction.universe.universe import NONE, IdArray

SEARCH, RELATE, FILTER, DIRECT_REASONING, COMPOSITE = "Search", "Relate", "Filter", "DR", ""
"""The operators of AtomR, direct reasoning over earlier answers, and a question answered by its sub-questions."""
_VALUE_NOUNS = {"job": FACT_LABELS["job"], "hobby": FACT_LABELS["hobby"], "town": "town"}
_RELATIONS_BY_STEP = {
    (relation.steps[0], relation.women): relation
    for relation in (*(RELATIONS[name] for name in BASIC_RELATIONS), PARTNER)
    if len(relation.steps) == 1
}


@dataclass(eq=False, slots=True)
class ReasoningNode:
    """One question with its gold answer; a node within a text or among arguments is a reference to its answer."""

    operator: str
    question: tuple["str | ReasoningNode", ...]
    arguments: tuple["str | ReasoningNode", ...]
    kind: str
    values: IdArray
    relation: str = ""
    """The relation or fact of RELATE, the fact of FILTER, the method of DIRECT_REASONING."""
    children: tuple["ReasoningNode", ...] = ()
    day: int = NONE
    """The day of a SEARCH for people by a date."""

    @property
    def inputs(self) -> tuple["ReasoningNode", ...]:
        """Nodes whose answers are arguments."""
        return tuple(part for part in self.arguments if isinstance(part, ReasoningNode))

    @property
    def is_inverse(self) -> bool:
        """Whether it goes from a value to the people who have it."""
        return self.operator == RELATE and self.relation in FACT_VALUE_KINDS and self.inputs[0].kind != "person"

    @property
    def needs_retrieval(self) -> bool:
        """Whether it needs a source; a search for an entity of the question and direct reasoning do not."""
        return self.operator in (RELATE, FILTER) or (self.operator == SEARCH and self.relation != "")

    def leaves(self) -> Iterator["ReasoningNode"]:
        """Operations in order of execution; the node itself if it has no children."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


class ReasoningBuilder:
    """Builds reasoning trees of expressions over one universe."""

    def __init__(self, things: ThingCatalog) -> None:
        self.things = things
        self._universe = things.universe
        self._evaluation = ExpressionEvaluator(things.universe)

    def build_tree(self, expression: Expression, question: str = "") -> ReasoningNode:
        """Build the tree of an expression; the root has the text of the question."""
        answer = self._evaluation.evaluate(expression)
        nodes = self._build_nodes(expression)
        values = np.array(answer.values, np.int32)
        return ReasoningNode(COMPOSITE, (question,), (), answer.kind, values, children=nodes)

    def supporting_facts(self, leaf: ReasoningNode) -> Iterator[FactTriple]:
        """Facts that support an operation; none if it retrieves nothing."""
        universe = self._universe
        if leaf.operator == FILTER or (leaf.operator == SEARCH and leaf.relation):
            return iter_fact_triples(universe, leaf.relation, leaf.values)
        if leaf.operator != RELATE:
            return iter(())
        if leaf.is_inverse:
            return iter_fact_triples(universe, leaf.relation, leaf.values)
        head = leaf.inputs[0].values
        if leaf.relation in FACT_VALUE_KINDS:
            return iter_fact_triples(universe, leaf.relation, head)
        if leaf.relation in ("region", "country"):
            return iter_place_triples(universe, leaf.relation, head)
        return iter_relation_triples(universe, leaf.relation, head)

    def list_supporting_facts(self, root: ReasoningNode) -> list[FactTriple]:
        """All facts that support the operations of a tree, each once."""
        return list(dict.fromkeys(fact for leaf in root.leaves() for fact in self.supporting_facts(leaf)))

    @singledispatchmethod
    def _build_nodes(self, expression: Expression) -> tuple[ReasoningNode, ...]:
        """Nodes of an expression, in order; the answer of the last is that of the expression."""
        raise TypeError(f"{type(expression).__name__} is not an expression")

    @_build_nodes.register
    def _(self, named: Named) -> tuple[ReasoningNode, ...]:
        title = self._universe.titles[named.person]
        name, _, descriptor = title.partition(" (")
        arguments = (name, descriptor.rstrip(")")) if descriptor else (title,)
        return (ReasoningNode(SEARCH, (f"Who is {title}?",), arguments, "person", np.array([named.person], np.int32)),)

    @_build_nodes.register
    def _(self, having: Having) -> tuple[ReasoningNode, ...]:
        kind, people = FACT_VALUE_KINDS[having.fact], self._evaluate_people(having)
        text = self.things.sentence_text(kind, having.value)
        if kind == "day":
            condition = wording.condition_phrase(having.fact, "is", text)
            return (
                ReasoningNode(
                    SEARCH,
                    (f"Who {condition}?",),
                    ("person", condition),
                    "person",
                    people,
                    having.fact,
                    day=having.value,
                ),
            )
        value = np.array([having.value], np.int32)
        start = ReasoningNode(
            SEARCH, (f"Which {_VALUE_NOUNS[kind]} is {text}?",), (text, FACT_LABELS[having.fact]), kind, value
        )
        return start, ReasoningNode(
            RELATE,
            _split_placeholder(wording.VALUE_QUESTIONS[having.fact], start),
            (start, f"{FACT_LABELS[having.fact]} of"),
            "person",
            people,
            having.fact,
        )

    @_build_nodes.register
    def _(self, expression: Related) -> tuple[ReasoningNode, ...]:
        before = self._build_nodes(expression.of)
        relation = get_relation(expression.relation)
        steps = []
        head = before[-1]
        for step in split_relation(relation):
            values = find_related(self._universe, step, head.values)
            question = _split_placeholder(f"Who is the {step.singular} of {{}}?", head)
            head = ReasoningNode(RELATE, question, (head, step.singular), "person", values, step.name)
            steps.append(head)
        if len(steps) == 1:
            return *before, head
        question = _split_placeholder(f"Who is the {self.things.names.relation_noun(relation)} of {{}}?", before[-1])
        return *before, ReasoningNode(COMPOSITE, question, (), "person", head.values, children=tuple(steps))

    @_build_nodes.register
    def _(self, only: Only) -> tuple[ReasoningNode, ...]:
        before = self._build_nodes(only.of)
        condition = wording.condition_phrase(
            only.fact, only.test, self.things.sentence_text(FACT_VALUE_KINDS[only.fact], only.value)
        )
        question = _split_placeholder(f"Who of {{}} {condition}?", before[-1])
        return *before, ReasoningNode(
            FILTER, question, (before[-1], condition), "person", self._evaluate_people(only), only.fact
        )

    @_build_nodes.register
    def _(self, both: Both) -> tuple[ReasoningNode, ...]:
        left, right = self._side_node(both.left), self._side_node(both.right)
        question = ("Who is among both ", left, " and ", right, "?")
        return (
            left,
            right,
            ReasoningNode(DIRECT_REASONING, question, (left, right), "person", self._evaluate_people(both), "both"),
        )

    @_build_nodes.register
    def _(self, most: Most) -> tuple[ReasoningNode, ...]:
        before = self._build_nodes(most.of)
        days = self._fact_node(most.fact, before[-1])
        question = (
            "Given ",
            days,
            ", ",
            *_split_placeholder(f"who of {{}} {wording.superlative_phrase(most.fact, most.first)}?", before[-1]),
        )
        how = "earliest" if most.first else "latest"
        return (
            *before,
            days,
            ReasoningNode(DIRECT_REASONING, question, (before[-1], days), "person", self._evaluate_people(most), how),
        )

    @_build_nodes.register
    def _(self, fact: Fact) -> tuple[ReasoningNode, ...]:
        before = self._build_nodes(fact.of)
        return *before, self._fact_node(fact.fact, before[-1])

    @_build_nodes.register
    def _(self, place: Place) -> tuple[ReasoningNode, ...]:
        before = self._build_nodes(place.of)
        return *before, self._place_node(place.kind, before[-1])

    @_build_nodes.register
    def _(self, count: Count) -> tuple[ReasoningNode, ...]:
        before = self._build_nodes(count.of)
        if not count.each:
            question = _split_placeholder("How many are {}?", before[-1])
            return *before, ReasoningNode(
                DIRECT_REASONING, question, (before[-1],), "number", self._evaluate_people(count), "count"
            )
        whose = before[-1].children[0].inputs[0] if before[-1].children else before[-1].inputs[0]
        question = ("How many of ", before[-1], " belong to each of ", whose, "?")
        last = ReasoningNode(
            DIRECT_REASONING, question, (whose, before[-1]), "number", self._evaluate_people(count), "count each"
        )
        return *before, last

    @_build_nodes.register
    def _(self, compare: Compare) -> tuple[ReasoningNode, ...]:
        sides = [self._side_node(side) for side in (compare.left, compare.right)]
        left, right = [self._fact_node(compare.fact, side) for side in sides]
        how = wording.superlative_phrase(compare.fact, compare.first)
        question = ("Given ", left, " and ", right, f", who {how}, ", sides[0], " or ", sides[1], "?")
        order = (sides[0], left, sides[1], right)
        direction = "earlier" if compare.first else "later"
        last = ReasoningNode(DIRECT_REASONING, question, order, "person", self._evaluate_people(compare), direction)
        return sides[0], left, sides[1], right, last

    @_build_nodes.register
    def _(self, same: Same) -> tuple[ReasoningNode, ...]:
        nodes, ends = self._same_fact_nodes((same.left, same.right), same.fact, country=same.country)
        question = ("Are ", ends[0], " and ", ends[1], " the same?")
        return *nodes, ReasoningNode(
            DIRECT_REASONING, question, tuple(ends), "truth", self._evaluate_people(same), "same"
        )

    @_build_nodes.register
    def _(self, judge: Judge) -> tuple[ReasoningNode, ...]:
        truth = self._evaluate_people(judge)
        if judge.strategy == "passport":
            nodes, ends = self._same_fact_nodes((judge.left, judge.right), "residence", country=True)
            question = ("Are ", ends[0], " and ", ends[1], " different countries?")
            return *nodes, ReasoningNode(DIRECT_REASONING, question, tuple(ends), "truth", truth, "different")
        left, right = self._side_node(judge.left), self._side_node(judge.right)
        lived = [self._fact_node(fact, left) for fact in ("birth", "death")]
        if judge.strategy == "met":
            others = [self._fact_node(fact, right) for fact in ("birth", "death")]
            question = wording.overlap_question(*lived, *others)
            last = ReasoningNode(DIRECT_REASONING, question, (*lived, *others), "truth", truth, "overlap")
            return left, *lived, right, *others, last
        wedding = self._fact_node("wedding", right)
        question = wording.wedding_question(*lived, wedding)
        last = ReasoningNode(DIRECT_REASONING, question, (*lived, wedding), "truth", truth, "within")
        return right, wedding, left, *lived, last

    def _evaluate_people(self, expression: Expression) -> IdArray:
        return self._evaluation.results[expression][1]

    def _side_node(self, people: People) -> ReasoningNode:
        """The single node for one side of a comparison; several operations become a composite question."""
        nodes = self._build_nodes(people)
        if len(nodes) == 1:
            return nodes[0]
        question = (f"Who is {noun_phrase(people, self.things.names)}?",)
        return ReasoningNode(COMPOSITE, question, (), "person", nodes[-1].values, children=nodes)

    def _fact_node(self, fact: str, people: ReasoningNode) -> ReasoningNode:
        values: IdArray = getattr(self._universe, fact)[people.values]
        question = _split_placeholder(wording.FACT_QUESTIONS[fact], people)
        distinct = sort_unique(values[values >= 0])
        return ReasoningNode(RELATE, question, (people, FACT_LABELS[fact]), FACT_VALUE_KINDS[fact], distinct, fact)

    def _place_node(self, kind: str, towns: ReasoningNode) -> ReasoningNode:
        places = self._universe.places
        areas = places.region[towns.values]
        if kind == "country":
            areas = places.country[areas]
        question = _split_placeholder(f"In which {kind} is {{}}?", towns)
        return ReasoningNode(RELATE, question, (towns, kind), kind, sort_unique(areas), kind)

    def _same_fact_nodes(
        self, sides: tuple[People, People], fact: str, *, country: bool
    ) -> tuple[list[ReasoningNode], list[ReasoningNode]]:
        """Nodes for one fact of two people, and the two nodes with its values."""
        nodes, ends = [], []
        for side in map(self._side_node, sides):
            nodes += [side, self._fact_node(fact, side)]
            if country:
                nodes.append(self._place_node("country", nodes[-1]))
            ends.append(nodes[-1])
        return nodes, ends


def split_relation(relation: KinshipRelation) -> list[KinshipRelation]:
    """One-step relations that make up the relation; only the last implies the gender."""
    *before, last = relation.steps
    return [*(_RELATIONS_BY_STEP[step, None] for step in before), _RELATIONS_BY_STEP[last, relation.women]]


def _split_placeholder(text: str, node: ReasoningNode) -> tuple[str | ReasoningNode, ...]:
    before, _, after = text.partition("{}")
    return before, node, after
