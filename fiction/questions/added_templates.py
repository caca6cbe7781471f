"""The template type, and the templates beyond the paper's grammar.

They compose further facts, join two conditions, compare pairs of people, and filter or count groups.

Draws of yes-no questions alternate between yes and no, so that the questions of a template are balanced.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import TypeAlias

from showhow.fiction.questions.expressions import (
    Both,
    Compare,
    Count,
    Expression,
    Fact,
    Having,
    Judge,
    Most,
    Named,
    Only,
    People,
    Place,
    Related,
    Same,
)
from showhow.fiction.questions.walk import RandomWalk, find_balanced_count, find_countable_relations
from showhow.fiction.questions.wording import FACT_LABELS
from showhow.fiction.universe.relations import RELATIONS

DrawFunction: TypeAlias = Callable[[RandomWalk], Expression | None]
COMPOSITION, CONJUNCTION = "composition", "conjunction"
FACT_PAIRS = (("job", "hobby"), ("job", "birthplace"), ("hobby", "residence"))
"""Pairs of facts that few people share."""
PLACEHOLDERS = {"job": "<job>", "hobby": "<hobby>", "birthplace": "<town>", "residence": "<town>"}
COMPARISON, IMPLICIT = "comparison", "implicit"
_SINGLE_RELATIONS = ("mother", "father", "husband", "wife")
"""Relations that lead to at most one person."""
_MAX_DAYS_APART = 20 * 365
"""Maximum days between two births or deaths; close dates make the question harder."""
_MAX_DRAWS, _MAX_COUNT_DRAWS = 8, 20
"""Maximum draws for a suitable pair, and for a count of the class that is due."""


@dataclass(frozen=True, slots=True)
class QuestionTemplate:
    """A question template; `draw` returns an expression, or None if its random walk found none."""

    kind: str
    text: str
    draw: DrawFunction
    has_answer: bool = True
    draw_twin: "Callable[[RandomWalk, Expression], Expression | None] | None" = None
    """Draws the same question of others, with an answer, which follows one of this template."""


def relation_phrase(links: int, start: str = "<name>") -> str:
    """Template text for the end of a chain of this many relations."""
    return "the <relation> of " * links + start


def composition_templates() -> Iterator[QuestionTemplate]:
    """Templates of each fact, and of the region and country of a town."""
    yield QuestionTemplate(COMPOSITION, f"In which town was {relation_phrase(1)} born?", _fact_draw("birthplace", 1))
    yield QuestionTemplate(
        COMPOSITION, f"In which region was {relation_phrase(2)} born?", _fact_draw("birthplace", 2, "region")
    )
    yield QuestionTemplate(
        COMPOSITION, f"In which country was {relation_phrase(2)} born?", _fact_draw("birthplace", 2, "country")
    )
    yield QuestionTemplate(COMPOSITION, f"What is the residence of {relation_phrase(2)}?", _fact_draw("residence", 2))
    yield QuestionTemplate(
        COMPOSITION,
        f"In which country is the residence of {relation_phrase(1)}?",
        _fact_draw("residence", 1, "country"),
    )
    yield QuestionTemplate(COMPOSITION, f"When did {relation_phrase(1)} die?", _fact_draw("death", 1))
    yield QuestionTemplate(COMPOSITION, f"When did {relation_phrase(2)} marry?", _fact_draw("wedding", 2))


def conjunction_templates() -> Iterator[QuestionTemplate]:
    """Templates of two values, and of two relations."""
    for one, other in FACT_PAIRS:
        yield QuestionTemplate(CONJUNCTION, f"Who is {person_with_facts(one, other)}?", _values_draw(one, other))
    yield QuestionTemplate(
        CONJUNCTION,
        f"Who is both a <relation> of {relation_phrase(0)} and a <relation> of {relation_phrase(0)}?",
        _draw_two_relations,
    )


def person_with_facts(one: str, other: str) -> str:
    """Template text for a person with two facts."""
    clauses = (f"whose {FACT_LABELS[fact]} is {PLACEHOLDERS[fact]}" for fact in (one, other))
    return f"the person {' and '.join(clauses)}"


def _fact_draw(fact: str, links: int, place: str = "") -> DrawFunction:
    def draw(walk: RandomWalk) -> Expression | None:
        end = walk.extend_chain(walk.start_at_person(), links)
        if end is None or walk.fact_value(fact, end[1]) < 0:
            return None
        expression = Fact(fact, end[0])
        return Place(place, expression) if place else expression

    return draw


def _values_draw(one: str, other: str) -> DrawFunction:
    def draw(walk: RandomWalk) -> Expression:
        person = walk.random_person()
        return Both(Having(one, walk.fact_value(one, person)), Having(other, walk.fact_value(other, person)))

    return draw


def _draw_two_relations(walk: RandomWalk) -> Expression | None:
    """A person with two relations such that neither alone identifies the answer."""
    person = walk.random_person()
    sides: list[Related] = []
    for _ in range(2):
        # Most relations have an inverse.
        step = walk.random_step(person)
        side = _find_relation_back(walk, step[1], person) if step else None
        if side is None or any(other.of == side.of for other in sides):
            return None
        sides.append(side)
    both = Both(*sides)
    shared_count = len(walk.evaluate_people(both))
    return both if all(len(walk.evaluate_people(side)) > shared_count for side in sides) else None


def _find_relation_back(walk: RandomWalk, start: int, person: int) -> Related | None:
    """A relation from `start` that leads to the person."""
    for name in walk.shuffle(tuple(RELATIONS)):
        side = Related(name, Named(start))
        if person in walk.evaluate_people(side):
            return side
    return None


_SAME_VALUE_TEXTS = {
    ("job", False): "Do {} and {} have the same occupation?",
    ("hobby", False): "Do {} and {} have the same hobby?",
    ("birthplace", False): "Were {} and {} born in the same town?",
    ("birthplace", True): "Were {} and {} born in the same country?",
    ("residence", True): "Are the residences of {} and {} in the same country?",
}
_STRATEGY_TEXTS = {
    "met": "Could {} have met {}?",
    "wedding": "Did {} live to see the wedding of {}?",
    "passport": "Would {} have needed a passport to visit {}?",
}


def comparison_templates() -> Iterator[QuestionTemplate]:
    """Templates of earlier and later, and of equal values."""
    for fact, event in (("birth", "was born"), ("death", "died")):
        for first in (True, False):
            text = f"Who {event} {'earlier' if first else 'later'}, {{}} or {{}}?"
            yield QuestionTemplate(
                COMPARISON, text.format(relation_phrase(0), relation_phrase(0)), _order_draw(fact, 0, first=first)
            )
            yield QuestionTemplate(
                COMPARISON, text.format(relation_phrase(1), relation_phrase(1)), _order_draw(fact, 1, first=first)
            )
    for (fact, country), text in _SAME_VALUE_TEXTS.items():
        yield QuestionTemplate(
            COMPARISON, text.format(relation_phrase(0), relation_phrase(0)), _same_draw(fact, 0, country=country)
        )
    yield QuestionTemplate(
        COMPARISON,
        _SAME_VALUE_TEXTS["job", False].format(relation_phrase(0), relation_phrase(1)),
        _same_draw("job", 1, country=False),
    )
    yield QuestionTemplate(
        COMPARISON,
        _SAME_VALUE_TEXTS["birthplace", True].format(relation_phrase(0), relation_phrase(1)),
        _same_draw("birthplace", 1, country=True),
    )


def implicit_templates() -> Iterator[QuestionTemplate]:
    """Templates whose wording does not state the strategy."""
    for strategy, text in _STRATEGY_TEXTS.items():
        for links in (0, 1):
            yield QuestionTemplate(
                IMPLICIT, text.format(relation_phrase(links), relation_phrase(0)), _judge_draw(strategy, links)
            )


def _order_draw(fact: str, links: int, *, first: bool) -> DrawFunction:
    def draw(walk: RandomWalk) -> Expression | None:
        def near(left: int, right: int) -> bool:
            days = walk.fact_value(fact, left), walk.fact_value(fact, right)
            return min(days) >= 0 and 0 < abs(days[0] - days[1]) < _MAX_DAYS_APART

        pair = _draw_pair(walk, (links, links), near)
        return Compare(*pair, fact, first) if pair else None

    return draw


def _same_draw(fact: str, links: int, *, country: bool) -> DrawFunction:
    def draw(walk: RandomWalk) -> Expression | None:
        if _is_yes_wanted(walk) and not country:
            return _draw_same_pair(walk, fact, links)
        pair = _draw_pair(
            walk,
            (0, links),
            lambda left, right: (
                walk.evaluate_truth(Same(Named(left), Named(right), fact, country)) == _is_yes_wanted(walk)
            ),
        )
        return Same(*pair, fact, country) if pair else None

    return draw


def _is_yes_wanted(walk: RandomWalk) -> bool:
    return walk.turn_number % 2 == 0


def _draw_same_pair(walk: RandomWalk, fact: str, links: int) -> Expression | None:
    """Draw two people with the same value; two random people rarely share one."""
    side = _draw_side(walk, links)
    if side is None or walk.fact_value(fact, side[1]) < 0:
        return None
    people, person = side
    other = walk.choose(walk.universe.find_people_with(fact, walk.fact_value(fact, person)).tolist())
    return Same(Named(other), people, fact) if other != person else None


def _judge_draw(strategy: str, links: int) -> DrawFunction:
    def draw(walk: RandomWalk) -> Expression | None:
        def fits(left: int, right: int) -> bool:
            sides = Named(left), Named(right)
            condition = _STRATEGY_CONDITIONS.get(strategy)
            return (condition is None or condition(walk, *sides)) and walk.evaluate_truth(
                Judge(strategy, *sides)
            ) == _is_yes_wanted(walk)

        pair = _draw_pair(walk, (links, 0), fits)
        return Judge(strategy, *pair) if pair else None

    return draw


def _is_possible_guest(walk: RandomWalk, left: Named, right: Named) -> bool:
    """Whether the left person was born before the wedding and is not one of the couple."""
    couple = right.person, walk.universe.spouse[right.person]
    return left.person not in couple and walk.fact_value("birth", left.person) < walk.fact_value(
        "wedding", right.person
    )


def _are_contemporaries(walk: RandomWalk, left: Named, right: Named) -> bool:
    return walk.evaluate_truth(Judge("met", left, right)) is True


_STRATEGY_CONDITIONS = {"wedding": _is_possible_guest, "passport": _are_contemporaries}
"""Conditions under which the question makes sense."""


def _draw_pair(
    walk: RandomWalk, links: tuple[int, int], fits: Callable[[int, int], bool]
) -> tuple[People, People] | None:
    """Draw two different people that satisfy `fits`, each `links` relations away from a named person."""
    for _ in range(_MAX_DRAWS):
        left, right = _draw_side(walk, links[0]), _draw_side(walk, links[1])
        if left and right and left[1] != right[1] and fits(left[1], right[1]):
            return left[0], right[0]
    return None


def _draw_side(walk: RandomWalk, links: int) -> tuple[People, int] | None:
    start, person = walk.start_at_person()
    if not links:
        return start, person
    for name in walk.shuffle(_SINGLE_RELATIONS):
        if step := walk.random_relative(name, person):
            return Related(name, start), step[1]
    return None


FILTER, COMPARATIVE, SUPERLATIVE, COUNT = "filter", "comparative", "superlative", "count"
_CONDITION_PHRASES = {
    "job": "have the occupation <job>",
    "hobby": "have the hobby <hobby>",
    "birthplace": "were born in <town>",
    "residence": "have their residence in <town>",
}
_EVENT_PHRASES = {"birth": "were born", "death": "died", "wedding": "married"}
_SINGULAR_EVENT_PHRASES = {"birth": "was born", "death": "died", "wedding": "married"}


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
        yield QuestionTemplate(COUNT, text, _count_of_draw(_comparative_draw("birth", test, 0, countable=True)))
    for one, other in (*FACT_PAIRS[:2], ("birthplace", "residence")):
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


def _comparative_draw(fact: str, test: str, links: int, *, countable: bool = False) -> DrawFunction:
    def draw(walk: RandomWalk) -> Only | None:
        group = walk.draw_group(links, find_countable_relations(walk.universe) if countable else RELATIONS)
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
    def draw(walk: RandomWalk) -> Count | None:
        group = walk.draw_group(1, find_countable_relations(walk.universe))
        if group is None:
            return None
        values = [walk.fact_value(fact, member) for member in walk.evaluate_people(group).tolist()]
        asked = [*dict.fromkeys(values), walk.fact_value(fact, walk.random_person())]
        return find_balanced_count(walk, (Count(Only(group, fact, "is", value)) for value in asked))

    return _balance_counts(draw)


def _count_of_draw(draw: DrawFunction) -> DrawFunction:
    def counted(walk: RandomWalk) -> Count | None:
        people = draw(walk)
        return Count(people) if isinstance(people, Only) else None

    return _balance_counts(counted)


def _count_values_draw(one: str, other: str) -> DrawFunction:
    def draw(walk: RandomWalk) -> Count:
        # Two people rarely share both values: the answer 0.
        person = walk.random_person()
        second = walk.choose((person, person, walk.random_person()))
        return Count(Both(Having(one, walk.fact_value(one, person)), Having(other, walk.fact_value(other, second))))

    return _balance_counts(draw)


def _balance_counts(draw: Callable[[RandomWalk], Count | None]) -> DrawFunction:
    def balanced(walk: RandomWalk) -> Count | None:
        counts = (draw(walk) for _ in range(_MAX_COUNT_DRAWS))
        return find_balanced_count(walk, (count for count in counts if count is not None))

    return balanced
