"""What must hold of every universe, checked anew from its arrays: nothing here knows how universes are made."""

from collections.abc import Callable, Iterator
from datetime import date

import numpy as np
import numpy.typing as npt

from worlds.universe.limits import beyond
from worlds.universe.options import Options
from worlds.universe.universe import NONE, Ids, Universe

YOUNGEST_PARENT, OLDEST_PARENT, YOUNGEST_WEDDING = 16, 60, 16
"""In years, to the day."""
APART = 270
"""Days between the births of siblings who are not twins, and the most a father may be dead before a birth."""

_Rows = npt.NDArray[np.int64]
_YEAR, _MONTH = 512, 32
_EPOCH = date(1970, 1, 1).toordinal()


def violations(universe: Universe, options: Options | None = None) -> Iterator[str]:
    """A sentence for each constraint that somebody breaks; with options also for what goes beyond them."""
    wrong = list(_references(universe))
    yield from wrong
    if wrong:
        # Nothing else can be looked up.
        return
    for check in _CHECKS:
        yield from check(universe)
    if options is not None:
        yield from beyond(universe, options)


def _references(universe: Universe) -> Iterator[str]:
    """Numbers that stand for nobody and nothing."""
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
        yield f"The day of this world is number {universe.today}, and there is none."
    for fact, size in sizes.items():
        for row in np.flatnonzero(getattr(universe, fact) >= size).tolist():
            yield f"The {fact} of {universe.titles[row]} is number {getattr(universe, fact)[row]}, and there is none."
    for of, wholes, size in (
        (places.towns, places.region, len(places.regions)),
        (places.regions, places.country, len(places.countries)),
    ):
        for number in np.flatnonzero((wholes < 0) | (wholes >= size)).tolist():
            yield f"{of[number]} lies in number {wholes[number]}, and there is none."
    pairs = universe.friends.pairs
    for one, other in pairs[np.any((pairs < 0) | (pairs >= people), axis=1)].tolist():
        yield f"There is a friendship of the rows {one} and {other}, and there are {people:,} people."


def _parents(universe: Universe) -> Iterator[str]:
    father, mother, who = universe.father, universe.mother, universe.titles
    for row in np.flatnonzero((father == NONE) != (mother == NONE)).tolist():
        yield f"{who[row]} has one parent, which must be both or none."
    for row in _with(father >= 0, lambda rows: universe.female[father[rows]]):
        yield f"{who[father[row]]}, the father of {who[row]}, is a woman."
    for row in _with(mother >= 0, lambda rows: ~universe.female[mother[rows]]):
        yield f"{who[mother[row]]}, the mother of {who[row]}, is a man."
    for row in _with((father >= 0) & (mother >= 0), lambda rows: universe.spouse[father[rows]] != mother[rows]):
        yield f"{who[father[row]]} and {who[mother[row]]}, the parents of {who[row]}, are no couple."


def _partners(universe: Universe) -> Iterator[str]:
    spouse, who = universe.spouse, universe.titles
    for row in np.flatnonzero(spouse == np.arange(len(universe))).tolist():
        yield f"{who[row]} is married to nobody else."
    for row in _with(spouse >= 0, lambda rows: spouse[spouse[rows]] != rows):
        yield f"{who[row]} has the partner {who[spouse[row]]}, who has another or none."


def _ages_of_parents(universe: Universe) -> Iterator[str]:
    calendar, who = _calendar(universe.birth), universe.titles
    for parent in (universe.father, universe.mother):
        rows = np.flatnonzero((parent >= 0) & (universe.birth > NONE))
        rows = rows[universe.birth[parent[rows]] > NONE]
        lived = calendar[rows] - calendar[parent[rows]]
        wrong = (lived < YOUNGEST_PARENT * _YEAR) | (lived > OLDEST_PARENT * _YEAR)
        for row, age in zip(rows[wrong].tolist(), (lived[wrong] // _YEAR).tolist(), strict=True):
            years = f"{age} years old" if age >= 0 else "not yet born"
            yield (
                f"{who[parent[row]]} was {years} at the birth of {who[row]}; "
                f"it must be {YOUNGEST_PARENT} to {OLDEST_PARENT}, to the day."
            )


def _siblings(universe: Universe) -> Iterator[str]:
    who = universe.titles
    told: set[tuple[int, int]] = set()
    for parent in (universe.mother, universe.father):
        rows = np.flatnonzero((parent >= 0) & (universe.birth > NONE))
        order = rows[np.lexsort((rows, universe.birth[rows], parent[rows]))]
        elder, younger = order[:-1], order[1:]
        days = universe.birth[younger] - universe.birth[elder]
        wrong = (parent[elder] == parent[younger]) & (days > 0) & (days < APART)
        for one, other, apart in zip(elder[wrong].tolist(), younger[wrong].tolist(), days[wrong].tolist(), strict=True):
            if (one, other) not in told:
                told.add((one, other))
                yield f"{who[one]} and {who[other]} were born {apart} days apart; siblings are twins or {APART}."


def _weddings(universe: Universe) -> Iterator[str]:
    spouse, wedding, who = universe.spouse, universe.wedding, universe.titles
    for row in np.flatnonzero((wedding > NONE) & (spouse == NONE)).tolist():
        yield f"{who[row]} had a wedding and has no partner."
    for row in _with(spouse >= 0, lambda rows: (wedding[rows] != wedding[spouse[rows]]) & (rows < spouse[rows])):
        yield f"{who[row]} and {who[spouse[row]]} had their wedding on two days."
    known = (wedding > NONE) & (universe.birth > NONE)
    lived = _calendar(wedding) - _calendar(universe.birth)
    for row in np.flatnonzero(known & (lived < YOUNGEST_WEDDING * _YEAR)).tolist():
        yield f"{who[row]} was younger than {YOUNGEST_WEDDING} at the wedding."
    for row in np.flatnonzero((wedding > NONE) & (universe.death > NONE) & (wedding > universe.death)).tolist():
        yield f"{who[row]} was dead at the wedding."


def _births_after_deaths(universe: Universe) -> Iterator[str]:
    who = universe.titles
    for kind, parent, after in (("father", universe.father, APART), ("mother", universe.mother, 0)):
        rows = np.flatnonzero((parent >= 0) & (universe.birth > NONE))
        rows = rows[universe.death[parent[rows]] > NONE]
        late = universe.birth[rows] - universe.death[parent[rows]]
        for row, days in zip(rows[late > after].tolist(), late[late > after].tolist(), strict=True):
            yield f"{who[parent[row]]}, the {kind} of {who[row]}, was dead for {days} days at the birth."


def _days(universe: Universe) -> Iterator[str]:
    who = universe.titles
    for fact in ("birth", "death", "wedding"):
        for row in np.flatnonzero(getattr(universe, fact) > universe.today).tolist():
            yield f"The {fact} of {who[row]} is after {date.fromordinal(universe.today)}, the day of this world."
    for row in np.flatnonzero((universe.death > NONE) & (universe.death < universe.birth)).tolist():
        yield f"{who[row]} died before being born."


def _friendships(universe: Universe) -> Iterator[str]:
    pairs, who = universe.friends.pairs, universe.titles
    for one, other in pairs[pairs[:, 0] >= pairs[:, 1]].tolist():
        yield f"The friendship of {who[one]} and {who[other]} does not have the lower row first."
    keys = pairs[:, 0].astype(np.int64) * len(universe) + pairs[:, 1]
    ordered = np.sort(keys)
    for one, other in (divmod(key, len(universe)) for key in ordered[1:][ordered[1:] == ordered[:-1]].tolist()):
        yield f"The friendship of {who[one]} and {who[other]} is there twice."
    if np.any(keys[1:] < keys[:-1]):
        yield "The friendships are not sorted."


def _titles(universe: Universe) -> Iterator[str]:
    seen: set[str] = set()
    for title in universe.titles:
        if title in seen:
            yield f"Two articles have the title {title}."
        seen.add(title)


_CHECKS: tuple[Callable[[Universe], Iterator[str]], ...] = (
    _parents,
    _partners,
    _ages_of_parents,
    _siblings,
    _weddings,
    _births_after_deaths,
    _days,
    _friendships,
    _titles,
)


def _with(known: npt.NDArray[np.bool_], wrong: Callable[[_Rows], npt.NDArray[np.bool_]]) -> list[int]:
    """The rows of which something is known and wrong."""
    rows = np.flatnonzero(known)
    found: list[int] = rows[wrong(rows)].tolist()
    return found


def _calendar(days: Ids) -> _Rows:
    """Days as numbers whose difference, divided by _YEAR and rounded down, is the completed years between them."""
    day = (days.astype(np.int64) - _EPOCH).astype("datetime64[D]")
    month = day.astype("datetime64[M]")
    months = month.astype(np.int64)
    in_month = (day - month.astype("datetime64[D]")).astype(np.int64)
    found: _Rows = months // 12 * _YEAR + months % 12 * _MONTH + in_month
    return found
