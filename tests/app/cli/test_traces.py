"""`showhow traces` and `showhow db` as a user runs them."""

import json

import pytest

from fewshot_library.formats import SHOWHOW
from tests.app.cli.in_process import run_in_process
from tests.fewshot_library.traces import export, fork_of, plain_trace

EMPTY = {"added": 0, "same": 0, "differs": 0, "refused": [], "differing": [], "remarks": []}


@pytest.fixture
def run(tmp_path):
    """Run a verb in a home of its own; gives status, stdout and stderr."""

    def run_verb(*words: object, home: str = "home") -> tuple[int, str, str]:
        (tmp_path / home).mkdir(exist_ok=True)
        done = run_in_process(tmp_path / home, *map(str, words))
        return done.returncode, done.stdout, done.stderr

    return run_verb


def test_the_published_demonstrations_go_in_and_out_and_into_an_empty_database(run, shared_data, tmp_path):
    source = shared_data / "humaniq" / "mintaka.json"
    status, out, _ = run("traces", "import", source, "--json")
    assert (status, json.loads(out)) == (0, EMPTY | {"added": 20})
    assert run("traces", "import", source)[1].startswith("0 added, 20 already here")
    assert run("traces", "export", tmp_path / "own.jsonl")[:2] == (
        0,
        f"20 traces written to {tmp_path / 'own.jsonl'}\n",
    )
    assert run("traces", "import", tmp_path / "own.jsonl", home="other")[1].startswith("20 added")
    status, out, lost = run("traces", "export", tmp_path / "hq.json", "--format", "humaniq", home="other")
    assert (status, lost) == (0, "")
    assert len(json.loads((tmp_path / "hq.json").read_text())) == 20
    listed = json.loads(run("traces", "list", "--project", "HumanIQ Mintaka", "--json", home="other")[1])
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


def test_a_record_that_is_refused_and_one_that_is_odd_are_told_and_the_others_stay(run, shared_data, tmp_path):
    runs = '[{"question": "q?", "error": "out of time", "intermediate_logs": null}, {"question": "q?"}]'
    (tmp_path / "set_x.json").write_text(runs)
    status, out, err = run("traces", "import", tmp_path / "set_x.json")
    assert (status, err) == (0, "")
    assert out.splitlines() == [
        "1 added, 0 already here, 0 differ, 1 refused",
        "refused: record 2: it has neither a log nor an error",
    ]
    late = shared_data / "humaniq" / "late_fusion_library" / "mintaka_wikidata.json"
    told = json.loads(run("traces", "import", late, "--json")[1])
    assert (told["added"], [each["place"] for each in told["remarks"]]) == (
        20,
        ["record 2", "record 3", "record 11", "record 17"],
    )


def test_an_export_replaces_a_file_only_when_it_is_told_to(run, shared_data, tmp_path):
    source = tmp_path / "mintaka.json"
    source.write_text((shared_data / "humaniq" / "mintaka.json").read_text())
    before = source.read_bytes()
    run("traces", "import", source)
    status, _, err = run("traces", "export", source)
    assert status == 1
    assert err == f"showhow: {source} exists already; name another file, or replace it with --force\n"
    assert source.read_bytes() == before
    assert run("traces", "export", source, "--status", "failed", "--force")[1] == f"0 traces written to {source}\n"
    assert source.read_bytes() == b""
    assert [each.name for each in tmp_path.glob(".*.part")] == []


def test_traces_leave_with_their_tools_in_a_binary_format_and_in_one_that_loses_some(run, shared_data, tmp_path):
    run("traces", "import", shared_data / "humaniq" / "compmix.json")
    parquet, chats, pairs = tmp_path / "x.parquet", tmp_path / "chats.jsonl", tmp_path / "pairs.jsonl"
    assert run("traces", "export", parquet, "--format", "parquet")[::2] == (0, "")
    assert run("traces", "import", parquet)[1].startswith("0 added, 20 already here, 0 differ, 0 refused")
    status, _, err = run("traces", "export", chats, "--format", "openai")
    assert (status, "the format has no place for who recorded it (20)\n" in err) == (0, True)
    tools = json.loads(chats.read_text().splitlines()[0])["tools"]
    assert [tool["function"]["name"] for tool in tools][:2] == ["wikisearch", "read"]
    assert tools[0]["function"]["parameters"]["required"] == ["query"]
    told = json.loads(run("traces", "export", pairs, "--format", "trl", "--json")[1])
    assert (told["written"], {each["reason"] for each in told["refused"]}) == (
        0,
        {"it was not forked from another trace"},
    )


def test_a_fork_and_its_failed_parent_in_the_store_leave_as_a_pair(run, tmp_path):
    parent = plain_trace()
    parent.trace.status = "failed"
    export(SHOWHOW, [parent, fork_of(parent, 1)], tmp_path / "own.jsonl")
    assert run("traces", "import", tmp_path / "own.jsonl")[1].startswith("2 added")
    assert run("traces", "export", tmp_path / "pairs.jsonl", "--format", "trl")[1].startswith("1 traces written")
    (pair,) = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    assert (pair["chosen"][-1]["content"][-3:], pair["rejected"][-1]["content"]) == ("Eve", "Ada")


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
        (("traces", "export", "x", "--format", "humaniq-runs"), "humaniq-runs cannot be exported"),
        (("traces", "import", "x", "--format", "sharegpt"), "sharegpt cannot be imported"),
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
