"""The template type, and templates of composition (facts beyond the paper) and conjunction (two conditions)."""

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
    """A question template; `draw` returns an expression, or None if its random walk found none."""

    kind: str
    text: str
    draw: DrawFunction
    has_answer: bool = True
    """Whether its questions have answers; unanswerable templates have none."""


def relation_phrase(links: int, start: str = "<name>") -> str:
    """Template text for the end of a chain of this many relations."""
    return "the <relation> of " * links + start


COMPOSITION, CONJUNCTION = "composition", "conjunction"
FACT_PAIRS = (("job", "hobby"), ("job", "birthplace"), ("hobby", "residence"))
"""Pairs of facts that few people share."""
PLACEHOLDERS = {"job": "<job>", "hobby": "<hobby>", "birthplace": "<town>", "residence": "<town>"}


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
