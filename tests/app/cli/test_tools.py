"""`showhow tools report` as a user runs it, against the traces themselves."""

import json
import statistics
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.browser.server import Showhow

BIN = Path(sys.executable).with_name("showhow")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Showhow:
    showhow = Showhow(tmp_path_factory.mktemp("tools"), empty=True)
    for name in ("mintaka", "compmix"):
        showhow.run("traces", "import", str(shared_data / "humaniq" / f"{name}.json"))
    return showhow


def steps_of(home: Showhow, project: str) -> list[dict]:
    file = home.home / "out.jsonl"
    home.run("traces", "export", str(file), "--project", project)
    return [step for line in file.read_text(encoding="utf-8").splitlines() for step in json.loads(line)["steps"]]


def test_the_report_of_a_project_is_what_its_traces_say(home: Showhow):
    steps = steps_of(home, "HumanIQ Mintaka")
    told = json.loads(home.run("tools", "report", "--project", "HumanIQ Mintaka", "--json"))
    assert told["scope"]["project"] == "HumanIQ Mintaka"
    calls = Counter(step["tool"] for step in steps if step["tool"])
    assert {each["tool"]: each["calls"] for each in told["tools"]} == calls
    both = json.loads(home.run("tools", "report", "--json"))
    assert sum(each["calls"] for each in both["tools"]) > calls.total()
    for each in told["tools"]:
        stars = [step["rating"] for step in steps if step["tool"] == each["tool"] and step["rating"] is not None]
        assert (each["ratings"] or {}).get("mean") == (pytest.approx(statistics.mean(stars)) if stars else None)
        # The published files tell no times, and what is not known is null.
        assert each["latency"] is None
    assert json.loads(home.run("tools", "report", "--by", "models", "--json"))["tools"] == []


def test_people_read_a_few_lines_a_tool(home: Showhow):
    told = home.run("tools", "report", "--tool", "runQuery")
    assert told.startswith("runQuery: ")
    assert "read: " not in told
    assert home.run("tools", "report", "--since", "2099-01-01").startswith("No call of a tool matches")


def test_what_cannot_be_asked_is_said(home: Showhow):
    def status(*words: str) -> tuple[int, str]:
        command = [BIN, "tools", "report", *words]
        done = subprocess.run(command, env=home.environment, capture_output=True, text=True, check=False)
        return done.returncode, done.stderr

    assert status("--project", "nowhere") == (
        1,
        "showhow: there is no project 'nowhere'; `showhow questions import` makes one\n",
    )
    assert status("--by", "cats") == (1, "showhow: calls are by people or by models, not by 'cats'\n")
    assert status("--since", "yesterday")[0] == 2
