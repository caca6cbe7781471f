"""Random walks through a universe; templates draw questions with them so that an answer exists."""

from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache
from typing import TypeVar

import numpy as np

from fiction.questions.evaluate import ExpressionEvaluator
from fiction.questions.expressions import Count, Expression, Having, Named, People, Related
from fiction.universe.relations import DOWN, FRIEND, RELATIONS, SIDE, SPOUSE, UP, KinshipRelation, find_related
from fiction.universe.universe import NONE, IdArray, Universe
from worlds.lexicon.kinship import inverse_step

ATTRIBUTES = ("birth", "job", "hobby")
"""Facts that the paper's questions ask for and start from."""
_STREAM = 300
_INVERSE_STEPS = {step: inverse_step(step) for step in (UP, DOWN, SIDE, SPOUSE, FRIEND)}
_RELATION_NAMES = tuple(RELATIONS)

ChoiceT = TypeVar("ChoiceT")


class RandomWalk:
    """The random stream of one question, and the choices made with it."""

    def __init__(self, universe: Universe, seed: int, template: int, number: int) -> None:
        self.universe = universe
        self.turn_number = template + number
        """Increases by one from question to question; templates alternate between answers by it."""
        self._evaluation = ExpressionEvaluator(universe)
        sequence = np.random.SeedSequence(seed, spawn_key=(_STREAM, template, number))
        self._stream = np.random.Generator(np.random.PCG64(sequence))

    def random_below(self, n: int) -> int:
        """Random integer in [0, n)."""
        return int(self._stream.integers(n))

    def choose(self, choices: Sequence[ChoiceT]) -> ChoiceT:
        """Random element."""
        return choices[self.random_below(len(choices))]

    def shuffle(self, choices: Sequence[ChoiceT]) -> list[ChoiceT]:
        """All elements in a uniformly random order."""
        order = np.argsort(self._stream.random(len(choices)), kind="stable")
        return [choices[index] for index in order.tolist()]

    def evaluate_people(self, expression: People) -> IdArray:
        """Rows of the people that the expression denotes."""
        return np.array(self._evaluation.evaluate(expression).values, np.int32)

    def evaluate_truth(self, expression: Expression) -> bool | None:
        """Answer of a yes-no question; None if there is none."""
        truth = self._evaluation.evaluate(expression).values
        return bool(truth[0]) if truth else None

    def random_person(self) -> int:
        """Row of a random person."""
        return self.random_below(len(self.universe))

    def fact_value(self, fact: str, person: int) -> int:
        """The person's value of the fact; negative if there is none."""
        return int(getattr(self.universe, fact)[person])

    def start_at_person(self) -> tuple[Named, int]:
        """Start at a random named person; returns the expression and the person's row."""
        person = self.random_person()
        return Named(person), person

    def start_at_value(self, facts: Sequence[str] = ATTRIBUTES) -> tuple[Having, int] | None:
        """Start at all people with the same value as a random person; None if that person has none of the facts."""
        person = self.random_person()
        for fact in self.shuffle(facts):
            value = self.fact_value(fact, person)
            if value > NONE:
                return Having(fact, value), person
        return None

    def random_step(self, person: int, back: KinshipRelation | None = None) -> tuple[str, int] | None:
        """Draw a relation that the person has, uniformly, and one relative of it; None if the person has none.

        The inverse of `back`, the previous step, is drawn only if there is no other relation.
        """
        return next(
            (relative for name in self._shuffle_relations(back) if (relative := self.random_relative(name, person))),
            None,
        )

    def random_relative(self, name: str, person: int) -> tuple[str, int] | None:
        """Draw a relative of this relation, uniformly; None if there is none."""
        relatives = find_related(self.universe, RELATIONS[name], np.array([person], np.int32))
        return (name, int(relatives[self.random_below(len(relatives))])) if len(relatives) else None

    def _shuffle_relations(self, back: KinshipRelation | None) -> list[str]:
        """All relations in random order, with inverses of the previous step last."""
        names = self.shuffle(_RELATION_NAMES)
        return names if back is None else sorted(names, key=lambda name: _is_inverse(RELATIONS[name], back))

    def find_missing_relation(self, person: int) -> str | None:
        """Draw a relation for which the person has no relative; None if there is none."""
        names = self.shuffle(_RELATION_NAMES)
        return next((name for name in names if self.random_relative(name, person) is None), None)

    def draw_group(self, links: int, names: Collection[str] = _RELATION_NAMES) -> Related | None:
        """Draw one of these relations with two or more relatives, `links` relations from a named person.

        None if the walk fails.
        """
        end = self.extend_chain(self.start_at_person(), links)
        if end is None:
            return None
        people, person = end
        for name in self._shuffle_relations(RELATIONS[people.relation] if isinstance(people, Related) else None):
            if name in names and len(find_related(self.universe, RELATIONS[name], np.array([person], np.int32))) > 1:
                return Related(name, people)
        return None

    def extend_chain(self, start: tuple[People, int], length: int) -> tuple[People, int] | None:
        """Extend the start by `length` relations; returns the expression and one of its people, None on failure."""
        people, person = start
        previous_relation = None
        for _ in range(length):
            step = self.random_step(person, previous_relation)
            if step is None:
                return None
            name, person = step
            people, previous_relation = Related(name, people), RELATIONS[name]
        return people, person


_MAX_SCANNED_PEOPLE = 1000


@lru_cache(maxsize=1)
def find_countable_relations(universe: Universe) -> frozenset[str]:
    """Relations that are worth counting: people who have such relatives have different numbers of them.

    So children and grandmothers, but neither mothers nor husbands. The first thousand people decide.
    """
    people = range(min(len(universe), _MAX_SCANNED_PEOPLE))
    return frozenset(name for name, relation in RELATIONS.items() if _has_several_counts(universe, relation, people))


def _has_several_counts(universe: Universe, relation: KinshipRelation, people: Iterable[int]) -> bool:
    first = 0
    for person in people:
        count = len(find_related(universe, relation, np.array([person], np.int32)))
        first = first or count
        if count not in (0, first):
            return True
    return False


MANY = 4
"""Counts from this number on are one class."""


def find_balanced_count(walk: RandomWalk, counts: Iterable[Count]) -> Count | None:
    """The first question whose answer is in the class that is due: 0, 1, 2, 3, or MANY and more; else the nearest.

    The classes take turns, so that the answers of a template are balanced. None if there are no questions.
    """
    due = walk.turn_number % (MANY + 1)
    nearest: tuple[Count | None, int] = None, MANY + 1
    for count in counts:
        distance = abs(min(len(walk.evaluate_people(count.of)), MANY) - due)
        if distance == 0:
            return count
        if distance < nearest[1]:
            nearest = count, distance
    return nearest[0]


def _is_inverse(step: KinshipRelation, before: KinshipRelation) -> bool:
    """Whether the step is the inverse of the one before, such as the father of the child."""
    return step.steps == tuple(_INVERSE_STEPS[part] for part in reversed(before.steps))
