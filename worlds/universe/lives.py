"""When people were born, married and died: days that keep every constraint by how they are drawn."""

import numpy as np
import numpy.typing as npt

from worlds.universe.chance import below
from worlds.universe.families import Families
from worlds.universe.universe import NONE, Ids

# Days are margins that hold whatever leap years fall between: an age of n years is at most n * 366 days and surely
# passed after them, and surely not passed before n * 365.
_YEAR, _LONG_YEAR = 365, 366
_YOUNGEST_PARENT = 17 * _LONG_YEAR
_OLDEST_MOTHER = 48 * _YEAR
_OLDEST_FATHER = 59 * _YEAR
_YOUNGEST_WEDDING = 16 * _LONG_YEAR
_WEDS_LATE = 6 * _YEAR
"""After the first birth; the child is older than that today."""
_LATE_FIRST_BIRTH = 38 * _YEAR
_GROWN_UP = 18 * _LONG_YEAR
"""Everybody lives so long, and the youngest are of this age: each has a job and a home."""
_APART, _FURTHEST_APART = 270, 2600
"""Between the births of siblings who are not twins."""
_TWINS = 0.03
_YOUNGEST_LATEST = 45 * _YEAR
"""The age of the youngest of a family is up to this, were they all still alive."""
_OLD, _LONGEST_LIFE = 55 * _YEAR, 104 * _YEAR
"""Most die between these ages."""
_POSTHUMOUS = 0.01

Days = npt.NDArray[np.int64]


def births(people: Families, generator: np.random.Generator, today: int) -> Days:
    """The birthdays: in each couple's household drawn apart, and the households fitted together along the tree."""
    as_child, span = _sibling_offsets(people, generator)
    as_parent = _parent_offsets(people, span, generator)
    origin = people.origin
    # A parent of the origin lives with it in the origin's first household, all others in its second.
    is_parent = (people.father[origin] == _rows(people)) | (people.mother[origin] == _rows(people))
    is_child = (people.father == origin) | (people.mother == origin)
    after = np.where(is_child, as_child, as_parent) - np.where(is_parent, as_child[origin], as_parent[origin])
    return _fitted(people, after, generator, today)


def _rows(people: Families) -> Ids:
    return np.arange(len(people.female), dtype=np.int32)


def _sibling_offsets(people: Families, generator: np.random.Generator) -> tuple[Days, Days]:
    """Days from the birth of the eldest sibling to one's own, and to the youngest's for each father and mother."""
    children = np.flatnonzero(people.father >= 0)
    order = children[np.lexsort((generator.random(len(children)), people.father[children]))]
    father = people.father[order]
    eldest = np.ones(len(order), np.bool_)
    eldest[1:] = father[1:] != father[:-1]
    twin = generator.random(len(order)) < _TWINS
    twin[1:] &= ~twin[:-1]
    siblings = np.bincount(father, minlength=len(people.female))[father]
    widest = np.minimum(_FURTHEST_APART, (_OLDEST_MOTHER - _YOUNGEST_PARENT) // np.maximum(siblings - 1, 1))
    gap = np.where(eldest | twin, 0, _APART + below(generator, (widest - _APART + 1) * generator.random(len(order))))
    total = np.cumsum(gap)
    offset = np.zeros(len(people.female), np.int64)
    offset[order] = total - total[np.maximum.accumulate(np.where(eldest, np.arange(len(order)), 0))]
    span = np.zeros(len(people.female), np.int64)
    np.maximum.at(span, father, offset[order])
    np.maximum.at(span, people.mother[order], offset[order])
    return offset, span


def _parent_offsets(people: Families, span: Days, generator: np.random.Generator) -> Days:
    """Days from the birth of one's eldest child (or from a likely day for it) back to one's own: negative."""
    wife = np.flatnonzero(people.female & (people.spouse >= 0))
    husband = people.spouse[wife]
    oldest = np.minimum(_LATE_FIRST_BIRTH, _OLDEST_MOTHER - span[wife])
    mother = _YOUNGEST_PARENT + _around(generator, oldest - _YOUNGEST_PARENT)
    older = _around(generator, np.full(len(wife), 20 * _YEAR)) - 8 * _YEAR
    father = np.clip(mother + older, _YOUNGEST_PARENT, _OLDEST_FATHER - span[husband])
    offset = np.zeros(len(people.female), np.int64)
    offset[wife], offset[husband] = -mother, -father
    return offset


def _around(generator: np.random.Generator, limits: Days) -> Days:
    """Numbers from 0 to below the limits, those in the middle the likeliest."""
    return (below(generator, limits) + below(generator, limits)) // 2


def _fitted(people: Families, after: Days, generator: np.random.Generator, today: int) -> Days:
    """The birthdays, from the days between each person and whom the tree grew from, the youngest grown up today."""
    size, count = people.size, len(people.female)
    trees = -(-count // size)
    origin, days = np.zeros(trees * size, np.int64), np.zeros(trees * size, np.int64)
    origin[:count], days[:count] = people.origin, np.where(people.origin < 0, 0, after)
    born = days.reshape(trees, size)
    slots = (origin.reshape(trees, size) - np.arange(trees)[:, None] * size).clip(0)
    for slot in range(1, size):
        born[:, slot] += born[np.arange(trees), slots[:, slot]]
    youngest = today - _GROWN_UP - below(generator, _YOUNGEST_LATEST - _GROWN_UP, trees)
    fitted: Days = born - born.max(axis=1)[:, None] + youngest[:, None]
    return fitted.ravel()[:count]


def weddings(people: Families, birth: Days, generator: np.random.Generator, today: int) -> Days:
    """The wedding days of those with a partner, mostly before the first child."""
    wife = np.flatnonzero(people.female & (people.spouse >= 0))
    husband = people.spouse[wife]
    eldest = _first_child(people, birth)[wife]
    earliest = np.maximum(birth[wife], birth[husband]) + _YOUNGEST_WEDDING
    childless = eldest < 0
    latest = np.minimum(np.where(childless, earliest + 20 * _YEAR, eldest), today)
    day = latest - below(generator, np.minimum(latest - earliest, 8 * _YEAR) + 1)
    late = ~childless & (generator.random(len(wife)) < 0.1)
    day = np.where(late, eldest + below(generator, _WEDS_LATE, len(wife)), day)
    found = np.full(len(birth), NONE, np.int64)
    found[wife] = found[husband] = day
    return found


def _first_child(people: Families, birth: Days) -> Days:
    days = np.full(len(birth), np.iinfo(np.int64).max)
    children = np.flatnonzero(people.father >= 0)
    for parents in (people.father, people.mother):
        np.minimum.at(days, parents[children], birth[children])
    return np.where(days == np.iinfo(np.int64).max, NONE, days)


def _last_child(people: Families, birth: Days) -> Days:
    days = np.full(len(birth), NONE, np.int64)
    children = np.flatnonzero(people.father >= 0)
    for parents in (people.father, people.mother):
        np.maximum.at(days, parents[children], birth[children])
    return days


def deaths(people: Families, days: tuple[Days, Days], generator: np.random.Generator, today: int) -> Days:
    """The days of death, from birthdays and wedding days, NONE for those who live today."""
    birth, wedding = days
    count = len(birth)
    last = _last_child(people, birth)
    bound = np.maximum(birth + _GROWN_UP, wedding)
    old = _OLD + sum(below(generator, _LONGEST_LIFE - _OLD, count) for _ in range(3)) // 3
    young = _GROWN_UP + below(generator, 40 * _YEAR, count)
    day = birth + np.where(generator.random(count) < 0.1, young, old)
    late = np.maximum(bound, last)
    day = np.where(day < late, late + below(generator, 20 * _YEAR, count), day)
    shortly_before = last - 1 - below(generator, _APART, count)
    posthumous = ~people.female & (generator.random(count) < _POSTHUMOUS) & (shortly_before >= bound)
    day = np.where(posthumous, shortly_before, day)
    return np.where(day > today, NONE, day)
