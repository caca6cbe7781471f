"""Gold queries on real graphs give the evaluated answers."""

import pyoxigraph as ox
import pytest
from hypothesis import given, settings

from showhow.fiction.generator.source_split import assign_sources, parse_split
from showhow.fiction.generator.world_files import generate_people_triples, generate_thing_triples
from showhow.fiction.questions import expressions as ask
from showhow.fiction.questions.evaluate import ExpressionEvaluator
from showhow.fiction.questions.names import NameFormatter, ThingCatalog
from showhow.fiction.questions.sparql import MAX_SET_SIZE, build_sparql
from showhow.fiction.questions.templates import QUESTION_KINDS, sample_questions
from showhow.fiction.universe.build import make_universe
from showhow.fiction.universe.items import ItemCatalog
from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.universe import GRAPH, Universe
from showhow.worlds import terms
from showhow.worlds.sparql_syntax import check_query
from tests.examples import examples
from tests.fiction.questions.sample_expressions import EXPRESSIONS, THINGS, UNIVERSE


def graph_of(universe: Universe) -> ox.Store:
    store = ox.Store()
    store.bulk_load(generate_thing_triples(universe), format=ox.RdfFormat.N_TRIPLES)
    for block in generate_people_triples(universe, range(len(universe))):
        store.bulk_load(block, format=ox.RdfFormat.N_TRIPLES)
    return store


def run_query(store: ox.Store, query: str) -> list[str]:
    """First column of a result: ids, ISO dates, digits, yes or no."""
    check_query(query)
    results = store.query(query, prefixes=terms.PREFIXES)
    if isinstance(results, ox.QueryBoolean):
        return ["yes" if results else "no"]
    assert isinstance(results, ox.QuerySolutions)
    cells = [solution[0] for solution in results]
    return [
        terms.shorten_iri(term.value) if isinstance(term, ox.NamedNode) else term.value.split("T")[0] for term in cells
    ]


def derived(expression: ask.Expression, universe: Universe, things: ThingCatalog) -> list[str]:
    answer = ExpressionEvaluator(universe).evaluate(expression)
    return [things.entity_id(answer.kind, value) or things.answer_text(answer.kind, value) for value in answer.values]


STORE = graph_of(UNIVERSE)
PARTIAL_UNIVERSE = UNIVERSE.restrict_to_sources(
    assign_sources(UNIVERSE, parse_split("text=30,graph=50,web=20"), 3), GRAPH
)
PARTIAL_GRAPH = graph_of(PARTIAL_UNIVERSE)
MONOTONIC = (ask.Named, ask.Having, ask.Related, ask.Only, ask.Both, ask.Fact, ask.Place)


def is_monotonic(expression: ask.Expression) -> bool:
    return isinstance(expression, MONOTONIC) and all(map(is_monotonic, ask.child_expressions(expression)))


@settings(max_examples=examples(200))
@given(EXPRESSIONS)
def test_any_expression_has_the_same_answers_on_the_graph(expression: ask.Expression) -> None:
    gold = derived(expression, UNIVERSE, THINGS)
    results = run_query(STORE, build_sparql(expression, UNIVERSE))
    # If a person or a day is missing, there is no answer; an ASK query then returns "no".
    assert sorted(results) == sorted(gold) or (results == ["no"] and not gold)


@settings(max_examples=examples(100))
@given(EXPRESSIONS.filter(is_monotonic))
def test_a_partial_graph_gives_the_answers_that_it_implies(expression: ask.Expression) -> None:
    assert sorted(run_query(PARTIAL_GRAPH, build_sparql(expression, UNIVERSE))) == sorted(
        derived(expression, PARTIAL_UNIVERSE, THINGS)
    )


@pytest.mark.parametrize(
    "options",
    [
        GenerationOptions(people=26, seed=1, per_template=2),
        GenerationOptions(people=300, seed=2, per_template=2, collisions=0.3),
        GenerationOptions(people=1500, seed=3, per_template=1, each=True),
        GenerationOptions(people=800, seed=4, per_template=2, friends=8, split="text=40,graph=40,web=20"),
        GenerationOptions(
            people=500, seed=5, per_template=2, split="text=20,graph=80,web=0", split_by="entity", plain=True
        ),
    ],
    ids=lambda options: f"{options.people} people, {options.split}",
)
def test_every_question_of_a_world_has_its_answers_on_the_graph(options: GenerationOptions) -> None:
    universe = make_universe(options)
    fact_sources = assign_sources(universe, parse_split(options.split, options.split_by), options.seed)
    everything, things = graph_of(universe), ThingCatalog(universe, ItemCatalog(universe), NameFormatter(universe))
    graph_universe = universe.restrict_to_sources(fact_sources, GRAPH)
    graph = graph_of(graph_universe)
    kinds = set()
    for question in sample_questions(universe, fact_sources, options):
        kinds.add(question.kind)
        gold = sorted(str(answer["entity"] or answer["text"]) for answer in question.answers)
        assert sorted(run_query(everything, question.sparql)) == gold, question.text
        if ["graph"] in question.needs:
            assert sorted(run_query(graph, question.sparql)) == gold, question.text
        elif is_monotonic(question.expression):
            partial_answers = sorted(run_query(graph, question.sparql))
            assert partial_answers == sorted(derived(question.expression, graph_universe, things)), question.text
            # Equal answers may follow from a part of the facts that a solution lists.
            assert set(partial_answers) <= set(gold) or not gold, question.text
    assert kinds == set(QUESTION_KINDS)


def test_a_query_is_readable() -> None:
    expression = ask.Fact("job", ask.Related("aunt", ask.Named(3)))
    assert build_sparql(expression, UNIVERSE) == (
        "SELECT DISTINCT ?job3 WHERE {\n"
        "  wd:Q1000000003 wdt:P22|wdt:P25 ?parent1 .\n"
        "  ?parent1 wdt:P3373 ?sister2 .\n"
        "  ?sister2 wdt:P21 wd:Q6581072 .\n"
        "  ?sister2 wdt:P106 ?job3 .\n"
        "}"
    )


def test_several_paths_to_the_same_person_do_not_multiply_rows() -> None:
    options = GenerationOptions(people=200, seed=9, friends=12)
    universe = make_universe(options)
    chain: ask.People = ask.Named(0)
    for _ in range(9):
        chain = ask.Related("friend", chain)
    assert len(ExpressionEvaluator(universe).evaluate(chain).values) < MAX_SET_SIZE
    # There are billions of paths of nine friendships; a query that walked each one would not finish.
    people = run_query(graph_of(universe), build_sparql(chain, universe))
    assert len(people) == len(set(people)) == len(ExpressionEvaluator(universe).evaluate(chain).values)
