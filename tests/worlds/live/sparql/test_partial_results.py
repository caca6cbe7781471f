"""A result that its server says is partial is partial everywhere: in the table, in the step, and in a replay."""

import contextlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest

from showhow.tools.registry import get_tool
from showhow.tools.tool import ToolContext
from showhow.worlds.live.description import SparqlEndpoint
from showhow.worlds.live.http.request import Access
from showhow.worlds.neighbourhood import load_neighbourhood
from showhow.worlds.source import SourceError, SourceTimeout, World
from tests.servers.faulty_server import FaultyServer, Handler, Responder, run_faulty_server
from tests.worlds.live.graphs import live_graph

STATE = {"X_SQL_State": "S1TAT", "X_SQL_Message": "Returning incomplete results, query interrupted by result timeout."}
ROWS = [{"x": {"type": "literal", "value": f"row {number}"}} for number in range(3)]


def result(rows: list[object]) -> str:
    return json.dumps({"head": {"vars": ["x"]}, "results": {"bindings": rows}})


def sends(body: str, status: int = 200, **headers: str) -> Responder:
    def responder(handler: Handler) -> None:
        kind, length = "application/sparql-results+json", str(len(body.encode()))
        handler.begin(status, Content_Type=kind, Content_Length=length, **headers)
        handler.wfile.write(body.encode())

    return responder


@pytest.fixture
def server() -> Iterator[FaultyServer]:
    with run_faulty_server() as started:
        yield started


PARTIAL: dict[str, tuple[Responder, int]] = {  # with the rows that are left
    "a header": (sends(result(ROWS), **STATE), 3),
    "a header without a message": (sends(result(ROWS), X_SQL_State="S1TAT"), 3),
    "header and status": (sends(result(ROWS), 206, **STATE), 3),
    "only the status": (sends(result(ROWS), 206), 3),
    "no rows at all": (sends(result([]), **STATE), 0),
    "a message in a row": (
        sends(f"{result(ROWS)[:-20]}!!!!>># An error has occurred while exporting the query result:\nOut of time."),
        2,
    ),
    "a message after all rows": (sends(f"{result(ROWS)[:-2]}\njava.util.concurrent.TimeoutException\n\tat java"), 3),
    "an object after the document": (sends(f'{result(ROWS)}{{"exception": "Operation timed out."}}'), 3),
    "a message before any row": (sends('{"head": {"vars": ["x"]}, "results": {"bindings": [\nError: cancelled'), 0),
}


@pytest.mark.parametrize("case", PARTIAL)
def test_a_partial_result_says_so_in_the_table_the_step_and_offline(server: FaultyServer, tmp_path: Path, case: str):
    responder, rows = PARTIAL[case]
    server.respond_with(responder)
    endpoint = SparqlEndpoint(f"{server.url}/sparql")

    def run(access: Access) -> object:
        graph = live_graph(endpoint, tmp_path, access, seconds=5)
        table = graph.query("SELECT ?x { ?s ?p ?x }")
        assert (len(table.rows), table.truncated) == (rows, True)
        assert table.note.startswith(f"This result is partial, since {server.host} stopped the query")
        context = ToolContext(World("live", graph=graph), lambda texts: np.zeros((len(texts), 1), np.float32))
        step = get_tool("runQuery").call(context, {"sparql": "SELECT ?x { ?s ?p ?x }"}).observation
        assert step is not None
        assert step.data["truncated"] is True
        assert "matches nothing" not in step.text
        assert table.note in step.text
        return table

    assert run(Access("tests@showhow.example")) == run(Access(offline=True))


def test_a_count_of_a_part_and_a_no_are_partial(server: FaultyServer, tmp_path: Path):
    graph = live_graph(SparqlEndpoint(f"{server.url}/sparql"), tmp_path, seconds=5)
    server.respond_with(sends('{"head": {}, "boolean": false}', **STATE))
    assert graph.query("ASK { ?s ?p ?o }").truncated
    server.respond_with(sends(result([{"x": {"type": "literal", "value": "17"}}]), **STATE))
    table = graph.query("SELECT (COUNT(*) AS ?x) { ?s ?p ?o }")
    assert (table.rows[0][0] is not None, table.truncated, "counts are too small" in table.note) == (True, True, True)


@pytest.mark.parametrize("state", ["", "00000"])
def test_a_whole_result_with_the_header_is_whole(server: FaultyServer, tmp_path: Path, state: str):
    server.respond_with(sends(result(ROWS), X_SQL_State=state))
    table = live_graph(SparqlEndpoint(f"{server.url}/sparql"), tmp_path, seconds=5).query("SELECT ?x { ?s ?p ?x }")
    assert (table.truncated, table.note) == (False, "")


def test_names_and_relations_of_which_a_part_is_missing_are_not_taken_for_absent(server: FaultyServer, tmp_path: Path):
    graph = live_graph(SparqlEndpoint(f"{server.url}/sparql"), tmp_path, seconds=5)
    server.respond_with(sends('{"head": {"vars": ["p"]}, "results": {"bindings": []}}', **STATE))
    calls: list[Callable[[], object]] = [lambda: graph.relations("Q1"), graph.vocabulary]
    for call in calls:
        with pytest.raises(SourceTimeout, match="midway"):
            call()


@pytest.mark.parametrize("value", ["²", "9" * 5_000, "-1", "1.5", "", "x"], ids=lambda value: value[:9])
def test_a_server_that_answers_with_another_value_than_a_number_is_told(
    server: FaultyServer, tmp_path: Path, value: str
):
    def answer(handler: Handler) -> None:
        """One row with this value in every column that the query names."""
        query = parse_qs(urlsplit(handler.path).query)["query"][0]
        names = re.findall(r"\?(\w+)", query.partition("WHERE")[0])
        iris = {
            name: {"type": "uri", "value": f"http://a.example/{name}"} for name in ("s", "p", "o", "page", "relation")
        }
        row = {name: iris.get(name, {"type": "literal", "value": value}) for name in names}
        sends(json.dumps({"head": {"vars": names}, "results": {"bindings": [row]}}))(handler)

    server.respond_with(answer)
    graph = live_graph(SparqlEndpoint(f"{server.url}/sparql"), tmp_path)
    context = ToolContext(World("odd", graph=graph), lambda texts: np.zeros((len(texts), 1)))
    calls = {
        "getLabel": {"ids": ["http://a.example/s"]},
        "getRelationsAsHead": {"entity": "http://a.example/s"},
        "getTailEntities": {"entity": "http://a.example/s", "relation": "http://a.example/p"},
    }
    for name, arguments in calls.items():
        outcome = get_tool(name).call(context, arguments)
        assert outcome.error is None or "\n" not in outcome.error
    with contextlib.suppress(SourceError):
        load_neighbourhood(graph, "http://a.example/s")
    with pytest.raises(SourceError, match=r"The graph answered with '.{0,40}' where a number was asked for"):
        graph.find("Ada", 1)


def test_a_partial_result_is_asked_for_again_while_online(server: FaultyServer, tmp_path: Path):
    graph = live_graph(SparqlEndpoint(f"{server.url}/sparql"), tmp_path, seconds=5)
    server.respond_with(sends(result(ROWS[:1]), **STATE), sends(result(ROWS)))
    assert [len(graph.query("SELECT ?x { ?s ?p ?x }").rows) for _ in range(3)] == [1, 3, 3]


def sends_chunks(body: str, *trailers: str) -> Responder:
    def responder(handler: Handler) -> None:
        kind = "application/sparql-results+json"
        handler.begin(200, Content_Type=kind, Transfer_Encoding="chunked")
        content = body.encode()
        for start in range(0, len(content), 100):
            part = content[start : start + 100]
            handler.wfile.write(b"%x\r\n%b\r\n" % (len(part), part))
        handler.wfile.write("".join(["0\r\n", *(f"{line}\r\n" for line in trailers), "\r\n"]).encode())

    return responder


STATUS = "X-Neptune-Status: 500 TimeLimitExceededException"


@pytest.mark.parametrize(
    "trailers", [(STATUS,), ("X-SQL-State: S1TAT", "X-SQL-Message: Interrupted."), ("A: b", STATUS)]
)
def test_a_trailer_that_says_that_the_query_was_stopped_makes_the_result_partial(
    server: FaultyServer, tmp_path: Path, trailers: tuple[str, ...]
):
    server.respond_with(sends_chunks(result(ROWS), *trailers))
    endpoint = SparqlEndpoint(f"{server.url}/sparql")
    for access in (Access("tests@showhow.example"), Access(offline=True)):
        table = live_graph(endpoint, tmp_path, access, seconds=5).query("SELECT ?x { ?s ?p ?x }")
        assert (len(table.rows), table.truncated) == (3, True)
        assert table.note.startswith(f"This result is partial, since {server.host} stopped the query")
    assert server.asked[0].headers["te"] == "trailers"


@pytest.mark.parametrize("trailers", [(), ("X-Neptune-Status: 200 OK",), ("X-SQL-State: 00000",), ("0: x",)])
def test_a_whole_result_in_chunks_is_whole_whatever_its_rows_say(
    server: FaultyServer, tmp_path: Path, trailers: tuple[str, ...]
):
    rows = [{"x": {"type": "literal", "value": f"\r\n0\r\n{STATUS}\r\n\r\n"}}]
    server.respond_with(sends_chunks(json.dumps(json.loads(result(rows)), indent=1), *trailers))
    table = live_graph(SparqlEndpoint(f"{server.url}/sparql"), tmp_path, seconds=5).query("SELECT ?x { ?s ?p ?x }")
    assert (len(table.rows), table.truncated, table.note) == (1, False, "")
