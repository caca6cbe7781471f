"""Chains of relations: queries parse back, and templates are those of the grammar."""

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.fiction.phantomwiki.prolog import quote_string
from showhow.fiction.phantomwiki.published_questions import RelationChain, UnknownPrologGoal, parse_query, to_chain
from showhow.fiction.phantomwiki.records import FACT_ATTRIBUTES, ValueCodec
from showhow.fiction.questions.evaluate import ExpressionEvaluator
from showhow.fiction.questions.expressions import (
    Both,
    Compare,
    Count,
    Expression,
    Fact,
    Having,
    Named,
    Only,
    People,
    Place,
    Related,
)
from showhow.fiction.universe.build import make_universe
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.relations import RELATIONS

UNIVERSE = make_universe(GenerationOptions(people=60, seed=4, collisions=0.1))
VALUES = ValueCodec(UNIVERSE)
ROWS = st.integers(0, len(UNIVERSE) - 1)
TARGETS = {"what": "job", "how many": "friend"}
FACTS = st.sampled_from(sorted(FACT_ATTRIBUTES))


@st.composite
def starts(draw: st.DrawFn) -> Named | Having:
    row = draw(ROWS)
    if draw(st.booleans()):
        return Named(row)
    fact = draw(FACTS)
    return Having(fact, int(getattr(UNIVERSE, fact)[row]))


@st.composite
def chains(draw: st.DrawFn) -> Expression:
    people: People = draw(starts())
    relations = draw(st.lists(st.sampled_from(sorted(RELATIONS)), max_size=9))
    for relation in relations:
        people = Related(relation, people)
    kind = draw(st.sampled_from(["who", "what", "how many"]))
    if kind == "what" and not isinstance(people, Named):
        return Fact(draw(FACTS), people)
    if kind == "how many" and isinstance(people, Related):
        return Count(people, each=True)
    return people if not isinstance(people, Named) else Related("friend", people)


@given(chains())
def test_the_query_of_a_chain_parses_to_the_same_expression(expression: Expression):
    chain = to_chain(expression)
    assert isinstance(chain, RelationChain)
    goals, variable = chain.build_goals(VALUES)
    assert parse_query(goals, variable, VALUES) == expression


@pytest.mark.parametrize("depth", range(4, 31))
def test_the_templates_of_a_grammar_are_numbered_without_gaps(depth: int):
    starts = (Named(0), Having("job", int(UNIVERSE.job[0])))
    shapes = product(("who", "what", "how many"), range(depth), starts)
    every = [RelationChain(kind, TARGETS.get(kind), ("friend",) * length, start) for kind, length, start in shapes]
    queries = [(chain, chain.build_goals(VALUES)) for chain in every]
    chains = [chain for chain, query in queries if query[0] and to_chain(parse_query(*query, VALUES)) == chain]
    types = sorted(chain.template_number(depth) for chain in chains if chain.depth <= depth)
    # The published generator has 2, 8, 20 and 50 templates for depths of 4, 6, 10 and 20.
    assert types == list(range(3 * depth - 10))


BO, CY = Named(1), Named(2)


@pytest.mark.parametrize(
    "expression",
    [
        Fact("hobby", BO),
        Fact("birthplace", Related("friend", BO)),
        Place("country", Fact("birthplace", Related("friend", BO))),
        Having("residence", 0),
        Related("friend", Having("birthplace", 0)),
        Both(Related("friend", BO), Having("job", 0)),
        Related("friend", Both(Related("friend", BO), Having("job", 0))),
        Only(Related("friend", BO), "birth", "before", 700_000),
        Count(Both(Related("friend", BO), Having("job", 0))),
        Count(Having("job", 0)),
        Compare(BO, CY, "birth", first=True),
    ],
)
def test_expressions_outside_the_grammar_are_not_chains(expression: Expression):
    assert to_chain(expression) is None


ANN = quote_string(UNIVERSE.titles[0])


@pytest.mark.parametrize(
    ("goals", "answer", "message"),
    [
        ([], "Y_2", "there is no goal"),
        ([f"friend({ANN}, Y_2)"], "Y_4", f"the goal friend({ANN}, Y_2) does not give the answer Y_4"),
        ([f"foe({ANN}, Y_2)"], "Y_2", "neither a relation, an attribute nor a count"),
        ([f"friend({ANN})"], "Y_2", "neither a relation, an attribute nor a count"),
        ([f"friend({ANN}, {ANN})"], "Y_2", "the second argument of a relation is not a variable"),
        (["friend(Y_4, Y_2)"], "Y_2", "no goal after it binds its subject"),
        (["friend(Y_4, Y_2)", f"friend({ANN}, Y_6)"], "Y_2", "no goal after it binds its subject"),
        ([f"friend({ANN}, Y_2)", f"friend({ANN}, Y_4)"], "Y_2", "it does not use the result of the goals after it"),
        (["friend(Y_3, Y_2)", f"job({ANN}, Y_3)"], "Y_2", "its subject is not a person"),
        (['friend("Nobody Atall", Y_2)'], "Y_2", "there is no person 'Nobody Atall'"),
        (['job(Y_2, "no job")'], "Y_2", "there is no job 'no job'"),
        (['dob(Y_2, "today")'], "Y_2", "'today' is not a valid day"),
        (
            [f"aggregate_all(count, distinct(job({ANN}, Y_2)), C)"],
            "C",
            "the second argument of a relation is not a variable",
        ),
        ([f"aggregate_all(sum, friend({ANN}, Y_2), C)"], "C", "neither a relation, an attribute nor a count"),
        (["friend("], "Y_2", "the goal friend( cannot be read: a name, string or number is expected"),
    ],
)
def test_queries_outside_the_grammar_raise_an_error_with_the_goal(goals: list[str], answer: str, message: str):
    with pytest.raises(UnknownPrologGoal) as refused:
        parse_query(goals, answer, VALUES)
    assert message in str(refused.value)


def test_how_many_is_a_set_with_one_number_per_person():
    people = [row for row in range(len(UNIVERSE)) if len(UNIVERSE.children.get_one(row)) > 1]
    child = quote_string(UNIVERSE.titles[int(UNIVERSE.children.get_one(people[0])[0])])
    goals = ["aggregate_all(count, distinct(friend(Y_3, Y_1)), Count_1)", f"parent({child}, Y_3)"]
    answer_set = ExpressionEvaluator(UNIVERSE).evaluate(parse_query(goals, "Count_1", VALUES))
    parents = [
        int(parent_rows[VALUES.parse_value("person", child.strip('"'))])
        for parent_rows in (UNIVERSE.father, UNIVERSE.mother)
    ]
    assert list(answer_set.values) == sorted({len(UNIVERSE.friends_of.get_one(parent)) for parent in parents})
