"""`showhow ask` as users start it: steps on stderr, the answer on stdout, a failure as one sentence, Ctrl+C a stop."""

import json
import os
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.app.cli.in_process import run_in_process
from tests.servers.model import ModelServer, Request, Says
from worlds.build import WorldContents, build_world
from worlds.importers import read_articles

SHOWHOW = Path(sys.executable).with_name("showhow")
HARBOUR = Path(__file__).parents[2] / "tools"


@pytest.fixture
def home(tmp_path: Path) -> Path:
    sources = WorldContents(read_articles(HARBOUR / "harbour.jsonl"), HARBOUR / "harbour.ttl")
    build_world(tmp_path / "worlds", "harbour", sources)
    return tmp_path


def asking(home: Path, *words: str, model: str | None = None) -> subprocess.Popen[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SHOWHOW_", "OPENAI_"))}
    if model is not None:
        kept |= model_settings(model)
    command = [SHOWHOW, "ask", *words, "--world", "harbour"]
    environment = {**kept, "SHOWHOW_HOME": str(home)}
    return subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A test run that was started in the background ignores SIGINT, and its child processes would inherit that.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509 - calls C alone
    )


def asked(home: Path, *words: str, model: str | None = None) -> tuple[int, str, str]:
    done = run_in_process(home, "ask", *words, "--world", "harbour", **(model_settings(model) if model else {}))
    return done.returncode, done.stdout, done.stderr


def model_settings(url: str) -> dict[str, str]:
    return {"SHOWHOW_MODEL": "openai:scripted", "SHOWHOW_MODEL_BASE_URL": url, "OPENAI_API_KEY": "planted-key-1"}


def answering(request: Request) -> Any:
    if request.body["messages"][-1]["role"] == "tool":
        return Says("I know it.\nFinal Answer: Gullhaven\nText says: Gullhaven")
    if not request.tools:
        return Says("Answer: Gullhaven")
    return Says("I look.", calls=[("wikisearch", {"query": "Ada Reed"})])


def test_with_a_model_steps_are_told_as_they_happen_and_the_answer_is_all_of_stdout(home):
    with ModelServer(answering) as server:
        status, out, err = asked(home, "Where was Ada Reed born?", model=server.url)
        assert (status, out.splitlines()[0]) == (0, "Gullhaven")
        assert "1. I look.\n   wikisearch(query='Ada Reed')\n" in err
        assert "agree" in out
        status, out, _ = asked(home, "Where was Ada Reed born?", "--json", model=server.url)
    found = json.loads(out)
    assert (status, found["answer"], found["steps"], found["usage"]["calls"]) == (0, "Gullhaven", 1, 4)
    assert found["details"]["agreement"]["state"] == "two agree"


def test_without_a_model_it_says_so_and_refuses_in_a_sentence(home):
    status, out, err = asked(home, "Where was Ada Reed born?")
    assert (status, out) == (1, "")
    assert "SHOWHOW_MODEL is not set" in err
    assert err.splitlines()[-1].startswith("showhow: refused: I can't follow any demonstration here")


def test_a_dead_model_and_a_limit_are_one_sentence_each_and_no_key_is_written(home):
    status, _, err = asked(home, "Who?", model="http://127.0.0.1:9/v1")
    assert (status, "127.0.0.1:9 does not answer" in err.splitlines()[-1]) == (1, True)
    with ModelServer(lambda request: Says("", calls=[("wikisearch", {"query": f"{request.place}"})])) as server:
        status, _, err = asked(home, "Who?", "--steps", "2", model=server.url)
    assert (status, err.splitlines()[-1]) == (
        1,
        "showhow: limit: the limit of 2 steps is reached; ask again with a higher one",
    )
    assert "planted-key-1" not in err
    assert not any(b"planted-key-1" in file.read_bytes() for file in home.rglob("*") if file.is_file())


def test_ctrl_c_stops_it_and_the_trace_says_so(home):
    with ModelServer(lambda _: Says("I think and think. " * 200, pause=0.05)) as server:
        process = asking(home, "Who?", "--json", model=server.url)
        while not server.requests:
            assert process.poll() is None
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, json.loads(out)["ending"]) == (1, "stopped")
    assert err.splitlines()[-1] == "showhow: stopped: it was stopped after 0 steps"


def test_what_is_unknown_is_said_in_one_line(home):
    for words, said in ((("Who?", "--reasoner", "x"), "there is no reasoner 'x'"), (("Who?", "--mode", "x"), "'x'")):
        status, out, err = asked(home, *words, model="http://127.0.0.1:9/v1")
        assert (status, out) == (1, "")
        assert said in err.splitlines()[-1]
