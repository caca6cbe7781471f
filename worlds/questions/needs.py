"""Which sources a question needs: the smallest sets of them that can derive its answers, found by trying."""

from itertools import combinations

from worlds.questions.evaluate import Answer, Evaluation
from worlds.questions.expressions import Both, Expression, Fact, Having, Named, Only, Place, Related, parts
from worlds.universe.universe import SOURCES, Told, Universe

_GROWING = (Named, Having, Related, Only, Both, Fact, Place)
"""Operations that find more, and never something else, when more facts are known."""
_SETS = [chosen for size in (1, 2) for chosen in combinations(SOURCES, size)]
"""Of sources, smaller ones first; all sources together tell everything."""


class Needs:
    """Tries expressions on what each set of sources tells of one universe.

    What can only grow with more facts (relations, facts, filters, both) is derived by whoever finds all answers. For
    anything else (counts, comparisons, the first or last, yes or no, no answer at all) every set of people and every
    value on the way has to be the same as when everything is told. What is true of nobody is withheld from nobody: a
    source that tells of no death lets a person live.
    """

    def __init__(self, universe: Universe, told: Told) -> None:
        self._everything = Evaluation(universe)
        self._told = {
            chosen: Evaluation(universe.told_by(told, sum(SOURCES[source] for source in chosen))) for chosen in _SETS
        }

    def of(self, expression: Expression) -> list[list[str]]:
        """Every set of sources that derives the answers and of which no part does."""
        answer = self._everything.answer(expression)
        found: list[set[str]] = []
        for chosen, evaluation in self._told.items():
            smaller = any(needed <= set(chosen) for needed in found)
            if not smaller and self._derives(evaluation, expression, answer):
                found.append(set(chosen))
        needed = found or [set(SOURCES)]
        return [[source for source in SOURCES if source in chosen] for chosen in needed]

    def _derives(self, evaluation: Evaluation, expression: Expression, answer: Answer) -> bool:
        if evaluation.answer(expression) != answer:
            return False
        return bool(answer.values and _grows(expression)) or _same_way(evaluation, self._everything)


def _same_way(one: Evaluation, other: Evaluation) -> bool:
    if len(one.stages) != len(other.stages):
        return False
    return all(
        len(mine) == len(theirs) and bool((mine == theirs).all())
        for (_, mine), (_, theirs) in zip(one.stages, other.stages, strict=True)
    )


def _grows(expression: Expression) -> bool:
    return isinstance(expression, _GROWING) and all(map(_grows, parts(expression)))
