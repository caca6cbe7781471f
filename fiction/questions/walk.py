"""Random walks through a universe; templates draw questions with them so that an answer exists."""

from collections.abc import Collection, Iterable, Sequence
from functools import cache, lru_cache
from typing import TypeVar

import numpy as np

from showhow.fiction.questions.evaluate import ExpressionEvaluator
from showhow.fiction.questions.expressions import Count, Expression, Having, Named, People, Related
from showhow.fiction.universe.relations import DOWN, FRIEND, RELATIONS, SIDE, SPOUSE, UP, KinshipRelation, find_related
from showhow.fiction.universe.universe import NONE, IdArray, Universe
from showhow.worlds.lexicon.kinship import inverse_step

ATTRIBUTES = ("birth", "job", "hobby")
"""Facts that the paper's questions ask for and start from."""
_STREAM = 300
_INVERSE_STEPS = {step: inverse_step(step) for step in (UP, DOWN, SPOUSE, FRIEND)}
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

    def random_step(self, person: int, names: Collection[str] = _RELATION_NAMES) -> tuple[str, int] | None:
        """Draw one of these relations that the person has, uniformly, and one relative of it; None if there is none."""
        return next(
            (relative for name in self._shuffle_relations(names) if (relative := self.random_relative(name, person))),
            None,
        )

    def random_relative(self, name: str, person: int) -> tuple[str, int] | None:
        """Draw a relative of this relation, uniformly; None if there is none."""
        relatives = find_related(self.universe, RELATIONS[name], np.array([person], np.int32))
        return (name, int(relatives[self.random_below(len(relatives))])) if len(relatives) else None

    def _shuffle_relations(self, names: Collection[str]) -> list[str]:
        """These relations in random order."""
        return [name for name in self.shuffle(_RELATION_NAMES) if name in names]

    def find_missing_relation(self, people: People, person: int) -> str | None:
        """Draw a relation that leads onward from the people, and that the person has not; None if there is none."""
        names = self._shuffle_relations(find_onward_relations(people))
        return next((name for name in names if self.random_relative(name, person) is None), None)

    def draw_group(self, links: int, names: Collection[str] = _RELATION_NAMES) -> Related | None:
        """Draw one of these relations with two or more relatives, `links` relations from a named person.

        None if the walk fails.
        """
        end = self.extend_chain(self.start_at_person(), links)
        if end is None:
            return None
        people, person = end
        for name in self._shuffle_relations(find_onward_relations(people)):
            if name in names and len(find_related(self.universe, RELATIONS[name], np.array([person], np.int32))) > 1:
                return Related(name, people)
        return None

    def extend_chain(self, start: tuple[People, int], length: int) -> tuple[People, int] | None:
        """Extend the start by `length` relations that lead onward; returns the expression and one of its people.

        None on failure.
        """
        people, person = start
        for _ in range(length):
            step = self.random_step(person, find_onward_relations(people))
            if step is None:
                return None
            name, person = step
            people = Related(name, people)
        return people, person


def find_onward_relations(people: People) -> tuple[str, ...]:
    """Relations that do not lead back the way by which the people were reached, as the father of the son does."""
    return _onward_relations(_split_siblings(RELATIONS[people.relation])[-1] if isinstance(people, Related) else "")


@cache
def _onward_relations(last: str) -> tuple[str, ...]:
    """Relations whose first step does not undo this one."""
    # The spouse of a parent is the other parent, whose children are the same.
    barred = {UP: (DOWN, SPOUSE)}.get(last, (_INVERSE_STEPS.get(last),))
    return tuple(name for name in _RELATION_NAMES if _split_siblings(RELATIONS[name])[0] not in barred)


def _split_siblings(relation: KinshipRelation) -> list[str]:
    """The steps of a relation; that to a sibling leads to a parent and back to another child."""
    return [part for step in relation.steps for part in ((UP, DOWN) if step == SIDE else (step,))]


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
