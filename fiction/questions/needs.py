"""The sources that a question needs to be certain of its answers.

They state every fact that the gold reasoning looks up, and that there is nothing is certain only from all sources that
could tell: those that together state all facts of the kind. A list needs only the facts that lead to its members; all
other answers also need what is looked up of people who do not become one.
"""

from collections.abc import Iterable, Iterator
from functools import cache
from itertools import combinations

import numpy as np

from showhow.fiction.questions.evaluate import FACT_VALUE_KINDS, GENDERED_RELATIONS, FactTriple, iter_fact_triples
from showhow.fiction.questions.expressions import (
    Both,
    Expression,
    Fact,
    Having,
    Named,
    Only,
    Place,
    Related,
    child_expressions,
)
from showhow.fiction.questions.reasoning import FILTER, RELATE, SEARCH, ReasoningBuilder, ReasoningNode
from showhow.fiction.universe.relations import FRIEND, SPOUSE
from showhow.fiction.universe.universe import NONE, SOURCES, FactSources, IdArray, Universe

SOURCE_SETS = [chosen for size in (1, 2, 3) for chosen in combinations(SOURCES, size)]
"""All sets of sources, smaller sets first."""
_LISTS = (Named, Having, Related, Only, Both, Fact, Place)
"""Operations whose result can only grow when more facts are known."""
_EITHER_PARENT = ("father", "mother")

Ways = frozenset[frozenset[int]]
"""Ways to state something: a set of sources states it if it has a bit of each mask of one way."""


class SourceNeeds:
    """Finds the smallest sets of sources that state certain facts, and that could tell if there were others."""

    def __init__(self, universe: Universe, fact_sources: FactSources) -> None:
        self._universe, self._masks = universe, fact_sources.masks
        pairs = universe.friends.pairs.astype(np.int64)
        self._friend_keys, self._friend_masks = pairs[:, 0] * len(universe) + pairs[:, 1], fact_sources.friends
        self._masks_of_kind = cache(self._list_masks)

    def find_sufficient_sets(self, facts: Iterable[FactTriple], absent: Iterable[str] = ()) -> list[list[str]]:
        """All smallest sets of sources that state these facts, and all facts of the absent kinds (FACTS, friend)."""
        conditions = {self._find_masks(fact) for fact in facts}
        conditions |= {frozenset([self._masks_of_kind(kind)]) for kind in absent}
        sufficient: list[set[str]] = []
        for chosen in map(set, SOURCE_SETS):
            sources = sum(SOURCES[source] for source in chosen)
            if not any(smaller <= chosen for smaller in sufficient) and all(
                any(all(mask & sources for mask in masks) for masks in ways) for ways in conditions
            ):
                sufficient.append(chosen)
        return [[source for source in SOURCES if source in chosen] for chosen in sufficient]

    def _list_masks(self, kind: str) -> frozenset[int]:
        """The masks of all facts of a kind."""
        if kind == FRIEND:
            return frozenset(np.unique(self._friend_masks).tolist())
        return frozenset(np.unique(self._masks[kind][getattr(self._universe, kind) > NONE]).tolist())

    def _find_masks(self, fact: FactTriple) -> Ways:
        """The ways in which sources state a fact; genders and places are in every source."""
        (_, subject), relation, (_, value) = fact
        universe, masks = self._universe, self._masks
        match relation:
            case "gender" | "region" | "country":
                return frozenset([frozenset[int]()])
            case "child":
                column = "mother" if universe.female[subject] else "father"
                return frozenset([frozenset([int(masks[column][value])])])
            case "sibling":
                shared = [
                    parent
                    for parent in _EITHER_PARENT
                    if getattr(universe, parent)[subject] == getattr(universe, parent)[value] > NONE
                ]
                return frozenset(frozenset(masks[parent][[subject, value]].tolist()) for parent in shared)
            case "friend":
                key = min(subject, value) * len(universe) + max(subject, value)
                return frozenset([frozenset([int(self._friend_masks[np.searchsorted(self._friend_keys, key)])])])
        return frozenset([frozenset([int(masks[relation][subject])])])


def iter_examined_facts(
    expression: Expression, root: ReasoningNode, reasoning: ReasoningBuilder, universe: Universe
) -> Iterator[FactTriple]:
    """The facts that the sources must state: the supporting facts, and those of people whom a filter excludes."""
    yield from reasoning.list_supporting_facts(root)
    if not (len(root.values) and _is_list(expression)):
        for leaf in root.leaves():
            if leaf.operator == FILTER:
                yield from iter_fact_triples(universe, leaf.relation, leaf.inputs[0].values)


def find_absent_kinds(expression: Expression, root: ReasoningNode, universe: Universe) -> set[str]:
    """Kinds of facts (FACTS, friend) of which the answers presume that there are no others.

    Without an answer, and for a count of 0, these are all kinds that could add somebody. Else they are those of which
    a compared person has none, such as the death of the living; lives that do not overlap have ended.
    """
    is_nothing = not len(root.values) or (root.kind == "number" and 0 in root.values)
    if not is_nothing and (_is_list(expression) or (root.kind == "truth" and not root.values[0])):
        return set()
    leaves = [leaf for leaf in root.leaves() if leaf.needs_retrieval]
    return {kind for leaf in leaves for kind in _iter_absent_kinds(leaf, universe, is_nothing=is_nothing)}


def _iter_absent_kinds(leaf: ReasoningNode, universe: Universe, *, is_nothing: bool) -> Iterator[str]:
    if leaf.operator == SEARCH or leaf.is_inverse:
        if is_nothing:
            yield leaf.relation
        return
    people = leaf.inputs[0].values
    if leaf.relation in FACT_VALUE_KINDS:
        if (getattr(universe, leaf.relation)[people] == NONE).any():
            yield leaf.relation
    elif leaf.operator == RELATE and leaf.kind == "person" and is_nothing and len(people):
        yield from _iter_kinds_of_relatives(leaf.relation, people, universe)


def _iter_kinds_of_relatives(relation: str, people: IdArray, universe: Universe) -> Iterator[str]:
    """Kinds of facts that could state a further relative of the people."""
    base, women = GENDERED_RELATIONS.get(relation, (relation, None))
    parents = [relation] if relation in _EITHER_PARENT else list(_EITHER_PARENT)
    match base:
        case "child":
            yield from ("mother" if female else "father" for female in set(universe.female[people].tolist()))
        case "sibling":
            yield from _EITHER_PARENT
        case "friend":
            yield FRIEND
        case "spouse":
            spouses = universe.spouse[people]
            if ((spouses == NONE) | ((women is not None) & (universe.female[spouses] != women))).any():
                yield SPOUSE
        case _:
            yield from (parent for parent in parents if (getattr(universe, parent)[people] == NONE).any())


def _is_list(expression: Expression) -> bool:
    return isinstance(expression, _LISTS) and all(map(_is_list, child_expressions(expression)))
