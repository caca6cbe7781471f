"""A universe as a Prolog program: what the relations mean, and the facts."""

from collections.abc import Iterator

from worlds.phantomwiki.articles import derived_facts
from worlds.phantomwiki.prolog import fact, quoted
from worlds.phantomwiki.values import Values
from worlds.universe.relations import DOWN, FRIEND, RELATIONS, SIDE, SPOUSE, UP, Relation
from worlds.universe.universe import NONE, Universe

_BASE = (
    ":- dynamic parent/2, married_/2, friend_/2.",
    'female(X) :- gender(X, "female").',
    'male(X) :- gender(X, "male").',
    "child(X, Y) :- parent(Y, X).",
    "sibling(X, Y) :- parent(X, A), parent(Y, A), X \\= Y.",
    "married(X, Y) :- parent(A, X), parent(A, Y), X \\= Y.",
    "married(X, Y) :- married_(X, Y).",
    "married(X, Y) :- married_(Y, X).",
    "friend(X, Y) :- friend_(X, Y).",
    "friend(X, Y) :- friend_(Y, X).",
)
_STEPS = {UP: "parent", DOWN: "child", SIDE: "sibling", SPOUSE: "married", FRIEND: "friend"}


def rules() -> Iterator[str]:
    """The rules of all relations."""
    yield from _BASE
    yield from (_rule(relation) for relation in RELATIONS.values() if relation.name not in _STEPS.values())


def _rule(relation: Relation) -> str:
    variables = ["X", *(chr(ord("A") + place) for place in range(len(relation.steps) - 1)), "Y"]
    steps = zip(relation.steps, variables, variables[1:], strict=False)
    goals = [f"{_STEPS[step]}({left}, {right})" for step, left, right in steps]
    if relation.women is not None:
        goals.append("female(Y)" if relation.women else "male(Y)")
    return f"{relation.name}(X, Y) :- {', '.join(goals)}."


def facts(values: Values) -> Iterator[str]:
    """The facts of all people, one kind after the other."""
    universe, titles = values.universe, values.universe.titles
    yield from (f"type({quoted(title)}, person)." for title in titles)
    for name in ("gender", "dob", "job", "hobby"):
        for row in range(len(universe)):
            yield from (str(each) for each in derived_facts(values, row, (name,)))
    yield from (fact("attribute", value) for value in values.attributes())
    for child, parents in enumerate(zip(universe.father.tolist(), universe.mother.tolist(), strict=True)):
        yield from (fact("parent", titles[child], titles[parent]) for parent in parents if parent > NONE)
    yield from (fact("married_", titles[one], titles[other]) for one, other in _childless(universe))
    yield from (fact("friend_", titles[one], titles[other]) for one, other in universe.friends.pairs.tolist())


def _childless(universe: Universe) -> Iterator[tuple[int, int]]:
    """The couples whom no child shows to be one."""
    both = (universe.father > NONE) & (universe.mother > NONE)
    shown = set(universe.father[both].tolist())
    shown |= set(universe.mother[both].tolist())
    for one, other in enumerate(universe.spouse.tolist()):
        if other > one and one not in shown:
            yield one, other
