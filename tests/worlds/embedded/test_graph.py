"""The embedded graph: queries, refusals, limits, and lookups of entities."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from showhow.worlds import terms
from showhow.worlds.build import WorldContents, build_world
from showhow.worlds.embedded.graph import EmbeddedGraph
from showhow.worlds.embedded.graph_client import QueryLimits
from showhow.worlds.folder import GRAPH_FOLDER
from showhow.worlds.open import open_world
from showhow.worlds.source import Cell, NotFound, QueryRefused, Relation, SourceTimeout, SourceUnavailable
from tests.examples import examples
from tests.servers.oxigraph import serving
from tests.worlds.live.graphs import endpoint_of, live_graph

ODD_NAMES = {"Q3": 'Ole "the Oar" O\'Hara', "Q4": "two\nlines\\", "Q5": "🐙 Kraken 🐙"}
RUNAWAYS = {
    "a count over a cross product": "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }",
    "sorting a cross product": "SELECT * { ?a ?b ?c . ?d ?e ?f } ORDER BY ?c ?f",
    "one long text": "SELECT (GROUP_CONCAT(?c) AS ?all) { ?a ?b ?c . ?d ?e ?f }",
    "a filter that nothing passes": 'SELECT * { ?a ?b ?c . ?d ?e ?f . FILTER(CONCAT(?c, ?f) = "x") }',
}
XSD = "http://www.w3.org/2001/XMLSchema#"


def test_a_select_gives_its_columns_and_cells_of_every_kind(isle):
    table = isle.graph.query("SELECT ?p ?o { wd:Q1 ?p ?o FILTER(!isLiteral(?o) || lang(?o) != 'de') } ORDER BY ?p ?o")
    assert table.columns == ("p", "o")
    assert not table.truncated
    cells = {row[1] for row in table.rows}
    assert Cell("entity", "Q2") in cells
    assert Cell("entity", "http://isle.example/Northpoint") in cells
    assert Cell("literal", "1931-03-05T00:00:00Z", f"{XSD}dateTime") in cells
    assert Cell("literal", "never dark", f"{XSD}string") in cells
    assert any(cell.value == "Mara Quill" and cell.language == "en" for cell in cells)


def test_an_unbound_variable_is_none_and_an_anonymous_node_is_blank(isle):
    (row,) = isle.graph.query(
        "SELECT ?x ?y { <http://isle.example/SouthBay> <http://isle.example/near> ?x OPTIONAL { ?x wdt:P22 ?y } }"
    ).rows
    assert row[0].kind == "blank"
    assert row[1] is None


def test_an_iri_without_a_label_is_not_an_entity(isle):
    ((cell,),) = isle.graph.query("SELECT ?x { <http://isle.example/Northpoint> <http://isle.example/near> ?x }").rows
    assert cell == Cell("iri", "http://isle.example/SouthBay")


@pytest.mark.parametrize(("pattern", "answer"), [("wd:Q1 wdt:P22 wd:Q2", True), ("wd:Q2 wdt:P22 wd:Q1", False)])
def test_an_ask_gives_yes_or_no(isle, pattern, answer):
    table = isle.graph.query(f"ASK {{ {pattern} }}")
    assert (table.boolean, table.columns, table.rows) == (answer, (), ())


@pytest.mark.parametrize("prefix", ["wd", "wdt", "p", "ps", "pq", "rdf", "rdfs", "owl", "xsd", "skos", "schema", "bd"])
def test_the_usual_prefixes_need_no_declaration(isle, prefix):
    assert isle.graph.query(f"ASK {{ ?x {prefix}:nothing ?y }}").boolean is False


def test_a_query_may_redeclare_a_prefix(isle):
    table = isle.graph.query("PREFIX wd: <http://isle.example/> SELECT ?n { wd:Northpoint wdt:P1082 ?n }")
    assert table.rows == ((Cell("literal", "412", f"{XSD}integer"),),)


@pytest.mark.parametrize(
    "sparql",
    [
        "INSERT DATA { wd:Q1 wdt:P22 wd:Q9 }",
        "DELETE WHERE { ?a ?b ?c }",
        "DROP ALL",
        "CLEAR DEFAULT",
        "LOAD <http://127.0.0.1/x.ttl>",
        "CONSTRUCT { ?a ?b ?c } WHERE { ?a ?b ?c }",
        "DESCRIBE wd:Q1",
        "ASK {} ; INSERT DATA { wd:Q1 wdt:P22 wd:Q9 }",
        "",
        "who is the father of Mara Quill",
        "SELECT ?x { ?x wdt:P22 ",
        "SELECT ?x { ?x unknown:P22 ?y }",
        "\x00",
        "ASK { ?x rdfs:label '\ud800' }",
        "ASK { " + "{" * 30_000 + "}" * 30_000 + " }",
        "ASK { FILTER(" + "(" * 5000 + "1" + ")" * 5000 + ") }",
        "SELECT ?x { ?x ?y ?z } #" + "x" * 100_000,
    ],
    ids=lambda sparql: ascii(sparql[:30]),
)
def test_an_unsupported_query_is_refused_and_the_next_query_works(isle, sparql):
    with pytest.raises(QueryRefused):
        isle.graph.query(sparql)
    assert isle.graph.query("ASK { wd:Q1 wdt:P22 wd:Q2 }").boolean is True


def test_wikidatas_label_service_is_refused_with_what_to_do_instead(isle):
    with pytest.raises(QueryRefused, match="getLabel"):
        isle.graph.query(
            'SELECT ?x { ?x wdt:P22 ?y SERVICE wikibase:label { bd:serviceParam wikibase:language "en" } }'
        )


def test_an_entity_has_its_english_names_its_description_and_its_articles_title(isle):
    (mara,) = isle.graph.entities(["Q1"])
    assert (mara.id, mara.label, mara.description) == ("Q1", "Mara Quill", "lighthouse keeper")
    assert (set(mara.aliases), mara.title) == ({"the Keeper", "M. Quill"}, "Mara Quill (keeper)")


def test_entities_come_in_the_order_asked_and_unknown_ones_are_left_out(isle):
    ids = ["Q2", "Q12345", "P22", "nonsense", "", "http://isle.example/Northpoint", "Q1", "Q2", "Q0", "q1"]
    entities = isle.graph.entities(ids)
    assert [entity.id for entity in entities] == ["Q2", "P22", "http://isle.example/Northpoint", "Q1", "Q2"]
    assert [entity.label for entity in entities] == ["Tom Quill", "father", "Northpoint", "Mara Quill", "Tom Quill"]


def test_an_entity_without_an_english_label_has_another_one_or_the_end_of_its_iri(isle):
    entities = isle.graph.entities(["Q6", "http://isle.example/SouthBay", "http://isle.example/livesIn"])
    assert [entity.label for entity in entities] == ["Fährmann", 'Réunion "Sud"', "lives in"]


@pytest.mark.parametrize(
    ("title", "entity"),
    [
        ("Mara Quill (keeper)", "Q1"),
        ("mara quill (KEEPER)", "Q1"),
        ("Mara_Quill_(keeper)", "Q1"),
        ("Mara Quill", "Q7"),
        ('Réunion "Sud"', "http://isle.example/SouthBay"),
        ("Northpoint", "http://isle.example/Northpoint"),
    ],
)
def test_the_entity_of_an_article_is_found_by_its_title(isle, title, entity):
    assert isle.graph.entity_of(title).id == entity


def test_an_article_names_its_entity_even_if_the_graph_lacks_it(isle):
    entity = isle.graph.entity_of("Lost Book")
    assert (entity.id, entity.label, entity.title) == ("Q99", "Lost Book", "Lost Book")


@pytest.mark.parametrize("title", ["No Such Page", "Empty Page", "", "🐙"])
def test_a_title_without_an_entity_is_not_found(isle, title):
    with pytest.raises(NotFound):
        isle.graph.entity_of(title)


@pytest.mark.parametrize(
    ("name", "first"),
    [("Mara Quill", "Q1"), ("mara QUILL", "Q1"), ("the keeper", "Q1"), ("quillon", "Q7"), ("Tom", "Q2")],
)
def test_an_entity_is_found_by_its_names_and_their_parts(isle, name, first):
    assert isle.graph.find(name)[0].id == first


def test_an_unknown_name_has_no_results(isle):
    assert isle.graph.find("Nobody At All") == []
    assert isle.graph.find("") == []


def test_a_search_returns_at_most_k_entities(isle):
    assert len(isle.graph.find("quill", 10)) == 3
    assert len(isle.graph.find("quill", 2)) == 2
    assert isle.graph.find("quill", 0) == []


@pytest.mark.parametrize(("entity", "name"), ODD_NAMES.items())
def test_names_with_quotes_line_ends_and_emoji_are_looked_up_safely(isle, entity, name):
    assert [match.label for match in isle.graph.entities([entity])] == [name]
    if entity != "Q4":
        assert [match.id for match in isle.graph.find(name)][:1] == [entity]
    else:
        # A run of spaces or line ends counts as one space in a name.
        assert [match.id for match in isle.graph.find("two lines\\")] == [entity]


@given(
    st.one_of(st.text(), st.text("x:/[]%#@.?\ue000").map("x:".__add__), st.text("\"'\\<>{}?*+.|()[]^$ \n\u0130ßé🐙aQ1"))
)
@example("\ud800")
@example("x:\ud800")
@example("x:%")
@example("a" * 70_000)
@settings(max_examples=examples(150), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_name_or_id_raises_only_source_errors(isle, typed):
    assert isinstance(isle.graph.find(typed), list)
    assert isinstance(isle.graph.entities([typed]), list)
    for look_up in (isle.graph.entity_of, isle.graph.relations):
        with suppress(NotFound):
            look_up(typed)


def test_the_relations_of_an_entity_are_those_of_its_triples(isle):
    relations = isle.graph.relations("Q1")
    assert {relation.id for relation in relations.outgoing} == {
        "P22", "P569", "http://isle.example/livesIn", "http://isle.example/motto",
    }  # fmt: skip
    assert relations.incoming == ()
    assert [relation.id for relation in isle.graph.relations("Q2").incoming] == ["P22"]
    village = isle.graph.relations("http://isle.example/Northpoint")
    assert {relation.id for relation in village.incoming} == {"http://isle.example/livesIn", "http://isle.example/near"}


def test_the_relations_of_an_unknown_entity_are_not_found(isle):
    with pytest.raises(NotFound, match="Q404"):
        isle.graph.relations("Q404")


def test_the_vocabulary_has_every_relation_with_the_kind_of_its_values(isle):
    assert {(relation.id, relation.label, relation.value) for relation in isle.graph.vocabulary()} == {
        ("P22", "father", "entity"),
        ("P569", "date of birth", "date"),
        ("P1082", "population", "number"),
        ("http://isle.example/livesIn", "lives in", "entity"),
        ("http://isle.example/motto", "motto", "text"),
        ("http://isle.example/near", "near", "entity"),
    }
    father = next(relation for relation in isle.graph.vocabulary() if relation.id == "P22")
    assert father == Relation("P22", "father", ("dad",), "entity")


def test_rows_beyond_the_limit_are_dropped_and_reported(crowd):
    table = crowd.query("SELECT ?x { ?x <http://crowd.example/says> ?y }")
    assert (len(table.rows), table.truncated) == (100, True)
    table = crowd.query("SELECT ?x { ?x <http://crowd.example/says> ?y } LIMIT 100")
    assert (len(table.rows), table.truncated) == (100, False)


def test_a_reply_beyond_the_byte_limit_is_truncated_and_reported(crowd_folder):
    graph = EmbeddedGraph(crowd_folder, limits=QueryLimits(reply_bytes=10_000), workers=1)
    table = graph.query("SELECT ?x { ?x <http://crowd.example/says> ?y } LIMIT 900")
    assert 10 < len(table.rows) < 200
    assert table.truncated
    graph.close()


@pytest.mark.parametrize("sparql", RUNAWAYS.values(), ids=RUNAWAYS.keys())
def test_a_runaway_query_is_stopped_at_its_limit_and_the_next_works(crowd, sparql):
    started = time.monotonic()
    with pytest.raises(SourceTimeout, match="stopped at its limit"):
        crowd.query(sparql)
    assert time.monotonic() - started < 4
    assert len(crowd.query("SELECT * { ?a ?b ?c } LIMIT 3").rows) == 3


def test_a_query_over_the_memory_limit_is_stopped_and_the_next_works(crowd_folder):
    graph = EmbeddedGraph(crowd_folder, limits=QueryLimits(timeout_seconds=20, memory_bytes=1 << 30), workers=1)
    with pytest.raises(SourceTimeout, match="1,024 MB of memory"):
        graph.query("SELECT * { ?a ?b ?c . ?d ?e ?f } ORDER BY ?c ?f")
    assert graph.query("ASK { ?a ?b ?c }").boolean is True
    graph.close()


def test_eight_concurrent_threads_get_their_own_results(crowd_folder):
    graph = EmbeddedGraph(crowd_folder, limits=QueryLimits(timeout_seconds=10), workers=2)

    def query_value(number: int) -> str:
        ((cell,),) = graph.query(f"SELECT ?o {{ <http://crowd.example/{number}> ?p ?o }}").rows
        return cell.value

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(query_value, range(200))) == [str(number) for number in range(200)]
    graph.close()


def test_a_runaway_query_does_not_block_other_threads(crowd_folder):
    graph = EmbeddedGraph(crowd_folder, limits=QueryLimits(timeout_seconds=1), workers=2)
    with ThreadPoolExecutor(2) as threads:
        stopped = threads.submit(graph.query, RUNAWAYS["a count over a cross product"])
        for number in range(20):
            assert graph.query(f"ASK {{ <http://crowd.example/{number}> ?p ?o }}").boolean is True
        assert isinstance(stopped.exception(), SourceTimeout)
    graph.close()


def test_a_closed_graph_restarts_at_the_next_query(crowd):
    crowd.close()
    assert crowd.query("ASK { ?a ?b ?c }").boolean is True


def test_a_folder_without_a_graph_is_an_error(tmp_path):
    with pytest.raises(SourceUnavailable, match="no graph"):
        EmbeddedGraph(tmp_path)


def test_a_damaged_graph_is_reported_as_unavailable(crowd_folder, tmp_path):
    (tmp_path / "names").symlink_to(crowd_folder / "names")
    (tmp_path / "relations.json").symlink_to(crowd_folder / "relations.json")
    (tmp_path / GRAPH_FOLDER).mkdir()
    (tmp_path / GRAPH_FOLDER / "CURRENT").write_text("rubbish")
    graph = EmbeddedGraph(tmp_path, workers=1)
    with pytest.raises(SourceUnavailable, match="has died"):
        graph.query("ASK {}")
    graph.close()


LABELS = {
    "Q1": ('"Dorian Adler"@mul', '"دوريان"@ar', '"Дориан"@ru'),
    "Q2": ('"Flussstadt"@de', '"Riverton"@en-gb'),
    "Q3": ('"Moab (DE)"@de', '"Moab"@EN', '"The Moab"@mul'),
    "Q4": ('"Ada"@en-us', '"Ada Reed"@mul', '"Ada R."'),
    "Q5": ('"川"@ja', '"Fluss"@de'),
    "Q6": ('"Englisch"@enm', '"plain"'),
}


@pytest.mark.parametrize("kind", ["embedded", "oxigraph"])
def test_a_label_is_in_the_readers_language_or_in_all_or_in_a_variant_before_any_other(tmp_path, kind):
    names = [f"wd:{id_} rdfs:label {label} ." for id_, labels in LABELS.items() for label in labels]
    names += ['wd:P50 rdfs:label "author"@mul , "Autor"@de ; skos:altLabel "written by"@en-us , "Verfasser"@de .']
    names += [
        'wd:Q1 wdt:P50 wd:Q2 ; wdt:P51 wd:Q3 ; skos:altLabel "D. Adler"@mul , "D. A."@en . wd:P51 rdfs:label "Ort"@de .'
    ]
    file = tmp_path / "labels.ttl"
    prefixes = ("wd", "wdt", "rdfs", "skos")
    file.write_text("\n".join([*(f"@prefix {name}: <{terms.PREFIXES[name]}> ." for name in prefixes), *names]))
    with ExitStack() as stack:
        if kind == "embedded":
            build_world(tmp_path / "worlds", "labels", WorldContents(graph=file))
            graph = open_world(tmp_path / "worlds", "labels").graph
            stack.callback(graph.close)
        else:
            server = stack.enter_context(serving({"labels": file}, tmp_path))
            graph = live_graph(endpoint_of(server, "labels"), tmp_path)
        labels = [entity.label for entity in graph.entities([*LABELS])]
        (dorian,) = graph.entities(["Q1"])
        author, place = graph.vocabulary()
    assert labels == ["Dorian Adler", "Riverton", "Moab", "Ada Reed", "Fluss", "plain"]
    assert dorian.aliases == ("D. A.", "D. Adler")
    assert (author.label, place.label) == ("author", "Ort")
    # An endpoint is asked for the names in the reader's own language and in all of them.
    assert author.aliases == (("written by",) if kind == "embedded" else ())
