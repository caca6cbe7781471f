"""`showhow traces` and `showhow db` as a user runs them."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

BIN = Path(sys.executable).with_name("showhow")


@pytest.fixture
def run(tmp_path):
    """Run a verb in a home of its own; gives status, stdout and stderr."""

    def run_verb(*words: object, home: str = "home") -> tuple[int, str, str]:
        environment = {k: v for k, v in os.environ.items() if k != "SHOWHOW_DATABASE_URL"}
        environment |= {"SHOWHOW_HOME": str(tmp_path / home)}
        done = subprocess.run([BIN, *map(str, words)], capture_output=True, text=True, check=False, env=environment)
        return done.returncode, done.stdout, done.stderr

    return run_verb


def test_the_published_demonstrations_go_in_and_out_and_into_an_empty_database(run, shared_data, tmp_path):
    source = shared_data / "humaniq" / "mintaka.json"
    status, out, _ = run("traces", "import", source, "--json")
    assert (status, json.loads(out)) == (0, {"added": 20, "same": 0, "differs": 0, "refused": [], "differing": []})
    assert run("traces", "import", source)[1].startswith("0 added, 20 already here")
    assert run("traces", "export", tmp_path / "own.jsonl")[:2] == (
        0,
        f"20 traces written to {tmp_path / 'own.jsonl'}\n",
    )
    assert run("traces", "import", tmp_path / "own.jsonl", home="other")[1].startswith("20 added")
    status, out, lost = run("traces", "export", tmp_path / "hq.json", "--format", "humaniq", home="other")
    assert (status, lost) == (0, "")
    assert len(json.loads((tmp_path / "hq.json").read_text())) == 20
    listed = json.loads(run("traces", "list", "--project", "Mintaka", "--json", home="other")[1])
    assert len(listed) == 20
    shown = run("traces", "show", listed[0]["id"], home="other")[1]
    assert listed[0]["question"] in shown
    assert "Answer: " in shown
    assert run("db", "check", home="other")[:2] == (0, "the database is sound\n")
    assert run("db", "backup", tmp_path / "copy.db", home="other")[0] == 0
    assert run("db", "backup", tmp_path / "copy.db", home="other")[::2] == (
        1,
        f"showhow: {tmp_path / 'copy.db'} is there already; name a new file for the backup\n",
    )
    assert run("db", "upgrade", home="other")[1].startswith("nothing to do")


def test_a_broken_file_leaves_nothing_and_says_where_it_is_broken(run, shared_data, tmp_path):
    run("traces", "import", shared_data / "humaniq" / "mintaka.json")
    run("traces", "export", tmp_path / "own.jsonl")
    lines = (tmp_path / "own.jsonl").read_text().splitlines()
    (tmp_path / "own.jsonl").write_text("\n".join([*lines[:3], lines[3].replace('"position": 1', '"position": "x"')]))
    status, out, err = run("traces", "import", tmp_path / "own.jsonl", home="other")
    assert (status, out) == (1, "")
    assert "own.jsonl, line 4: " in err
    assert err.rstrip().endswith("nothing of the file was imported")
    assert "Traceback" not in err
    assert run("traces", "list", home="other")[1] == "no traces\n"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("traces", "import", "nothing.jsonl"), "cannot be opened"),
        (("traces", "export", "/nowhere/at/all.jsonl"), "cannot be written"),
        (("traces", "export", "x", "--format", "odd"), "there is no format 'odd'"),
        (("traces", "export", "x", "--format", "humaniq-runs"), "only read here"),
        (("traces", "list", "--status", "odd"), "there is no status 'odd'"),
        (("traces", "list", "--project", "odd"), "there is no project 'odd'"),
        (("traces", "show", "odd"), "is no id of a trace"),
        (("traces", "show", "01234567-89ab-7def-8123-456789abcdef"), "there is no trace"),
        (("db", "check"), "there is no database"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_status_one(run, words, reason):
    status, out, err = run(*words)
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert reason in err
