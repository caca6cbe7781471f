"""Templates about two people: comparisons, shared values, and yes-no questions with an implicit strategy.

Draws alternate between yes and no, so that the questions of a template are balanced.
"""

from collections.abc import Callable, Iterator

from fiction.questions.composition_templates import DrawFunction, QuestionTemplate, relation_phrase
from fiction.questions.expressions import Compare, Expression, Judge, Named, People, Related, Same
from fiction.questions.walk import RandomWalk

COMPARISON, IMPLICIT = "comparison", "implicit"
_SINGLE_RELATIONS = ("mother", "father", "husband", "wife")
"""Relations that lead to at most one person."""
_MAX_DAYS_APART = 20 * 365
"""Maximum days between two births or deaths; close dates make the question harder."""
_MAX_DRAWS = 8
"""Maximum draws for a suitable pair."""
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
    if side is None:
        return None
    people, person = side
    other = walk.choose(walk.universe.find_people_with(fact, walk.fact_value(fact, person)).tolist())
    return Same(Named(other), people, fact) if other != person else None


def _judge_draw(strategy: str, links: int) -> DrawFunction:
    def draw(walk: RandomWalk) -> Expression | None:
        def fits(left: int, right: int) -> bool:
            sides = Named(left), Named(right)
            sound = _STRATEGY_CONDITIONS.get(strategy)
            return (sound is None or sound(walk, *sides)) and walk.evaluate_truth(
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
