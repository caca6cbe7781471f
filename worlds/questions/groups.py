"""Templates about several people at once: who fits, before or after a year, first or last, and how many."""

from collections.abc import Iterator
from datetime import date

from worlds.questions.compositions import BLANKS, PAIRS
from worlds.questions.expressions import Both, Count, Expression, Fact, Having, Most, Only, People
from worlds.questions.template import Draw, Template, whom
from worlds.questions.walk import Walk
from worlds.questions.wording import LABELS

FILTER, COMPARATIVE, SUPERLATIVE, COUNT = "filter", "comparative", "superlative", "count"
_FITS = {
    "job": "have the occupation <job>",
    "hobby": "have the hobby <hobby>",
    "birthplace": "were born in <town>",
    "residence": "have their residence in <town>",
}
_DID = {"birth": "were born", "death": "died", "wedding": "married"}
_EVENTS = {"birth": "was born", "death": "died", "wedding": "married"}
_NOBODY_EVERY = 5
"""Of the questions how many fit, one in so many has the answer 0."""


def filters() -> Iterator[Template]:
    """The template of each value, of relatives near and farther away."""
    for fact, links in (("job", 0), ("hobby", 0), ("birthplace", 0), ("residence", 0), ("job", 1), ("hobby", 1)):
        yield Template(FILTER, f"Which <relations> of {whom(links)} {_FITS[fact]}?", _filter(fact, links))


def comparatives() -> Iterator[Template]:
    """The templates of before and after a year."""
    for fact, test, links in (
        ("birth", "before", 0),
        ("birth", "after", 0),
        ("birth", "after", 1),
        ("death", "before", 0),
        ("death", "after", 0),
        ("wedding", "after", 0),
    ):
        text = f"Which <relations> of {whom(links)} {_DID[fact]} {test} <year>?"
        yield Template(COMPARATIVE, text, _comparative(fact, test, links))


def superlatives() -> Iterator[Template]:
    """The templates of the first and the last, and of a fact of theirs."""
    for fact, first in (("birth", True), ("birth", False), ("death", True), ("death", False), ("wedding", False)):
        text = f"Which of the <relations> of {whom(0)} {_EVENTS[fact]} {'first' if first else 'last'}?"
        yield Template(SUPERLATIVE, text, _superlative(fact, first=first))
    text = "Which of the people whose <attribute> is <value> was born {}?"
    yield Template(SUPERLATIVE, text.format("first"), _of_value(first=True))
    yield Template(SUPERLATIVE, text.format("last"), _of_value(first=False))
    for fact, first in (("job", True), ("hobby", False)):
        end = "earliest" if first else "latest"
        text = f"What is the {LABELS[fact]} of the {end}-born of the <relations> of {whom(0)}?"
        yield Template(SUPERLATIVE, text, _of_end(fact, first=first))


def counts() -> Iterator[Template]:
    """The templates of how many fit a filter."""
    for fact in ("job", "hobby", "birthplace"):
        yield Template(COUNT, f"How many <relations> of {whom(1)} {_FITS[fact]}?", _count(fact))
    for test in ("before", "after"):
        text = f"How many <relations> of {whom(0)} were born {test} <year>?"
        yield Template(COUNT, text, _counted(_comparative("birth", test, 0)))
    for one, other in PAIRS[:2]:
        text = f"whose {LABELS[one]} is {BLANKS[one]} and whose {LABELS[other]} is {BLANKS[other]}"
        yield Template(COUNT, f"How many people are there {text}?", _counted_values(one, other))


def _filter(fact: str, links: int) -> Draw:
    def draw(walk: Walk) -> Only | None:
        group = walk.group(links)
        if group is None:
            return None
        value = walk.fact(fact, walk.one_of(walk.people(group).tolist()))
        return _some(walk, Only(group, fact, "is", value))

    return draw


def _comparative(fact: str, test: str, links: int) -> Draw:
    def draw(walk: Walk) -> Only | None:
        group = walk.group(links)
        days = [walk.fact(fact, person) for person in walk.people(group).tolist()] if group else []
        known = [day for day in days if day >= 0]
        if group is None or not known:
            return None
        year = date.fromordinal(walk.one_of(known)).year
        day = date(year + 1, 1, 1) if test == "before" else date(year - 1, 12, 31)
        return _some(walk, Only(group, fact, test, day.toordinal()))

    return draw


def _some(walk: Walk, only: Only) -> Only | None:
    """The filter if it leaves some out."""
    return only if len(walk.people(only)) < len(walk.people(only.of)) else None


def _superlative(fact: str, *, first: bool) -> Draw:
    def draw(walk: Walk) -> Most | None:
        group = walk.group(0)
        return _first(walk, group, fact, first=first) if group else None

    return draw


def _of_value(*, first: bool) -> Draw:
    def draw(walk: Walk) -> Most | None:
        begun = walk.having(("job", "hobby"))
        return _first(walk, begun[0], "birth", first=first) if begun else None

    return draw


def _of_end(fact: str, *, first: bool) -> Draw:
    def draw(walk: Walk) -> Expression | None:
        group = walk.group(0)
        most = _first(walk, group, "birth", first=first) if group else None
        return Fact(fact, most) if most else None

    return draw


def _first(walk: Walk, people: People, fact: str, *, first: bool) -> Most | None:
    """Who is the first or last, if that is to be found out: there are others with another day."""
    days = {walk.fact(fact, person) for person in walk.people(people).tolist()}
    return Most(people, fact, first) if sum(day >= 0 for day in days) > 1 else None


def _count(fact: str) -> Draw:
    def draw(walk: Walk) -> Expression | None:
        group = walk.group(1)
        if group is None:
            return None
        fits = walk.turn % _NOBODY_EVERY > 0
        found = walk.people(group).tolist()
        value = walk.fact(fact, walk.one_of(found) if fits else walk.person())
        count = Count(Only(group, fact, "is", value))
        return count if fits or not len(walk.people(count.of)) else None

    return draw


def _counted(draw: Draw) -> Draw:
    def counted(walk: Walk) -> Expression | None:
        people = draw(walk)
        return Count(people) if isinstance(people, Only) else None

    return counted


def _counted_values(one: str, other: str) -> Draw:
    def draw(walk: Walk) -> Expression:
        person = walk.person()
        return Count(Both(Having(one, walk.fact(one, person)), Having(other, walk.fact(other, person))))

    return draw
