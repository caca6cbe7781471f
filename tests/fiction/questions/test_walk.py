from collections import Counter

import numpy as np
import pytest

from fiction.questions import expressions as ask
from fiction.questions.evaluate import ExpressionEvaluator
from fiction.questions.walk import RandomWalk
from fiction.universe.build import make_universe
from fiction.universe.options import GenerationOptions
from fiction.universe.relations import RELATIONS

UNIVERSE = make_universe(GenerationOptions(people=200, seed=3))
EVALUATION = ExpressionEvaluator(UNIVERSE)


def walk(number: int, template: int = 1) -> RandomWalk:
    return RandomWalk(UNIVERSE, 5, template, number)


def test_who_a_walk_reaches_is_an_answer() -> None:
    reached = [
        found
        for number in range(60)
        if (found := walk(number).extend_chain(walk(number).start_at_person(), 1 + number % 5))
    ]
    assert len(reached) > 50
    for people, person in reached:
        assert person in EVALUATION.evaluate(people).values


def test_a_start_at_a_value_holds_who_has_it() -> None:
    for number in range(40):
        found = walk(number).start_at_value()
        assert found is not None
        assert found[1] in EVALUATION.evaluate(found[0]).values


def test_whoever_goes_on_does_not_simply_turn_back() -> None:
    back = Counter()
    for number in range(150):
        found = walk(number).extend_chain(walk(number).start_at_person(), 2)
        if found is not None and isinstance(found[0], ask.Related) and isinstance(found[0].of, ask.Related):
            first, second = (RELATIONS[name] for name in (found[0].of.relation, found[0].relation))
            back[first.steps == ("parent",) and second.steps == ("child",)] += 1
    assert back[True] == 0
    assert back[False] > 100


def test_each_relation_that_somebody_has_is_as_likely_as_another() -> None:
    person = int(np.argmax(UNIVERSE.children.list_sizes()))
    known = {name for name in RELATIONS if EVALUATION.evaluate(ask.Related(name, ask.Named(person))).values}
    taken = [walk(number).random_step(person) for number in range(2000)]
    counts = Counter(found[0] for found in taken if found)
    assert set(counts) == known
    expected = 2000 / len(known)
    # A relation with nine people is not taken nine times as often; 5 standard deviations.
    assert all(abs(count - expected) < 5 * expected**0.5 for count in counts.values())


def test_nobody_has_the_relation_that_leads_to_none() -> None:
    for number in range(40):
        name = walk(number).find_missing_relation(number)
        assert name is not None
        assert EVALUATION.evaluate(ask.Related(name, ask.Named(number))).values == ()


def test_a_group_has_at_least_two() -> None:
    groups = [group for number in range(60) if (group := walk(number).draw_group(number % 2))]
    assert len(groups) > 40
    assert all(len(EVALUATION.evaluate(group).values) > 1 for group in groups)


@pytest.mark.parametrize(("template", "number"), [(1, 1), (2, 0)])
def test_another_question_or_template_walks_elsewhere(template: int, number: int) -> None:
    own, other, again = (RandomWalk(UNIVERSE, 5, *which) for which in ((1, 0), (template, number), (1, 0)))
    met = [own.random_person() for _ in range(8)]
    assert met != [other.random_person() for _ in range(8)]
    assert met == [again.random_person() for _ in range(8)]
