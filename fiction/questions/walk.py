"""A random walk through a universe, backwards from the innermost person of a question, so that an answer is reached."""

from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from fiction.questions.evaluate import ExpressionEvaluator
from fiction.questions.expressions import Expression, Having, Named, People, Related
from fiction.universe.relations import DOWN, FRIEND, RELATIONS, SIDE, SPOUSE, UP, KinshipRelation, find_related
from fiction.universe.universe import NONE, IdArray, Universe

ATTRIBUTES = ("birth", "job", "hobby")
"""The facts that the paper's questions ask for and begin with."""
_STREAM = 300
_INVERSE_STEPS = {UP: DOWN, DOWN: UP, SIDE: SIDE, SPOUSE: SPOUSE, FRIEND: FRIEND}
_RELATION_NAMES = tuple(RELATIONS)

ChoiceT = TypeVar("ChoiceT")


class RandomWalk:
    """One question's own stream of chance, and the steps that it takes with it."""

    def __init__(self, universe: Universe, seed: int, template: int, number: int) -> None:
        self.universe = universe
        self.turn_number = template + number
        """Goes up by one from question to question: where one answer or another is wanted, they take turns."""
        self._evaluation = ExpressionEvaluator(universe)
        sequence = np.random.SeedSequence(seed, spawn_key=(_STREAM, template, number))
        self._stream = np.random.Generator(np.random.PCG64(sequence))

    def random_below(self, n: int) -> int:
        """A number from 0 to n - 1."""
        return int(self._stream.integers(n))

    def choose(self, choices: Sequence[ChoiceT]) -> ChoiceT:
        """One of them."""
        return choices[self.random_below(len(choices))]

    def shuffle(self, choices: Sequence[ChoiceT]) -> list[ChoiceT]:
        """All of them, each order as likely as any other."""
        order = np.argsort(self._stream.random(len(choices)), kind="stable")
        return [choices[place] for place in order.tolist()]

    def evaluate_people(self, expression: People) -> IdArray:
        """Who they are."""
        return np.array(self._evaluation.evaluate(expression).values, np.int32)

    def evaluate_truth(self, expression: Expression) -> bool | None:
        """The answer to a question for yes or no; None when there is none."""
        truth = self._evaluation.evaluate(expression).values
        return bool(truth[0]) if truth else None

    def random_person(self) -> int:
        """Anybody."""
        return self.random_below(len(self.universe))

    def fact_value(self, fact: str, person: int) -> int:
        """The person's value, or what stands for none."""
        return int(getattr(self.universe, fact)[person])

    def start_at_person(self) -> tuple[Named, int]:
        """A start at a person who is named."""
        person = self.random_person()
        return Named(person), person

    def start_at_value(self, facts: Sequence[str] = ATTRIBUTES) -> tuple[Having, int] | None:
        """A start at everybody who shares a fact with somebody, and that somebody; None when they have none."""
        person = self.random_person()
        for fact in self.shuffle(facts):
            value = self.fact_value(fact, person)
            if value > NONE:
                return Having(fact, value), person
        return None

    def random_step(self, person: int, back: KinshipRelation | None = None) -> tuple[str, int] | None:
        """A relation that the person has somebody for, each as likely as any other, and one of those; None without any.

        A relation that only undoes `back`, the step before, is taken when there is no other.
        """
        return next(
            (relative for name in self._shuffle_relations(back) if (relative := self.random_relative(name, person))),
            None,
        )

    def random_relative(self, name: str, person: int) -> tuple[str, int] | None:
        """Somebody who is that relation of the person, each as likely as any other."""
        relatives = find_related(self.universe, RELATIONS[name], np.array([person], np.int32))
        return (name, int(relatives[self.random_below(len(relatives))])) if len(relatives) else None

    def _shuffle_relations(self, back: KinshipRelation | None) -> list[str]:
        """All relations in some order, those that only undo the step before at the end."""
        names = self.shuffle(_RELATION_NAMES)
        return names if back is None else sorted(names, key=lambda name: _is_inverse(RELATIONS[name], back))

    def find_missing_relation(self, person: int) -> str | None:
        """A relation that the person has nobody for."""
        names = self.shuffle(_RELATION_NAMES)
        return next((name for name in names if self.random_relative(name, person) is None), None)

    def draw_group(self, links: int) -> Related | None:
        """At least two who are the same relation of somebody, that many links away from whom is named."""
        end = self.extend_chain(self.start_at_person(), links)
        if end is None:
            return None
        people, person = end
        for name in self._shuffle_relations(RELATIONS[people.relation] if isinstance(people, Related) else None):
            if len(find_related(self.universe, RELATIONS[name], np.array([person], np.int32))) > 1:
                return Related(name, people)
        return None

    def extend_chain(self, start: tuple[People, int], length: int) -> tuple[People, int] | None:
        """That many relations on from the start, and one of those reached; None where the walk ends too early."""
        people, person = start
        back = None
        for _ in range(length):
            step = self.random_step(person, back)
            if step is None:
                return None
            name, person = step
            people, back = Related(name, people), RELATIONS[name]
        return people, person


def _is_inverse(step: KinshipRelation, before: KinshipRelation) -> bool:
    """Whether the step goes back along the very way that the one before came: the father of the child."""
    return step.steps == tuple(_INVERSE_STEPS[part] for part in reversed(before.steps))
