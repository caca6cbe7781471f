"""`showhow tools report`, compared with the exported traces."""

import json
import statistics
from collections import Counter
from pathlib import Path

import pytest

from tests.app.cli.in_process import run_in_process
from tests.browser.server import Showhow


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


def test_the_report_of_a_project_equals_the_counts_of_its_traces(home: Showhow):
    steps = steps_of(home, "HumanIQ Mintaka")
    report = json.loads(home.run("tools", "report", "--project", "HumanIQ Mintaka", "--json"))
    assert report["scope"]["project"] == "HumanIQ Mintaka"
    calls = Counter(step["tool"] for step in steps if step["tool"])
    assert {tool["tool"]: tool["calls"] for tool in report["tools"]} == calls
    both = json.loads(home.run("tools", "report", "--json"))
    assert sum(tool["calls"] for tool in both["tools"]) > calls.total()
    for tool in report["tools"]:
        stars = [step["rating"] for step in steps if step["tool"] == tool["tool"] and step["rating"] is not None]
        assert (tool["ratings"] or {}).get("mean") == (pytest.approx(statistics.mean(stars)) if stars else None)
        # The published files have no times; an unknown value is null.
        assert tool["latency"] is None
    assert json.loads(home.run("tools", "report", "--by", "models", "--json"))["tools"] == []


def test_the_report_for_people_has_a_few_lines_per_tool(home: Showhow):
    report = home.run("tools", "report", "--tool", "runQuery")
    assert report.startswith("runQuery: ")
    assert "read: " not in report
    assert home.run("tools", "report", "--since", "2099-01-01").startswith("No tool call matches")


def test_invalid_filters_of_the_report_are_rejected(home: Showhow):
    def status(*words: str) -> tuple[int, str]:
        done = run_in_process(home.home, "tools", "report", *words)
        return done.returncode, done.stderr

    assert status("--project", "nowhere") == (
        1,
        "showhow: there is no project 'nowhere'; `showhow questions import` makes one\n",
    )
    assert status("--by", "cats") == (1, "showhow: calls are by people or by models, not by 'cats'\n")
    assert status("--since", "yesterday")[0] == 2
