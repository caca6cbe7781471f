"""`showhow tool`: output, JSON, errors and usage."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.app.cli.in_process import run_in_process

SHOWHOW = Path(sys.executable).with_name("showhow")


def showhow(worlds: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return run_in_process(worlds.parent, "tool", *words)


def test_the_verb_works_in_a_process_of_its_own(harbour_folder: Path) -> None:
    environ = {**os.environ, "SHOWHOW_HOME": str(harbour_folder.parent)}
    command = [SHOWHOW, "tool", "getLabel", "--world", "harbour", "ids=Q1"]
    done = subprocess.run(command, capture_output=True, text=True, env=environ, check=True)
    assert done.stdout == "Q1: Ada Reed (ferry pilot)\n"


def test_a_tool_prints_its_text_and_with_json_its_data(harbour_folder: Path) -> None:
    plain = showhow(harbour_folder, "getLabel", "--world", "harbour", "ids=Q1,P1")
    assert (plain.returncode, plain.stdout) == (0, "Q1: Ada Reed (ferry pilot)\nP1: father\n")
    as_json = showhow(harbour_folder, "getLabel", "--world", "harbour", "ids=Q1", "--json")
    assert json.loads(as_json.stdout) == {
        "text": "Q1: Ada Reed (ferry pilot)",
        "data": {"labels": [{"id": "Q1", "label": "Ada Reed", "description": "ferry pilot"}]},
        "error": None,
    }


def test_output_of_an_external_tool_goes_to_stderr(tmp_path: Path) -> None:
    code = "print('loaded')\ndef found():\n    'Say it.'\n    print('said')\n    return 'fine'\n"
    (tmp_path / "noisy.py").write_text(code)
    (tmp_path / "tools.toml").write_text('[functions.found]\nplace = "noisy:found"\n')
    process = showhow(tmp_path / "worlds", "found", "--json")
    assert json.loads(process.stdout)["text"] == "fine"
    assert process.stderr.split() == ["loaded", "said"]
    assert json.loads(showhow(tmp_path / "worlds", "--list", "--json").stdout)[-1]["name"] == "found"


def test_a_value_may_contain_an_equals_sign(harbour_folder: Path) -> None:
    query = "sparql=SELECT ?x WHERE { wd:Q1 wdt:P8 ?x FILTER(1 = 1) }"
    assert "Saltmouth" in showhow(harbour_folder, "runQuery", "--world", "harbour", query).stdout


def test_a_failure_is_one_sentence_on_stderr_and_in_the_json(harbour_folder: Path) -> None:
    failed = showhow(harbour_folder, "getLabel", "--world", "harbour", "ids=Q999", "--json")
    assert failed.returncode == 1
    assert failed.stderr.count("\n") == 1
    assert "knows none of Q999" in failed.stderr
    printed = json.loads(failed.stdout)
    assert printed["text"] is None
    assert "knows none of Q999" in printed["error"]


def test_unknown_tools_and_arguments_are_refused_with_the_known_ones(harbour_folder: Path) -> None:
    assert "there are wikisearch, read" in showhow(harbour_folder, "find", "--world", "harbour", "query=x").stderr
    misspelled = showhow(harbour_folder, "wikisearch", "--world", "harbour", "qurey=x")
    assert misspelled.returncode == 1
    assert "It takes query, limit, screened." in misspelled.stderr


def test_wrong_usage_has_exit_status_2(harbour_folder: Path) -> None:
    assert showhow(harbour_folder, "wikisearch", "--world", "harbour", "without key").returncode == 2
    assert showhow(harbour_folder, "wikisearch", "query=x").returncode == 2


def test_list_shows_every_tool_with_its_arguments(harbour_folder: Path) -> None:
    listed = json.loads(showhow(harbour_folder, "--list", "--json").stdout)
    assert [tool["name"] for tool in listed][:2] == ["wikisearch", "read"]
    assert [p["name"] for p in listed[1]["parameters"]] == ["title", "question"]
