"""Relations compared with person-by-person definitions."""

from collections.abc import Callable

import numpy as np
import pytest

from showhow.fiction.universe.build import make_universe
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.relations import (
    BASIC_RELATIONS,
    PARTNER,
    RELATIONS,
    find_related,
    get_relation,
    sort_unique,
)

UNIVERSE = make_universe(GenerationOptions(people=300, seed=13, generations=6))
Step = Callable[[int], set[int]]
FATHER, MOTHER, SPOUSE = UNIVERSE.father.tolist(), UNIVERSE.mother.tolist(), UNIVERSE.spouse.tolist()
CHILDREN = {row: {child for child in range(300) if row in (FATHER[child], MOTHER[child])} for row in range(300)}
FRIENDS = {
    row: {other for pair in UNIVERSE.friends.pairs.tolist() if row in pair for other in pair} - {row}
    for row in range(300)
}


def parent(row: int) -> set[int]:
    return {FATHER[row], MOTHER[row]} - {-1}


def child(row: int) -> set[int]:
    return CHILDREN[row]


def sibling(row: int) -> set[int]:
    return {other for parent_row in parent(row) for other in CHILDREN[parent_row]} - {row}


def partner(row: int) -> set[int]:
    return {SPOUSE[row]} - {-1}


def compose(*steps: Step) -> Step:
    """`compose(a, b)` returns a step to all people who are an `a` of a `b` of the person."""

    def related_people(row: int) -> set[int]:
        people = {row}
        for step in reversed(steps):
            people = {other for person in people for other in step(person)}
        return people

    return related_people


def women(step: Step) -> Step:
    return lambda row: {other for other in step(row) if UNIVERSE.female[other]}


def men(step: Step) -> Step:
    return lambda row: {other for other in step(row) if not UNIVERSE.female[other]}


PLAIN: dict[str, Step] = {
    "parent": parent,
    "child": child,
    "sibling": sibling,
    "friend": FRIENDS.__getitem__,
    "grandparent": compose(parent, parent),
    "grandchild": compose(child, child),
    "great_grandparent": compose(parent, parent, parent),
    "great_grandchild": compose(child, child, child),
    "cousin": compose(child, sibling, parent),
}
BY_GENDER: dict[tuple[str, str], Step] = {
    ("mother", "father"): parent,
    ("daughter", "son"): child,
    ("sister", "brother"): sibling,
    ("wife", "husband"): partner,
    ("aunt", "uncle"): compose(sibling, parent),
    ("niece", "nephew"): compose(child, sibling),
    ("grandmother", "grandfather"): compose(parent, parent),
    ("granddaughter", "grandson"): compose(child, child),
    ("mother_in_law", "father_in_law"): compose(parent, partner),
    ("sister_in_law", "brother_in_law"): compose(sibling, partner),
    ("daughter_in_law", "son_in_law"): compose(partner, child),
    ("great_aunt", "great_uncle"): compose(sibling, parent, parent),
    ("great_grandmother", "great_grandfather"): compose(parent, parent, parent),
    ("great_granddaughter", "great_grandson"): compose(child, child, child),
    ("female_cousin", "male_cousin"): compose(child, sibling, parent),
    ("female_first_cousin_once_removed", "male_first_cousin_once_removed"): compose(child, child, sibling, parent),
    ("second_aunt", "second_uncle"): compose(sibling, parent, parent, parent),
    ("female_second_cousin", "male_second_cousin"): compose(child, child, sibling, parent, parent),
}
DEFINITIONS = PLAIN | {
    name: narrowed(step)
    for names, step in BY_GENDER.items()
    for name, narrowed in zip(names, (women, men), strict=True)
}


def test_the_45_relations_of_the_paper_are_defined():
    assert set(RELATIONS) == set(DEFINITIONS)
    assert len(RELATIONS) == 45
    assert len(BASIC_RELATIONS) == 12


@pytest.mark.parametrize("name", sorted(DEFINITIONS))
def test_a_relation_gives_the_people_of_its_definition(name):
    related = {
        row: set(find_related(UNIVERSE, get_relation(name), np.array([row], np.int32)).tolist())
        for row in range(len(UNIVERSE))
    }
    assert related == {row: DEFINITIONS[name](row) for row in range(len(UNIVERSE))}
    assert any(related.values())


@pytest.mark.parametrize("name", sorted(DEFINITIONS))
def test_the_relatives_of_several_people_are_the_union(name):
    for people in (np.arange(0, 300, 7, dtype=np.int32), np.zeros(0, np.int32)):
        related = find_related(UNIVERSE, get_relation(name), people).tolist()
        assert related == sorted({other for row in people.tolist() for other in DEFINITIONS[name](row)})


def test_a_partner_is_either_wife_or_husband():
    for row in range(len(UNIVERSE)):
        assert set(find_related(UNIVERSE, PARTNER, np.array([row], np.int32)).tolist()) == partner(row)
    assert get_relation("spouse") is PARTNER
    with pytest.raises(KeyError):
        get_relation("neighbour")


def test_distinct_values_are_ascending():
    assert sort_unique(np.array([3, 1, 3, 2, 1], np.int32)).tolist() == [1, 2, 3]


@pytest.mark.parametrize(
    ("name", "words", "many"),
    [
        ("wife", "wife", "wives"),
        ("great_grandchild", "great-grandchild", "great-grandchildren"),
        ("sister_in_law", "sister-in-law", "sisters-in-law"),
        ("female_second_cousin", "female second cousin", "female second cousins"),
        ("male_first_cousin_once_removed", "male first cousin once removed", "male first cousins once removed"),
    ],
)
def test_relations_have_singular_and_plural_nouns(name, words, many):
    assert (get_relation(name).singular, get_relation(name).plural) == (words, many)
