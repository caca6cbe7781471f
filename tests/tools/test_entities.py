"""The steps through a graph: relations of an entity, and entities by relation, in either direction."""

import random
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest
import rdflib

from showhow.fiction.generator.build import generate_world
from showhow.fiction.universe.options import GenerationOptions
from showhow.tools.entities import DEFAULT_LIMIT, MAX_COUNTED_FACTS, MAX_LIMIT, MAX_RELATIONS
from showhow.tools.registry import get_tool
from showhow.tools.tool import Observation, ToolContext
from showhow.worlds.build import WorldContents, build_world
from showhow.worlds.folder import GRAPH_FOLDER
from showhow.worlds.open import open_world
from showhow.worlds.source import GraphSource, World
from showhow.worlds.terms import DIRECT_NAMESPACE, ENTITY_NAMESPACE, RDFS_LABEL
from tests.fixtures.harbour import must_not_encode
from tests.servers import oxigraph as oxigraph_server
from tests.worlds.live.graphs import KINDS, endpoint_of, live_graph, opened

NEAR, LIVES_IN = "http://isle.example/near", "http://isle.example/livesIn"
NORTHPOINT, SOUTH_BAY = "http://isle.example/Northpoint", "http://isle.example/SouthBay"
XSD = "http://www.w3.org/2001/XMLSchema#"


def context_of(graph: GraphSource) -> ToolContext:
    return ToolContext(World("graph", graph=graph), must_not_encode)


def observe(context: ToolContext, name: str, **arguments: Any) -> Observation:
    """Call a tool that must succeed."""
    result = get_tool(name).call(context, arguments)
    assert result.observation is not None, result.error
    return result.observation


def failure(context: ToolContext, name: str, **arguments: Any) -> tuple[str, str]:
    """Call a tool that must fail; returns the message and its kind."""
    result = get_tool(name).call(context, arguments)
    assert result.observation is None
    return str(result.error), str(result.error_kind)


def test_relations_are_links_with_labels_and_numbers_of_facts(without_encoder: ToolContext) -> None:
    observation = observe(without_encoder, "getRelationsAsTail", entity="Q1")
    assert observation.data == {
        "entity": "Q1",
        "entity_label": "Ada Reed",
        "direction": "tail",
        "relations": [
            {"id": "P2", "label": "mother", "direction": "tail", "count": 2},
            {"id": "P10", "label": "director", "direction": "tail", "count": 1},
        ],
        "total": 2,
        "truncated": False,
    }
    assert observation.text == "Ada Reed (Q1) is the tail of 2 relations.\nP2: mother (2 facts)\nP10: director (1 fact)"


def test_tails_and_heads_are_links_with_labels(without_encoder: ToolContext) -> None:
    tails = observe(without_encoder, "getTailEntities", entity="wd:Q1", relation="wdt:P14")
    assert tails.data == {
        "entity": "Q1",
        "entity_label": "Ada Reed",
        "relation": "P14",
        "relation_label": "friend",
        "direction": "head",
        "values": [{"id": "Q5", "label": "Eli Reed"}, {"id": "Q6", "label": "Fay Lund"}],
        "unnamed": 0,
        "total": 2,
        "truncated": False,
    }
    assert tails.text == "Ada Reed (Q1) → friend (P14) → ?: 2 values.\nQ5: Eli Reed\nQ6: Fay Lund"
    heads = observe(without_encoder, "getHeadEntities", relation="P2", entity="http://www.wikidata.org/entity/Q1")
    assert (heads.data["direction"], [link["label"] for link in heads.data["values"]]) == (
        "tail",
        ["Kit Reed", "Lea Reed"],
    )
    assert heads.text.startswith("? → mother (P2) → Ada Reed (Q1): 2 values.")


def test_a_literal_keeps_its_value_and_datatype_and_is_readable_in_the_text(without_encoder: ToolContext) -> None:
    born = observe(without_encoder, "getTailEntities", entity="Q1", relation="P6")
    assert born.data["values"] == [{"literal": "1950-03-04", "datatype": f"{XSD}date"}]
    assert born.text.splitlines()[1:] == ["4 March 1950"]
    people = observe(without_encoder, "getTailEntities", entity="Q20", relation="P15")
    assert people.data["values"] == [{"literal": "900", "datatype": f"{XSD}integer"}]


def test_an_entity_without_relations_and_a_fact_without_values_are_results(without_encoder: ToolContext) -> None:
    observation = observe(without_encoder, "getRelationsAsHead", entity="Q30")
    assert (observation.data["relations"], observation.data["truncated"]) == ([], False)
    assert observation.text == "Norland (Q30) is the head of no relations."
    observation = observe(without_encoder, "getTailEntities", entity="Q30", relation="P1")
    assert (observation.data["values"], observation.data["total"]) == ([], 0)
    assert observation.text == "Norland (Q30) → father (P1) → ?: no values."


@pytest.mark.parametrize(
    ("name", "arguments", "message", "kind"),
    [
        ("getRelationsAsHead", {"entity": "Q999"}, "does not know Q999; getWikiDataID finds the id", "not found"),
        ("getRelationsAsTail", {"entity": "Ada"}, "'Ada' is not an id such as Q42; find the id", "wrong arguments"),
        ("getRelationsAsTail", {"entity": ""}, "'' is not an id such as Q42", "wrong arguments"),
        ("getRelationsAsTail", {"entity": "x:%"}, "does not know x:%", "not found"),
        ("getTailEntities", {"entity": "Q999", "relation": "P1"}, "does not know Q999", "not found"),
        ("getTailEntities", {"entity": "Q1", "relation": "P999"}, "does not know the relation P999", "not found"),
        ("getTailEntities", {"entity": "Ada Reed", "relation": "P1"}, "with getWikiDataID first", "wrong arguments"),
        ("getTailEntities", {"entity": "Q1", "relation": "father"}, "is not the id of a relation", "wrong arguments"),
        ("getHeadEntities", {"entity": "Q1", "relation": "Q2"}, "'Q2' is not the id of a relation", "wrong arguments"),
        ("getHeadEntities", {"entity": "Q1"}, "relation: field required", "wrong arguments"),
        ("getHeadEntities", {"entity": ["Q1"], "relation": "P2"}, "entity: input should be", "wrong arguments"),
        ("getHeadEntities", {"entity": "Q1", "relation": "P2", "limit": 0}, "from 1 to 1,000", "wrong arguments"),
        ("getHeadEntities", {"entity": "Q1", "relation": "P2", "limit": 1001}, "from 1 to 1,000", "wrong arguments"),
        ("getTailEntities", {"entity": "Q1> ?x ?y } #", "relation": "P1"}, "is not an id", "wrong arguments"),
    ],
)
def test_a_failure_is_one_sentence_on_what_to_do(
    name: str, arguments: dict[str, Any], message: str, kind: str, without_encoder: ToolContext
) -> None:
    error, error_kind = failure(without_encoder, name, **arguments)
    assert (message in error, error_kind) == (True, kind), error
    assert error.endswith(".")


def test_a_world_without_a_graph_is_an_error() -> None:
    error, kind = failure(ToolContext(World("texts"), must_not_encode), "getTailEntities", entity="Q1", relation="P1")
    assert (error.startswith("getTailEntities needs a graph"), kind) == (True, "unavailable")


@pytest.fixture(scope="module", params=KINDS)
def isle(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolContext]:
    """A graph with IRIs of its own and blank nodes: embedded, and behind two servers."""
    with opened(request.param, "isle", tmp_path_factory.mktemp(request.param), request) as graph:
        yield context_of(graph)


def test_relations_with_iris_of_their_own_are_steps_in_every_kind_of_graph(isle: ToolContext) -> None:
    relations = observe(isle, "getRelationsAsHead", entity="Q1").data["relations"]
    assert [(link["id"], link["label"], link["count"]) for link in relations] == [
        ("P22", "father", 1),
        ("P569", "date of birth", 1),
        (LIVES_IN, "lives in", 1),
        ("http://isle.example/motto", "motto", 1),
    ]
    lives = observe(isle, "getTailEntities", entity="Q1", relation=relations[2]["id"])
    assert lives.data["values"] == [{"id": NORTHPOINT, "label": "Northpoint"}]
    residents = observe(isle, "getHeadEntities", relation=LIVES_IN, entity=lives.data["values"][0]["id"])
    assert residents.data["values"] == [{"id": "Q1", "label": "Mara Quill"}]
    near = observe(isle, "getTailEntities", entity=NORTHPOINT, relation=NEAR)
    assert near.data["values"] == [{"id": SOUTH_BAY, "label": 'Réunion "Sud"'}]


def test_a_blank_node_is_counted_and_not_listed(isle: ToolContext) -> None:
    for name, entity in (("getTailEntities", SOUTH_BAY), ("getHeadEntities", NORTHPOINT)):
        observation = observe(isle, name, relation=NEAR, entity=entity)
        assert (observation.data["values"], observation.data["unnamed"], observation.data["total"]) == ([], 1, 1)
        assert observation.data["truncated"] is False
        assert observation.text.endswith("... 1 value without an id (blank nodes).")


def test_failures_are_the_same_in_every_kind_of_graph(isle: ToolContext) -> None:
    assert failure(isle, "getRelationsAsHead", entity="Q404")[1] == "not found"
    assert failure(isle, "getTailEntities", entity="Q1", relation="P404")[1] == "not found"
    assert failure(isle, "getTailEntities", entity="Mara", relation="P22")[1] == "wrong arguments"
    assert observe(isle, "getRelationsAsHead", entity="Q2").data["relations"] == []


class ScannedGraph:
    """The facts of a world's store, read triple by triple without SPARQL."""

    def __init__(self, store: ox.Store) -> None:
        self.tails: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
        self.heads: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
        self.labels: dict[str, str] = {}
        for quad in store:
            head, predicate = quad.subject.value, quad.predicate.value
            if predicate == RDFS_LABEL:
                self.labels[head] = quad.object.value
            if predicate.startswith(DIRECT_NAMESPACE):
                property_id = predicate.removeprefix(DIRECT_NAMESPACE)
                self.tails[head][property_id].append(quad.object)
                self.heads[quad.object.value][property_id].append(quad.subject)

    def links(self, values: list[Any]) -> list[dict[str, Any]]:
        """The expected values of a step, in no order."""
        return [
            {"literal": value.value, "datatype": value.datatype.value}
            if isinstance(value, ox.Literal)
            else {"id": value.value.removeprefix(ENTITY_NAMESPACE), "label": self.labels[value.value]}
            for value in values
        ]


@pytest.fixture(scope="module")
def generated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[ToolContext, ScannedGraph]]:
    """A generated world, and its graph as a plain scan of the store finds it."""
    worlds = tmp_path_factory.mktemp("generated")
    generate_world(worlds, "town", GenerationOptions(people=300, seed=11, depth=4, per_template=1))
    context = ToolContext(open_world(worlds, "town"), must_not_encode)
    yield context, ScannedGraph(ox.Store.read_only(str(worlds / "town" / GRAPH_FOLDER)))
    context.world.graph.close()  # type: ignore[union-attr]


def test_the_steps_of_200_random_entities_are_those_of_a_scan(generated: tuple[ToolContext, ScannedGraph]) -> None:
    context, scanned = generated
    entities = sorted(iri for iri in scanned.labels if iri.startswith(f"{ENTITY_NAMESPACE}Q"))
    chosen = random.Random(5).sample(entities, 200)
    followed = 0
    for iri in chosen:
        entity = iri.removeprefix(ENTITY_NAMESPACE)
        for lists, follows, facts in (
            ("getRelationsAsHead", "getTailEntities", scanned.tails.get(iri, {})),
            ("getRelationsAsTail", "getHeadEntities", scanned.heads.get(iri, {})),
        ):
            relations = observe(context, lists, entity=entity).data["relations"]
            assert {link["id"]: link["count"] for link in relations} == {id_: len(ends) for id_, ends in facts.items()}
            assert [link["label"] for link in relations] == [
                scanned.labels[ENTITY_NAMESPACE + link["id"]] for link in relations
            ]
            for link in relations:
                data = observe(context, follows, entity=entity, relation=link["id"], limit=MAX_LIMIT).data
                expected = scanned.links(facts[link["id"]])
                assert sorted(data["values"], key=repr) == sorted(expected, key=repr)
                assert (data["total"], data["truncated"], data["unnamed"]) == (len(expected), False, 0)
                followed += 1
    assert followed > 500


def test_results_beyond_the_limit_are_counted_and_the_first_ones_are_listed_in_order(
    generated: tuple[ToolContext, ScannedGraph],
) -> None:
    context, scanned = generated
    iri, property_id = max(
        ((iri, id_) for iri, by_id in scanned.heads.items() for id_ in by_id if iri.startswith(ENTITY_NAMESPACE)),
        key=lambda place: len(scanned.heads[place[0]][place[1]]),
    )
    numbers = sorted(int(head.value.removeprefix(f"{ENTITY_NAMESPACE}Q")) for head in scanned.heads[iri][property_id])
    assert len(numbers) > DEFAULT_LIMIT
    arguments = {"relation": property_id, "entity": iri.removeprefix(ENTITY_NAMESPACE)}
    for limit in (None, 7):
        shown = limit or DEFAULT_LIMIT
        observation = observe(context, "getHeadEntities", **arguments, **({"limit": limit} if limit else {}))
        assert [link["id"] for link in observation.data["values"]] == [f"Q{number}" for number in numbers[:shown]]
        assert (observation.data["total"], observation.data["truncated"]) == (len(numbers), True)
        rest = f"... {len(numbers) - shown:,} more; the limit is {shown}, and can be raised up to 1,000."
        assert observation.text.splitlines()[-1] == rest


def test_more_facts_than_a_query_returns_are_counted_or_said_to_be_too_many(tmp_path: Path) -> None:
    heads = MAX_COUNTED_FACTS + 1
    file = tmp_path / "hub.nt"
    with file.open("w", encoding="utf-8") as stream:
        stream.writelines(
            f"<{ENTITY_NAMESPACE}Q{number}> <{DIRECT_NAMESPACE}P1> <{ENTITY_NAMESPACE}Q1> .\n"
            for number in range(2, heads + 2)
        )
        stream.writelines(
            f"<{ENTITY_NAMESPACE}Q2> <{DIRECT_NAMESPACE}P{number}> <{ENTITY_NAMESPACE}Q3> .\n"
            for number in range(1, MAX_RELATIONS + 4)
        )
    build_world(tmp_path, "hub", WorldContents(graph=file))
    context = ToolContext(open_world(tmp_path, "hub"), must_not_encode)
    values = observe(context, "getHeadEntities", relation="P1", entity="Q1", limit=MAX_LIMIT)
    assert (len(values.data["values"]), values.data["total"], values.data["truncated"]) == (MAX_LIMIT, heads, True)
    assert values.text.endswith(f"... {heads - MAX_LIMIT:,} more; the limit is 1,000.")
    relations = observe(context, "getRelationsAsTail", entity="Q1")
    assert relations.data["relations"] == [{"id": "P1", "label": "P1", "direction": "tail", "count": None}]
    assert (relations.data["total"], relations.data["truncated"]) == (None, True)
    assert f"only {MAX_COUNTED_FACTS:,} facts were read" in relations.text
    many = observe(context, "getRelationsAsHead", entity="Q2").data
    assert [link["id"] for link in many["relations"]] == [f"P{number}" for number in range(1, MAX_RELATIONS + 1)]
    assert (many["total"], many["truncated"]) == (MAX_RELATIONS + 3, True)
    context.world.graph.close()  # type: ignore[union-attr]


@pytest.fixture(scope="module")
def export(shared_data: Path) -> Path:
    """Wikidata's own export of an item, with its statements, references and qualifiers."""
    return shared_data / "wikidata_rdf" / "Q42.ttl"


@pytest.fixture(scope="module", params=["embedded", "served", "served as a wikibase"])
def item(
    request: pytest.FixtureRequest, export: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ToolContext]:
    """The export as a world: embedded, or behind a server whose relations are known from use or from the wiki."""
    folder = tmp_path_factory.mktemp("export")
    if request.param == "embedded":
        build_world(folder, "export", WorldContents(graph=export))
        graph = open_world(folder, "export").graph
        assert graph is not None
        yield context_of(graph)
        graph.close()  # type: ignore[attr-defined]
        return
    vocabulary = "wikibase" if request.param.endswith("wikibase") else "scan"
    with oxigraph_server.serving({"export": export}, folder) as server:
        yield context_of(live_graph(endpoint_of(server, "export", vocabulary=vocabulary), folder))


def test_the_relations_of_an_item_of_wikidata_are_its_direct_claims(item: ToolContext, export: Path) -> None:
    facts = rdflib.Graph().parse(export)
    subject = rdflib.URIRef(f"{ENTITY_NAMESPACE}Q42")
    direct: dict[str, list[Any]] = defaultdict(list)
    for predicate, value in facts.predicate_objects(subject):
        if str(predicate).startswith(DIRECT_NAMESPACE):
            direct[str(predicate).removeprefix(DIRECT_NAMESPACE)].append(value)
    data = observe(item, "getRelationsAsHead", entity="Q42").data
    assert {link["id"]: link["count"] for link in data["relations"]} == {id_: len(ends) for id_, ends in direct.items()}
    assert [int(link["id"][1:]) for link in data["relations"]] == sorted(int(id_[1:]) for id_ in direct)
    for property_id in random.Random(3).sample(sorted(direct), 12):
        values = observe(item, "getTailEntities", entity="Q42", relation=property_id, limit=MAX_LIMIT).data["values"]
        assert sorted(link.get("literal", link.get("id")) for link in values) == sorted(
            str(end).removeprefix(ENTITY_NAMESPACE) for end in direct[property_id]
        )
