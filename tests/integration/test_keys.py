"""Keys of the environment never appear in files, output, pages or exports."""

import base64
import json
import sqlite3
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from showhow.fewshot_library.formats import writable_formats
from tests.app.cli.in_process import run_in_process
from tests.browser.server import Showhow
from tests.browser.session import open_session
from tests.servers.faulty_server import FaultyServer, Handler, run_faulty_server, says, status
from tests.servers.model import Fails, ModelServer, Request, Says

KEYS = ("sk-planted-0123456789abcdef", "planted-of-the-graph-77")
TOWN = Path(__file__).parents[1] / "tools"
WORLD = """
kind = "live"
[graph]
kind = "sparql"
endpoint = "{url}/sparql"
headers = {{ X-Api-Key = "PLANTED_GRAPH_KEY" }}
[limits]
attempts = 1
"""
ROWS = {"head": {"vars": ["x"]}, "results": {"bindings": [{"x": {"type": "literal", "value": "a quay"}}]}}
QUERY = 'SELECT ?x {{ BIND("{}" AS ?x) }}'


def reply(request: Request) -> Says | Fails:
    """Replies, and sometimes an error that repeats the key, as careless servers do."""
    if request.place % 3 == 2:
        return Fails(400, f"Bad request with {request.headers['authorization']} ({KEYS[0]})")
    return Says("Thought: I know it.\nFinal Answer: a quay", usage=(50, 5))


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(reply, key=KEYS[0]) as server:
        yield server


@pytest.fixture(scope="module")
def graph() -> Iterator[FaultyServer]:
    with run_faulty_server() as server:
        yield server


def repeats(code: int) -> Any:
    """A failing server that repeats the key in its error."""

    def responder(handler: Handler) -> None:
        status(code, f"Wrong: X-Api-Key was {handler.headers['X-Api-Key']}".encode())(handler)

    return responder


class Output:
    """Everything that was printed or served."""

    def __init__(self, showhow: Showhow) -> None:
        self.showhow = showhow
        self.texts: list[str] = []

    def run(self, *words: str) -> None:
        """Run a verb, which may fail, and collect its output."""
        done = run_in_process(self.showhow.home, *words, **self.showhow.environment)
        self.texts += [done.stdout, done.stderr]

    def load_page(self, page: str) -> None:
        """Open a page and collect everything that the server sent for it."""
        with open_session(self.showhow.url, page, {"you": "ada"}) as session:
            self.texts.append(session.received.decode(errors="replace"))


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory, model: ModelServer, graph: FaultyServer) -> Output:
    """A home after real use: a model that answers and fails, a live world that does, traces, exports, pages."""
    showhow = Showhow(tmp_path_factory.mktemp("keys"), empty=True)
    showhow.environment |= {
        "OPENAI_API_KEY": KEYS[0],
        "PLANTED_GRAPH_KEY": KEYS[1],
        "SHOWHOW_MODEL": "openai:scripted",
        "SHOWHOW_MODEL_BASE_URL": model.url,
        "SHOWHOW_MODEL_KEY_VARIABLE": "OPENAI_API_KEY",
        "SHOWHOW_CONTACT": "ada@example.org",
    }
    output = Output(showhow)
    # A small world under the name of the default one, which takes a minute to build.
    showhow.run(
        "world", "import", "default", "--articles", str(TOWN / "harbour.jsonl"), "--graph", str(TOWN / "harbour.ttl")
    )
    questions = showhow.home / "questions.jsonl"
    questions.write_text(json.dumps({"question": "Who built the quay?", "answer": "nobody knows"}), encoding="utf-8")
    showhow.run("questions", "import", str(questions), "--project", "Fictional people", "--world", "default")
    ask_the_graph(output, graph)
    for reasoner in ("humaniq", "fusion"):
        output.run("ask", "Who built the quay?", "--world", "default", "--reasoner", reasoner, "--json")
    output.run("tool", "read", "--world", "default", "title=Ada Reed", "question=Who?", "--json")
    output.run("tools", "report", "--json")
    showhow.start()
    output.texts.append(httpx.get(showhow.url, timeout=60).text)
    for page in ("", "review", "library", "worlds", "tools", "ask", "verify"):
        output.load_page(page)
    showhow.stop()
    for name in writable_formats():
        output.run("traces", "export", str(showhow.home / f"export.{name}"), "--format", name)
    output.run("db", "backup", str(showhow.home / "backup.db"))
    return output


def ask_the_graph(output: Output, graph: FaultyServer) -> None:
    """Query a live world that answers, then fails with errors that repeat the key."""
    file = output.showhow.home / "live.toml"
    file.write_text(WORLD.format(url=graph.url), encoding="utf-8")
    output.run("world", "add", "live", "--file", str(file), "--yes")
    graph.respond_with(says(ROWS))
    output.run("world", "query", "live", QUERY.format("a"), "--json")
    output.run("tool", "runQuery", "--world", "live", f"sparql={QUERY.format('b')}", "--json")
    for code in (400, 401, 500):
        graph.respond_with(repeats(code))
        output.run("tool", "runQuery", "--world", "live", f"sparql={QUERY.format(code)}", "--json")
    output.run("world", "check", "live")
    assert {request.headers["x-api-key"] for request in graph.asked} == {KEYS[1]}


def test_the_keys_were_really_used(used: Output, model: ModelServer):
    assert len(model.requests) >= 3
    # The errors of servers repeat a key; the step quotes them without it.
    assert any("X-Api-Key was" in text for text in used.texts)
    assert {request.headers["authorization"] for request in model.requests} == {f"Bearer {KEYS[0]}"}
    with sqlite3.connect(used.showhow.home / "showhow.db") as store:
        assert store.execute("SELECT count(*) FROM trace").fetchone()[0] > 0
    assert list((used.showhow.home / "worlds" / "live").glob("answers*"))
    assert len(list(used.showhow.home.glob("export.*"))) == len(writable_formats())


@pytest.mark.parametrize("key", KEYS)
def test_no_file_contains_a_key(used: Output, key: str):
    hidden = [key.encode(), base64.b64encode(key.encode())[:-4], key.encode("utf-16-le")]
    files = [file for file in used.showhow.home.rglob("*") if file.is_file()]
    assert len(files) > 20
    assert [str(file) for file in files if any(form in file.read_bytes() for form in hidden)] == []


@pytest.mark.parametrize("key", KEYS)
def test_no_recorded_answer_contains_a_key(used: Output, key: str):
    """Compressed columns are decompressed first."""
    with sqlite3.connect(used.showhow.home / "worlds" / "live" / "answers.sqlite") as record:
        tables = [name for (name,) in record.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        cells = [cell for table in tables for row in record.execute(f"SELECT * FROM {table}") for cell in row]
    assert len(cells) > 5
    assert [cell for cell in cells if key in opened(cell)] == []


def opened(cell: object) -> str:
    if not isinstance(cell, bytes):
        return str(cell)
    with suppress(zlib.error):
        cell = zlib.decompress(cell, wbits=47)
    return cell.decode("utf-8", errors="replace")


@pytest.mark.parametrize("key", KEYS)
def test_no_output_or_page_contains_a_key(used: Output, key: str):
    assert [json.dumps(text)[:300] for text in used.texts if key in text] == []
    assert (used.showhow.home / "server.log").stat().st_size > 0
