"""The contract of graph sources: the same assertions for the embedded graph, an Oxigraph server and a Virtuoso."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path

import pytest
import rdflib
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from showhow.fiction.family import GraphKinshipSource, build_family
from showhow.worlds.live.description import SparqlEndpoint
from showhow.worlds.neighbourhood import load_neighbourhood
from showhow.worlds.source import Cell, GraphSource, NotFound, QueryRefused, Relation
from showhow.worlds.terms import shorten_iri
from tests.examples import examples
from tests.worlds.live.graphs import KINDS, live_graph, opened

XSD = "http://www.w3.org/2001/XMLSchema#"
LANGUAGE_STRING = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"
NORTHPOINT = "http://isle.example/Northpoint"
SOUTH_BAY = "http://isle.example/SouthBay"


@pytest.fixture(scope="module", params=KINDS)
def isle(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphSource]:
    """The isle's graph, with unusual names and its own IRIs."""
    with opened(request.param, "isle", tmp_path_factory.mktemp(request.param), request) as graph:
        yield graph


@pytest.fixture(scope="module", params=KINDS)
def real(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GraphSource]:
    """The part of Wikidata that 2WikiMultihopQA's questions need."""
    with opened(request.param, "real", tmp_path_factory.mktemp(request.param), request) as graph:
        yield graph


def test_a_select_gives_its_columns_and_cells_of_every_kind(isle):
    table = isle.query("SELECT ?p ?o { wd:Q1 ?p ?o FILTER(!isLiteral(?o) || lang(?o) != 'de') }")
    assert table.columns == ("p", "o")
    assert set(table.rows) == {
        (Cell("entity", "P22"), Cell("entity", "Q2")),
        (Cell("entity", "P569"), Cell("literal", "1931-03-05T00:00:00Z", f"{XSD}dateTime")),
        (Cell("iri", "http://isle.example/livesIn"), Cell("entity", NORTHPOINT)),
        (Cell("iri", "http://isle.example/motto"), Cell("literal", "never dark", f"{XSD}string")),
        (
            Cell("iri", "http://www.w3.org/2000/01/rdf-schema#label"),
            Cell("literal", "Mara Quill", LANGUAGE_STRING, "en"),
        ),
        (
            Cell("iri", "http://www.w3.org/2004/02/skos/core#altLabel"),
            Cell("literal", "the Keeper", LANGUAGE_STRING, "en"),
        ),
        (
            Cell("iri", "http://www.w3.org/2004/02/skos/core#altLabel"),
            Cell("literal", "M. Quill", LANGUAGE_STRING, "en"),
        ),
        (Cell("iri", "http://schema.org/description"), Cell("literal", "lighthouse keeper", LANGUAGE_STRING, "en")),
    }
    assert not table.truncated


def test_an_unbound_variable_is_none_and_an_anonymous_node_is_blank(isle):
    (row,) = isle.query(
        f"SELECT ?x ?y {{ <{SOUTH_BAY}> <http://isle.example/near> ?x OPTIONAL {{ ?x wdt:P22 ?y }} }}"
    ).rows
    assert (row[0].kind, row[1]) == ("blank", None)


def test_an_iri_without_a_label_is_not_an_entity(isle):
    ((cell,),) = isle.query(f"SELECT ?x {{ <{NORTHPOINT}> <http://isle.example/near> ?x }}").rows
    assert cell == Cell("iri", SOUTH_BAY)


@pytest.mark.parametrize(("pattern", "answer"), [("wd:Q1 wdt:P22 wd:Q2", True), ("wd:Q2 wdt:P22 wd:Q1", False)])
def test_an_ask_gives_yes_or_no(isle, pattern, answer):
    table = isle.query(f"ASK {{ {pattern} }}")
    assert (table.boolean, table.columns, table.rows) == (answer, (), ())


def test_a_query_without_matches_returns_an_empty_table(isle):
    table = isle.query("SELECT ?x ?y { ?x wdt:P22 wd:Q404 . ?x ?y ?z }")
    assert (table.columns, table.rows, table.truncated) == (("x", "y"), (), False)


@pytest.mark.parametrize("prefix", ["wd", "wdt", "p", "ps", "pq", "rdf", "rdfs", "owl", "xsd", "skos", "schema", "bd"])
def test_the_usual_prefixes_need_no_declaration(isle, prefix):
    assert isle.query(f"ASK {{ ?x {prefix}:nothing ?y }}").boolean is False


def test_a_query_may_redeclare_a_prefix(isle):
    table = isle.query("PREFIX wd: <http://isle.example/> SELECT ?n { wd:Northpoint wdt:P1082 ?n }")
    assert table.rows == ((Cell("literal", "412", f"{XSD}integer"),),)


@pytest.mark.parametrize(
    "sparql",
    [
        "INSERT DATA { wd:Q1 wdt:P22 wd:Q9 }",
        "DELETE WHERE { ?a ?b ?c }",
        "DROP ALL",
        "LOAD <http://127.0.0.1/x.ttl>",
        "CONSTRUCT { ?a ?b ?c } WHERE { ?a ?b ?c }",
        "DESCRIBE wd:Q1",
        "ASK {} ; INSERT DATA { wd:Q1 wdt:P22 wd:Q9 }",
        "SELECT * { SERVICE <http://127.0.0.1:1/> { ?a ?b ?c } }",
        "SELECT * { SERVICE SILENT <http://127.0.0.1:1/> { ?a ?b ?c } }",
        "",
        "who is the father of Mara Quill",
        "SELECT ?x { ?x wdt:P22 ",
        "SELECT ?x { ?x unknown:P22 ?y }",
        "\x00",
        "ASK { ?x rdfs:label '\ud800' }",
        "SELECT ?x { ?x ?y ?z } #" + "x" * 100_000,
    ],
    ids=lambda sparql: ascii(sparql[:30]),
)
def test_an_unsupported_query_is_refused_and_the_next_query_works(isle, sparql):
    with pytest.raises(QueryRefused):
        isle.query(sparql)
    assert isle.query("ASK { wd:Q1 wdt:P22 wd:Q2 }").boolean is True


def test_an_entity_has_its_english_names_its_description_and_its_articles_title(isle):
    (mara,) = isle.entities(["Q1"])
    assert (mara.id, mara.label, mara.description) == ("Q1", "Mara Quill", "lighthouse keeper")
    assert (set(mara.aliases), mara.title) == ({"the Keeper", "M. Quill"}, "Mara Quill (keeper)")


def test_entities_come_in_the_order_asked_and_unknown_ones_are_left_out(isle):
    ids = ["Q2", "Q12345", "P22", "nonsense", "", NORTHPOINT, "Q1", "Q2", "Q0", "q1", "x:%"]
    entities = isle.entities(ids)
    assert [entity.id for entity in entities] == ["Q2", "P22", NORTHPOINT, "Q1", "Q2"]
    assert [entity.label for entity in entities] == ["Tom Quill", "father", "Northpoint", "Mara Quill", "Tom Quill"]


def test_an_entity_without_an_english_label_has_another_one_or_the_end_of_its_iri(isle):
    entities = isle.entities(["Q6", SOUTH_BAY, "http://isle.example/livesIn"])
    assert [entity.label for entity in entities] == ["Fährmann", 'Réunion "Sud"', "lives in"]


@pytest.mark.parametrize(
    ("title", "entity"),
    [
        ("Mara Quill (keeper)", "Q1"),
        ("mara quill (KEEPER)", "Q1"),
        ("Mara_Quill_(keeper)", "Q1"),
        ('Réunion "Sud"', SOUTH_BAY),
    ],
)
def test_the_entity_of_an_article_is_found_by_its_title(isle, title, entity):
    assert isle.entity_of(title).id == entity


@pytest.mark.parametrize("title", ["No Such Page", "", "🐙", "\\", '"', "<>"])
def test_a_title_without_an_entity_is_not_found(isle, title):
    with pytest.raises(NotFound):
        isle.entity_of(title)


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("Mara Quill", "Q1"),
        ("mara QUILL", "Q1"),
        ("the keeper", "Q1"),
        ("Mara Quill (keeper)", "Q1"),
        ("quillon", "Q7"),
        ("Tom", "Q2"),
        ('Ole "the Oar" O\'Hara', "Q3"),
        ("two lines\\", "Q4"),
        ("🐙 Kraken 🐙", "Q5"),
        ("FÄHRMANN", "Q6"),
        ("northpoint", NORTHPOINT),
    ],
)
def test_an_entity_is_found_by_its_names_and_their_parts(isle, name, first):
    assert isle.find(name)[0].id == first


def test_an_unknown_name_has_no_results(isle):
    assert isle.find("Nobody At All") == []
    assert isle.find("") == []
    assert isle.find("!?") == []


def test_a_search_returns_at_most_k_entities(isle):
    assert {entity.id for entity in isle.find("quill", 10)} == {"Q1", "Q2", "Q7"}
    assert len(isle.find("quill", 2)) == 2
    assert isle.find("quill", 0) == []


def test_names_with_quotes_line_ends_and_emoji_are_read_whole(isle):
    entities = isle.entities(["Q3", "Q4", "Q5"])
    assert [one.label for one in entities] == ['Ole "the Oar" O\'Hara', "two\nlines\\", "🐙 Kraken 🐙"]


@given(st.one_of(st.text(), st.text("x:/[]%#@.?").map("x:".__add__), st.text("\"'\\<>{}?*+.|()[]^$ \n\u0130ßé🐙aQ1")))
@example("\ud800")
@example("x:\ud800")
@example("x:%")
@example("\x00")
@example("0\n\x00")
@example("x:\x00")
@example("Tom\x00 Quill\x07")
@example("a" * 70_000)
@settings(max_examples=examples(15), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_name_or_id_raises_only_source_errors(isle, typed):
    assert isinstance(isle.find(typed), list)
    assert isinstance(isle.entities([typed]), list)
    for look_up in (isle.entity_of, isle.relations):
        with suppress(NotFound):
            look_up(typed)


def test_the_relations_of_an_entity_are_those_of_its_triples(isle):
    relations = isle.relations("Q1")
    assert {relation.id for relation in relations.outgoing} == {
        "P22", "P569", "http://isle.example/livesIn", "http://isle.example/motto",
    }  # fmt: skip
    assert relations.incoming == ()
    assert [relation.id for relation in isle.relations("Q2").incoming] == ["P22"]
    assert {r.id for r in isle.relations(NORTHPOINT).incoming} == {
        "http://isle.example/livesIn", "http://isle.example/near",
    }  # fmt: skip


def test_the_relations_of_an_unknown_entity_are_not_found(isle):
    with pytest.raises(NotFound, match="Q404"):
        isle.relations("Q404")


def test_the_vocabulary_has_every_relation_with_the_kind_of_its_values(isle):
    assert isle.vocabulary() == (
        Relation("P1082", "population", (), "number"),
        Relation("P22", "father", ("dad",), "entity"),
        Relation("P569", "date of birth", (), "date"),
        Relation("http://isle.example/livesIn", "lives in", (), "entity"),
        Relation("http://isle.example/motto", "motto", (), "text"),
        Relation("http://isle.example/near", "near", (), "entity"),
    )


def test_labels_and_values_of_a_neighbourhood_are_those_of_the_graph(isle):
    neighbourhood = load_neighbourhood(isle, "Q1")
    assert {(b.relation.label, tuple(value.label for value in b.values)) for b in neighbourhood.branches} == {
        ("father", ("Tom Quill",)),
        ("date of birth", ("1931-03-05T00:00:00Z",)),
        ("lives in", ("Northpoint",)),
        ("motto", ("never dark",)),
    }


@pytest.mark.parametrize(
    ("fields", "is_wikidata"),
    [
        ({"vocabulary": "wikibase"}, True),
        ({}, False),
        ({"vocabulary": "wikibase", "entity": "https://wiki.example/entity/"}, False),
    ],
)
def test_only_an_endpoint_with_wikidatas_statements_is_wikidata(tmp_path, fields, is_wikidata):
    assert live_graph(SparqlEndpoint("http://127.0.0.1:9/sparql", **fields), tmp_path).is_wikidata is is_wikidata


# The real graph: results of servers are compared with those of the embedded store.


def test_a_real_graph_has_as_many_triples_of_each_relation(real, graph_files):
    counted = real.query("SELECT ?p (COUNT(*) AS ?n) { ?s ?p ?o } GROUP BY ?p")
    assert {row[0].value: int(row[1].value) for row in counted.rows} == _counted(graph_files["real"])
    assert not counted.truncated


@cache
def _counted(file: Path) -> dict[str, int]:
    """Counts by rdflib, an independent implementation."""
    return dict(Counter(shorten_iri(str(predicate)) for predicate in rdflib.Graph().parse(file).predicates()))


def test_rows_beyond_the_limit_are_dropped_and_reported(real):
    table = real.query("SELECT ?s ?p ?o { ?s ?p ?o }")
    assert (len(table.rows), table.truncated) == (1000, True)
    table = real.query("SELECT ?s ?p ?o { ?s ?p ?o } LIMIT 1000")
    assert (len(table.rows), table.truncated) == (1000, False)
    table = real.query("SELECT ?s ?p ?o { ?s ?p ?o } LIMIT 2000")
    assert (len(table.rows), table.truncated) == (1000, True)


def test_a_hundred_entities_of_a_real_graph_have_their_labels(real):
    rows = real.query(
        "SELECT DISTINCT ?s ?name { ?s wdt:P57 ?o ; rdfs:label ?name FILTER(LANG(?name) = 'en') } LIMIT 100"
    )
    names = {one.value: name.value for one, name in rows.rows}
    assert len(names) > 60
    assert {entity.id: entity.label for entity in real.entities(list(names))} == names


def test_the_vocabulary_of_a_real_graph_is_named(real):
    vocabulary = {relation.id: relation for relation in real.vocabulary()}
    assert vocabulary["P57"].label == "director"
    assert (vocabulary["P569"].label, vocabulary["P569"].value) == ("date of birth", "date")


def test_a_family_is_drawn_from_a_real_graph(real):
    ((child, father),) = real.query("SELECT ?c ?f { ?c wdt:P22 ?f . ?f wdt:P22 ?g } ORDER BY ?c LIMIT 1").rows
    family = build_family(GraphKinshipSource(real), child.value)
    assert father.value in family.parents[child.value]


def test_an_entity_of_a_real_graph_is_found_by_its_label(real):
    ((one, name),) = real.query("SELECT ?s ?n { ?s wdt:P57 ?o ; rdfs:label ?n } ORDER BY ?s LIMIT 1").rows
    assert one.value in {match.id for match in real.find(name.value)}
