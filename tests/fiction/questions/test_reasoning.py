"""The nodes that every formalism is written from."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from fiction.questions.evaluate import ExpressionEvaluator
from fiction.questions.expressions import Named, Related
from fiction.questions.reasoning import (
    COMPOSITE,
    DIRECT_REASONING,
    FILTER,
    RELATE,
    SEARCH,
    ReasoningBuilder,
    split_relation,
)
from fiction.universe.relations import RELATIONS, KinshipRelation, find_related
from tests.examples import examples
from tests.fiction.questions.asked import EXPRESSIONS, THINGS, UNIVERSE


@pytest.mark.parametrize("relation", RELATIONS.values(), ids=lambda relation: relation.name)
def test_the_single_steps_of_a_relation_lead_where_it_leads(relation: KinshipRelation) -> None:
    for row in range(len(UNIVERSE)):
        found = start = np.array([row], np.int32)
        for step in split_relation(relation):
            assert len(step.steps) == 1
            found = find_related(UNIVERSE, step, found)
        assert found.tolist() == find_related(UNIVERSE, relation, start).tolist()


@settings(max_examples=examples(150))
@given(EXPRESSIONS)
def test_operations_take_only_answers_that_came_before_and_the_last_one_gives_the_questions(expression: Any) -> None:
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


def test_who_is_named_is_no_retrieval_and_everything_that_is_looked_up_is() -> None:
    leaves = list(ReasoningBuilder(THINGS).build_tree(Related("aunt", Named(0))).leaves())
    assert [leaf.needs_retrieval for leaf in leaves] == [False, True, True]
    assert [leaf.relation for leaf in leaves] == ["", "parent", "sister"]
