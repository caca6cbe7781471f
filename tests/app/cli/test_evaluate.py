"""`showhow evaluate`: figures by kind as JSON, and one sentence for what cannot be."""

import json
import subprocess
from pathlib import Path

import pytest

from fiction.generator.build import generate_world
from fiction.universe.options import GenerationOptions
from tests.app.cli.in_process import run_in_process
from tests.servers.model import Fails, ModelServer


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a small world and no library."""
    found = tmp_path_factory.mktemp("home")
    generate_world(found / "worlds", "town", GenerationOptions(people=40, seed=2, depth=4, per_template=1))
    return found


def evaluate(home: Path, *options: str, model: str = "") -> subprocess.CompletedProcess[str]:
    environ = {}
    if model:
        environ = {"SHOWHOW_MODEL": "openai:scripted", "SHOWHOW_MODEL_BASE_URL": model, "OPENAI_API_KEY": "none"}
    return run_in_process(home, "evaluate", *options, **environ)


def test_without_demonstrations_every_question_is_refused_and_counted_by_kind(home: Path) -> None:
    done = evaluate(home, "--world", "town", "--reasoner", "replay", "--limit", "12", "--json")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    wanted = {"questions": 12, "answered": 0, "refused": 12, "failed": 0, "f1": 0.0, "f1_answered": None}
    assert {name: told[name] for name in wanted} == wanted
    assert sum(each["refused"] for each in told["by_kind"].values()) == 12
    assert max(each["questions"] for each in told["by_kind"].values()) <= 2
    assert "12 of 12 questions" in done.stderr


def test_why_questions_failed_is_told(home: Path) -> None:
    with ModelServer(lambda _: Fails(401, "no")) as server:
        done = evaluate(home, "--world", "town", "--limit", "3", "--json", model=server.url)
    assert (done.returncode, json.loads(done.stdout)["failed"]) == (0, 3)
    assert "3 failed: " in done.stderr
    assert "refuses the key (401)" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ("--world", "town", "--reasoner", "oracle"),
            "there is no reasoner 'oracle'; there are replay, humaniq, fusion",
        ),
        (("--world", "nowhere", "--reasoner", "replay"), "nowhere"),
        (("--project", "nobody's", "--reasoner", "replay"), "there is no project"),
        (("--world", "town", "--reasoner", "fusion"), "fusion needs a language model: set SHOWHOW_MODEL"),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence(options: tuple[str, ...], said: str, home: Path) -> None:
    done = evaluate(home, *options)
    assert done.returncode == 1
    assert said in done.stderr
    assert "Traceback" not in done.stderr
