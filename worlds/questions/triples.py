"""The gold triples of PDRR: a question as triples with bridge entities to be found, and the facts that complete them.

    structure(expression) -> "chain" | "parallel"
    triples(expression, root: Node, things: Things) -> dict     `root` is Reasoning(things).root(expression, question)

The result is {"decomposition": [[subject, relation, object], ...], "completed": [{"subject", "subject_id", "relation",
"pid", "object", "object_id"}, ...]}. What is to be found is written person#1, date#2, country#3 ...; a condition stands
in the object ("before 5 March 1931"). Of the facts of one operation the first are written, and "left_off" tells that
there are more.
"""

from functools import singledispatchmethod
from itertools import islice
from typing import Any

from worlds.generator.items import PROPERTIES, PROPERTY
from worlds.questions.evaluate import KIND_OF_FACT
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
    Place,
    Related,
    Same,
    is_chain,
)
from worlds.questions.facts import Triple
from worlds.questions.reasoning import Node, Reasoning, single_steps
from worlds.questions.things import MOST_SHOWN, Things
from worlds.questions.wording import LABELS
from worlds.universe.relations import relation

_WANTED = {"day": "date", "job": "occupation"}


def structure(expression: Expression) -> str:
    """Chain for one path of relations, where each step needs the one before; parallel for everything else."""
    return "chain" if is_chain(expression) else "parallel"


def triples(expression: Expression, reasoning: Reasoning, root: Node) -> dict[str, Any]:
    """The decomposition and the completed triples."""
    things = reasoning.things
    completed: list[dict[str, Any]] = []
    left_off = False
    for leaf in root.leaves():
        found = list(islice(dict.fromkeys(reasoning.facts(leaf)), MOST_SHOWN + 1))
        left_off |= len(found) > MOST_SHOWN
        completed += [completed_triple(triple, things) for triple in found[:MOST_SHOWN]]
    distinct = list({tuple(one.values()): one for one in completed}.values())
    told: dict[str, Any] = {"decomposition": Decomposition(things).of(expression), "completed": distinct}
    return told | {"left_off": True} if left_off else told


def completed_triple(triple: Triple, things: Things) -> dict[str, Any]:
    """A fact as a hop of a question's decomposition is written."""
    pid = PROPERTY[triple.relation]
    return {
        "subject": things.answer(*triple.subject),
        "subject_id": things.entity(*triple.subject),
        "relation": PROPERTIES[pid][0],
        "pid": pid,
        "object": things.answer(*triple.object),
        "object_id": things.entity(*triple.object),
    }


class Decomposition:
    """Takes one expression apart; what is to be found is numbered as it is met."""

    def __init__(self, things: Things) -> None:
        self._things = things
        self._found: list[list[str]] = []
        self._wanted = 0

    def of(self, expression: Expression) -> list[list[str]]:
        """The triples in the order in which they are to be completed."""
        self._ask(expression)
        return self._found

    def _new(self, kind: str) -> str:
        self._wanted += 1
        return f"{_WANTED.get(kind, kind)}#{self._wanted}"

    @singledispatchmethod
    def _ask(self, expression: Expression) -> str:
        """Write the triples of what is asked, and give the name of what is to be found last."""
        return self._person(expression, "")

    @_ask.register
    def _(self, fact: Fact) -> str:
        return self._fact(fact.fact, self._person(fact.of, ""))

    @_ask.register
    def _(self, place: Place) -> str:
        return self._place(place.kind, self._ask(place.of))

    @_ask.register
    def _(self, count: Count) -> str:
        return self._person(count.of, "")

    @_ask.register
    def _(self, compare: Compare) -> str:
        return [self._fact(compare.fact, self._person(side, "")) for side in (compare.left, compare.right)][-1]

    @_ask.register
    def _(self, same: Same) -> str:
        ends = [self._fact(same.fact, self._person(side, "")) for side in (same.left, same.right)]
        return [self._place("country", end) for end in ends][-1] if same.country else ends[-1]

    @_ask.register
    def _(self, judge: Judge) -> str:
        if judge.strategy == "passport":
            return self._ask(Same(judge.left, judge.right, "residence", country=True))
        lived = ("birth", "death")
        last = ""
        for side, facts in ((judge.left, lived), (judge.right, lived if judge.strategy == "met" else ("wedding",))):
            person = self._person(side, "")
            last = [self._fact(fact, person) for fact in facts][-1]
        return last

    @singledispatchmethod
    def _person(self, people: Expression, wanted: str) -> str:
        """Write the triples of people, called `wanted` or something new, and give their name."""
        raise TypeError(f"{type(people).__name__} is nobody who could be {wanted or 'found'}")

    @_person.register
    def _(self, named: Named, wanted: str) -> str:  # noqa: ARG002 - who is named needs no other name
        return self._things.universe.titles[named.person]

    @_person.register
    def _(self, having: Having, wanted: str) -> str:
        person = wanted or self._new("person")
        value = self._things.said(KIND_OF_FACT[having.fact], having.value)
        self._found.append([person, LABELS[having.fact], value])
        return person

    @_person.register
    def _(self, expression: Related, wanted: str) -> str:
        head = self._person(expression.of, "")
        steps = single_steps(relation(expression.relation))
        for place, step in enumerate(steps, 1):
            found = wanted if wanted and place == len(steps) else self._new("person")
            self._found.append([head, step.words, found])
            head = found
        return head

    @_person.register
    def _(self, only: Only, wanted: str) -> str:
        person = self._person(only.of, wanted)
        value = self._things.said(KIND_OF_FACT[only.fact], only.value)
        self._found.append([person, LABELS[only.fact], value if only.test == "is" else f"{only.test} {value}"])
        return person

    @_person.register
    def _(self, both: Both, wanted: str) -> str:
        # One name on both sides: who is found must fit both.
        person = wanted or self._new("person")
        for side in (both.left, both.right):
            self._person(side, person)
        return person

    @_person.register
    def _(self, most: Most, wanted: str) -> str:
        person = self._person(most.of, wanted)
        self._found.append([person, LABELS[most.fact], self._new("day")])
        return person

    def _fact(self, fact: str, person: str) -> str:
        value = self._new(KIND_OF_FACT[fact])
        self._found.append([person, LABELS[fact], value])
        return value

    def _place(self, kind: str, town: str) -> str:
        place = self._new(kind)
        self._found.append([town, kind, place])
        return place
