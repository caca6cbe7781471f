"""Random life events: homes, friendships, and days of birth, wedding and death.

Days satisfy all constraints by construction. Families stay in their part of the country, and large towns have most
people. Friends lived at the same time.
"""

import numpy as np
import numpy.typing as npt

from showhow.fiction.universe.families import FamilyTrees, random_below
from showhow.fiction.universe.universe import NONE, CompressedLists, Friendships, IdArray, Places

_STAY_SHARE = 0.75
"""Probability that a person stays in the place of birth, and that a couple stays when the children are grown."""
_AT_SEAT_SHARE, _NEAR_SHARE = 0.45, 0.8
"""Cumulative probabilities that a home is in the town of the family's seat, and in the same region."""


def assign_homes(people: FamilyTrees, places: Places, generator: np.random.Generator) -> tuple[IdArray, IdArray]:
    """Draw towns of birth and residence: children are born at their parents' home, couples live together."""
    seats = _draw_towns(len(np.unique(people.tree_numbers)), places, generator)[people.tree_numbers]
    # A couple has the home of its lower row.
    rows = np.arange(len(seats))
    household = np.where(people.spouse >= 0, np.minimum(rows, people.spouse), rows)
    home = _draw_family_towns(seats, places, generator)[household]
    moved = (generator.random(len(seats)) >= _STAY_SHARE)[household]
    later = _draw_family_towns(seats, places, generator)[household]
    stays = generator.random(len(seats)) < _STAY_SHARE
    elsewhere = _draw_family_towns(seats, places, generator)
    orphan = people.father < 0
    birthplace = np.where(orphan, np.where(stays, home, elsewhere), home[people.father])
    single = people.spouse < 0
    residence = np.where(single & stays, birthplace, np.where(moved, later, home))
    return birthplace.astype(np.int32), residence.astype(np.int32)


def _draw_towns(count: int, places: Places, generator: np.random.Generator) -> IdArray:
    """Draw towns; low numbers are the large towns and more likely."""
    return (generator.random(count) * random_below(generator, len(places.towns), count)).astype(np.int32)


def _draw_family_towns(seats: IdArray, places: Places, generator: np.random.Generator) -> IdArray:
    """For each seat draw the seat itself, a town of its region, or any town."""
    of_region = CompressedLists.from_pairs(
        len(places.regions), places.region, np.arange(len(places.towns), dtype=np.int32)
    )
    regions = places.region[seats]
    near = of_region.values[of_region.starts[regions] + random_below(generator, of_region.list_sizes()[regions])]
    where = generator.random(len(seats))
    anywhere = _draw_towns(len(seats), places, generator)
    return np.where(where < _AT_SEAT_SHARE, seats, np.where(where < _NEAR_SHARE, near, anywhere))


_SMALL_POPULATION = 2000
"""Up to this many people, every pair is drawn; above, blocks of pairs are sampled."""
_MEAN = 8
"""Approximate mean number of friendships per block."""
Days = npt.NDArray[np.int64]


def draw_friendships(lives: tuple[Days, Days], mean: float, generator: np.random.Generator) -> Friendships:
    """Draw friendships of people who lived at the same time, from the first and last days of their lives.

    They are those of a random graph in which all pairs are equally likely, and so many that people have `mean` friends
    on average, or all whom they could have met.
    """
    first_days, last_days = lives
    people = len(first_days)
    pairs = people * (people - 1) // 2
    share = min(1.0, mean / people * pairs / max(count_contemporary_pairs(lives), 1))
    is_small = people <= _SMALL_POPULATION
    numbers = (
        np.flatnonzero(generator.random(pairs) < share) if is_small else _draw_pair_numbers(pairs, share, generator)
    )
    first, second = _decode_pairs(numbers, people)
    lived_together = np.maximum(first_days[first], first_days[second]) <= np.minimum(
        last_days[first], last_days[second]
    )
    first, second = first[lived_together], second[lived_together]
    lower, upper = np.minimum(first, second), np.maximum(first, second)
    keys = np.sort(lower * people + upper)
    return Friendships(np.stack((keys // people, keys % people), axis=1).astype(np.int32))


def count_contemporary_pairs(lives: tuple[Days, Days]) -> int:
    """Number of pairs of people who lived at the same time."""
    first_days, last_days = lives
    born_later = len(first_days) - np.searchsorted(np.sort(first_days), last_days, side="right")
    return len(first_days) * (len(first_days) - 1) // 2 - int(born_later.sum())


def _decode_pairs(pair: npt.NDArray[np.int64], people: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Decode pair numbers by the circle method (an even number of people has one outside the circle)."""
    circle = people - 1 + people % 2
    if circle < 2:
        return pair * 0, pair * 0 + 1
    columns = people * (people - 1) // 2 // circle
    first, step = pair // columns, pair % columns + 1
    apart = step > (circle - 1) // 2
    return first, np.where(apart, people - 1, (first + step) % circle)


def _draw_pair_numbers(pairs: int, share: float, generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw the numbers of the pairs that are friends, each with probability `share`."""
    if share == 0:
        return np.zeros(0, np.int64)
    doublings = int(min(_MEAN / share, pairs)).bit_length()
    blocks = (pairs >> doublings) + 1
    sizes = np.searchsorted(_cumulative_probabilities(share, doublings), generator.random(blocks), side="right")
    numbers = _redraw_duplicates(np.repeat(np.arange(blocks), sizes), 1 << doublings, generator)
    # The last block extends beyond the last pair.
    return numbers[numbers < pairs]


def _cumulative_probabilities(share: float, doublings: int) -> npt.NDArray[np.float64]:
    """Cumulative probabilities of 0, 1, 2 ... friendships in a block of 2 ** doublings pairs."""
    # Only products, sums and quotients, since powers and logarithms differ in the last bit between machines.
    none = 1.0 - share
    for _ in range(doublings):
        none *= none
    chances, size = [none], 1 << doublings
    while len(chances) < min(20 * _MEAN, size):
        done = len(chances) - 1
        chances.append(chances[-1] * (size - done) / (done + 1) * share / (1.0 - share))
    return np.cumsum(chances)


def _redraw_duplicates(
    blocks: npt.NDArray[np.int64], size: int, generator: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Draw a distinct number within its block for each entry; duplicates are drawn again."""
    numbers = blocks * size + random_below(generator, size, len(blocks))
    while True:
        order = np.argsort(numbers, kind="stable")
        again = order[1:][numbers[order][1:] == numbers[order][:-1]]
        if not len(again):
            return numbers
        numbers[again] = blocks[again] * size + random_below(generator, size, len(again))


# The margins hold for any number of leap years: an age of n years is always reached after n * 366 days, and never
# before n * 365 days.
_YEAR, _LONG_YEAR = 365, 366
_YOUNGEST_PARENT = 17 * _LONG_YEAR
_OLDEST_MOTHER = 48 * _YEAR
_OLDEST_FATHER = 59 * _YEAR
_YOUNGEST_WEDDING = 16 * _LONG_YEAR
_MAX_WEDDING_DELAY = 6 * _YEAR
"""Maximum delay after the first birth; every child is older than that today."""
_LATE_FIRST_BIRTH = 38 * _YEAR
_ADULT_AGE = 18 * _LONG_YEAR
"""Minimum age of each person, so that each has a job and a home."""
_MIN_SIBLING_GAP, _MAX_SIBLING_GAP = 270, 2600
"""Days between the births of siblings who are not twins."""
_TWIN_SHARE = 0.03
_YOUNGEST_LATEST = 45 * _YEAR
"""Maximum age today of the youngest of a family, if still alive."""
_OLD_AGE, _LONGEST_LIFE = 55 * _YEAR, 104 * _YEAR
"""Ages between which most people die."""
_POSTHUMOUS_SHARE = 0.01


def draw_births(people: FamilyTrees, generator: np.random.Generator, today: int) -> Days:
    """Draw birthdays: for each couple's household on its own, then aligned along the family tree."""
    as_child, span = _draw_sibling_offsets(people, generator)
    as_parent = _draw_parent_offsets(people, span, generator)
    origin = people.origin
    # Parents of the origin belong to its household as a child, all others to its household as a parent.
    is_parent = (people.father[origin] == _all_rows(people)) | (people.mother[origin] == _all_rows(people))
    is_child = (people.father == origin) | (people.mother == origin)
    after = np.where(is_child, as_child, as_parent) - np.where(is_parent, as_child[origin], as_parent[origin])
    return _fit_birthdays(people, after, generator, today)


def _all_rows(people: FamilyTrees) -> IdArray:
    return np.arange(len(people.female), dtype=np.int32)


def _draw_sibling_offsets(people: FamilyTrees, generator: np.random.Generator) -> tuple[Days, Days]:
    """Days from the eldest sibling's birth to each child's, and to the youngest's for each father and mother."""
    children = np.flatnonzero(people.father >= 0)
    order = children[np.lexsort((generator.random(len(children)), people.father[children]))]
    father = people.father[order]
    eldest = np.ones(len(order), np.bool_)
    eldest[1:] = father[1:] != father[:-1]
    twin = generator.random(len(order)) < _TWIN_SHARE
    twin[1:] &= ~twin[:-1]
    siblings = np.bincount(father, minlength=len(people.female))[father]
    widest = np.minimum(_MAX_SIBLING_GAP, (_OLDEST_MOTHER - _YOUNGEST_PARENT) // np.maximum(siblings - 1, 1))
    gap = np.where(
        eldest | twin,
        0,
        _MIN_SIBLING_GAP + random_below(generator, (widest - _MIN_SIBLING_GAP + 1) * generator.random(len(order))),
    )
    total = np.cumsum(gap)
    offset = np.zeros(len(people.female), np.int64)
    offset[order] = total - total[np.maximum.accumulate(np.where(eldest, np.arange(len(order)), 0))]
    span = np.zeros(len(people.female), np.int64)
    np.maximum.at(span, father, offset[order])
    np.maximum.at(span, people.mother[order], offset[order])
    return offset, span


def _draw_parent_offsets(people: FamilyTrees, span: Days, generator: np.random.Generator) -> Days:
    """Days from the birth of the eldest child (real or hypothetical) to the parent's own birth; negative."""
    wife = np.flatnonzero(people.female & (people.spouse >= 0))
    husband = people.spouse[wife]
    oldest = np.minimum(_LATE_FIRST_BIRTH, _OLDEST_MOTHER - span[wife])
    mother = _YOUNGEST_PARENT + _draw_centred(generator, oldest - _YOUNGEST_PARENT)
    older = _draw_centred(generator, np.full(len(wife), 20 * _YEAR)) - 8 * _YEAR
    father = np.clip(mother + older, _YOUNGEST_PARENT, _OLDEST_FATHER - span[husband])
    offset = np.zeros(len(people.female), np.int64)
    offset[wife], offset[husband] = -mother, -father
    return offset


def _draw_centred(generator: np.random.Generator, limits: Days) -> Days:
    """Draw integers in [0, limit) from a triangular distribution."""
    return (random_below(generator, limits) + random_below(generator, limits)) // 2


def _fit_birthdays(people: FamilyTrees, after: Days, generator: np.random.Generator, today: int) -> Days:
    """Birthdays from each person's offset to its origin in the tree; the youngest of a tree is adult today."""
    size, count = people.size, len(people.female)
    trees = -(-count // size)
    origin, days = np.zeros(trees * size, np.int64), np.zeros(trees * size, np.int64)
    origin[:count], days[:count] = people.origin, np.where(people.origin < 0, 0, after)
    born = days.reshape(trees, size)
    slots = (origin.reshape(trees, size) - np.arange(trees)[:, None] * size).clip(0)
    for slot in range(1, size):
        born[:, slot] += born[np.arange(trees), slots[:, slot]]
    youngest = today - _ADULT_AGE - random_below(generator, _YOUNGEST_LATEST - _ADULT_AGE, trees)
    fitted: Days = born - born.max(axis=1)[:, None] + youngest[:, None]
    return fitted.ravel()[:count]


def draw_weddings(people: FamilyTrees, birth: Days, generator: np.random.Generator, today: int) -> Days:
    """Draw the wedding days of couples, mostly before the first child."""
    wife = np.flatnonzero(people.female & (people.spouse >= 0))
    husband = people.spouse[wife]
    eldest = _first_births(people, birth)[wife]
    earliest = np.maximum(birth[wife], birth[husband]) + _YOUNGEST_WEDDING
    childless = eldest < 0
    latest = np.minimum(np.where(childless, earliest + 20 * _YEAR, eldest), today)
    day = latest - random_below(generator, np.minimum(latest - earliest, 8 * _YEAR) + 1)
    late = ~childless & (generator.random(len(wife)) < 0.1)
    day = np.where(late, eldest + random_below(generator, _MAX_WEDDING_DELAY, len(wife)), day)
    wedding = np.full(len(birth), NONE, np.int64)
    wedding[wife] = wedding[husband] = day
    return wedding


def _first_births(people: FamilyTrees, birth: Days) -> Days:
    days = np.full(len(birth), np.iinfo(np.int64).max)
    children = np.flatnonzero(people.father >= 0)
    for parents in (people.father, people.mother):
        np.minimum.at(days, parents[children], birth[children])
    return np.where(days == np.iinfo(np.int64).max, NONE, days)


def _last_births(people: FamilyTrees, birth: Days) -> Days:
    days = np.full(len(birth), NONE, np.int64)
    children = np.flatnonzero(people.father >= 0)
    for parents in (people.father, people.mother):
        np.maximum.at(days, parents[children], birth[children])
    return days


def draw_deaths(people: FamilyTrees, days: tuple[Days, Days], generator: np.random.Generator, today: int) -> Days:
    """Draw days of death from (births, weddings); NONE for people who are alive today."""
    birth, wedding = days
    count = len(birth)
    last = _last_births(people, birth)
    bound = np.maximum(birth + _ADULT_AGE, wedding)
    old = _OLD_AGE + sum(random_below(generator, _LONGEST_LIFE - _OLD_AGE, count) for _ in range(3)) // 3
    young = _ADULT_AGE + random_below(generator, 40 * _YEAR, count)
    day = birth + np.where(generator.random(count) < 0.1, young, old)
    late = np.maximum(bound, last)
    day = np.where(day < late, late + random_below(generator, 20 * _YEAR, count), day)
    shortly_before = last - 1 - random_below(generator, _MIN_SIBLING_GAP, count)
    posthumous = ~people.female & (generator.random(count) < _POSTHUMOUS_SHARE) & (shortly_before >= bound)
    day = np.where(posthumous, shortly_before, day)
    return np.where(day > today, NONE, day)
