"""Templates about two people: who comes first, what they share, and yes or no by a strategy that is not told.

Yes and no are wanted in turn, so that of the questions of a template as many have the one answer as the other.
"""

from collections.abc import Callable, Iterator

from worlds.questions.expressions import Compare, Expression, Judge, Named, People, Related, Same
from worlds.questions.template import Draw, Template, whom
from worlds.questions.walk import Walk

COMPARISON, IMPLICIT = "comparison", "implicit"
_ONE = ("mother", "father", "husband", "wife")
"""Relations that nobody has two people for."""
_NEAR = 20 * 365
"""Days between two births or deaths, at most: the harder question."""
_DRAWS = 8
"""Pairs until two are taken to be not there."""
_SHARED = {
    ("job", False): "Do {} and {} have the same occupation?",
    ("hobby", False): "Do {} and {} have the same hobby?",
    ("birthplace", False): "Were {} and {} born in the same town?",
    ("birthplace", True): "Were {} and {} born in the same country?",
    ("residence", True): "Are the residences of {} and {} in the same country?",
}
_JUDGED = {
    "met": "Could {} have met {}?",
    "wedding": "Did {} live to see the wedding of {}?",
    "passport": "Would {} have needed a passport to visit {}?",
}


def comparisons() -> Iterator[Template]:
    """The templates of earlier and later, and of the same value."""
    for fact, event in (("birth", "was born"), ("death", "died")):
        for first in (True, False):
            text = f"Who {event} {'earlier' if first else 'later'}, {{}} or {{}}?"
            yield Template(COMPARISON, text.format(whom(0), whom(0)), _order(fact, 0, first=first))
            yield Template(COMPARISON, text.format(whom(1), whom(1)), _order(fact, 1, first=first))
    for (fact, country), text in _SHARED.items():
        yield Template(COMPARISON, text.format(whom(0), whom(0)), _same(fact, 0, country=country))
    yield Template(COMPARISON, _SHARED["job", False].format(whom(0), whom(1)), _same("job", 1, country=False))
    yield Template(
        COMPARISON, _SHARED["birthplace", True].format(whom(0), whom(1)), _same("birthplace", 1, country=True)
    )


def judgements() -> Iterator[Template]:
    """The templates whose strategy is not in the wording."""
    for strategy, text in _JUDGED.items():
        for links in (0, 1):
            yield Template(IMPLICIT, text.format(whom(links), whom(0)), _judge(strategy, links))


def _order(fact: str, links: int, *, first: bool) -> Draw:
    def draw(walk: Walk) -> Expression | None:
        def near(left: int, right: int) -> bool:
            days = walk.fact(fact, left), walk.fact(fact, right)
            return min(days) >= 0 and 0 < abs(days[0] - days[1]) < _NEAR

        pair = _pair(walk, (links, links), near)
        return Compare(*pair, fact, first) if pair else None

    return draw


def _same(fact: str, links: int, *, country: bool) -> Draw:
    def draw(walk: Walk) -> Expression | None:
        if _yes(walk) and not country:
            return _alike(walk, fact, links)
        pair = _pair(
            walk,
            (0, links),
            lambda left, right: walk.true(Same(Named(left), Named(right), fact, country)) == _yes(walk),
        )
        return Same(*pair, fact, country) if pair else None

    return draw


def _yes(walk: Walk) -> bool:
    return walk.turn % 2 == 0


def _alike(walk: Walk, fact: str, links: int) -> Expression | None:
    """Two people with one value, which hardly any two have who are drawn at random."""
    side = _side(walk, links)
    if side is None:
        return None
    people, person = side
    other = walk.one_of(walk.universe.people_with(fact, walk.fact(fact, person)).tolist())
    return Same(Named(other), people, fact) if other != person else None


def _judge(strategy: str, links: int) -> Draw:
    def draw(walk: Walk) -> Expression | None:
        def fits(left: int, right: int) -> bool:
            sides = Named(left), Named(right)
            sound = _SOUND.get(strategy)
            return (sound is None or sound(walk, *sides)) and walk.true(Judge(strategy, *sides)) == _yes(walk)

        pair = _pair(walk, (links, 0), fits)
        return Judge(strategy, *pair) if pair else None

    return draw


def _guest(walk: Walk, left: Named, right: Named) -> bool:
    """Whether the left one was born before the wedding and is not of the couple."""
    couple = right.person, walk.universe.spouse[right.person]
    return left.person not in couple and walk.fact("birth", left.person) < walk.fact("wedding", right.person)


def _contemporaries(walk: Walk, left: Named, right: Named) -> bool:
    return walk.true(Judge("met", left, right)) is True


_SOUND = {"wedding": _guest, "passport": _contemporaries}
"""What makes the question one that somebody could ask."""


def _pair(walk: Walk, links: tuple[int, int], fits: Callable[[int, int], bool]) -> tuple[People, People] | None:
    """Two different people who fit, each so many relations away from whom is named."""
    for _ in range(_DRAWS):
        left, right = _side(walk, links[0]), _side(walk, links[1])
        if left and right and left[1] != right[1] and fits(left[1], right[1]):
            return left[0], right[0]
    return None


def _side(walk: Walk, links: int) -> tuple[People, int] | None:
    start, person = walk.named()
    if not links:
        return start, person
    for name in walk.shuffled(_ONE):
        if taken := walk.relative(name, person):
            return Related(name, start), taken[1]
    return None
