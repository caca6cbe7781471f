from collections import Counter
from collections.abc import Iterable

import numpy as np
import pytest

from showhow.fiction.questions import expressions as ask
from showhow.fiction.questions.evaluate import ExpressionEvaluator
from showhow.fiction.questions.walk import RandomWalk, find_onward_relations
from showhow.fiction.universe.build import make_universe
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.relations import RELATIONS

UNIVERSE = make_universe(GenerationOptions(people=200, seed=3))
EVALUATION = ExpressionEvaluator(UNIVERSE)


def walk(number: int, template: int = 1) -> RandomWalk:
    return RandomWalk(UNIVERSE, 5, template, number)


def test_the_end_of_a_walk_is_an_answer() -> None:
    walks = [
        end
        for number in range(60)
        if (end := walk(number).extend_chain(walk(number).start_at_person(), 1 + number % 5))
    ]
    assert len(walks) > 50
    for people, person in walks:
        assert person in EVALUATION.evaluate(people).values


def test_a_start_at_a_value_includes_the_person() -> None:
    for number in range(40):
        start = walk(number).start_at_value()
        assert start is not None
        assert start[1] in EVALUATION.evaluate(start[0]).values


@pytest.mark.parametrize(
    ("chain", "barred", "allowed"),
    [
        ([], [], RELATIONS),
        (["wife"], ["husband", "father_in_law", "sister_in_law"], ["son", "brother", "friend"]),
        (["son"], ["father", "brother", "cousin", "great_aunt"], ["wife", "daughter", "mother_in_law"]),
        (["father"], ["child", "daughter", "son_in_law", "wife", "mother_in_law"], ["brother", "mother", "friend"]),
        (["sister"], ["brother", "mother"], ["son", "husband"]),
        (["friend"], ["friend"], ["mother", "son", "sister"]),
    ],
)
def test_a_walk_does_not_turn_back(chain: list[str], barred: list[str], allowed: Iterable[str]) -> None:
    people: ask.People = ask.Named(0)
    for name in chain:
        people = ask.Related(name, people)
    onward = find_onward_relations(people)
    assert set(onward).isdisjoint(barred)
    assert set(allowed) <= set(onward)


def test_drawn_chains_never_go_a_step_and_back() -> None:
    back = {"parent": "child", "child": "parent", "sibling": "sibling", "spouse": "spouse", "friend": "friend"}
    chains = 0
    for number in range(150):
        end = walk(number).extend_chain(walk(number).start_at_person(), 2)
        if end is not None and isinstance(end[0], ask.Related) and isinstance(end[0].of, ask.Related):
            first, second = (RELATIONS[name] for name in (end[0].of.relation, end[0].relation))
            assert second.steps[0] != back[first.steps[-1]]
            chains += 1
    assert chains > 100


def test_relations_of_a_person_are_equally_likely() -> None:
    person = int(np.argmax(UNIVERSE.children.list_sizes()))
    relations = {name for name in RELATIONS if EVALUATION.evaluate(ask.Related(name, ask.Named(person))).values}
    steps = [walk(number).random_step(person) for number in range(2000)]
    counts = Counter(step[0] for step in steps if step)
    assert set(counts) == relations
    expected = 2000 / len(relations)
    # Relations are equally likely, independent of their number of relatives; 5 standard deviations.
    assert all(abs(count - expected) < 5 * expected**0.5 for count in counts.values())


def test_a_missing_relation_has_no_relatives() -> None:
    for number in range(40):
        name = walk(number).find_missing_relation(ask.Named(number), number)
        assert name is not None
        assert EVALUATION.evaluate(ask.Related(name, ask.Named(number))).values == ()


def test_a_group_has_at_least_two_people() -> None:
    groups = [group for number in range(60) if (group := walk(number).draw_group(number % 2))]
    assert len(groups) > 40
    assert all(len(EVALUATION.evaluate(group).values) > 1 for group in groups)


@pytest.mark.parametrize(("template", "number"), [(1, 1), (2, 0)])
def test_questions_and_templates_have_different_walks(template: int, number: int) -> None:
    own, other, again = (RandomWalk(UNIVERSE, 5, *which) for which in ((1, 0), (template, number), (1, 0)))
    people = [own.random_person() for _ in range(8)]
    assert people != [other.random_person() for _ in range(8)]
    assert people == [again.random_person() for _ in range(8)]
