"""What the processes of a server show of its environment in /proc, and that those who need a secret have it."""

import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from showhow.app.jobs import JobRegistry
from showhow.guard.destinations import DESTINATIONS_FILE_NAME, Grant, SecretTable, parse_origin
from showhow.llm.profiles import PROFILES_FILE_NAME, ProfileFile
from showhow.llm.types import ModelProfile
from showhow.tasks.method import PlayedMethod
from showhow.tasks.task import dump_call
from showhow.tasks.verification import VerifyQuestions, verify
from tests.app.cli.in_process import run_in_process
from tests.app.test_jobs import wait_until
from tests.browser.server import Showhow
from tests.browser.session import open_session
from tests.servers.model import Hangs, ModelServer

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux shows the environment in /proc"),
]
KEY = "planted-key-of-the-model"
PLANTED = {
    "LOCAL_API_KEY": KEY,
    "OPENAI_API_KEY": "planted-openai",
    "STRIPE_API_KEY": "planted-stripe",
    "WEATHER": "planted-weather",
    "GITHUB_PAT": "planted-github",
    "NO_TELLING_NAME": "planted-other",
    "HTTPS_PROXY": "http://me:planted-proxy@127.0.0.1:9",
}
TOOL = """
def look() -> str:
    '''Look around.'''
    return "looked"
"""


@pytest.fixture
def model() -> Iterator[ModelServer]:
    with ModelServer(lambda _: Hangs(), key=KEY) as server:
        yield server


def test_a_job_has_its_secrets_and_shows_none(tmp_path: Path, model: ModelServer, monkeypatch: pytest.MonkeyPatch):
    for name, value in {**PLANTED, "SHOWHOW_HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    profile = ModelProfile("openai:own", model.url, key_variable="LOCAL_API_KEY", name="local")
    ProfileFile(tmp_path / PROFILES_FILE_NAME).save(profile)
    table = SecretTable({}, tmp_path / DESTINATIONS_FILE_NAME)
    table.allow([Grant("LOCAL_API_KEY", str(parse_origin(model.url)))])
    (tmp_path / "articles.jsonl").write_text('{"title": "Ada", "text": "Ada built the quay."}\n')
    (tmp_path / "questions.jsonl").write_text('{"question": "Who built the quay?", "answer": "Ada"}\n')
    run_in_process(tmp_path, "world", "import", "quay", "--articles", "articles.jsonl")
    run_in_process(tmp_path, "questions", "import", "questions.jsonl", "--project", "Quay", "--world", "quay")
    jobs = JobRegistry()
    request = VerifyQuestions(project="Quay", method=PlayedMethod(reasoner="direct", profile="local"))
    job = jobs.start("verification", "Quay", "Verifying", dump_call(verify, request), person_id=None)
    wait_until(lambda: bool(model.requests) or job.state != "running")
    assert job.state == "running", job.error
    shown = [Path(f"/proc/{job.process.pid}/{file}").read_bytes() for file in ("environ", "cmdline")]
    jobs.stop_all()
    assert model.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert b"planted" not in b"".join(shown)
    assert f"SHOWHOW_HOME={tmp_path}".encode() in shown[0]


def test_a_server_and_its_children_show_no_secret(tmp_path: Path):
    showhow = Showhow(tmp_path, empty=True, preloaded=False)
    showhow.environment |= PLANTED
    (tmp_path / "mine.py").write_text(TOOL)
    (tmp_path / "tools.toml").write_text('[functions.look]\nplace = "mine:look"\nenvironment = ["WEATHER"]\n')
    showhow.run("world", "generate", "default", "--people", "20", "--per-template", "1")
    showhow.start()
    try:
        assert httpx.get(f"{showhow.url}/healthz").text == "ok"
        with open_session(showhow.url, "settings", {"you": "ada", "view": "installation"}) as session:
            assert b"look" in session.received
        process = psutil.Process(
            next(c.pid for c in psutil.net_connections() if c.pid and c.laddr.port == showhow.port)
        )
        family = [process, *process.children(recursive=True)]
        assert len(family) > 1
        for member in family:
            try:
                shown = Path(f"/proc/{member.pid}/environ").read_bytes()
            except (FileNotFoundError, ProcessLookupError):  # it has ended meanwhile
                continue
            allowed = shown.replace(b"WEATHER=planted-weather", b"")
            assert b"planted" not in allowed, (member.cmdline(), allowed)
            assert member is not process or b"WEATHER" not in shown
        assert {"PATH", "SHOWHOW_HOME"} <= process.environ().keys()
    finally:
        showhow.stop()
    assert "planted" not in (tmp_path / "server.log").read_text()
