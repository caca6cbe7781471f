"""Keys planted in the environment are in nothing that Showhow writes, prints, serves or exports, after real use."""

import base64
import json
import sqlite3
import subprocess
import sys
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from fewshot_library.formats import writable_formats
from tests.browser.server import Showhow
from tests.servers.model import Fails, ModelServer, Request, Says
from tests.servers.moody import Handler, Moody, moody, says, status

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
    """Answers, and now and then an error that repeats the key, as careless servers do."""
    if request.place % 3 == 2:
        return Fails(400, f"Bad request with {request.headers['authorization']} ({KEYS[0]})")
    return Says("Thought: I know it.\nFinal Answer: a quay", usage=(50, 5))


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(reply, key=KEYS[0]) as server:
        yield server


@pytest.fixture(scope="module")
def graph() -> Iterator[Moody]:
    with moody() as server:
        yield server


def repeats(code: int) -> Any:
    """A server that quotes what it was sent when it fails."""

    def mood(handler: Handler) -> None:
        status(code, f"Wrong: X-Api-Key was {handler.headers['X-Api-Key']}".encode())(handler)

    return mood


class Told:
    """All that was printed or served."""

    def __init__(self, showhow: Showhow) -> None:
        self.showhow = showhow
        self.texts: list[str] = []

    def run(self, *words: str) -> None:
        """A verb, whether it succeeds or fails."""
        command = [Path(sys.executable).with_name("showhow"), *words]
        done = subprocess.run(command, env=self.showhow.environment, capture_output=True, text=True, check=False)
        assert "Traceback" not in done.stderr, f"{words}: {done.stderr}"
        self.texts += [done.stdout, done.stderr]

    def see(self, page: str) -> None:
        """A page, as its elements are told to a program."""
        asked = {"page": page, "query_params": {"you": ["ada"]}}
        told = httpx.post(f"{self.showhow.url}/_stcore/agent/interact", json=asked, timeout=120)
        assert told.status_code == 200, told.text
        self.texts.append(told.text)


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory, model: ModelServer, graph: Moody) -> Told:
    """A home after real use: a model that answers and fails, a live world that does, traces, exports, pages."""
    showhow = Showhow(tmp_path_factory.mktemp("keys"), empty=True)
    showhow.environment |= {
        "OPENAI_API_KEY": KEYS[0],
        "PLANTED_GRAPH_KEY": KEYS[1],
        "SHOWHOW_MODEL": "openai:scripted",
        "SHOWHOW_MODEL_BASE_URL": model.url,
        "SHOWHOW_CONTACT": "ada@example.org",
    }
    told = Told(showhow)
    # A small world under the name of the default one, which would take a minute to make.
    showhow.run(
        "world", "import", "default", "--articles", str(TOWN / "harbour.jsonl"), "--graph", str(TOWN / "harbour.ttl")
    )
    asked = showhow.home / "questions.jsonl"
    asked.write_text(json.dumps({"question": "Who built the quay?", "answer": "nobody knows"}), encoding="utf-8")
    showhow.run("questions", "import", str(asked), "--project", "Fictional people", "--world", "default")
    ask_the_graph(told, graph)
    for reasoner in ("humaniq", "fusion"):
        told.run("ask", "Who built the quay?", "--world", "default", "--reasoner", reasoner, "--json")
    told.run("tool", "read", "--world", "default", "title=Ada Reed", "question=Who?", "--json")
    told.run("tools", "report", "--json")
    showhow.start()
    told.texts.append(httpx.get(showhow.url, timeout=60).text)
    for page in ("", "review", "library", "worlds", "tools", "ask", "verify"):
        told.see(page)
    showhow.stop()
    with ThreadPoolExecutor(4) as threads:
        list(
            threads.map(
                lambda name: told.run("traces", "export", str(showhow.home / f"export.{name}"), "--format", name),
                writable_formats(),
            )
        )
    told.run("db", "backup", str(showhow.home / "backup.db"))
    return told


def ask_the_graph(told: Told, graph: Moody) -> None:
    """A live world that answers, and fails with what it was sent in its words."""
    file = told.showhow.home / "live.toml"
    file.write_text(WORLD.format(url=graph.url), encoding="utf-8")
    told.run("world", "add", "live", "--file", str(file))
    graph.will(says(ROWS))
    told.run("world", "query", "live", QUERY.format("a"), "--json")
    told.run("tool", "runQuery", "--world", "live", f"sparql={QUERY.format('b')}", "--json")
    for code in (400, 401, 500):
        graph.will(repeats(code))
        told.run("tool", "runQuery", "--world", "live", f"sparql={QUERY.format(code)}", "--json")
    told.run("world", "check", "live")
    assert {asked.headers["x-api-key"] for asked in graph.asked} == {KEYS[1]}


def test_the_keys_were_really_used(used: Told, model: ModelServer):
    assert len(model.requests) >= 3
    # Servers repeat a key in what they say; the step quotes them without it.
    assert any("X-Api-Key was" in text for text in used.texts)
    assert {request.headers["authorization"] for request in model.requests} == {f"Bearer {KEYS[0]}"}
    with sqlite3.connect(used.showhow.home / "showhow.db") as store:
        assert store.execute("SELECT count(*) FROM trace").fetchone()[0] > 0
    assert list((used.showhow.home / "worlds" / "live").glob("answers*"))
    assert len(list(used.showhow.home.glob("export.*"))) == len(writable_formats())


@pytest.mark.parametrize("key", KEYS)
def test_no_file_holds_a_key(used: Told, key: str):
    hidden = [key.encode(), base64.b64encode(key.encode())[:-4], key.encode("utf-16-le")]
    files = [file for file in used.showhow.home.rglob("*") if file.is_file()]
    assert len(files) > 20
    assert [str(file) for file in files if any(form in file.read_bytes() for form in hidden)] == []


@pytest.mark.parametrize("key", KEYS)
def test_no_recorded_answer_holds_a_key(used: Told, key: str):
    """Whatever a column holds compressed is opened first."""
    with sqlite3.connect(used.showhow.home / "worlds" / "live" / "answers.sqlite") as record:
        tables = [name for (name,) in record.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        cells = [cell for table in tables for row in record.execute(f"SELECT * FROM {table}") for cell in row]  # noqa: S608 - our own tables
    assert len(cells) > 5
    assert [cell for cell in cells if key in opened(cell)] == []


def opened(cell: object) -> str:
    if not isinstance(cell, bytes):
        return str(cell)
    with suppress(zlib.error):
        cell = zlib.decompress(cell, wbits=47)
    return cell.decode("utf-8", errors="replace")


@pytest.mark.parametrize("key", KEYS)
def test_nothing_printed_or_served_holds_a_key(used: Told, key: str):
    assert [json.dumps(text)[:300] for text in used.texts if key in text] == []
    assert (used.showhow.home / "server.log").stat().st_size > 0
