"""A graph in Wikidata's form with its wiki: labels and names come from api.php, relations from the definitions."""

import re
import sqlite3
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote_plus

import numpy as np
import pytest
import rdflib
from rdflib.namespace import RDFS

from showhow.guard.destinations import SecretTable
from showhow.tools.registry import get_tool
from showhow.tools.run_query import run_query
from showhow.tools.tool import ToolContext
from showhow.worlds import terms
from showhow.worlds.live.description import parse_live_config
from showhow.worlds.live.http.request import Access
from showhow.worlds.live.http.response_cache import RESPONSE_CACHE_FILE
from showhow.worlds.live.sparql import relations
from showhow.worlds.live.wiki.wikibase import find_wikimedia_site
from showhow.worlds.live.world import open_live_world
from showhow.worlds.source import Entity, GraphSource, NotFound, Relation, SourceUnavailable, World
from tests.servers import oxigraph
from tests.servers.sparql import SparqlServer
from tests.servers.wikibase import Wiki, serving

FILE = Path(__file__).with_name("wikibase.ttl")
KEEPER = "Mara Quill (keeper)"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparqlServer]:
    """The graph in Wikidata's form."""
    with oxigraph.serving({"wikibase": FILE}, tmp_path_factory.mktemp("oxigraph")) as server:
        yield server


@pytest.fixture
def wiki() -> Iterator[Wiki]:
    with serving(FILE) as wiki:
        yield wiki


@pytest.fixture
def graph(server: SparqlServer, wiki: Wiki, tmp_path: Path) -> GraphSource:
    """The graph as the preset for Wikidata configures it, without the label service."""
    return _open(server, wiki, tmp_path)


def _open(server: SparqlServer, wiki: Wiki, folder: Path, fields: str = "") -> GraphSource:
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
        {fields}
        """
    )
    return open_live_world(folder, described, Access(contact="tests@showhow.example"), SecretTable({}), {}).graph


def test_entities_of_the_wiki_are_in_the_requested_order(graph, wiki):
    entities = graph.entities(["Q2", "Q404", "Q99999999999", "Q1", "nonsense", "Q6", "P22", "Q77", "Q1"])
    mara = Entity("Q1", "Mara Quill", "lighthouse keeper", ("the Keeper",), KEEPER)
    assert entities == [
        Entity("Q2", "Tom Quill"),
        mara,
        Entity("Q6", "Fährmann"),
        Entity("P22", "father", aliases=("dad", "papa")),
        # Q77 was merged into Q1.
        replace(mara, id="Q77"),
        mara,
    ]
    # The label of Q6 is in another language, for which the wiki is asked once more.
    assert [(query["action"], query["ids"].count("|")) for query in wiki.asked] == [
        ("wbgetentities", 5),
        ("wbgetentities", 0),
    ]
    assert [query.get("sitefilter") for query in wiki.asked] == ["enwiki", None]


@pytest.mark.parametrize(
    ("articles", "site"),
    [
        ("https://en.wikipedia.org/wiki/", "enwiki"),
        ("https://zh-min-nan.wikipedia.org/wiki/", "zh_min_nanwiki"),
        ("https://be-tarask.wikipedia.org/wiki/", "be_x_oldwiki"),
        ("https://fr.wikisource.org/wiki/", "frwikisource"),
        ("https://commons.wikimedia.org/wiki/", "commonswiki"),
        ("https://wiki.ours.example/wiki/", ""),
        ("https://en.ourwiki.org/wiki/", ""),
        ("", ""),
    ],
)
def test_the_site_of_articles_at_wikimedia_is_known(articles, site):
    assert find_wikimedia_site(articles) == site


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ('articles = "https://de.wikipedia.org/wiki/"', ("dewiki", "Mara Feder")),
        ('articles = ""\nsite = "dewiki"', ("dewiki", "Mara Feder")),
        ('articles = "https://de.wikipedia.org/wiki/"\nsite = "enwiki"', ("enwiki", KEEPER)),
        # Another wiki's site is unknown: all links are requested, and that of its address is taken.
        ('articles = "https://x7.wikipedia.org/wiki/Q"', (None, "Q1")),
        ('articles = "https://wiki.ours.example/wiki/"', (None, None)),
    ],
)
def test_only_the_links_to_the_site_of_the_articles_are_requested(server, wiki, tmp_path, fields, expected):
    (entity,) = _open(server, wiki, tmp_path, fields).entities(["Q1"])
    assert ([query.get("sitefilter") for query in wiki.asked], entity.title) == ([expected[0]], expected[1])


def test_entities_are_requested_in_batches_of_fifty(graph, wiki):
    entities = graph.entities([f"Q{number}" for number in range(1, 131)])
    assert [entity.id for entity in entities] == ["Q1", "Q2", "Q6", "Q77"]
    assert [len(query["ids"].split("|")) for query in wiki.asked if "languages" in query] == [50, 50, 30]


@pytest.mark.parametrize(
    ("name", "ids"),
    [("mara", ["Q1"]), ("The Keeper", ["Q1"]), ("quill tom", ["Q2"]), ("nobody", []), ("", [])],
)
def test_names_are_found_by_prefix_else_by_words(graph, name, ids):
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


def test_the_vocabulary_is_all_defined_properties_read_in_pages(graph, wiki, monkeypatch):
    # From the graph, because the wiki returns fifty per request and Wikidata has more than 12,000.
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


def test_relations_are_found_by_their_names_and_by_the_wikis_search(graph, wiki):
    names = ["Papa", "date of birth", "Height", "nothing", 'a "quoted" name\\', ""]
    found = graph.find_relations(names, ["film", "nothing at all"])
    assert [relation.id for relation in found] == ["P2048", "P22", "P345", "P569"]
    assert found == graph.relations("Q1").outgoing
    searches = [query for query in wiki.asked if query["action"] == "wbsearchentities"]
    assert [(query["type"], query["search"]) for query in searches] == [
        ("property", "film"),
        ("property", "nothing at all"),
    ]


@pytest.mark.parametrize(
    ("question", "entity", "relations"),
    [
        ("Who is the father of Mara Quill?", "Q1", ["P22"]),
        # Neither Tom Quill nor anything that leads to him has a height.
        ("What is the height of Tom Quill?", "Q2", ["P2048"]),
    ],
)
def test_a_query_is_generated_without_loading_the_vocabulary(graph, tmp_path, question, entity, relations):
    context = ToolContext(World("wiki", graph=graph), lambda texts: np.zeros((len(texts), 1), dtype=np.float32))
    result = get_tool("generateQuery").call(context, {"question": question, "entity_ids": entity})
    assert re.findall(r"P\d+", result.observation.text) == relations
    with sqlite3.connect(tmp_path / RESPONSE_CACHE_FILE) as recorded:
        requests = [unquote_plus(key) for (key,) in recorded.execute("select asked from answers")]
    assert not [request for request in requests if "OFFSET" in request]


LEFT_OUT = "papers are in another graph; ask that"


@pytest.fixture
def split_graph(server, wiki, tmp_path) -> GraphSource:
    """A graph without the triples of some items of its wiki."""
    wiki.graph.add((rdflib.URIRef(f"{terms.ENTITY_NAMESPACE}Q900"), RDFS.label, rdflib.Literal("A Paper", "en")))
    wiki.graph.add((rdflib.URIRef(f"{terms.ENTITY_NAMESPACE}Q901"), RDFS.label, rdflib.Literal("A Survey", "en")))
    return _open(server, wiki, tmp_path, f'left_out = "{LEFT_OUT}"')


@pytest.mark.parametrize(
    "sparql",
    [
        "SELECT ?o { wd:Q900 wdt:P22 ?o }",
        "SELECT ?o { <http://www.wikidata.org/entity/Q900> ?p ?o }",
        "PREFIX x: <http://www.wikidata.org/entity/> SELECT ?o { x:Q1 wdt:P22 ?o . ?o wdt:P22 x:Q900 }",
        "SELECT (COUNT(?o) AS ?n) { wd:Q900 wdt:P22 ?o }",
        "SELECT ?o ?n { OPTIONAL { wd:Q900 wdt:P22 ?o } }",
        "ASK { wd:Q900 wdt:P22 wd:Q1 }",
    ],
)
def test_an_empty_result_names_the_items_that_the_wiki_has_and_the_graph_does_not(split_graph, wiki, server, sparql):
    note = split_graph.query(sparql).note
    assert "has A Paper (Q900), but the graph of" in note
    assert f"has no triples of it: {LEFT_OUT}." in note
    observation = run_query(ToolContext(World("split", graph=split_graph), str), sparql)  # type: ignore[arg-type]
    assert observation.text.endswith(note)


@pytest.mark.parametrize(
    "sparql",
    [
        # The graph has its triples, or the wiki does not know it either, or the result is not empty.
        "SELECT ?o { wd:Q1 wdt:P9999 ?o }",
        "SELECT ?o { wd:Q404 wdt:P22 ?o }",
        "SELECT ?o { ?o wdt:P9999 'Q900' }",
        "SELECT ?o { VALUES ?x { wd:Q900 wd:Q1 } ?x wdt:P22 ?o }",
        "ASK { wd:Q1 wdt:P22 wd:Q2 }",
    ],
)
def test_any_other_result_has_no_note(split_graph, sparql):
    assert split_graph.query(sparql).note == ""


def test_several_missing_items_are_named_together_and_a_failing_wiki_leaves_the_result(split_graph, wiki):
    note = split_graph.query("SELECT ?o { VALUES ?x { wd:Q900 wd:Q901 } ?x wdt:P22 ?o }").note
    assert "has A Paper (Q900), A Survey (Q901), but" in note
    wiki.ill = True
    table = split_graph.query("SELECT ?o { wd:Q902 wdt:P22 ?o }")
    assert (table.rows, table.note) == ((), "")


def test_the_relations_of_an_item_without_triples_are_not_found_with_the_reason(split_graph):
    with pytest.raises(NotFound, match=f"has A Paper \\(Q900\\), but .* {LEFT_OUT}"):
        split_graph.relations("Q900")


def test_queries_and_relations_of_an_entity_do_not_load_the_vocabulary(graph, wiki):
    graph.query("SELECT ?o { wd:Q1 ?p ?o }")
    graph.relations("Q1")
    graph.find("mara")
    assert all("P9999" not in query.get("ids", "") for query in wiki.asked)


def test_an_api_error_with_status_200_is_raised_and_not_recorded(graph, wiki):
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
        entities = open_live_world(
            folder, replace(described, graph=endpoint), access, SecretTable({}), {}
        ).graph.entities(["Q1", "Q2", "Q6"])
        assert [(e.label, e.title) for e in entities] == [
            ("Mara Feder", "Mara Feder"),
            ("Tom Quill", None),
            ("Fährmann", None),
        ]
