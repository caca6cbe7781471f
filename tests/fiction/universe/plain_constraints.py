"""Independent check of the constraints in plain Python with calendar dates."""

from collections import Counter, defaultdict
from datetime import date
from itertools import pairwise

from showhow.fiction.universe.universe import Universe

KINDS = (
    "one parent",
    "is a woman",
    "is a man",
    "not a couple",
    "their own partner",
    "another partner or none",
    "at the birth of",
    "days apart",
    "had a wedding but has no partner",
    "two different wedding days",
    "younger than 16 at the wedding",
    "was dead at the wedding",
    "was dead for",
    "is after",
    "died before",
    "lower row first",
    "occurs twice",
    "have the title",
)
"""A phrase that identifies the sentences of each kind of violation."""


def count_reported(sentences: list[str]) -> Counter[str]:
    """Number of reported violations by kind."""
    counts: Counter[str] = Counter()
    for sentence in sentences:
        (kind,) = [kind for kind in KINDS if kind in sentence]
        counts[kind] += 1
    return counts


def count_violations(universe: Universe) -> Counter[str]:
    """Number of actual violations by kind."""
    counts: Counter[str] = Counter()
    for row in range(len(universe)):
        _person(universe, row, counts)
    counts["days apart"] = len(_too_close(universe))
    counts["have the title"] = len(universe) - len(set(universe.titles))
    pairs = universe.friends.pairs.tolist()
    for place, (one, other) in enumerate(pairs):
        counts["lower row first"] += one >= other
        counts["occurs twice"] += [one, other] in pairs[:place]
    return +counts


def _person(universe: Universe, row: int, counts: Counter[str]) -> None:
    father, mother, spouse = (int(getattr(universe, fact)[row]) for fact in ("father", "mother", "spouse"))
    birth, death, wedding = (_day(universe, fact, row) for fact in ("birth", "death", "wedding"))
    counts["one parent"] += (father == -1) != (mother == -1)
    counts["is a woman"] += father >= 0 and bool(universe.female[father])
    counts["is a man"] += mother >= 0 and not universe.female[mother]
    counts["not a couple"] += father >= 0 and mother >= 0 and universe.spouse[father] != mother
    for parent in (father, mother):
        if parent >= 0:
            counts["at the birth of"] += not _may_have_a_child(_day(universe, "birth", parent), birth)
            died = _day(universe, "death", parent)
            counts["was dead for"] += died is not None and (birth - died).days > (270 if parent == father else 0)
    counts["their own partner"] += spouse == row
    counts["another partner or none"] += spouse >= 0 and universe.spouse[spouse] != row
    counts["had a wedding but has no partner"] += wedding is not None and spouse == -1
    if spouse > row:
        counts["two different wedding days"] += wedding != _day(universe, "wedding", spouse)
    if wedding is not None:
        counts["younger than 16 at the wedding"] += wedding < _birthday(birth, 16)
        counts["was dead at the wedding"] += death is not None and wedding > death
    today = date.fromordinal(universe.today)
    counts["is after"] += sum(day is not None and day > today for day in (birth, death, wedding))
    counts["died before"] += death is not None and death < birth


def _too_close(universe: Universe) -> set[tuple[int, int]]:
    """Consecutive siblings that were born too close together."""
    families: defaultdict[tuple[str, int], list[tuple[int, int]]] = defaultdict(list)
    for row in range(len(universe)):
        for kind, parent in (("father", int(universe.father[row])), ("mother", int(universe.mother[row]))):
            if parent >= 0:
                families[kind, parent].append((int(universe.birth[row]), row))
    neighbours = [pair for siblings in families.values() for pair in pairwise(sorted(siblings))]
    return {(one, other) for (born, one), (later, other) in neighbours if 0 < later - born < 270}


def _day(universe: Universe, fact: str, row: int) -> date | None:
    value = int(getattr(universe, fact)[row])
    return None if value == -1 else date.fromordinal(value)


def _birthday(birth: date, years: int) -> date:
    year = birth.year + years
    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if (birth.month, birth.day) == (2, 29) and not leap:
        return date(year, 3, 1)
    return birth.replace(year=year)


def _may_have_a_child(parent: date, child: date) -> bool:
    # The sixtieth birthday of a person born on a leap day is in a leap year.
    return _birthday(parent, 16) <= child <= _birthday(parent, 60)
