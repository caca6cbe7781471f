"""The gold reasoning of an expression: questions, each answered by one operation or by the questions below it.

Every formalism (atoms, triples, sub-questions, traces) is written from these nodes, so that they never disagree.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import singledispatchmethod

import numpy as np

from worlds.questions import phrases
from worlds.questions.evaluate import KIND_OF_FACT, Evaluation
from worlds.questions.expressions import (
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
from worlds.questions.facts import Triple, places_of, related_by, values_of
from worlds.questions.things import Things
from worlds.questions.wording import LABELS, noun
from worlds.universe.relations import EASY, PARTNER, RELATIONS, Relation, distinct, related, relation
from worlds.universe.universe import NONE, Ids

SEARCH, RELATE, FILTER, REASON, TOGETHER = "Search", "Relate", "Filter", "DR", ""
"""The operators of AtomR, direct reasoning about what is known, and a question that those below it answer."""
_BY_STEP = {
    (one.steps[0], one.women): one for one in (*(RELATIONS[name] for name in EASY), PARTNER) if len(one.steps) == 1
}


@dataclass(eq=False, slots=True)
class Node:
    """One question of the reasoning with its gold answer; in texts a node stands for a reference to its answer."""

    operator: str
    question: tuple["str | Node", ...]
    arguments: tuple["str | Node", ...]
    kind: str
    values: Ids
    relation: str = ""
    """Of RELATE the relation or fact, of FILTER the fact, of REASON what is done."""
    children: tuple["Node", ...] = ()
    day: int = NONE
    """Of a SEARCH for whoever has it."""

    @property
    def heads(self) -> tuple["Node", ...]:
        """The nodes whose answers it takes."""
        return tuple(part for part in self.arguments if isinstance(part, Node))

    @property
    def inverse(self) -> bool:
        """Whether it goes from a value to the people who have it."""
        return self.operator == RELATE and self.relation in KIND_OF_FACT and self.heads[0].kind != "person"

    @property
    def retrieves(self) -> bool:
        """Whether it needs a source; naming a thing of the question and reasoning about what is known do not."""
        return self.operator in (RELATE, FILTER) or (self.operator == SEARCH and self.relation != "")

    def leaves(self) -> Iterator["Node"]:
        """The operations below it, or itself, in the order in which they are done."""
        if not self.children:
            yield self
        for child in self.children:
            yield from child.leaves()


class Reasoning:
    """Makes the nodes of expressions over one universe."""

    def __init__(self, things: Things) -> None:
        self.things = things
        self._universe = things.universe
        self._evaluation = Evaluation(things.universe)

    def root(self, expression: Expression, question: str = "") -> Node:
        """The whole reasoning under the question's own text."""
        answer = self._evaluation.answer(expression)
        nodes = self._nodes(expression)
        values = np.array(answer.values, np.int32)
        return Node(TOGETHER, (question,), (), answer.kind, values, children=nodes)

    def facts(self, leaf: Node) -> Iterator[Triple]:
        """Every fact that the operation rests on; none for one that retrieves nothing."""
        universe = self._universe
        if leaf.operator == FILTER or (leaf.operator == SEARCH and leaf.relation):
            return values_of(universe, leaf.relation, leaf.values)
        if leaf.operator != RELATE:
            return iter(())
        if leaf.inverse:
            return values_of(universe, leaf.relation, leaf.values)
        head = leaf.heads[0].values
        if leaf.relation in KIND_OF_FACT:
            return values_of(universe, leaf.relation, head)
        if leaf.relation in ("region", "country"):
            return places_of(universe, leaf.relation, head)
        return related_by(universe, leaf.relation, head)

    @singledispatchmethod
    def _nodes(self, expression: Expression) -> tuple[Node, ...]:
        """What is asked for an expression, in order; the last node's answer is the expression's."""
        raise TypeError(f"{type(expression).__name__} is no expression")

    @_nodes.register
    def _(self, named: Named) -> tuple[Node, ...]:
        title = self._universe.titles[named.person]
        name, _, descriptor = title.partition(" (")
        told = (name, descriptor.rstrip(")")) if descriptor else (title,)
        return (Node(SEARCH, (f"Who is {title}?",), told, "person", np.array([named.person], np.int32)),)

    @_nodes.register
    def _(self, having: Having) -> tuple[Node, ...]:
        kind, people = KIND_OF_FACT[having.fact], self._found(having)
        text = self.things.said(kind, having.value)
        if kind == "day":
            told = phrases.condition(having.fact, "is", text)
            return (Node(SEARCH, (f"Who {told}?",), ("person", told), "person", people, having.fact, day=having.value),)
        value = np.array([having.value], np.int32)
        start = Node(SEARCH, (f"What is {text}?",), (text, LABELS[having.fact]), kind, value)
        return start, Node(
            RELATE,
            _around(phrases.WHO_HAS[having.fact], start),
            (start, f"{LABELS[having.fact]} of"),
            "person",
            people,
            having.fact,
        )

    @_nodes.register
    def _(self, expression: Related) -> tuple[Node, ...]:
        before = self._nodes(expression.of)
        asked = relation(expression.relation)
        steps = []
        head = before[-1]
        for one in single_steps(asked):
            values = related(self._universe, one, head.values)
            question = _around(f"Who is the {one.words} of {{}}?", head)
            head = Node(RELATE, question, (head, one.words), "person", values, one.name)
            steps.append(head)
        if len(steps) == 1:
            return *before, head
        question = _around(f"Who is the {asked.words} of {{}}?", before[-1])
        return *before, Node(TOGETHER, question, (), "person", head.values, children=tuple(steps))

    @_nodes.register
    def _(self, only: Only) -> tuple[Node, ...]:
        before = self._nodes(only.of)
        told = phrases.condition(only.fact, only.test, self.things.said(KIND_OF_FACT[only.fact], only.value))
        question = _around(f"Who of {{}} {told}?", before[-1])
        return *before, Node(FILTER, question, (before[-1], told), "person", self._found(only), only.fact)

    @_nodes.register
    def _(self, both: Both) -> tuple[Node, ...]:
        left, right = self._side(both.left), self._side(both.right)
        question = ("Who is among both ", left, " and ", right, "?")
        return left, right, Node(REASON, question, (left, right), "person", self._found(both), "both")

    @_nodes.register
    def _(self, most: Most) -> tuple[Node, ...]:
        before = self._nodes(most.of)
        days = self._fact(most.fact, before[-1])
        question = ("Given ", days, ", ", *_around(f"who of {{}} {phrases.most(most.fact, most.first)}?", before[-1]))
        how = "earliest" if most.first else "latest"
        return *before, days, Node(REASON, question, (before[-1], days), "person", self._found(most), how)

    @_nodes.register
    def _(self, fact: Fact) -> tuple[Node, ...]:
        before = self._nodes(fact.of)
        return *before, self._fact(fact.fact, before[-1])

    @_nodes.register
    def _(self, place: Place) -> tuple[Node, ...]:
        before = self._nodes(place.of)
        return *before, self._place(place.kind, before[-1])

    @_nodes.register
    def _(self, count: Count) -> tuple[Node, ...]:
        before = self._nodes(count.of)
        if not count.each:
            question = _around("How many are {}?", before[-1])
            return *before, Node(REASON, question, (before[-1],), "number", self._found(count), "count")
        whose = before[-1].children[0].heads[0] if before[-1].children else before[-1].heads[0]
        question = ("How many of ", before[-1], " belong to each of ", whose, "?")
        last = Node(REASON, question, (whose, before[-1]), "number", self._found(count), "count each")
        return *before, last

    @_nodes.register
    def _(self, compare: Compare) -> tuple[Node, ...]:
        sides = [self._side(each) for each in (compare.left, compare.right)]
        left, right = [self._fact(compare.fact, side) for side in sides]
        how = phrases.most(compare.fact, compare.first)
        question = ("Given ", left, " and ", right, f", who {how}, ", sides[0], " or ", sides[1], "?")
        order = (sides[0], left, sides[1], right)
        told = "earlier" if compare.first else "later"
        last = Node(REASON, question, order, "person", self._found(compare), told)
        return sides[0], left, sides[1], right, last

    @_nodes.register
    def _(self, same: Same) -> tuple[Node, ...]:
        found, ends = self._alike((same.left, same.right), same.fact, country=same.country)
        question = ("Are ", ends[0], " and ", ends[1], " the same?")
        return *found, Node(REASON, question, tuple(ends), "truth", self._found(same), "same")

    @_nodes.register
    def _(self, judge: Judge) -> tuple[Node, ...]:
        truth = self._found(judge)
        if judge.strategy == "passport":
            found, ends = self._alike((judge.left, judge.right), "residence", country=True)
            question = ("Are ", ends[0], " and ", ends[1], " different countries?")
            return *found, Node(REASON, question, tuple(ends), "truth", truth, "different")
        left, right = self._side(judge.left), self._side(judge.right)
        lived = [self._fact(fact, left) for fact in ("birth", "death")]
        if judge.strategy == "met":
            others = [self._fact(fact, right) for fact in ("birth", "death")]
            question = phrases.overlap(*lived, *others)
            last = Node(REASON, question, (*lived, *others), "truth", truth, "overlap")
            return left, *lived, right, *others, last
        wedding = self._fact("wedding", right)
        question = phrases.within(*lived, wedding)
        last = Node(REASON, question, (*lived, wedding), "truth", truth, "within")
        return right, wedding, left, *lived, last

    def _found(self, expression: Expression) -> Ids:
        return self._evaluation.found[expression][1]

    def _side(self, people: People) -> Node:
        """One node for a side of a comparison: what is more than one operation becomes a question of its own."""
        nodes = self._nodes(people)
        if len(nodes) == 1:
            return nodes[0]
        question = (f"Who is {noun(people, self.things.names)}?",)
        return Node(TOGETHER, question, (), "person", nodes[-1].values, children=nodes)

    def _fact(self, fact: str, people: Node) -> Node:
        values: Ids = getattr(self._universe, fact)[people.values]
        question = _around(phrases.WHAT[fact], people)
        known = distinct(values[values >= 0])
        return Node(RELATE, question, (people, LABELS[fact]), KIND_OF_FACT[fact], known, fact)

    def _place(self, kind: str, towns: Node) -> Node:
        places = self._universe.places
        found = places.region[towns.values]
        if kind == "country":
            found = places.country[found]
        question = _around(f"In which {kind} is {{}}?", towns)
        return Node(RELATE, question, (towns, kind), kind, distinct(found), kind)

    def _alike(self, sides: tuple[People, People], fact: str, *, country: bool) -> tuple[list[Node], list[Node]]:
        """The nodes for one fact of two people, and the two that answer it."""
        found, ends = [], []
        for side in map(self._side, sides):
            found += [side, self._fact(fact, side)]
            if country:
                found.append(self._place("country", found[-1]))
            ends.append(found[-1])
        return found, ends


def single_steps(asked: Relation) -> list[Relation]:
    """The relations of one step that make it up; only the last one tells the gender."""
    *before, last = asked.steps
    return [*(_BY_STEP[step, None] for step in before), _BY_STEP[last, asked.women]]


def _around(text: str, node: Node) -> tuple[str | Node, ...]:
    before, _, after = text.partition("{}")
    return before, node, after
