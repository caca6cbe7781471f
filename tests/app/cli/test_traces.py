"""`showhow traces` and `showhow db`."""

import json

import pytest

from showhow.fewshot_library.formats import SHOWHOW
from tests.app.cli.in_process import run_in_process
from tests.fewshot_library.traces import export, fork_of, plain_trace

EMPTY = {"added": 0, "same": 0, "differs": 0, "refused": [], "differing": [], "remarks": []}


@pytest.fixture
def run(tmp_path):
    """A function that runs a verb in a home of its own and returns status, stdout and stderr."""

    def run_verb(*words: object, home: str = "home") -> tuple[int, str, str]:
        (tmp_path / home).mkdir(exist_ok=True)
        done = run_in_process(tmp_path / home, *map(str, words))
        return done.returncode, done.stdout, done.stderr

    return run_verb


def test_published_demonstrations_survive_import_export_and_import_elsewhere(run, shared_data, tmp_path):
    source = shared_data / "humaniq" / "mintaka.json"
    status, stdout, _ = run("traces", "import", source, "--json")
    assert (status, json.loads(stdout)) == (0, EMPTY | {"added": 20})
    assert run("traces", "import", source)[1].startswith("0 added, 20 already stored")
    assert run("traces", "export", tmp_path / "own.jsonl")[:2] == (
        0,
        f"20 traces written to {tmp_path / 'own.jsonl'}\n",
    )
    assert run("traces", "import", tmp_path / "own.jsonl", home="other")[1].startswith("20 added")
    status, stdout, losses = run("traces", "export", tmp_path / "hq.json", "--format", "humaniq", home="other")
    assert (status, losses) == (0, "")
    assert len(json.loads((tmp_path / "hq.json").read_text())) == 20
    listed = json.loads(run("traces", "list", "--project", "HumanIQ Mintaka", "--json", home="other")[1])
    assert len(listed) == 20
    trace_text = run("traces", "show", listed[0]["id"], home="other")[1]
    assert listed[0]["question"] in trace_text
    assert "Answer: " in trace_text
    assert run("db", "check", home="other")[:2] == (0, "the database is sound\n")
    assert run("db", "backup", tmp_path / "copy.db", home="other")[0] == 0
    assert run("db", "backup", tmp_path / "copy.db", home="other")[::2] == (
        1,
        f"showhow: {tmp_path / 'copy.db'} already exists; name a new file for the backup\n",
    )
    assert run("db", "upgrade", home="other")[1].startswith("nothing to do")


def test_refused_and_unusual_records_are_reported_and_the_others_imported(run, shared_data, tmp_path):
    runs = '[{"question": "q?", "error": "out of time", "intermediate_logs": null}, {"question": "q?"}]'
    (tmp_path / "set_x.json").write_text(runs)
    status, stdout, stderr = run("traces", "import", tmp_path / "set_x.json")
    assert (status, stderr) == (0, "")
    assert stdout.splitlines() == [
        "1 added, 0 already stored, 0 differ, 1 refused",
        "refused: record 2: it has neither a log nor an error",
    ]
    late = shared_data / "humaniq" / "late_fusion_library" / "mintaka_wikidata.json"
    report = json.loads(run("traces", "import", late, "--json")[1])
    assert (report["added"], [remark["place"] for remark in report["remarks"]]) == (
        20,
        ["record 2", "record 3", "record 11", "record 17"],
    )


def test_an_export_replaces_a_file_only_with_force(run, shared_data, tmp_path):
    source = tmp_path / "mintaka.json"
    source.write_text((shared_data / "humaniq" / "mintaka.json").read_text())
    before = source.read_bytes()
    run("traces", "import", source)
    status, _, stderr = run("traces", "export", source)
    assert status == 1
    assert stderr == f"showhow: {source} exists already; name another file, or replace it with --force\n"
    assert source.read_bytes() == before
    assert run("traces", "export", source, "--status", "failed", "--force")[1] == f"0 traces written to {source}\n"
    assert source.read_bytes() == b""
    assert [file.name for file in tmp_path.glob(".*.part")] == []


def test_exports_contain_the_tools_and_report_their_losses(run, shared_data, tmp_path):
    run("traces", "import", shared_data / "humaniq" / "compmix.json")
    parquet, chats, pairs = tmp_path / "x.parquet", tmp_path / "chats.jsonl", tmp_path / "pairs.jsonl"
    assert run("traces", "export", parquet, "--format", "parquet")[::2] == (0, "")
    assert run("traces", "import", parquet)[1].startswith("0 added, 20 already stored, 0 differ, 0 refused")
    status, _, stderr = run("traces", "export", chats, "--format", "openai")
    assert (status, "the format does not store a trace's author (20)\n" in stderr) == (0, True)
    tools = json.loads(chats.read_text().splitlines()[0])["tools"]
    assert [tool["function"]["name"] for tool in tools][:2] == ["wikisearch", "read"]
    assert tools[0]["function"]["parameters"]["required"] == ["query"]
    report = json.loads(run("traces", "export", pairs, "--format", "trl", "--json")[1])
    assert (report["written"], {refusal["reason"] for refusal in report["refused"]}) == (
        0,
        {"it was not forked from another trace"},
    )


def test_test_questions_are_written_only_where_the_file_names_their_split_or_on_request(run, tmp_path):
    trained, tested = plain_trace(), plain_trace()
    tested.question.split, tested.question.text = "test", "who was first?"
    tested.question.position = 2
    tested.question.project_id, tested.project = trained.project.id, trained.project
    export(SHOWHOW, [trained, tested], tmp_path / "own.jsonl")
    assert run("traces", "import", tmp_path / "own.jsonl")[1].startswith("2 added")
    for verb in ("traces", "library"):
        file = tmp_path / f"{verb}.jsonl"
        status, _, stderr = run(verb, "export", file, "--format", "openai")
        assert (status, file.exists()) == (1, False)
        assert "1 demonstration leaks questions of the split 'test', and the format openai does not say" in stderr
        assert "'who was first?' is a question of a test split" in stderr
        assert run(verb, "export", file, "--format", "openai", "--with-test-split")[0] == 0
        assert run(verb, "export", file, "--format", "sharegpt", "--test-split", "dev", "--force")[0] == 0
        # Every trace has the split of its question.
        assert run(verb, "export", file, "--force")[0] == 0
        assert [json.loads(line)["question"]["split"] for line in file.read_text().splitlines()] == [None, "test"]


def test_an_import_that_adds_nothing_fails_unless_everything_is_stored_already(run, tmp_path):
    chat = {"messages": [{"role": "user", "content": "who?"}, {"role": "assistant", "content": "Ada"}]}
    for name, content in (("refused", {"messages": []}), ("empty", []), ("good", chat)):
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    status, stdout, stderr = run("traces", "import", tmp_path / "refused.json", "--format", "openai")
    assert (status, stdout.splitlines()[0]) == (1, "0 added, 0 already stored, 0 differ, 1 refused")
    assert stderr == f"showhow: no trace of {tmp_path / 'refused.json'} was added; the report says why\n"
    assert run("traces", "import", tmp_path / "empty.json", "--format", "openai", "--json")[0] == 1
    assert [run("traces", "import", tmp_path / "good.json")[0] for _ in range(2)] == [0, 0]


def test_a_fork_and_its_failed_parent_are_exported_as_a_preference_pair(run, tmp_path):
    parent = plain_trace()
    parent.trace.status = "failed"
    export(SHOWHOW, [parent, fork_of(parent, 1)], tmp_path / "own.jsonl")
    assert run("traces", "import", tmp_path / "own.jsonl")[1].startswith("2 added")
    assert run("traces", "export", tmp_path / "pairs.jsonl", "--format", "trl")[1].startswith("1 traces written")
    (pair,) = [json.loads(line) for line in (tmp_path / "pairs.jsonl").read_text().splitlines()]
    assert (pair["chosen"][-1]["content"][-3:], pair["rejected"][-1]["content"]) == ("Eve", "Ada")


def test_a_malformed_file_imports_nothing_and_is_reported_with_its_line(run, shared_data, tmp_path):
    run("traces", "import", shared_data / "humaniq" / "mintaka.json")
    run("traces", "export", tmp_path / "own.jsonl")
    lines = (tmp_path / "own.jsonl").read_text().splitlines()
    (tmp_path / "own.jsonl").write_text("\n".join([*lines[:3], lines[3].replace('"position": 1', '"position": "x"')]))
    status, stdout, stderr = run("traces", "import", tmp_path / "own.jsonl", home="other")
    assert (status, stdout) == (1, "")
    assert "own.jsonl, line 4: " in stderr
    assert stderr.rstrip().endswith("no trace was imported")
    assert "Traceback" not in stderr
    assert run("traces", "list", home="other")[1] == "no traces\n"


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("traces", "import", "nothing.jsonl"), "cannot be opened"),
        (("traces", "export", "/nowhere/at/all.jsonl"), "cannot be written"),
        (("traces", "export", "x", "--format", "odd"), "there is no format 'odd'"),
        (("traces", "export", "x", "--format", "humaniq-runs"), "humaniq-runs cannot be exported"),
        (("traces", "import", "x", "--format", "trl"), "trl cannot be imported"),
        (("traces", "list", "--status", "odd"), "there is no status 'odd'"),
        (("traces", "list", "--project", "odd"), "there is no project 'odd'"),
        (("traces", "show", "odd"), "is not the id of a trace"),
        (("traces", "show", "01234567-89ab-7def-8123-456789abcdef"), "there is no trace"),
        (("db", "check"), "there is no database"),
    ],
)
def test_a_failure_is_one_line_and_exit_status_1(run, words, reason):
    status, stdout, stderr = run(*words)
    assert (status, stdout, stderr.count("\n")) == (1, "", 1)
    assert reason in stderr
