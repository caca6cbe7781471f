"""The SPARQL client with real servers: requests, results and errors."""

import json
import threading
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from showhow.fiction.family import GraphKinshipSource, build_family
from showhow.tools.registry import get_tool
from showhow.tools.tool import ToolContext
from showhow.worlds.live.description import QUERY_METHODS, SparqlEndpoint
from showhow.worlds.live.http.client import RecordingHttpClient
from showhow.worlds.live.http.request import Access, HttpRequest, HttpResponse, RequestPolicy, get_host
from showhow.worlds.live.http.response_cache import ResponseCache
from showhow.worlds.live.sparql.graph import SparqlGraph
from showhow.worlds.live.sparql.protocol import SparqlClient, map_failure, parse_results
from showhow.worlds.live.sparql.rewrite import prepare_query
from showhow.worlds.neighbourhood import load_neighbourhood
from showhow.worlds.source import Cell, QueryRefused, SourceTimeout, SourceUnavailable, Table, World
from tests.servers.loopback import free_port
from tests.servers.oxigraph import serving
from tests.servers.virtuoso import MOST_ROWS
from tests.worlds.live.graphs import CONTACT, SERVERS, endpoint_of, live_graph

ISLE = Path(__file__).parents[2] / "isle.ttl"
RUNAWAY = (
    "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i FILTER(STRLEN(CONCAT(STR(?c), STR(?f), STR(?i))) = 7) }"
)


class Watched(RecordingHttpClient):
    """A client that records its requests."""

    def __init__(
        self, url: str, folder: Path, access: Access = CONTACT, headers: tuple[tuple[str, str], ...] = ()
    ) -> None:
        policy = RequestPolicy(frozenset({get_host(url)}), headers, max_per_minute=1_000_000, timeout_seconds=60)
        super().__init__(policy, ResponseCache(folder / "answers.sqlite"), access)
        self.sent: list[HttpRequest] = []

    def send(self, request: HttpRequest) -> HttpResponse:
        self.sent.append(request)
        return super().send(request)


@pytest.fixture(params=SERVERS)
def server(request):
    return request.getfixturevalue(request.param)


@pytest.mark.parametrize(
    ("kind", "method"),
    [("oxigraph", method) for method in QUERY_METHODS]
    + [("virtuoso", method) for method in QUERY_METHODS if method != "POST direct"],
)
def test_every_query_method_returns_the_same_result_from_the_default_graph(request, tmp_path, kind, method):
    server = request.getfixturevalue(kind)
    client = Watched(server.url, tmp_path)
    graph = SparqlGraph(SparqlClient(client, endpoint_of(server, "harbour", method=method)))
    table = graph.query("SELECT ?n { wd:Q1 rdfs:label ?n }")
    assert [row[0].value for row in table.rows] == ["Ada Reed"]
    (sent,) = client.sent
    assert sent.method == ("GET" if method == "GET" else "POST")
    in_address = parse_qs(urlsplit(sent.url).query)
    in_body = parse_qs(sent.content.decode()) if method == "POST form" else {}
    assert {**in_address, **in_body}["default-graph-uri"] == [server.graph("harbour")]
    assert ("query" in in_address) is (method == "GET")


def test_a_query_too_long_for_a_url_is_posted(server, tmp_path):
    client = Watched(server.url, tmp_path)
    graph = SparqlGraph(SparqlClient(client, endpoint_of(server, "isle")))
    nodes = " ".join(f"<http://isle.example/{number:05}>" for number in range(800))
    assert graph.query(f"SELECT ?s {{ VALUES ?s {{ {nodes} }} ?s ?p ?o }}").rows == ()
    assert [sent.method for sent in client.sent] == ["POST"]


def test_label_service_calls_are_rewritten_for_servers_without_it(server, tmp_path):
    graph = live_graph(endpoint_of(server, "isle"), tmp_path)
    table = graph.query(
        "SELECT ?x ?xLabel ?xDescription WHERE { VALUES ?x { wd:Q1 wd:Q6 wd:Q404 } "
        'SERVICE wikibase:label { bd:serviceParam wikibase:language "[AUTO_LANGUAGE],de". } } ORDER BY ?x'
    )
    rows = {row[0].value: tuple(cell.value if cell else None for cell in row[1:]) for row in table.rows}
    assert rows == {"Q1": ("Mara Quill", "lighthouse keeper"), "Q6": ("Fährmann", None), "Q404": ("Q404", None)}
    table = graph.query(
        "SELECT ?father ?fatherLabel (COUNT(?x) AS ?n) WHERE { ?x wdt:P22 ?father "
        'SERVICE wikibase:label { bd:serviceParam wikibase:language "en" } } GROUP BY ?father ?fatherLabel'
    )
    assert [[cell.value for cell in row] for row in table.rows] == [["Q2", "Tom Quill", "2"]]


SERVICE = 'SERVICE wikibase:label { bd:serviceParam wikibase:language "en" }'
MARA, OLE, TOM = "Mara Quill", 'Ole "the Oar" O\'Hara', "Tom Quill"
LABELLED: dict[str, tuple[str, set[tuple[str | None, ...]]]] = {
    "nothing there to be named": (
        f"SELECT ?x ?xLabel ?y ?yLabel {{ ?x wdt:P22 wd:Q2 OPTIONAL {{ ?x wdt:P569 ?y FILTER(false) }} {SERVICE} }}",
        {("Q1", MARA, None, None), ("Q3", OLE, None, None)},
    ),
    "what only one side of a union has": (
        f"SELECT ?xLabel ?yLabel {{ {{ wd:Q1 wdt:P22 ?x {SERVICE} }} UNION {{ ?y wdt:P22 wd:Q2 {SERVICE} }} }}",
        {(TOM, None), (None, MARA), (None, OLE)},
    ),
    "the service called twice": (
        f"SELECT ?x ?xLabel ?yLabel {{ {{ ?x wdt:P22 ?y {SERVICE} }} {SERVICE} }}",
        {("Q1", MARA, TOM), ("Q3", OLE, TOM)},
    ),
    "called in a query inside and outside": (
        f"SELECT ?xLabel ?yLabel {{ {{ SELECT ?x ?xLabel {{ ?x wdt:P569 ?d {SERVICE} }} }} ?x wdt:P22 ?y {SERVICE} }}",
        {(MARA, TOM)},
    ),
    "all other names in one row": (
        f"SELECT ?x ?xAltLabel ?yAltLabel {{ ?x wdt:P22 ?y {SERVICE} }}",
        {("Q1", "M. Quill, the Keeper", None), ("Q3", None, None)},
    ),
    "a text is its own name": (
        f'SELECT ?xLabel {{ VALUES ?x {{ "a/b#c" isle:Nowhere }} {SERVICE} }}',
        {("a/b#c",), ("Nowhere",)},
    ),
    "no variables of ours": (
        "SELECT * { wd:Q1 wdt:P22 ?x "
        'SERVICE wikibase:label { bd:serviceParam wikibase:language "en" . ?x rdfs:label ?n } }',
        {(TOM, "Q2")},
    ),
}


@pytest.mark.parametrize("case", LABELLED)
def test_rewritten_labels_equal_those_of_the_service(case, server, tmp_path):
    sparql, rows = LABELLED[case]
    table = live_graph(endpoint_of(server, "isle", prefixes={"isle": "http://isle.example/"}), tmp_path).query(sparql)
    # The order of names in one cell, and of the columns of SELECT *, is undefined.
    actual = {tuple(", ".join(sorted(cell.value.split(", "))) if cell else None for cell in row) for row in table.rows}
    assert {tuple(sorted(row, key=str)) for row in actual} == {tuple(sorted(row, key=str)) for row in rows}
    assert len(table.rows) == len(rows)


def test_a_syntax_error_is_reported_in_one_sentence_with_its_line(server, tmp_path):
    graph = live_graph(endpoint_of(server, "isle"), tmp_path)
    with pytest.raises(QueryRefused, match=r"not a valid SELECT or ASK: .*(2:|line 2)") as refused:
        graph.query("SELECT ?x WHERE {\n ?x wdt:P22 ?y ?z ?w . }\nLIMIT 3")
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 500


def test_the_row_limit_of_virtuoso_is_reported(virtuoso, tmp_path):
    graph = live_graph(endpoint_of(virtuoso, "real", rows=10_000), tmp_path)
    table = graph.query("SELECT ?s ?p ?o { ?s ?p ?o }")
    assert (len(table.rows), table.truncated) == (MOST_ROWS, True)


def test_a_slow_query_times_out_and_the_next_one_works(virtuoso, tmp_path):
    graph = live_graph(endpoint_of(virtuoso, "real"), tmp_path)
    with pytest.raises(SourceTimeout, match="time limit"):
        graph.query(RUNAWAY)
    assert graph.query("ASK { ?x wdt:P57 ?y }").boolean is True


@pytest.mark.parametrize(
    "filtered", ["STR(?a) = STR(?d)", "STRLEN(CONCAT(STR(?a), STR(?f))) = 150"], ids=["some rows", "none yet"]
)
def test_a_truncated_response_with_status_200_is_a_partial_result(graph_files, tmp_path, filtered):
    """Oxigraph has sent status 200, and perhaps some rows, when the query reaches its time limit."""
    with serving({"real": graph_files["real"]}, tmp_path, query_seconds=1) as hasty:
        graph = live_graph(endpoint_of(hasty, "real", rows=100_000), tmp_path)
        table = graph.query(f"SELECT ?a ?d {{ ?a ?b ?c . ?d ?e ?f FILTER({filtered}) }}")
        assert (table.truncated, "stopped the query" in table.note) == (True, True)
        assert graph.query("ASK { ?x wdt:P57 ?y }").boolean is True


def test_an_unsupported_query_method_times_out(virtuoso, tmp_path):
    """Virtuoso 7.2.5 never answers a query that is posted directly."""
    graph = live_graph(endpoint_of(virtuoso, "isle", method="POST direct"), tmp_path, seconds=2)
    with pytest.raises(SourceTimeout, match="within 2 s"):
        graph.query("ASK {}")


def test_recorded_queries_are_answered_offline(server, tmp_path):
    online = live_graph(endpoint_of(server, "isle"), tmp_path)
    queries = (
        online.entities(["Q1"]),
        online.relations("Q1"),
        online.find("Mara Quill"),
        online.query("ASK { ?x wdt:P22 ?y }"),
    )
    # The server has ended, so the results come from the response cache.
    offline = live_graph(endpoint_of(server, "isle"), tmp_path, Access(offline=True))
    again = (
        offline.entities(["Q1"]),
        offline.relations("Q1"),
        offline.find("Mara Quill"),
        offline.query("ASK { ?x wdt:P22 ?y }"),
    )
    assert again == queries
    with pytest.raises(SourceUnavailable, match="offline"):
        offline.query("ASK { ?x wdt:P569 ?y }")


def test_a_recorded_syntax_error_is_raised_again_offline(server, tmp_path):
    messages = []
    for access in (None, Access(offline=True)):
        graph = live_graph(endpoint_of(server, "isle"), tmp_path, *filter(None, [access]))
        with pytest.raises(QueryRefused) as refused:
            graph.query("SELECT ?x WHERE { ?x wdt:P22 ?y . FILTER(STRLEN(?x, ?y)) }")
        messages.append(str(refused.value))
    assert messages[0] == messages[1]


def test_an_unreachable_server_is_an_error_and_never_an_empty_result(tmp_path):
    graph = live_graph(SparqlEndpoint(f"http://127.0.0.1:{free_port()}/sparql"), tmp_path, seconds=1)
    for ask in (
        lambda: graph.query("SELECT ?x { ?x ?y ?z }"),
        lambda: graph.entities(["Q1"]),
        lambda: graph.find("Ada"),
        lambda: graph.entity_of("Ada"),
        lambda: graph.relations("Q1"),
        graph.vocabulary,
    ):
        with pytest.raises((SourceUnavailable, SourceTimeout)):
            ask()


def test_name_spaces_of_another_wikibase_are_short_as_well(tmp_path):
    """The isle in another Wikibase: the same ids in its own namespaces."""
    text = ISLE.read_text(encoding="utf-8").replace("http://www.wikidata.org/", "http://ours.example/")
    own_file = tmp_path / "own.ttl"
    own_file.write_text(text, encoding="utf-8")
    (tmp_path / "server").mkdir()
    with serving({"own": own_file}, tmp_path / "server") as server:
        spaces = {"entity": "http://ours.example/entity/", "property": "http://ours.example/prop/direct/"}
        graph = live_graph(endpoint_of(server, "own", **spaces), tmp_path)
        assert graph.query("SELECT ?father { wd:Q1 wdt:P22 ?father }").rows == ((Cell("entity", "Q2"),),)
        assert [entity.label for entity in graph.entities(["Q2", "P22"])] == ["Tom Quill", "father"]
        assert [entity.id for entity in graph.find("mara quill")] == ["Q1", "Q7"]
        assert {relation.id for relation in graph.relations("Q1").outgoing} >= {"P22", "P569"}
        assert {branch.relation.label for branch in load_neighbourhood(graph, "Q1").branches} >= {"father", "lives in"}
        assert build_family(GraphKinshipSource(graph), "Q1").parents["Q1"] == ("Q2",)
        result = get_tool("generateQuery").call(
            ToolContext(World("own", graph=graph), no_meaning),
            {"question": "Who is the father of Mara Quill?", "entity_ids": "Q1"},
        )
        assert graph.query(result.observation.text).rows[0][0] == Cell("entity", "Q2")


def no_meaning(texts: Sequence[str]) -> np.ndarray:
    """An encoder for which no texts are similar."""
    return np.zeros((len(texts), 1), dtype=np.float32)


def test_eight_concurrent_threads_get_their_own_results(server, tmp_path):
    graph = live_graph(endpoint_of(server, "harbour"), tmp_path)
    labels: dict[str, str] = {}

    def label(one: str) -> None:
        labels[one] = graph.entities([one])[0].label

    threads = [threading.Thread(target=label, args=(f"Q{number}",)) for number in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert labels == {
        "Q1": "Ada Reed", "Q2": "Bram Reed", "Q3": "Cora Reed", "Q4": 'Dan O"Shea',
        "Q5": "Eli Reed", "Q6": "Fay Lund", "Q7": "Gus Holm", "Q8": "Hugo Reed",
    }  # fmt: skip


XSD = "http://www.w3.org/2001/XMLSchema#"
QUERY = prepare_query("SELECT ?x\n{ ?x wdt:P22 ?y }", SparqlEndpoint("http://g.example/sparql"))


def result(columns: list[str], *rows: dict[str, dict[str, str]]) -> bytes:
    return json.dumps(
        {"head": {"link": [], "vars": columns}, "results": {"distinct": False, "bindings": rows}}
    ).encode()


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        ({"type": "uri", "value": "http://a.example/"}, Cell("iri", "http://a.example/")),
        ({"type": "uri", "value": "nodeID://b10000"}, Cell("blank", "b10000")),
        ({"type": "bnode", "value": "b0"}, Cell("blank", "b0")),
        ({"type": "bnode", "value": "_:b0"}, Cell("blank", "b0")),
        ({"type": "literal", "value": "x"}, Cell("literal", "x", f"{XSD}string")),
        ({"type": "typed-literal", "value": "3", "datatype": f"{XSD}integer"}, Cell("literal", "3", f"{XSD}integer")),
        ({"type": "literal", "value": "3", "datatype": f"{XSD}integer"}, Cell("literal", "3", f"{XSD}integer")),
        (
            {"type": "literal", "value": "x", "xml:lang": "de"},
            Cell("literal", "x", "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString", "de"),
        ),
    ],
)
def test_cells_are_equal_for_all_servers(value, cell):
    assert parse_results(result(["x", "y"], {"x": value}), "g.example") == Table(("x", "y"), ((cell, None),))


@pytest.mark.parametrize(
    ("body", "answer"),
    [
        (b'{"head": {}, "boolean": true}', True),
        (b'{"head": {"link": []}, "boolean": false}', False),
        (result(["__ASK_RETVAL"], {"__ASK_RETVAL": {"type": "typed-literal", "value": "1"}}), True),
        (result(["__ASK_RETVAL"], {"__ASK_RETVAL": {"type": "typed-literal", "value": "0"}}), False),
        (result(["__ASK_RETVAL"]), False),
    ],
)
def test_an_ask_is_parsed_from_a_boolean_and_from_virtuosos_table(body, answer):
    assert parse_results(body, "g.example") == Table(boolean=answer)


WHOLE = result(["x"], *({"x": {"type": "uri", "value": f"http://a.example/{n}"}} for n in range(3)))


@pytest.mark.parametrize("length", [*range(1, len(WHOLE), 7), len(WHOLE) - 1])
def test_a_result_truncated_anywhere_is_an_error(length):
    with pytest.raises(SourceUnavailable, match="server stopped the query"):
        parse_results(WHOLE[:length], "g.example")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Busy</html>",
        b"[]",
        b"null",
        b"{}",
        b'{"results": {}}',
        b'{"head": {"vars": ["x"]}, "results": 3}',
        b"\xff\xfe",
    ],
)
def test_an_invalid_result_is_an_error_and_never_an_empty_table(body):
    with pytest.raises(SourceUnavailable, match=r"g\.example"):
        parse_results(body, "g.example")


BLAZEGRAPH = """SPARQL-QUERY: queryStr=PREFIX wdt: <x>
SELECT ?x
java.util.concurrent.ExecutionException: \
org.openrdf.query.MalformedQueryException: Encountered " "}" "} "" at line 3, column 14.
Was expecting one of:
    "(" ...
\tat java.util.concurrent.FutureTask.report(FutureTask.java:122)
"""
BLAZEGRAPH_LATE = """SPARQL-TIMEOUT: queryStr=SELECT ?x
java.util.concurrent.TimeoutException
\tat java.util.concurrent.FutureTask.get(FutureTask.java:205)
"""
VIRTUOSO = (
    "Virtuoso 37000 Error SP030: SPARQL compiler, line 3: syntax error at '}'\n\nSPARQL query:\n"
    "define sql:big-data-const 0 SELECT ?x { ?x wdt:P22 }"
)
VIRTUOSO_LATE = "Virtuoso S1T00 Error SR171: Transaction timed out\n\nSPARQL query:\nSELECT ?x"
QLEVER = json.dumps(
    {
        "exception": 'Invalid SPARQL query: Token "}": mismatched input',
        "metadata": {"startIndex": 50, "stopIndex": 50, "line": 3, "positionInLine": 13, "query": "SELECT"},
        "query": "SELECT",
    }
)


@pytest.mark.parametrize(
    ("status", "body", "error", "message_pattern"),
    [
        (400, "error at 3:14: expected one of ['a'..='z'], \"}\"", QueryRefused, r"error at 2:14: expected one of"),
        (400, VIRTUOSO, QueryRefused, r"SPARQL compiler, line 2: syntax error at '}'"),
        (400, BLAZEGRAPH, QueryRefused, r"at line 2, column 14"),
        (500, BLAZEGRAPH, QueryRefused, r"at line 2, column 14"),
        (400, QLEVER, QueryRefused, r"at 2:13: Invalid SPARQL query"),
        (400, "", QueryRefused, "does not say why"),
        (500, VIRTUOSO_LATE, SourceTimeout, "time limit"),
        (500, BLAZEGRAPH_LATE, SourceTimeout, "time limit"),
        (429, json.dumps({"exception": "Operation timed out."}), SourceTimeout, "time limit"),
        (500, "Virtuoso 22012 Error SR084: Division by 0.", SourceUnavailable, r"status 500: .*Division by 0"),
        (401, "", SourceUnavailable, "headers"),
        (403, "<html><h1>Forbidden</h1></html>", SourceUnavailable, "Forbidden.*SHOWHOW_CONTACT"),
        (404, "<html>", SourceUnavailable, "no such address"),
        (414, "<html>", QueryRefused, "too long"),
        (418, "", SourceUnavailable, "status 418"),
    ],
)
def test_an_error_is_one_sentence_with_the_position_in_the_original_query(status, body, error, message_pattern):
    failure = map_failure(status, body.encode(), "g.example", QUERY)
    assert type(failure) is error
    message = str(failure)
    assert "\n" not in message
    assert "java." not in message
    assert "SELECT ?x" not in message
    with pytest.raises(error, match=message_pattern):
        raise failure


def test_a_long_explanation_is_cut():
    assert len(str(map_failure(400, b"x" * 100_000, "g.example", QUERY))) < 600
