"""Reasoning nodes, from which all formalisms are written."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from showhow.fiction.questions.evaluate import ExpressionEvaluator
from showhow.fiction.questions.expressions import Named, Related
from showhow.fiction.questions.reasoning import (
    COMPOSITE,
    DIRECT_REASONING,
    FILTER,
    RELATE,
    SEARCH,
    ReasoningBuilder,
    split_relation,
)
from showhow.fiction.universe.relations import RELATIONS, KinshipRelation, find_related
from tests.examples import examples
from tests.fiction.questions.sample_expressions import EXPRESSIONS, THINGS, UNIVERSE


@pytest.mark.parametrize("relation", RELATIONS.values(), ids=lambda relation: relation.name)
def test_the_steps_of_a_relation_lead_to_the_same_people(relation: KinshipRelation) -> None:
    for row in range(len(UNIVERSE)):
        people = start = np.array([row], np.int32)
        for step in split_relation(relation):
            assert len(step.steps) == 1
            people = find_related(UNIVERSE, step, people)
        assert people.tolist() == find_related(UNIVERSE, relation, start).tolist()


@settings(max_examples=examples(150))
@given(EXPRESSIONS)
def test_operations_use_only_earlier_answers(expression: Any) -> None:
    root = ReasoningBuilder(THINGS).build_tree(expression, "What?")
    done: list[Any] = []
    for leaf in root.leaves():
        assert leaf.operator in (SEARCH, RELATE, FILTER, DIRECT_REASONING)
        for head in leaf.inputs:
            assert list(head.leaves())[-1] in done
        done.append(leaf)
    assert root.operator == COMPOSITE
    assert (root.kind, root.values.tolist()) == (done[-1].kind, [v for v in done[-1].values.tolist() if v >= 0])
    answer = ExpressionEvaluator(UNIVERSE).evaluate(expression)
    assert (root.kind, tuple(root.values.tolist())) == (answer.kind, answer.values)


def test_only_lookups_need_retrieval() -> None:
    leaves = list(ReasoningBuilder(THINGS).build_tree(Related("aunt", Named(0))).leaves())
    assert [leaf.needs_retrieval for leaf in leaves] == [False, True, True]
    assert [leaf.relation for leaf in leaves] == ["", "parent", "sister"]
