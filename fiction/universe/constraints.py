"""Constraints of a universe, checked from its arrays alone, independently of the generator.

Consistency: references, ages, weddings, deaths, friendships, titles. With options: size, trees, names, friendships.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from datetime import date

import numpy as np
import numpy.typing as npt

from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.universe import NONE, IdArray, Universe

_TOLERANCE = 6
"""Standard deviations by which the number of friendships may differ from its mean."""


def find_limit_violations(universe: Universe, options: GenerationOptions) -> Iterator[str]:
    """Yield a sentence for each violation of the options."""
    yield from _check_people(universe, options)
    yield from _check_trees(universe, options)
    yield from _check_friends(universe, options)
    yield from _check_names(universe, options)


def find_family_trees(universe: Universe) -> tuple[IdArray, IdArray]:
    """For each person the lowest row of the family tree, and the generation relative to that row, counted downwards."""
    edges = _family_edges(universe)
    rows = np.arange(len(universe), dtype=np.int32)
    tree = rows.copy()
    while True:
        lowest = tree.copy()
        for one, other, _ in edges:
            np.minimum.at(lowest, one, tree[other])
            np.minimum.at(lowest, other, tree[one])
        lowest = lowest[lowest]
        if np.array_equal(lowest, tree):
            return tree, _compute_generations(len(universe), edges, tree == rows)
        tree = lowest


_Edges = list[tuple[IdArray, IdArray, int]]


def _family_edges(universe: Universe) -> _Edges:
    """Pairs of people with the number of generations by which the second is below the first."""
    edges = []
    for values, deeper in ((universe.father, -1), (universe.mother, -1), (universe.spouse, 0)):
        rows = np.flatnonzero(values >= 0).astype(np.int32)
        edges.append((rows, values[rows], deeper))
    return edges


def _compute_generations(people: int, edges: _Edges, first: npt.NDArray[np.bool_]) -> IdArray:
    assigned, generation = first.copy(), np.zeros(people, np.int32)
    while not assigned.all():
        for one, other, deeper in edges:
            down, up = assigned[one] & ~assigned[other], ~assigned[one] & assigned[other]
            generation[other[down]] = generation[one[down]] + deeper
            generation[one[up]] = generation[other[up]] - deeper
            assigned[other[down]] = assigned[one[up]] = True
    return generation


def _check_people(universe: Universe, options: GenerationOptions) -> Iterator[str]:
    if len(universe) != options.people:
        yield f"There are {len(universe):,} people; {options.people:,} were requested."


def _check_trees(universe: Universe, options: GenerationOptions) -> Iterator[str]:
    titles = universe.titles
    children = universe.children.list_sizes()
    for row in np.flatnonzero(children > options.branching).tolist():
        yield f"{titles[row]} has {children[row]} children, more than {options.branching}."
    tree, generation = find_family_trees(universe)
    sizes = np.bincount(tree)
    for row in np.flatnonzero(sizes > options.family_size).tolist():
        yield f"The family of {titles[row]} has {sizes[row]} people, more than {options.family_size}."
    lowest, highest = (np.zeros(len(universe), np.int32) for _ in range(2))
    np.minimum.at(lowest, tree, generation)
    np.maximum.at(highest, tree, generation)
    levels = highest - lowest + 1
    for row in np.flatnonzero(levels > options.generations).tolist():
        yield f"The family of {titles[row]} has {levels[row]} generations, more than {options.generations}."


def _check_friends(universe: Universe, options: GenerationOptions) -> Iterator[str]:
    people, friends = len(universe), universe.friends.pairs
    pairs = people * (people - 1) // 2
    if options.generator > 2:
        last_days = np.where(universe.death == NONE, universe.today, universe.death)
        latest_birth, earliest_end = universe.birth[friends].max(axis=1), last_days[friends].min(axis=1)
        for one, other in friends[latest_birth > earliest_end].tolist():
            yield f"{universe.titles[one]} and {universe.titles[other]} are friends but never lived at the same time."
        ends = np.sort(last_days)
        pairs -= int(np.searchsorted(ends, universe.birth, side="left").sum())
    mean = min(pairs, people * (people - 1) / 2 * min(1.0, options.friends / people))
    share = mean / max(pairs, 1)
    # Small counts have a longer tail, so one more deviation is added.
    if abs(len(universe.friends.pairs) - mean) > _TOLERANCE * (1 + float(np.sqrt(mean * (1 - share)))):
        yield f"There are {len(universe.friends.pairs):,} friendships; about {round(mean):,} were requested."


def _check_names(universe: Universe, options: GenerationOptions) -> Iterator[str]:
    names, titles = universe.names, universe.titles
    for row in np.flatnonzero(universe.father > NONE).tolist():
        if names[row].rpartition(" ")[2] != names[universe.father[row]].rpartition(" ")[2]:
            yield f"{titles[row]} does not have the surname of {titles[universe.father[row]]}, the father."
    rows_by_name: defaultdict[str, list[int]] = defaultdict(list)
    shared_names = {name for name, count in Counter(names).items() if count > 1}
    for row, name in enumerate(names):
        title = name
        if name in shared_names:
            rows_by_name[name].append(row)
            title = f"{name} ({universe.jobs[universe.job[row]]})"
        if title != titles[row]:
            yield f"The article of {name} has the title {titles[row]} instead of {title}."
    for name, rows in rows_by_name.items():
        if len(set(universe.job[rows].tolist())) < len(rows):
            yield f"Two people named {name} have the same job."
    namesakes, expected = sum(map(len, rows_by_name.values())), round(options.collisions * len(names)) // 2 * 2
    if namesakes != expected:
        yield f"{namesakes:,} people have a namesake; {expected:,} were requested."


YOUNGEST_PARENT, OLDEST_PARENT, YOUNGEST_WEDDING = 16, 60, 16
"""Ages in years, exact to the day."""
MIN_DAYS_BETWEEN_SIBLINGS = 270
"""Minimum days between births of siblings who are not twins, and maximum days between a father's death and a birth."""

_Rows = npt.NDArray[np.int64]
_YEAR, _MONTH = 512, 32
_EPOCH = date(1970, 1, 1).toordinal()


def find_violations(universe: Universe, options: GenerationOptions | None = None) -> Iterator[str]:
    """Yield a sentence for each violated constraint; with `options`, for each violation of the options as well."""
    broken_references = list(_check_references(universe))
    yield from broken_references
    if broken_references:
        # The other checks would follow the broken references.
        return
    for check in _CHECKS:
        yield from check(universe)
    if options is not None:
        yield from find_limit_violations(universe, options)


def _check_references(universe: Universe) -> Iterator[str]:
    """References to rows and places that do not exist."""
    people, places = len(universe), universe.places
    sizes = {
        "father": people,
        "mother": people,
        "spouse": people,
        "birthplace": len(places.towns),
        "residence": len(places.towns),
        "job": len(universe.jobs),
        "hobby": len(universe.hobbies),
    }
    if not 0 < universe.today <= date.max.toordinal():
        yield f"The current day is number {universe.today}, which does not exist."
    for fact, size in sizes.items():
        values = getattr(universe, fact)
        for row in np.flatnonzero(values >= size).tolist():
            yield f"The {fact} of {universe.titles[row]} is number {values[row]}, which does not exist."
    for names, wholes, size in (
        (places.towns, places.region, len(places.regions)),
        (places.regions, places.country, len(places.countries)),
    ):
        for number in np.flatnonzero((wholes < 0) | (wholes >= size)).tolist():
            yield f"{names[number]} is in number {wholes[number]}, which does not exist."
    pairs = universe.friends.pairs
    for one, other in pairs[np.any((pairs < 0) | (pairs >= people), axis=1)].tolist():
        yield f"There is a friendship of the rows {one} and {other}, but only {people:,} people."


def _check_parents(universe: Universe) -> Iterator[str]:
    father, mother, titles = universe.father, universe.mother, universe.titles
    for row in np.flatnonzero((father == NONE) != (mother == NONE)).tolist():
        yield f"{titles[row]} has one parent instead of two or none."
    for row in _rows_where(father >= 0, lambda rows: universe.female[father[rows]]):
        yield f"{titles[father[row]]}, the father of {titles[row]}, is a woman."
    for row in _rows_where(mother >= 0, lambda rows: ~universe.female[mother[rows]]):
        yield f"{titles[mother[row]]}, the mother of {titles[row]}, is a man."
    for row in _rows_where((father >= 0) & (mother >= 0), lambda rows: universe.spouse[father[rows]] != mother[rows]):
        yield f"{titles[father[row]]} and {titles[mother[row]]}, the parents of {titles[row]}, are not a couple."


def _check_partners(universe: Universe) -> Iterator[str]:
    spouse, titles = universe.spouse, universe.titles
    for row in np.flatnonzero(spouse == np.arange(len(universe))).tolist():
        yield f"{titles[row]} is their own partner."
    for row in _rows_where(spouse >= 0, lambda rows: spouse[spouse[rows]] != rows):
        yield f"{titles[row]} has the partner {titles[spouse[row]]}, who has another partner or none."


def _check_parent_ages(universe: Universe) -> Iterator[str]:
    calendar, titles = _to_calendar_numbers(universe.birth), universe.titles
    for parent in (universe.father, universe.mother):
        rows = np.flatnonzero((parent >= 0) & (universe.birth > NONE))
        rows = rows[universe.birth[parent[rows]] > NONE]
        age_numbers = calendar[rows] - calendar[parent[rows]]
        is_violation = (age_numbers < YOUNGEST_PARENT * _YEAR) | (age_numbers > OLDEST_PARENT * _YEAR)
        for row, age in zip(rows[is_violation].tolist(), (age_numbers[is_violation] // _YEAR).tolist(), strict=True):
            years = f"{age} years old" if age >= 0 else "not yet born"
            yield (
                f"{titles[parent[row]]} was {years} at the birth of {titles[row]}; "
                f"parents must be {YOUNGEST_PARENT} to {OLDEST_PARENT}, to the day."
            )


def _check_siblings(universe: Universe) -> Iterator[str]:
    titles = universe.titles
    reported: set[tuple[int, int]] = set()
    for parent in (universe.mother, universe.father):
        rows = np.flatnonzero((parent >= 0) & (universe.birth > NONE))
        order = rows[np.lexsort((rows, universe.birth[rows], parent[rows]))]
        elder, younger = order[:-1], order[1:]
        days = universe.birth[younger] - universe.birth[elder]
        is_violation = (parent[elder] == parent[younger]) & (days > 0) & (days < MIN_DAYS_BETWEEN_SIBLINGS)
        for one, other, apart in zip(
            elder[is_violation].tolist(), younger[is_violation].tolist(), days[is_violation].tolist(), strict=True
        ):
            if (one, other) not in reported:
                reported.add((one, other))
                yield (
                    f"{titles[one]} and {titles[other]} were born {apart} days apart; "
                    f"siblings who are not twins must be {MIN_DAYS_BETWEEN_SIBLINGS} days apart."
                )


def _check_weddings(universe: Universe) -> Iterator[str]:
    spouse, wedding, titles = universe.spouse, universe.wedding, universe.titles
    for row in np.flatnonzero((wedding > NONE) & (spouse == NONE)).tolist():
        yield f"{titles[row]} had a wedding but has no partner."
    for row in _rows_where(spouse >= 0, lambda rows: (wedding[rows] != wedding[spouse[rows]]) & (rows < spouse[rows])):
        yield f"{titles[row]} and {titles[spouse[row]]} have two different wedding days."
    has_dates = (wedding > NONE) & (universe.birth > NONE)
    age_numbers = _to_calendar_numbers(wedding) - _to_calendar_numbers(universe.birth)
    for row in np.flatnonzero(has_dates & (age_numbers < YOUNGEST_WEDDING * _YEAR)).tolist():
        yield f"{titles[row]} was younger than {YOUNGEST_WEDDING} at the wedding."
    for row in np.flatnonzero((wedding > NONE) & (universe.death > NONE) & (wedding > universe.death)).tolist():
        yield f"{titles[row]} was dead at the wedding."


def _check_posthumous_births(universe: Universe) -> Iterator[str]:
    titles = universe.titles
    for kind, parent, after in (("father", universe.father, MIN_DAYS_BETWEEN_SIBLINGS), ("mother", universe.mother, 0)):
        rows = np.flatnonzero((parent >= 0) & (universe.birth > NONE))
        rows = rows[universe.death[parent[rows]] > NONE]
        late = universe.birth[rows] - universe.death[parent[rows]]
        for row, days in zip(rows[late > after].tolist(), late[late > after].tolist(), strict=True):
            yield f"{titles[parent[row]]}, the {kind} of {titles[row]}, was dead for {days} days at the birth."


def _check_days(universe: Universe) -> Iterator[str]:
    titles = universe.titles
    for fact in ("birth", "death", "wedding"):
        for row in np.flatnonzero(getattr(universe, fact) > universe.today).tolist():
            yield f"The {fact} of {titles[row]} is after {date.fromordinal(universe.today)}, the current day."
    for row in np.flatnonzero((universe.death > NONE) & (universe.death < universe.birth)).tolist():
        yield f"{titles[row]} died before being born."


def _check_friendships(universe: Universe) -> Iterator[str]:
    pairs, titles = universe.friends.pairs, universe.titles
    for one, other in pairs[pairs[:, 0] >= pairs[:, 1]].tolist():
        yield f"The friendship of {titles[one]} and {titles[other]} does not have the lower row first."
    keys = pairs[:, 0].astype(np.int64) * len(universe) + pairs[:, 1]
    ordered = np.sort(keys)
    for one, other in (divmod(key, len(universe)) for key in ordered[1:][ordered[1:] == ordered[:-1]].tolist()):
        yield f"The friendship of {titles[one]} and {titles[other]} occurs twice."
    if np.any(keys[1:] < keys[:-1]):
        yield "The friendships are not sorted."


def _check_titles(universe: Universe) -> Iterator[str]:
    seen_titles: set[str] = set()
    for title in universe.titles:
        if title in seen_titles:
            yield f"Two articles have the title {title}."
        seen_titles.add(title)


_CHECKS: tuple[Callable[[Universe], Iterator[str]], ...] = (
    _check_parents,
    _check_partners,
    _check_parent_ages,
    _check_siblings,
    _check_weddings,
    _check_posthumous_births,
    _check_days,
    _check_friendships,
    _check_titles,
)


def _rows_where(candidates: npt.NDArray[np.bool_], is_violation: Callable[[_Rows], npt.NDArray[np.bool_]]) -> list[int]:
    """The candidate rows for which `wrong` is true."""
    rows = np.flatnonzero(candidates)
    violating: list[int] = rows[is_violation(rows)].tolist()
    return violating


def _to_calendar_numbers(days: IdArray) -> _Rows:
    """Encode days so that a difference, floor-divided by _YEAR, is the number of completed years."""
    day = (days.astype(np.int64) - _EPOCH).astype("datetime64[D]")
    month = day.astype("datetime64[M]")
    months = month.astype(np.int64)
    in_month = (day - month.astype("datetime64[D]")).astype(np.int64)
    numbers: _Rows = months // 12 * _YEAR + months % 12 * _MONTH + in_month
    return numbers
