"""A graph of Wikidata's shape with the wiki behind it: labels and names from its api.php, relations as defined."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.servers import oxigraph
from tests.servers.sparql import SparqlServer
from tests.servers.wikibase import Wiki, serving
from worlds.live.description import parse_live_config
from worlds.live.http.access import Access
from worlds.live.sparql import graph as relations
from worlds.live.world import open_live_world
from worlds.source import Entity, GraphSource, Relation, SourceUnavailable

pytestmark = pytest.mark.xdist_group("live")
FILE = Path(__file__).with_name("wikibase.ttl")
KEEPER = "Mara Quill (keeper)"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparqlServer]:
    """The graph of that shape."""
    with oxigraph.serving({"wikibase": FILE}, tmp_path_factory.mktemp("oxigraph")) as server:
        yield server


@pytest.fixture
def wiki() -> Iterator[Wiki]:
    with serving(FILE) as wiki:
        yield wiki


@pytest.fixture
def graph(server: SparqlServer, wiki: Wiki, tmp_path: Path) -> GraphSource:
    """The graph as the ready description of Wikidata would have it, but for the service of labels."""
    described = parse_live_config(
        f"""kind = "live"
        [graph]
        kind = "sparql"
        endpoint = "{server.url}"
        default_graph = "{server.graph("wikibase")}"
        api = "{wiki.api}"
        labels = "api"
        vocabulary = "wikibase"
        search = "api"
        """
    )
    return open_live_world(tmp_path, described, Access(contact="tests@showhow.example"), {}, {}).graph


def test_entities_come_from_the_wiki_in_the_order_asked(graph, wiki):
    entities = graph.entities(["Q2", "Q404", "Q99999999999", "Q1", "nonsense", "Q6", "P22", "Q77", "Q1"])
    mara = Entity("Q1", "Mara Quill", "lighthouse keeper", ("the Keeper",), KEEPER)
    assert entities == [
        Entity("Q2", "Tom Quill"),
        mara,
        Entity("Q6", "Q6"),
        Entity("P22", "father", aliases=("dad", "papa")),
        # Q77 was merged into Q1.
        replace(mara, id="Q77"),
        mara,
    ]
    assert [query["action"] for query in wiki.asked] == ["wbgetentities"]


def test_many_entities_are_asked_for_fifty_at_a_time(graph, wiki):
    entities = graph.entities([f"Q{number}" for number in range(1, 131)])
    assert [entity.id for entity in entities] == ["Q1", "Q2", "Q6", "Q77"]
    assert [len(query["ids"].split("|")) for query in wiki.asked] == [50, 50, 30]


@pytest.mark.parametrize(
    ("name", "ids"),
    [("mara", ["Q1"]), ("The Keeper", ["Q1"]), ("quill tom", ["Q2"]), ("nobody", []), ("", [])],
)
def test_names_are_found_by_their_beginnings_and_else_by_their_words(graph, name, ids):
    assert [entity.id for entity in graph.find(name)] == ids


def test_the_entity_of_an_article_is_found_by_the_graphs_sitelinks(graph):
    assert graph.entity_of(KEEPER).id == "Q1"
    assert graph.entity_of("mara_Quill_(keeper)").id == "Q1"


def test_the_relations_are_the_direct_ones_with_the_wikis_labels_and_types(graph):
    assert graph.relations("Q1").outgoing == (
        Relation("P2048", "height", (), "number"),
        Relation("P22", "father", ("dad", "papa"), "entity"),
        Relation("P345", "film number", (), "text"),
        Relation("P569", "date of birth", (), "date"),
    )
    assert [relation.id for relation in graph.relations("Q2").incoming] == ["P22"]


def test_the_vocabulary_is_what_the_wiki_defines_used_or_not_and_comes_in_pages(graph, wiki, monkeypatch):
    # Of the graph itself, since the wiki gives fifty at a time and Wikidata has more than 12,000.
    monkeypatch.setattr(relations, "_PAGE_SIZE", 2)
    assert graph.vocabulary() == (
        Relation("P2048", "height", (), "number"),
        Relation("P22", "father", ("dad", "papa"), "entity"),
        Relation("P345", "film number", (), "text"),
        Relation("P569", "date of birth", (), "date"),
        Relation("P9999", "used by nobody", (), "text"),
    )
    assert graph.vocabulary() is graph.vocabulary()
    assert wiki.asked == []


def test_a_query_and_what_an_entity_has_need_no_vocabulary(graph, wiki):
    graph.query("SELECT ?o { wd:Q1 ?p ?o }")
    graph.relations("Q1")
    graph.find("mara")
    assert all("P9999" not in query.get("ids", "") for query in wiki.asked)


def test_an_error_that_a_wiki_tells_under_status_200_is_a_failure_and_is_not_remembered(graph, wiki):
    wiki.ill = True
    for ask in (lambda: graph.entities(["Q1"]), lambda: graph.find("mara")):
        with pytest.raises(SourceUnavailable, match="The wiki is ill"):
            ask()
    wiki.ill = False
    assert [entity.label for entity in graph.entities(["Q1"])] == ["Mara Quill"]
    assert [entity.id for entity in graph.find("mara")] == ["Q1"]


def test_labels_in_another_language_are_those_of_that_language(server, wiki, tmp_path):
    described = parse_live_config(
        f'kind = "live"\n[graph]\nkind = "sparql"\nendpoint = "{server.url}"\nlanguage = "de"\n'
        f'articles = "https://de.wikipedia.org/wiki/"\ndefault_graph = "{server.graph("wikibase")}"\n'
    )
    for labels in ("rdfs:label", "api"):
        endpoint = replace(described.graph, labels=labels, api=wiki.api)
        folder = tmp_path / labels[:3]
        folder.mkdir()
        access = Access(contact="tests@showhow.example")
        entities = open_live_world(folder, replace(described, graph=endpoint), access, {}, {}).graph.entities(
            ["Q1", "Q2", "Q6"]
        )
        assert [(e.label, e.title) for e in entities] == [
            ("Mara Feder", "Mara Feder"),
            ("Tom Quill", None),
            ("Fährmann", None),
        ]
