"""`showhow project`, `showhow tools list` and `showhow tools check`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.app.cli.in_process import run_in_process

SHOWHOW = Path(sys.executable).with_name("showhow")
MODULE = 'def shout(text: str, times: int = 2) -> str:\n    """Say it louder."""\n    return text.upper() * times\n'


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a project."""
    folder = tmp_path_factory.mktemp("home")
    articles, questions = folder / "articles.jsonl", folder / "questions.jsonl"
    articles.write_text('{"title": "Gullhaven", "text": "A town."}\n')
    questions.write_text('{"question": "Where?", "answer": "There"}\n')
    showhow(folder, "world", "import", "town", "--articles", str(articles))
    showhow(folder, "questions", "import", str(questions), "--project", "P", "--world", "town")
    return folder


@pytest.fixture
def home(project: Path) -> Path:
    """The home with a module of tools, and a tools.toml that declares it, a missing function and a missing server."""
    (project / "users_tools.py").write_text(MODULE)
    (project / "tools.toml").write_text(
        '[functions.shout]\nplace = "users_tools:shout"\n[functions.whisper]\nplace = "users_tools:whisper"\n'
        '[servers.away]\ncommand = "no-program-of-this-name"\n'
    )
    return project


def showhow(home: Path, *words: str, fails: bool = False) -> subprocess.CompletedProcess[str]:
    done = run_in_process(home, *words)
    assert done.returncode == (1 if fails else 0), done.stderr
    assert "Traceback" not in done.stderr
    return done


def test_a_project_offers_the_chosen_tools_and_reports_unavailable_ones(home: Path) -> None:
    assert "all built-in tools" in showhow(home, "project", "list").stdout
    chosen = showhow(home, "project", "tools", "P", "--set", "read, shout,away_say")
    assert "The server away, which away_say comes from, is not available: there is no program" in chosen.stderr
    shown_project = json.loads(showhow(home, "project", "show", "P", "--json").stdout)
    assert shown_project["tools"] == ["read", "shout", "away_say"]
    assert list(shown_project["problems"]) == ["away_say"]
    unknown = showhow(home, "project", "tools", "P", "--set", "shuot", fails=True)
    assert "There is no tool 'shuot'; there are wikisearch" in unknown.stderr
    assert "there is no project 'Q'" in showhow(home, "project", "tools", "Q", "--all", fails=True).stderr
    (home / "tools.toml").unlink()
    project_without_tools = json.loads(showhow(home, "project", "show", "P", "--json").stdout)
    assert list(project_without_tools["problems"]) == ["shout", "away_say"]
    assert json.loads(showhow(home, "project", "tools", "P", "--all", "--json").stdout)["tools"] == []


@pytest.mark.parametrize(
    ("schema", "reason"),
    [("{", "has no JSON Schema"), ("[]", "it is not an object"), ('{"type": "txt"}', "is not a JSON Schema: 'txt'")],
)
def test_a_file_without_a_schema_of_answers_is_refused_by_its_name(home: Path, schema: str, reason: str) -> None:
    (home / "answers.json").write_text(schema)
    refused = showhow(home, "project", "edit", "P", "--answer", "answers.json", fails=True)
    assert "answers.json" in refused.stderr
    assert reason in refused.stderr


def test_every_tool_is_listed_with_its_status_and_can_be_called(home: Path) -> None:
    states = json.loads(showhow(home, "tools", "list", "--json").stdout)
    by_name = {state["name"]: state for state in states}
    assert by_name["shout"]["tools"][0]["schema"]["properties"]["times"]["default"] == 2
    assert by_name["whisper"]["problem"].startswith("The tool whisper cannot be loaded")
    assert "no program no-program-of-this-name" in by_name["away"]["problem"]
    checked = showhow(home, "tools", "check", fails=True)
    assert "function shout: works, 1 tool" in checked.stdout
    assert "2 of 4 tool providers do not work" in checked.stderr
    assert showhow(home, "tool", "shout", "text=hé", "times=3").stdout == "HÉHÉHÉ\n"
    assert "'many' is not a whole number" in showhow(home, "tool", "shout", "text=a", "times=many", fails=True).stderr


def test_a_missing_tools_file_is_reported(home: Path, tmp_path: Path) -> None:
    environ = {**os.environ, "SHOWHOW_HOME": str(home), "SHOWHOW_TOOLS": str(tmp_path / "none.toml")}
    done = subprocess.run([SHOWHOW, "tools", "check"], capture_output=True, text=True, env=environ, check=False)
    assert done.returncode == 1
    assert "none.toml cannot be read" in done.stdout
