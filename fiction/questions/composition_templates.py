"""Templates of composition and conjunction: facts that the paper does not ask for, and two conditions at once.

A way to ask: the kind, the text with blanks, and how a question of it is drawn.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from fiction.questions.expressions import Both, Expression, Fact, Having, Named, Place, Related
from fiction.questions.walk import RandomWalk
from fiction.questions.wording import FACT_LABELS
from fiction.universe.relations import RELATIONS

DrawFunction: TypeAlias = Callable[[RandomWalk], Expression | None]


@dataclass(frozen=True, slots=True)
class QuestionTemplate:
    """`draw` gives what to ask, or None where its walk led nowhere."""

    kind: str
    text: str
    draw: DrawFunction
    has_answer: bool = True
    """Whether its questions have an answer; else all of them have none."""


def relation_phrase(links: int, start: str = "<name>") -> str:
    """Somebody at the end of so many relations, in the words of a template."""
    return "the <relation> of " * links + start


COMPOSITION, CONJUNCTION = "composition", "conjunction"
FACT_PAIRS = (("job", "hobby"), ("job", "birthplace"), ("hobby", "residence"))
"""Facts that together are true of few."""
PLACEHOLDERS = {"job": "<job>", "hobby": "<hobby>", "birthplace": "<town>", "residence": "<town>"}


def composition_templates() -> Iterator[QuestionTemplate]:
    """The template of each fact, and of places around a town."""
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
    """The templates of two values, and of two relations."""
    for one, other in FACT_PAIRS:
        yield QuestionTemplate(CONJUNCTION, f"Who is {person_with_facts(one, other)}?", _values_draw(one, other))
    yield QuestionTemplate(
        CONJUNCTION,
        f"Who is both a <relation> of {relation_phrase(0)} and a <relation> of {relation_phrase(0)}?",
        _draw_two_relations,
    )


def person_with_facts(one: str, other: str) -> str:
    """Somebody of whom both facts are asked, in the words of a template."""
    return f"the person whose {FACT_LABELS[one]} is {PLACEHOLDERS[one]} and whose {FACT_LABELS[other]} is {PLACEHOLDERS[other]}"


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
    """Who is a relation of one and of another, and neither would be enough."""
    person = walk.random_person()
    sides: list[Related] = []
    for _ in range(2):
        # Whoever is a relative of the person has the person for one, mostly.
        step = walk.random_step(person)
        side = _find_relation_back(walk, step[1], person) if step else None
        if side is None or any(other.of == side.of for other in sides):
            return None
        sides.append(side)
    both = Both(*sides)
    shared_count = len(walk.evaluate_people(both))
    return both if all(len(walk.evaluate_people(side)) > shared_count for side in sides) else None


def _find_relation_back(walk: RandomWalk, start: int, person: int) -> Related | None:
    """A relation of the start that the person is."""
    for name in walk.shuffle(tuple(RELATIONS)):
        side = Related(name, Named(start))
        if person in walk.evaluate_people(side):
            return side
    return None
