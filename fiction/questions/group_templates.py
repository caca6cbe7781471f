"""Templates about groups of people: filters, before or after a year, first or last, and counts."""

from collections.abc import Iterator
from datetime import date

from fiction.questions.composition_templates import (
    FACT_PAIRS,
    PLACEHOLDERS,
    DrawFunction,
    QuestionTemplate,
    relation_phrase,
)
from fiction.questions.expressions import Both, Count, Expression, Fact, Having, Most, Only, People
from fiction.questions.walk import RandomWalk
from fiction.questions.wording import FACT_LABELS

FILTER, COMPARATIVE, SUPERLATIVE, COUNT = "filter", "comparative", "superlative", "count"
_CONDITION_PHRASES = {
    "job": "have the occupation <job>",
    "hobby": "have the hobby <hobby>",
    "birthplace": "were born in <town>",
    "residence": "have their residence in <town>",
}
_EVENT_PHRASES = {"birth": "were born", "death": "died", "wedding": "married"}
_SINGULAR_EVENT_PHRASES = {"birth": "was born", "death": "died", "wedding": "married"}
_EMPTY_COUNT_INTERVAL = 5
"""One in this many count questions has the answer 0."""


def filter_templates() -> Iterator[QuestionTemplate]:
    """Templates that filter relatives by a value."""
    for fact, links in (("job", 0), ("hobby", 0), ("birthplace", 0), ("residence", 0), ("job", 1), ("hobby", 1)):
        yield QuestionTemplate(
            FILTER,
            f"Which <relations> of {relation_phrase(links)} {_CONDITION_PHRASES[fact]}?",
            _filter_draw(fact, links),
        )


def comparative_templates() -> Iterator[QuestionTemplate]:
    """Templates of before and after a year."""
    for fact, test, links in (
        ("birth", "before", 0),
        ("birth", "after", 0),
        ("birth", "after", 1),
        ("death", "before", 0),
        ("death", "after", 0),
        ("wedding", "after", 0),
    ):
        text = f"Which <relations> of {relation_phrase(links)} {_EVENT_PHRASES[fact]} {test} <year>?"
        yield QuestionTemplate(COMPARATIVE, text, _comparative_draw(fact, test, links))


def superlative_templates() -> Iterator[QuestionTemplate]:
    """Templates of the first and the last of a group, and of a fact of that person."""
    for fact, first in (("birth", True), ("birth", False), ("death", True), ("death", False), ("wedding", False)):
        event = f"{_SINGULAR_EVENT_PHRASES[fact]} {'first' if first else 'last'}"
        text = f"Which of the <relations> of {relation_phrase(0)} {event}?"
        yield QuestionTemplate(SUPERLATIVE, text, _superlative_draw(fact, first=first))
    text = "Which of the people whose <attribute> is <value> was born {}?"
    yield QuestionTemplate(SUPERLATIVE, text.format("first"), _value_superlative_draw(first=True))
    yield QuestionTemplate(SUPERLATIVE, text.format("last"), _value_superlative_draw(first=False))
    for fact, first in (("job", True), ("hobby", False)):
        end = "earliest" if first else "latest"
        text = f"What is the {FACT_LABELS[fact]} of the {end}-born of the <relations> of {relation_phrase(0)}?"
        yield QuestionTemplate(SUPERLATIVE, text, _extreme_fact_draw(fact, first=first))


def count_templates() -> Iterator[QuestionTemplate]:
    """Templates that count the people who match a filter."""
    for fact in ("job", "hobby", "birthplace"):
        yield QuestionTemplate(
            COUNT, f"How many <relations> of {relation_phrase(1)} {_CONDITION_PHRASES[fact]}?", _count_draw(fact)
        )
    for test in ("before", "after"):
        text = f"How many <relations> of {relation_phrase(0)} were born {test} <year>?"
        yield QuestionTemplate(COUNT, text, _count_of_draw(_comparative_draw("birth", test, 0)))
    for one, other in FACT_PAIRS[:2]:
        text = (
            f"whose {FACT_LABELS[one]} is {PLACEHOLDERS[one]} and whose {FACT_LABELS[other]} is {PLACEHOLDERS[other]}"
        )
        yield QuestionTemplate(COUNT, f"How many people are there {text}?", _count_values_draw(one, other))


def _filter_draw(fact: str, links: int) -> DrawFunction:
    def draw(walk: RandomWalk) -> Only | None:
        group = walk.draw_group(links)
        if group is None:
            return None
        value = walk.fact_value(fact, walk.choose(walk.evaluate_people(group).tolist()))
        return _require_proper_subset(walk, Only(group, fact, "is", value))

    return draw


def _comparative_draw(fact: str, test: str, links: int) -> DrawFunction:
    def draw(walk: RandomWalk) -> Only | None:
        group = walk.draw_group(links)
        days = [walk.fact_value(fact, person) for person in walk.evaluate_people(group).tolist()] if group else []
        known_days = [day for day in days if day >= 0]
        if group is None or not known_days:
            return None
        year = date.fromordinal(walk.choose(known_days)).year
        day = date(year + 1, 1, 1) if test == "before" else date(year - 1, 12, 31)
        return _require_proper_subset(walk, Only(group, fact, test, day.toordinal()))

    return draw


def _require_proper_subset(walk: RandomWalk, only: Only) -> Only | None:
    """The filter if it excludes at least one person, else None."""
    return only if len(walk.evaluate_people(only)) < len(walk.evaluate_people(only.of)) else None


def _superlative_draw(fact: str, *, first: bool) -> DrawFunction:
    def draw(walk: RandomWalk) -> Most | None:
        group = walk.draw_group(0)
        return _find_extreme(walk, group, fact, first=first) if group else None

    return draw


def _value_superlative_draw(*, first: bool) -> DrawFunction:
    def draw(walk: RandomWalk) -> Most | None:
        start = walk.start_at_value(("job", "hobby"))
        return _find_extreme(walk, start[0], "birth", first=first) if start else None

    return draw


def _extreme_fact_draw(fact: str, *, first: bool) -> DrawFunction:
    def draw(walk: RandomWalk) -> Expression | None:
        group = walk.draw_group(0)
        most = _find_extreme(walk, group, "birth", first=first) if group else None
        return Fact(fact, most) if most else None

    return draw


def _find_extreme(walk: RandomWalk, people: People, fact: str, *, first: bool) -> Most | None:
    """The first or last of the people; None unless at least two have different days."""
    days = {walk.fact_value(fact, person) for person in walk.evaluate_people(people).tolist()}
    return Most(people, fact, first) if sum(day >= 0 for day in days) > 1 else None


def _count_draw(fact: str) -> DrawFunction:
    def draw(walk: RandomWalk) -> Expression | None:
        group = walk.draw_group(1)
        if group is None:
            return None
        fits = walk.turn_number % _EMPTY_COUNT_INTERVAL > 0
        members = walk.evaluate_people(group).tolist()
        value = walk.fact_value(fact, walk.choose(members) if fits else walk.random_person())
        count = Count(Only(group, fact, "is", value))
        return count if fits or not len(walk.evaluate_people(count.of)) else None

    return draw


def _count_of_draw(draw: DrawFunction) -> DrawFunction:
    def counted(walk: RandomWalk) -> Expression | None:
        people = draw(walk)
        return Count(people) if isinstance(people, Only) else None

    return counted


def _count_values_draw(one: str, other: str) -> DrawFunction:
    def draw(walk: RandomWalk) -> Expression:
        person = walk.random_person()
        return Count(Both(Having(one, walk.fact_value(one, person)), Having(other, walk.fact_value(other, person))))

    return draw
