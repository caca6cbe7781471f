"""Templates of composition and conjunction: facts that the paper does not ask for, and two conditions at once."""

from collections.abc import Iterator

from worlds.questions.expressions import Both, Expression, Fact, Having, Named, Place, Related
from worlds.questions.template import Draw, Template, whom
from worlds.questions.walk import Walk
from worlds.questions.wording import LABELS
from worlds.universe.relations import RELATIONS

COMPOSITION, CONJUNCTION = "composition", "conjunction"
PAIRS = (("job", "hobby"), ("job", "birthplace"), ("hobby", "residence"))
"""Facts that together are true of few."""
BLANKS = {"job": "<job>", "hobby": "<hobby>", "birthplace": "<town>", "residence": "<town>"}


def compositions() -> Iterator[Template]:
    """The template of each fact, and of places around a town."""
    yield Template(COMPOSITION, f"In which town was {whom(1)} born?", _fact("birthplace", 1))
    yield Template(COMPOSITION, f"In which region was {whom(2)} born?", _fact("birthplace", 2, "region"))
    yield Template(COMPOSITION, f"In which country was {whom(2)} born?", _fact("birthplace", 2, "country"))
    yield Template(COMPOSITION, f"What is the residence of {whom(2)}?", _fact("residence", 2))
    yield Template(COMPOSITION, f"In which country is the residence of {whom(1)}?", _fact("residence", 1, "country"))
    yield Template(COMPOSITION, f"When did {whom(1)} die?", _fact("death", 1))
    yield Template(COMPOSITION, f"When did {whom(2)} marry?", _fact("wedding", 2))


def conjunctions() -> Iterator[Template]:
    """The templates of two values, and of two relations."""
    for one, other in PAIRS:
        yield Template(CONJUNCTION, f"Who is {whose(one, other)}?", _values(one, other))
    yield Template(CONJUNCTION, f"Who is both a <relation> of {whom(0)} and a <relation> of {whom(0)}?", _relations)


def whose(one: str, other: str) -> str:
    """Somebody of whom both facts are asked, in the words of a template."""
    return f"the person whose {LABELS[one]} is {BLANKS[one]} and whose {LABELS[other]} is {BLANKS[other]}"


def _fact(fact: str, links: int, place: str = "") -> Draw:
    def draw(walk: Walk) -> Expression | None:
        reached = walk.chain(walk.named(), links)
        if reached is None or walk.fact(fact, reached[1]) < 0:
            return None
        asked = Fact(fact, reached[0])
        return Place(place, asked) if place else asked

    return draw


def _values(one: str, other: str) -> Draw:
    def draw(walk: Walk) -> Expression:
        person = walk.person()
        return Both(Having(one, walk.fact(one, person)), Having(other, walk.fact(other, person)))

    return draw


def _relations(walk: Walk) -> Expression | None:
    """Who is a relation of one and of another, and neither would be enough."""
    person = walk.person()
    sides: list[Related] = []
    for _ in range(2):
        # Whoever is a relative of the person has the person for one, mostly.
        taken = walk.step(person)
        side = _back(walk, taken[1], person) if taken else None
        if side is None or any(other.of == side.of for other in sides):
            return None
        sides.append(side)
    both = Both(*sides)
    found = len(walk.people(both))
    return both if all(len(walk.people(side)) > found for side in sides) else None


def _back(walk: Walk, start: int, person: int) -> Related | None:
    """A relation of the start that the person is."""
    for name in walk.shuffled(tuple(RELATIONS)):
        side = Related(name, Named(start))
        if person in walk.people(side):
            return side
    return None
