"""The graph process: it reaches no other server, is replaced when it dies, and ends with its parent."""

import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from pyoxigraph import Store

from showhow.worlds.embedded.graph_client import GraphWorker, QueryLimits
from showhow.worlds.folder import GRAPH_FOLDER
from showhow.worlds.source import QueryRefused, SourceError, SourceUnavailable
from showhow.worlds.sparql_syntax import check_query
from tests.servers.loopback import QuietServer

ROOT = Path(__file__).resolve().parents[3]
URL = "URL"
CALLS = {
    "plain": "SELECT * { SERVICE <URL> { ?a ?b ?c } }",
    "silent": "ASK { SERVICE SILENT <URL> { ?a ?b ?c } }",
    "lower case": "SELECT * { service <URL> { ?a ?b ?c } }",
    "without spaces": "SELECT*{SERVICE<URL>{?a ?b ?c}}",
    "after a number": "SELECT * { ?x ?y 5 .SERVICE <URL> { ?a ?b ?c } }",
    "glued to a number": "SELECT * { ?x ?y 5SERVICE <URL> { ?a ?b ?c } }",
    "after a comment": "SELECT * { # it's \"all\n SERVICE # <\n <URL> { ?a ?b ?c } }",
    "after a carriage return": "SELECT * { # x\rSERVICE <URL> { ?a ?b ?c } }",
    "between strings": "SELECT * { ?x ?y 'a' . SERVICE <URL> { ?a ?b 'c' } }",
    "after a string that ends in a backslash": 'SELECT * { ?x ?y "a\\\\" . SERVICE <URL> { ?a ?b "c" } }',
    "after a long string": "SELECT * { ?x ?y '''it's ''' . SERVICE <URL> { ?a ?b '''c''' } }",
    "after an empty string": 'SELECT * { ?x ?y "" . SERVICE <URL> { ?a ?b "" } }',
    "after smaller than": "SELECT * { ?x ?y ?z FILTER(?z<3 ) SERVICE <URL> { ?a ?b ?c } FILTER(3>?z) }",
    "after a prefixed name": "PREFIX x: <http://x/> SELECT * { ?s ?p x:y.SERVICE <URL> { ?a ?b ?c } }",
    "after an escaped name": "PREFIX x: <http://x/> SELECT * { ?s ?p x:\\'. SERVICE <URL> { ?a ?b ?c } FILTER('a') }",
    "by a variable": "SELECT * { VALUES ?u { <URL> } SERVICE ?u { ?a ?b ?c } }",
    "in a subquery": "SELECT * { { SELECT * { { SERVICE <URL> { ?a ?b ?c } } } } }",
    "in a filter": "SELECT * { ?x ?y ?z FILTER EXISTS { SERVICE <URL> { ?a ?b ?c } } }",
    "by a prefix": "PREFIX e: <URL> SELECT * { SERVICE e: { ?a ?b ?c } }",
    "by a base": "BASE <URL> SELECT * { SERVICE <> { ?a ?b ?c } }",
    "for wikidata's labels at another place": "PREFIX wikibase: <URL> SELECT * { SERVICE wikibase:label { ?a ?b ?c } }",
}
HARMLESS = {
    "in a string": "SELECT * { ?x ?y 'SERVICE <URL>' }",
    "in a long string": 'SELECT * { ?x ?y """a "SERVICE" <URL> """ }',
    "in a comment": "SELECT * { ?x ?y ?z } # SERVICE <URL>",
    "in an IRI": "SELECT * { ?x <http://x/service> ?z }",
    "in a variable": "SELECT ?service { ?service ?y ?z }",
    "in a name": "SELECT * { ?x wdt:service ?z }",
}


@pytest.fixture
def counting_server():
    """A server on this machine; yields its address and the list of the clients that connected."""
    clients: list[str] = []

    class Counting(BaseHTTPRequestHandler):
        def handle_one_request(self) -> None:
            clients.append(str(self.client_address))
            self.close_connection = True

    server = QuietServer(("127.0.0.1", 0), Counting)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/sparql", clients
    server.shutdown()
    server.server_close()


@pytest.fixture
def worker(crowd_folder):
    started = GraphWorker(crowd_folder / GRAPH_FOLDER, QueryLimits(timeout_seconds=5))
    yield started
    started.close()


def gone(process: int) -> bool:
    """Whether the process has ended; a zombie counts."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def ends_within(process: int, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while not gone(process):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.mark.parametrize("sparql", CALLS.values(), ids=CALLS.keys())
def test_every_spelling_of_a_service_call_is_refused(sparql):
    with pytest.raises(QueryRefused):
        check_query(sparql.replace(URL, "http://127.0.0.1:9/sparql"))


@pytest.mark.parametrize("sparql", HARMLESS.values(), ids=HARMLESS.keys())
def test_the_word_service_outside_a_call_is_allowed(crowd, sparql):
    selected = re.findall(r"\?(\w+)", sparql.removeprefix("SELECT ").partition("{")[0])
    assert set(crowd.query(sparql).columns) == set(selected or re.findall(r"\?(\w+)", sparql))


def test_no_request_leaves_the_graph(crowd, counting_server):
    address, clients = counting_server
    for sparql in CALLS.values():
        with pytest.raises(QueryRefused):
            crowd.query(sparql.replace(URL, address))
    assert clients == []


def test_no_request_leaves_the_process_even_for_an_unchecked_query(worker, counting_server):
    address, clients = counting_server
    for sparql in CALLS.values():
        # Without the guard the query fails or is invalid; no connection may arrive.
        with suppress(SourceError):
            worker.request({"sparql": sparql.replace(URL, address)})
    assert clients == []
    # Control: a process with network access does connect.
    with suppress(OSError, RuntimeError):
        list(Store().query(CALLS["plain"].replace(URL, address)))
    assert len(clients) == 1


def test_a_killed_process_is_replaced_at_the_next_request(worker):
    assert worker.request({"sparql": "ASK {}"}) == {"boolean": True}
    first = worker.pid
    os.kill(first, signal.SIGKILL)
    # Wait until the last thread has ended; the worker collects the process.
    os.waitid(os.P_PID, first, os.WEXITED | os.WNOWAIT)
    # The worker noticed the end before it sent the request, so no request failed.
    assert worker.request({"sparql": "ASK {}"}) == {"boolean": True}
    assert worker.pid != first


def test_a_process_that_dies_during_a_request_is_reported_and_replaced(crowd_folder):
    worker = GraphWorker(crowd_folder / GRAPH_FOLDER, QueryLimits(timeout_seconds=20))
    worker.request({"sparql": "ASK {}"})
    killer = threading.Timer(0.3, os.kill, (worker.pid, signal.SIGKILL))
    killer.start()
    with pytest.raises(SourceUnavailable, match="ended by signal 9"):
        worker.request({"sparql": "SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }"})
    killer.join()
    assert worker.request({"sparql": "ASK {}"}) == {"boolean": True}
    worker.close()


def test_a_relative_folder_is_resolved(crowd_folder):
    worker = GraphWorker(Path(os.path.relpath(crowd_folder / GRAPH_FOLDER)), QueryLimits(timeout_seconds=5))
    assert worker.request({"sparql": "ASK { ?a ?b ?c }"}) == {"boolean": True}
    worker.close()


@pytest.mark.parametrize(
    ("sparql", "message"),
    [
        ("INSERT DATA { <a:b> <a:c> <a:d> }", "would change the graph"),
        ("PREFIX x: <http://x/>\n# all of it\nDELETE WHERE { x:a ?b ?c }", "would change the graph"),
        ("DESCRIBE <a:b>", "CONSTRUCT and DESCRIBE are not"),
        ("SELECT * { ?a ?b ?c", "error at 1:"),
        ("PREFIX insert: <http://x/> SELECT * { ?a ?b }", "error at 1:"),
    ],
)
def test_a_refusal_has_the_parser_message_without_its_list_of_characters(crowd, sparql, message):
    with pytest.raises(QueryRefused, match=message) as refused:
        crowd.query(sparql)
    assert ("line:column" in str(refused.value)) == message.startswith("error")


def test_a_closed_worker_has_no_process(worker):
    worker.request({"sparql": "ASK {}"})
    process = worker.pid
    worker.close()
    assert worker.pid is None
    assert gone(process)


@pytest.mark.parametrize(
    "busy", ["", "worker.request({'sparql': 'SELECT (COUNT(*) AS ?n) { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }'})"]
)
def test_the_process_ends_when_its_parent_is_killed(crowd_folder, busy):
    program = f"""
import sys, time
from pathlib import Path
from showhow.worlds.embedded.graph_client import GraphWorker, QueryLimits
worker = GraphWorker(Path(sys.argv[1]), QueryLimits(timeout_seconds=60))
worker.request({{"sparql": "ASK {{}}"}})
print(worker.pid, flush=True)
{busy}
time.sleep(60)
"""
    with subprocess.Popen(
        [sys.executable, "-c", program, crowd_folder / GRAPH_FOLDER], stdout=subprocess.PIPE, cwd=ROOT
    ) as parent:
        process = int(parent.stdout.readline())
        time.sleep(0.3)
        assert not gone(process)
        parent.kill()
    assert ends_within(process, 5)
