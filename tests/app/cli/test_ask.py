"""`showhow ask`: steps on stderr, the answer on stdout, one sentence for a failure, and Ctrl+C."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from showhow.worlds.article_files import read_articles
from showhow.worlds.build import WorldContents, build_world
from tests.app.cli.in_process import run_in_process
from tests.servers.model import Fails, ModelServer, Request, Says
from tests.servers.strict import make_script

SHOWHOW = Path(sys.executable).with_name("showhow")
HARBOUR = Path(__file__).parents[2] / "tools"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    sources = WorldContents(read_articles(HARBOUR / "harbour.jsonl"), HARBOUR / "harbour.ttl")
    build_world(tmp_path / "worlds", "harbour", sources)
    return tmp_path


def start_ask(home: Path, *words: str, model: str | None = None) -> subprocess.Popen[str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SHOWHOW_", "OPENAI_"))}
    if model is not None:
        inherited |= model_settings(model)
    command = [SHOWHOW, "ask", *words, "--world", "harbour"]
    environment = {**inherited, "SHOWHOW_HOME": str(home)}
    return subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run_ask(home: Path, *words: str, model: str | None = None) -> tuple[int, str, str]:
    done = run_in_process(home, "ask", *words, "--world", "harbour", **(model_settings(model) if model else {}))
    return done.returncode, done.stdout, done.stderr


def model_settings(url: str) -> dict[str, str]:
    settings = {"SHOWHOW_MODEL": "openai:scripted", "SHOWHOW_MODEL_BASE_URL": url, "OPENAI_API_KEY": "planted-key-1"}
    return {**settings, "SHOWHOW_MODEL_KEY_VARIABLE": "OPENAI_API_KEY"}


def answer(request: Request) -> Any:
    if request.body["messages"][-1]["role"] == "tool":
        return Says("I know it.\nFinal Answer: Gullhaven\nText says: Gullhaven")
    if not request.tools:
        return Says("Answer: Gullhaven")
    return Says("I look.", calls=[("wikisearch", {"query": "Ada Reed"})])


def test_steps_go_to_stderr_and_only_the_answer_to_stdout(home):
    with ModelServer(answer) as server:
        status, stdout, stderr = run_ask(home, "Where was Ada Reed born?", model=server.url)
        assert (status, stdout.splitlines()[0]) == (0, "Gullhaven")
        assert "1. I look.\n   wikisearch(query='Ada Reed')\n" in stderr
        assert "agree" in stdout
        status, stdout, _ = run_ask(home, "Where was Ada Reed born?", "--json", model=server.url)
    result = json.loads(stdout)
    assert (status, result["answer"], result["steps"], result["usage"]["calls"]) == (0, "Gullhaven", 1, 3)
    assert result["details"]["agreement"]["state"] == "two agree"


def test_without_a_model_replay_refuses_with_one_sentence(home):
    status, stdout, stderr = run_ask(home, "Where was Ada Reed born?")
    assert (status, stdout) == (1, "")
    assert "no model is set up" in stderr
    assert stderr.splitlines()[-1].startswith("showhow: refused: I can't follow any demonstration here")


def test_an_unreachable_model_and_a_reached_limit_fail_with_one_sentence_and_no_key_is_stored(home):
    status, _, stderr = run_ask(home, "Who?", model="http://127.0.0.1:9/v1")
    assert (status, "127.0.0.1:9 does not answer" in stderr.splitlines()[-1]) == (1, True)
    with ModelServer(lambda request: Says("", calls=[("wikisearch", {"query": f"{request.place}"})])) as server:
        status, _, stderr = run_ask(home, "Who?", "--steps", "2", model=server.url)
    assert (status, stderr.splitlines()[-1]) == (
        1,
        "showhow: limit: the limit of 2 steps is reached; ask again with a higher one",
    )
    assert "planted-key-1" not in stderr
    assert not any(b"planted-key-1" in file.read_bytes() for file in home.rglob("*") if file.is_file())


def test_what_is_waited_for_and_why_is_told_on_stderr(home):
    failures = [
        Fails(429, "slow down", {"Retry-After": "1"}),
        Fails(500, "no memory"),
        Fails(503, "", {"Retry-After": "0"}),
    ]

    def script(request: Request) -> Any:
        return failures[request.place] if request.place < len(failures) else answer(request)

    with ModelServer(script) as server:
        status, stdout, stderr = run_ask(home, "Where was Ada Reed born?", model=server.url)
    assert (status, stdout.splitlines()[0]) == (0, "Gullhaven")
    lines = [line for line in stderr.splitlines() if "asked again" in line]
    for line, words in zip(
        lines,
        (
            '(429): "slow down"; try again in a minute. It is asked again in 1.0 s, the time that it names.',
            'failed (500): "no memory"; try again in a minute. It is asked again in ',
            "failed (503); try again in a minute. It is asked again in 0.0 s, the time that it names.",
        ),
        strict=True,
    ):
        assert words in line


def test_a_server_that_always_fails_ends_the_run_with_its_sentence(home):
    with ModelServer(lambda _: Fails(500, "messages.0.content: Input should be a valid string")) as server:
        status, stdout, stderr = run_ask(home, "Where was Ada Reed born?", model=server.url)
    assert (status, stdout) == (1, "")
    assert "messages.0.content: Input should be a valid string" in stderr.splitlines()[-1]
    assert len(server.requests) <= 12


def test_a_strict_server_is_asked_as_it_demands(home):
    with ModelServer(make_script("Final Answer: Gullhaven", parallel_calls=False, empty_text=False)) as server:
        status, stdout, stderr = run_ask(home, "Where was Ada Reed born?", model=server.url)
    assert (status, stdout.splitlines()[0]) == (0, "Gullhaven"), stderr


def test_a_prompt_beyond_the_context_of_a_strict_server_is_one_sentence_after_two_requests(home):
    with ModelServer(make_script("Final Answer: Gullhaven", context=50)) as server:
        status, _, stderr = run_ask(home, "Where was Ada Reed born?", model=server.url)
    # The first one streams, which this server begins before it fails.
    assert [request.body["stream"] for request in server.requests] == [True, False]
    assert status == 1
    assert "maximum context length is 50 tokens" in stderr.splitlines()[-1]
    assert "use a model with a larger context" in stderr.splitlines()[-1]


def test_ctrl_c_stops_the_run_and_prints_its_ending(home):
    with ModelServer(lambda _: Says("I think and think. " * 200, pause=0.05)) as server:
        process = start_ask(home, "Who?", "--json", model=server.url)
        while not server.requests:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, json.loads(stdout)["ending"]) == (1, "stopped")
    assert stderr.splitlines()[-1] == "showhow: stopped: it was stopped after 0 steps"


def test_an_unknown_reasoner_or_mode_fails_with_one_line(home):
    for words, message in ((("Who?", "--reasoner", "x"), "there is no reasoner 'x'"), (("Who?", "--mode", "x"), "'x'")):
        status, stdout, stderr = run_ask(home, *words, model="http://127.0.0.1:9/v1")
        assert (status, stdout) == (1, "")
        assert message in stderr.splitlines()[-1]
