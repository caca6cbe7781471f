"""How queries travel, what comes back, and what becomes of failures, with real servers."""

import threading
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from fiction.family import GraphKinshipSource, build_family
from tests.servers.oxigraph import serving
from tests.servers.sparql import free_port
from tests.servers.virtuoso import MOST_ROWS
from tests.worlds.live.graphs import CONTACT, LIVE, SERVERS, endpoint_of, live_graph
from tools.registry import get_tool
from tools.tool import ToolContext
from worlds.live.http.access import Access, RequestPolicy
from worlds.live.http.client import RecordingHttpClient
from worlds.live.http.endpoint import QUERY_METHODS, SparqlEndpoint
from worlds.live.http.request import HttpRequest, HttpResponse, get_host
from worlds.live.http.response_cache import ResponseCache
from worlds.live.sparql.graph import SparqlGraph
from worlds.live.sparql.protocol import SparqlClient
from worlds.neighbourhood import load_neighbourhood
from worlds.source import Cell, QueryRefused, SourceTimeout, SourceUnavailable, World

ISLE = Path(__file__).parents[2] / "isle.ttl"
RUNAWAY = (
    "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i FILTER(STRLEN(CONCAT(STR(?c), STR(?f), STR(?i))) = 7) }"
)


class Watched(RecordingHttpClient):
    """A door that remembers what went through it."""

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
    [pytest.param("oxigraph", method, marks=LIVE) for method in QUERY_METHODS]
    + [pytest.param("virtuoso", method, marks=LIVE) for method in QUERY_METHODS if method != "POST direct"],
)
def test_every_way_of_asking_gets_the_same_answer_from_the_named_graph(request, tmp_path, kind, method):
    server = request.getfixturevalue(kind)
    door = Watched(server.url, tmp_path)
    graph = SparqlGraph(SparqlClient(door, endpoint_of(server, "harbour", method=method)))
    table = graph.query("SELECT ?n { wd:Q1 rdfs:label ?n }")
    assert [row[0].value for row in table.rows] == ["Ada Reed"]
    (sent,) = door.sent
    assert sent.method == ("GET" if method == "GET" else "POST")
    in_address = parse_qs(urlsplit(sent.url).query)
    in_body = parse_qs(sent.content.decode()) if method == "POST form" else {}
    assert {**in_address, **in_body}["default-graph-uri"] == [server.graph("harbour")]
    assert ("query" in in_address) is (method == "GET")


def test_a_query_too_long_for_an_address_is_posted(server, tmp_path):
    door = Watched(server.url, tmp_path)
    graph = SparqlGraph(SparqlClient(door, endpoint_of(server, "isle")))
    nodes = " ".join(f"<http://isle.example/{number:05}>" for number in range(800))
    assert graph.query(f"SELECT ?s {{ VALUES ?s {{ {nodes} }} ?s ?p ?o }}").rows == ()
    assert [sent.method for sent in door.sent] == ["POST"]


def test_the_label_service_is_answered_by_servers_that_have_none(server, tmp_path):
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
def test_labels_are_those_of_the_service_wherever_it_is_called(case, server, tmp_path):
    sparql, rows = LABELLED[case]
    table = live_graph(endpoint_of(server, "isle", prefixes={"isle": "http://isle.example/"}), tmp_path).query(sparql)
    # The order of names in one cell, and of the columns of a star, is nobody's.
    actual = {tuple(", ".join(sorted(cell.value.split(", "))) if cell else None for cell in row) for row in table.rows}
    assert {tuple(sorted(row, key=str)) for row in actual} == {tuple(sorted(row, key=str)) for row in rows}
    assert len(table.rows) == len(rows)


def test_a_syntax_error_is_reported_in_one_sentence_with_its_line(server, tmp_path):
    graph = live_graph(endpoint_of(server, "isle"), tmp_path)
    with pytest.raises(QueryRefused, match=r"no valid SELECT or ASK: .*(2:|line 2)") as refused:
        graph.query("SELECT ?x WHERE {\n ?x wdt:P22 ?y ?z ?w . }\nLIMIT 3")
    assert "\n" not in str(refused.value)
    assert len(str(refused.value)) < 500


@LIVE
def test_the_row_limit_of_virtuoso_is_reported(virtuoso, tmp_path):
    graph = live_graph(endpoint_of(virtuoso, "real", rows=10_000), tmp_path)
    table = graph.query("SELECT ?s ?p ?o { ?s ?p ?o }")
    assert (len(table.rows), table.truncated) == (MOST_ROWS, True)


@LIVE
def test_a_query_that_takes_too_long_is_a_time_out_and_the_next_one_works(virtuoso, tmp_path):
    graph = live_graph(endpoint_of(virtuoso, "real"), tmp_path)
    with pytest.raises(SourceTimeout, match="limit of time"):
        graph.query(RUNAWAY)
    assert graph.query("ASK { ?x wdt:P57 ?y }").boolean is True


@LIVE
@pytest.mark.parametrize(
    "filtered", ["STR(?a) = STR(?d)", "STRLEN(CONCAT(STR(?a), STR(?f))) = 150"], ids=["some rows", "none yet"]
)
def test_an_answer_that_breaks_off_under_status_200_is_a_failure(graph_files, tmp_path, filtered):
    """Oxigraph has said 200, and perhaps sent some rows, when the time for the query is over."""
    with serving({"real": graph_files["real"]}, tmp_path, query_seconds=1) as hasty:
        graph = live_graph(endpoint_of(hasty, "real", rows=100_000), tmp_path)
        with pytest.raises(SourceUnavailable, match="broke off"):
            graph.query(f"SELECT ?a ?d {{ ?a ?b ?c . ?d ?e ?f FILTER({filtered}) }}")
        assert graph.query("ASK { ?x wdt:P57 ?y }").boolean is True


@LIVE
def test_a_way_of_asking_that_a_server_never_answers_ends_in_time(virtuoso, tmp_path):
    """Virtuoso 7.2.5 leaves a query that is posted as it is without any answer."""
    graph = live_graph(endpoint_of(virtuoso, "isle", method="POST direct"), tmp_path, seconds=2)
    with pytest.raises(SourceTimeout, match="within 2 s"):
        graph.query("ASK {}")


def test_what_was_asked_is_answered_offline_from_the_record(server, tmp_path):
    online = live_graph(endpoint_of(server, "isle"), tmp_path)
    queries = (
        online.entities(["Q1"]),
        online.relations("Q1"),
        online.find("Mara Quill"),
        online.query("ASK { ?x wdt:P22 ?y }"),
    )
    # Nobody listens there any more: what is answered comes from the record.
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


def test_offline_a_query_that_the_server_could_not_read_is_refused_in_the_same_words(server, tmp_path):
    messages = []
    for access in (None, Access(offline=True)):
        graph = live_graph(endpoint_of(server, "isle"), tmp_path, *filter(None, [access]))
        with pytest.raises(QueryRefused) as refused:
            graph.query("SELECT ?x WHERE { ?x wdt:P22 ?y . FILTER(STRLEN(?x, ?y)) }")
        messages.append(str(refused.value))
    assert messages[0] == messages[1]


def test_a_server_that_is_not_there_is_unavailable_and_never_empty(tmp_path):
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


@LIVE
def test_name_spaces_of_another_wikibase_are_short_as_well(tmp_path):
    """The isle as another wiki would write it: the same ids in name spaces of its own."""
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
    """Finds nothing like anything else."""
    return np.zeros((len(texts), 1), dtype=np.float32)


def test_eight_threads_at_once_each_get_their_own_answer(server, tmp_path):
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
