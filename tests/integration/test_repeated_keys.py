"""Servers and programs that repeat the secrets they were given: nothing that is stored, shown or exported has them."""

import base64
import io
import json
import re
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet
import pytest

from showhow.db.run_spec import RunSpec
from showhow.db.traces.traces import load_trace
from showhow.fewshot_library.formats import writable_formats
from showhow.runs.ask import AskRequest, begin_run
from showhow.runs.services import Services
from showhow.settings import Settings
from tests.app.cli.in_process import run_in_process, shared_encoder
from tests.browser.server import Showhow
from tests.browser.session import open_session
from tests.servers.faulty_server import FaultyServer, Handler, run_faulty_server, says
from tests.servers.model import Fails, ModelServer, Reply, Request, Says

pytestmark = pytest.mark.long

MODEL_KEY = 'sk-Qx7"Vb9/Wn3+Zk5<&>Jh2\\Tg8Lm4'
TOOL_KEY = "Rt6-Yp1-Cv0-Ds9-Fk2"
SERVER_TOKEN = "Mw4.Ne8.Bu3.Ki7.Lo5"  # noqa: S105 - planted
WORLD_KEY = "Ga2_Hu6_Ji9_Ko3_Lp1"
# Any escape of the characters between two parts of a key.
TRACES_OF_KEYS = [
    rb"Qx7.{1,30}Vb9|Zk5.{1,40}Jh2|Tg8Lm4",
    rb"Rt6.{1,20}Yp1|Ds9.{1,20}Fk2",
    rb"Mw4.{1,20}Ne8|Ki7.{1,20}Lo5",
    rb"Ga2.{1,20}Hu6|Ko3.{1,20}Lp1",
    *(re.escape(base64.b64encode(key.encode())[4:-4]) for key in (MODEL_KEY, TOOL_KEY, SERVER_TOKEN, WORLD_KEY)),
    *(key.encode().hex()[4:-4].encode() for key in (MODEL_KEY, TOOL_KEY, SERVER_TOKEN, WORLD_KEY)),
]
TOWN = Path(__file__).parents[1] / "tools"
FUNCTIONS = """
import base64, os, sys, time
from urllib.parse import quote

def leak(text: str) -> dict:
    "Repeat the text."
    key = os.environ["LEAKING_API_KEY"]
    sys.stdout.write("printed " + key[:9]); sys.stdout.flush()
    time.sleep(0.2)
    sys.stdout.write(key[9:] + " in two parts\\n"); sys.stdout.flush()
    print(base64.b64encode(key.encode()).decode(), file=sys.stderr)
    return {"text": text, key: [key, quote(key, safe=""), key.encode().hex()]}
"""
SERVER = """
import base64, os, sys
from mcp.server.fastmcp import FastMCP

server = FastMCP("leaking", log_level="ERROR")

@server.tool()
def repeat(text: str) -> str:
    "Repeat the text."
    key = os.environ["LEAKING_TOKEN"]
    return f"{text} {key} {base64.b64encode(b'user:' + key.encode()).decode()}"

@server.tool()
def end(text: str) -> str:
    "End."
    sys.stderr.write("x" * 290 + os.environ["LEAKING_TOKEN"] + "\\n")
    sys.stderr.flush()
    os._exit(3)

server.run()
"""
TOOLS = """
[functions.leak]
place = "leaking:leak"
environment = ["LEAKING_API_KEY"]

[servers.leaking]
command = "{python}"
args = ["{home}/leaking_server.py"]
environment = ["LEAKING_TOKEN"]
"""


def repeat_key(request: Request) -> Reply:
    """Repeat the key in all parts of replies and errors, in several forms."""
    key = request.headers["authorization"].removeprefix("Bearer ")
    if request.place % 5 == 4:
        return Fails(400, f"Bad request with {request.headers['authorization']} ({json.dumps(key)})")
    extra = {"reasoning_content": f"I was given {key}, in JSON {json.dumps(json.dumps(key))}."}
    if request.tools and request.body["messages"][-1]["role"] != "tool":
        calls = [("wikisearch", {"query": f"Ada {key}", key: key}), (f"look_{key}", json.dumps({"a": key})[:-2])]
        return Says(f"I look with {key}.", calls=calls, extra=extra)
    return Says(f"Thought: it is {key}.\nFinal Answer: {key} {json.dumps(key)}", piece=5, pause=0.005, extra=extra)


def repeat_header(handler: Handler) -> None:
    """A response of a graph that repeats the key in its rows."""
    key = handler.headers["X-Api-Key"]
    rows = [{"x": {"type": "literal", "value": value}} for value in (key, key.encode().hex(), f"Bearer {key}")]
    says({"head": {"vars": ["x"]}, "results": {"bindings": rows}})(handler)


class Home:
    """A home in which everything was used, and all that was printed, served and written."""

    def __init__(self, showhow: Showhow, model: ModelServer) -> None:
        self.showhow, self.model = showhow, model
        self.texts: dict[str, bytes] = {}

    def run(self, *words: str) -> str:
        """Run a verb, which may fail; returns what it printed."""
        done = run_in_process(self.showhow.home, *words, **self.showhow.environment)
        self.texts[" ".join(words)] = (done.stdout + done.stderr).encode()
        return done.stdout

    def services(self) -> Services:
        """The services of a server, whose Ask page runs a question in the background."""
        services = Services(Settings.from_env(self.showhow.environment), self.showhow.environment)
        vars(services)["encoder"] = shared_encoder()
        return services


@pytest.fixture(scope="module")
def used(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Home]:
    showhow = Showhow(tmp_path_factory.mktemp("repeated"), empty=True)
    (showhow.home / "leaking.py").write_text(FUNCTIONS)
    (showhow.home / "leaking_server.py").write_text(SERVER)
    (showhow.home / "tools.toml").write_text(TOOLS.format(home=showhow.home, python=sys.executable))
    with ModelServer(repeat_key, key=MODEL_KEY) as model, run_faulty_server() as graph:
        showhow.environment |= {
            "PLANTED_API_KEY": MODEL_KEY,
            "LEAKING_API_KEY": TOOL_KEY,
            "LEAKING_TOKEN": SERVER_TOKEN,
            "PLANTED_GRAPH_KEY": WORLD_KEY,
            "SHOWHOW_MODEL": "openai:scripted",
            "SHOWHOW_MODEL_BASE_URL": model.url,
            "SHOWHOW_MODEL_KEY_VARIABLE": "PLANTED_API_KEY",
            "SHOWHOW_CONTACT": "ada@example.org",
        }
        home = Home(showhow, model)
        use_everything(home, graph)
        yield home


def use_everything(home: Home, graph: FaultyServer) -> None:
    folder = home.showhow.home
    home.run(
        "world", "import", "default", "--articles", str(TOWN / "harbour.jsonl"), "--graph", str(TOWN / "harbour.ttl")
    )
    questions = folder / "questions.jsonl"
    records = [{"question": f"Who built quay {n}?", "answer": "nobody knows"} for n in range(4)]
    questions.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    home.run("questions", "import", str(questions), "--project", "Fictional people", "--world", "default")
    for reasoner in ("humaniq", "fusion", "direct", "atomr", "rag"):
        home.run("ask", "Who built the quay?", "--world", "default", "--reasoner", reasoner, "--json")
    home.run("verify", "--project", "Fictional people", "--reasoner", "humaniq", "--json")
    home.run("models", "test")
    for tool in ("leak", "leaking_repeat", "leaking_end"):
        home.run("tool", tool, "text=hello", "--json")
    home.run("tools", "list", "--json")
    (folder / "live.toml").write_text(
        f'kind = "live"\n[graph]\nkind = "sparql"\nendpoint = "{graph.url}/sparql"\n'
        'headers = {X-Api-Key = "PLANTED_GRAPH_KEY"}\n'
    )
    home.run("world", "add", "live", "--file", str(folder / "live.toml"), "--yes")
    graph.respond_with(repeat_header)
    home.run("world", "query", "live", 'SELECT ?x { BIND("a" AS ?x) }', "--json")
    home.run("tool", "runQuery", "--world", "live", 'sparql=SELECT ?x { BIND("b" AS ?x) }', "--json")
    ask_in_background(home)
    for name in writable_formats():
        home.run("traces", "export", str(folder / f"export.{name}"), "--format", name, "--status", "all")
    runs = json.loads(home.run("runs", "list", "--json"))
    home.run("runs", "export", str(runs[0]["id"]), str(folder / "run.json"))
    home.run("runs", "export", str(runs[0]["id"]), str(folder / "run.eval"))
    home.run("db", "backup", str(folder / "backup.db"))
    home.run("backup", str(folder / "whole"))
    home.showhow.start()
    for page in ("", "ask", "verify", "review", "tools", "worlds", "settings"):
        with open_session(home.showhow.url, page, {"you": "ada"}) as session:
            home.texts[f"page {page}"] = session.received
    home.showhow.stop()


def ask_in_background(home: Home) -> None:
    """Ask as the Ask page does, and keep each state of the text that it shows while the model streams."""
    services = home.services()
    config = RunSpec(reasoner="humaniq", options={})
    run = begin_run(services, AskRequest("Who built the quay?", "default", config))
    shown: set[str] = set()
    services.active_runs.start(run)
    deadline = time.monotonic() + 60
    while services.active_runs.get(run.trace_id) is not None:
        assert time.monotonic() < deadline
        shown.add(run.streamed_text)
        time.sleep(0.002)
    with services.database.read() as session:
        record = load_trace(session, run.trace_id)
    home.texts["streamed"] = "\n".join(sorted(shown)).encode()
    home.texts["trace"] = repr((record, record.named_values)).encode()
    services.close()


def find_keys(data: bytes) -> list[bytes]:
    return [match[0] for pattern in TRACES_OF_KEYS if (match := re.search(pattern, data))]


def read_contents(file: Path) -> Iterator[bytes]:
    data = file.read_bytes()
    yield data
    if zipfile.is_zipfile(io.BytesIO(data)):
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            yield from map(archive.read, archive.namelist())
    elif data[:4] == b"PAR1":
        yield json.dumps(pyarrow.parquet.read_table(file).to_pylist(), default=str).encode()


def test_the_secrets_were_really_repeated(used: Home):
    assert len(used.model.requests) > 20
    everything = b"".join(used.texts.values())
    assert everything.count(b"[key removed]") > 20
    for words in ("tool leak text=hello --json", "tool leaking_repeat text=hello --json", "streamed", "trace"):
        assert b"[key removed]" in used.texts[words], (words, used.texts[words][:500])
    assert b"[key removed]" in (used.showhow.home / "showhow.db").read_bytes()


def test_no_output_page_or_streamed_text_has_a_secret(used: Home):
    assert {words: keys for words, text in used.texts.items() if (keys := find_keys(text))} == {}


def test_no_file_of_the_home_no_export_and_no_backup_has_a_secret(used: Home):
    files = [file for file in used.showhow.home.rglob("*") if file.is_file()]
    names = {file.name for file in files}
    assert {f"export.{name}" for name in writable_formats()} | {"run.json", "run.eval", "backup.db"} <= names
    leaks: dict[str, Any] = {}
    for file in files:
        for content in read_contents(file):
            if keys := find_keys(content):
                leaks[str(file)] = keys
    assert leaks == {}
