"""Neighbourhoods of entities, compared with direct queries."""

from collections.abc import Iterator

import pytest

from showhow.worlds import terms
from showhow.worlds.build import WorldContents, build_world
from showhow.worlds.neighbourhood import load_neighbourhood
from showhow.worlds.open import open_world
from showhow.worlds.source import GraphSource, NotFound

PAIR = ("Q2", "Q3")


def test_every_relation_of_every_entity_is_there_with_its_values(isle):
    graph = isle.graph
    rows = graph.query("SELECT DISTINCT ?s WHERE { ?s ?p ?o FILTER(isIRI(?s)) }").rows
    compared = 0
    for entity in {row[0].value for row in rows}:
        if not graph.entities([entity]):
            continue
        neighbourhood = load_neighbourhood(graph, entity, max_values=100)
        relations = graph.relations(entity)
        assert {b.relation for b in neighbourhood.branches if b.outgoing} == set(relations.outgoing)
        for branch in neighbourhood.branches:
            compared += 1
            node, way = f"<{terms.expand_id(entity)}>", f"<{terms.expand_predicate(branch.relation.id)}>"
            pattern = f"{node} {way} ?v" if branch.outgoing else f"?v {way} {node}"
            expected = {row[0].value for row in graph.query(f"SELECT ?v WHERE {{ {pattern} }}").rows}
            actual = {value.entity or value.label for value in branch.values}
            assert not branch.more
            # A symmetric relation is drawn once.
            assert actual == expected or (not branch.outgoing and actual < expected)
    assert compared > 10


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphSource]:
    """Forty residents of Q1, and Q2 and Q3, who are friends of each other."""
    home = tmp_path_factory.mktemp("home")
    lines = [
        f"<{terms.ENTITY_NAMESPACE}Q{n}> <{terms.DIRECT_NAMESPACE}P551> <{terms.ENTITY_NAMESPACE}Q1> .\n"
        for n in range(2, 42)
    ]
    lines += [
        f"<{terms.ENTITY_NAMESPACE}{a}> <{terms.DIRECT_NAMESPACE}P3342> <{terms.ENTITY_NAMESPACE}{b}> .\n"
        for a, b in (PAIR, PAIR[::-1])
    ]
    (home / "hub.nt").write_text("".join(lines))
    build_world(home / "worlds", "hub", WorldContents(graph=home / "hub.nt"))
    graph = open_world(home / "worlds", "hub").graph
    yield graph
    graph.close()


def test_many_values_are_truncated_and_marked_as_such(hub):
    (branch,) = load_neighbourhood(hub, "Q1", max_values=6).branches
    assert (branch.outgoing, len(branch.values), branch.more) == (False, 6, True)
    (branch,) = load_neighbourhood(hub, "Q1", max_values=40).branches
    assert ({value.entity for value in branch.values}, branch.more) == ({f"Q{n}" for n in range(2, 42)}, False)


def test_a_symmetric_relation_is_drawn_once(hub):
    friends = [branch for branch in load_neighbourhood(hub, "Q2").branches if branch.relation.id == "P3342"]
    assert [(one.outgoing, [value.entity for value in one.values]) for one in friends] == [(True, ["Q3"])]


def test_an_entity_unknown_to_the_graph_is_an_error(hub):
    with pytest.raises(NotFound, match="does not know 'Q99'"):
        load_neighbourhood(hub, "Q99")
    with pytest.raises(NotFound, match="does not know 'no id'"):
        load_neighbourhood(hub, "no id")


def test_entities_have_labels_and_literals_are_unchanged(isle):
    neighbourhood = load_neighbourhood(isle.graph, "Q1")
    labelled = [value for branch in neighbourhood.branches for value in branch.values if value.entity]
    assert labelled
    assert {value.entity: value.label for value in labelled} == {
        entity.id: entity.label for entity in isle.graph.entities([value.entity for value in labelled])
    }
