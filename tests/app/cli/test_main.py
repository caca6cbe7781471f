"""The command line: imports, help, new verbs, exit status, errors, and progress as JSON."""

import importlib
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from showhow.app.cli.main import VERBS, Verb
from showhow.guard.user_errors import USER_ERRORS
from tests.app.cli.in_process import run_in_process
from tests.browser.server import Showhow

HEAVY = ("torch", "transformers", "sentence_transformers", "langchain", "langchain_core", "pandas", "faker")
SHOWHOW = Path(sys.executable).with_name("showhow")
VERBS_PAGE = Path(__file__).resolve().parents[3] / "docs" / "verbs.md"
NEW_VERB = '''
import typer

def greet(name: str) -> None:
    """Greet a person."""
    typer.echo(f"Hello {name}")
'''


def modules_loaded_by(statement: str, tmp_path: Path) -> set[str]:
    code = f"import json, sys; sys.argv = ['showhow', '--help']\n{statement}\nprint(json.dumps(sorted(sys.modules)))"
    environment = {**Showhow(tmp_path).environment, "STREAMLIT_LOGGER_LEVEL": "error"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_help_loads_no_room_and_no_large_library(tmp_path: Path):
    loaded = modules_loaded_by("import showhow.app.cli.main; showhow.app.cli.main.build_command_line(None)", tmp_path)
    assert not loaded & {*HEAVY, "sqlalchemy", "streamlit", "tantivy", "pyoxigraph", "numpy"}


def test_listing_worlds_loads_no_database_and_no_large_library(tmp_path: Path):
    loaded = modules_loaded_by("import showhow.app.cli.world; showhow.app.cli.world.list_(as_json=False)", tmp_path)
    assert not loaded & {*HEAVY, "sqlalchemy", "alembic", "numpy", "pydantic", "httpx", "showhow.tools.registry"}


def test_the_imports_of_a_page_load_no_large_library(tmp_path: Path):
    rooms = (
        "import showhow.app.server, showhow.app.pages.annotate.recorder, "
        "showhow.app.widgets.queue, showhow.app.cli.setup"
    )
    assert not modules_loaded_by(rooms, tmp_path) & (set(HEAVY) - {"pandas"})


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(verb: str, tmp_path: Path):
    done = run_in_process(tmp_path, verb, "--help")
    assert (done.returncode, "Usage: showhow" in done.stdout) == (0, True)


def test_every_verb_is_in_the_help_and_in_the_documentation(tmp_path: Path):
    text = run_in_process(tmp_path, "--help").stdout
    page = VERBS_PAGE.read_text(encoding="utf-8")
    for verb in VERBS:
        assert re.search(rf"\b{verb} ", text), verb
        assert f"showhow {verb}" in page, verb


def test_a_new_verb_needs_a_module_and_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "greeting_verb.py").write_text(NEW_VERB)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(VERBS, "greet", Verb("greeting_verb:greet", "Greet a person."))
    assert "greet" in run_in_process(tmp_path, "--help").stdout
    assert run_in_process(tmp_path, "greet", "Ada").stdout == "Hello Ada\n"


@pytest.mark.parametrize("target", USER_ERRORS)
def test_every_user_error_names_an_exception(target: str):
    module, _, name = target.partition(":")
    assert issubclass(getattr(importlib.import_module(module), name), Exception)


def test_json_progress_writes_progress_and_errors_as_json_lines(tmp_path: Path):
    done = run_in_process(tmp_path, "--json-progress", "world", "generate", "kin", "--people", "20", "--json")
    events = [json.loads(line) for line in done.stderr.splitlines()]
    stages = [event["stage"] for event in events if event["event"] == "progress" and event["done"] == event["total"]]
    assert list(dict.fromkeys(stages)) == ["people", "articles", "pages", "questions", "graph", "names"]
    assert json.loads(done.stdout)["people"] == 20
    failed = run_in_process(tmp_path, "--json-progress", "world", "info", "nowhere")
    (event,) = map(json.loads, failed.stderr.splitlines())
    assert (failed.returncode, event["event"]) == (1, "error")
    assert event["message"].startswith("There is no world 'nowhere'")


def test_wrong_usage_exits_with_2_and_a_failure_with_1_and_one_line(tmp_path: Path):
    def run(*words: str) -> "subprocess.CompletedProcess[str]":
        environment = Showhow(tmp_path, empty=True).environment
        return subprocess.run([SHOWHOW, *words], env=environment, capture_output=True, text=True, check=False)

    assert run("nonsense").returncode == 2
    assert run("world", "search").returncode == 2
    failed = run("world", "info", "nowhere")
    assert failed.returncode == 1
    assert failed.stderr.count("\n") == 1
    assert failed.stderr.startswith("showhow: There is no world 'nowhere'")
