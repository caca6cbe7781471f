"""`showhow evaluate`: scores by kind as JSON, and one sentence for a failure."""

import json
import re
import shutil
import subprocess
import threading
from pathlib import Path

import pytest

from showhow.db.storage.merge import merge_trace
from showhow.db.storage.schema import upgrade
from showhow.evaluation.scoring.gold_demonstrations import make_world_gold_traces
from showhow.fiction.generator.build import generate_world
from showhow.fiction.questions.question_file import QUESTIONS_FILE, QuestionFile, QuestionFilter
from showhow.fiction.universe.options import GenerationOptions
from showhow.runs.services import Services
from showhow.settings import Settings
from tests.app.cli.in_process import run_in_process
from tests.servers.model import Fails, Hangs, ModelServer, Reply, Request, Says


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a small world and no library."""
    folder = tmp_path_factory.mktemp("home")
    generate_world(folder / "worlds", "town", GenerationOptions(people=40, seed=2, depth=4, per_template=1))
    return folder


def evaluate(home: Path, *options: str, model: str = "", price: str = "") -> subprocess.CompletedProcess[str]:
    environ = {}
    if model:
        environ = {"SHOWHOW_MODEL": "openai:scripted", "SHOWHOW_MODEL_BASE_URL": model, "OPENAI_API_KEY": "none"}
    if price:
        environ["SHOWHOW_MODEL_PRICE"] = price
    return run_in_process(home, "evaluate", *options, **environ)


def test_without_the_default_library_it_says_what_to_run(home: Path) -> None:
    done = evaluate(home, "--world", "town", "--reasoner", "replay", "--limit", "12", "--json")
    assert (done.returncode, done.stdout) == (1, "")
    assert "there is no library 'default': run showhow setup, or name another library with --library" in done.stderr


def test_refused_questions_are_counted_by_kind_and_by_reason(home: Path, tmp_path: Path) -> None:
    """The one demonstration is no answer to questions of other kinds."""
    copy = tmp_path / "home"
    shutil.copytree(home, copy)
    services = Services(Settings.from_env({"SHOWHOW_HOME": str(copy)}), {})
    row = next(iter(QuestionFile(copy / "worlds" / "town" / QUESTIONS_FILE).select(QuestionFilter())))
    rows = [QuestionFile(copy / "worlds" / "town" / QUESTIONS_FILE).load_row(row)]
    upgrade(services.database)
    with services.database.begin() as session:
        for record in make_world_gold_traces(services, "town", rows, None):
            merge_trace(session, record)
    services.close()
    assert run_in_process(copy, "library", "freeze", "default").returncode == 0
    options = ("--world", "town", "--reasoner", "replay", "--limit", "12")
    done = evaluate(copy, *options, "--json")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("has demonstrations from the world town, which is asked about") == 1
    summary = json.loads(done.stdout)
    assert (summary["questions"], summary["failed"]) == (12, 0)
    assert summary["refused"] == 12 - summary["answered"] > 0
    assert sum(counts["refused"] for counts in summary["by_kind"].values()) == summary["refused"]
    assert max(counts["questions"] for counts in summary["by_kind"].values()) <= 2
    assert sum(summary["refusals"].values()) == summary["refused"] > len(summary["refusals"])
    assert "12 of 12 questions" in done.stderr
    reason, count = next(iter(summary["refusals"].items()))
    assert f"{count:4,} refused: {reason}" in evaluate(copy, *options).stdout


def test_the_reasons_of_failed_questions_are_printed(home: Path) -> None:
    with ModelServer(lambda _: Fails(400, "no such option")) as server:
        done = evaluate(home, "--world", "town", "--limit", "3", "--json", model=server.url)
    assert (done.returncode, json.loads(done.stdout)["failed"]) == (0, 3)
    assert "3 failed: " in done.stderr


def test_a_refused_key_ends_the_evaluation_without_failed_questions(home: Path) -> None:
    with ModelServer(lambda _: Fails(401, "no")) as server:
        done = evaluate(home, "--world", "town", "--limit", "6", "--json", model=server.url)
        assert len(server.requests) <= 2
    assert (done.returncode, done.stdout) == (1, "")
    assert "refuses the key (401)" in done.stderr
    assert "no question was answered" in done.stderr


class CountingServer:
    """Replies with an answer at once, and counts the requests under way."""

    def __init__(self, parallel: int, reply: Reply) -> None:
        self.most = 0
        self._reply = reply
        self._active = 0
        self._lock = threading.Lock()
        self._together = threading.Barrier(parallel)

    def __call__(self, request: Request) -> Reply:
        with self._lock:
            self._active += 1
            self.most = max(self.most, self._active)
        if request.place < self._together.parties:
            self._together.wait(60)
        with self._lock:
            self._active -= 1
        return self._reply


ANSWER = Says("Final Answer: Ada\nText says: Ada")


def test_questions_are_answered_in_parallel_and_model_and_cost_are_printed(home: Path) -> None:
    script = CountingServer(4, ANSWER)
    with ModelServer(script) as server:
        options = ("--world", "town", "--limit", "12", "--at-once", "4")
        summary = json.loads(evaluate(home, *options, "--json", model=server.url, price="10/100").stdout)
        calls = len(server.requests)
        text = evaluate(home, *options, model=server.url, price="10/100").stdout
    assert script.most == 4
    assert (summary["questions"], summary["answered"], summary["left"], summary["failed"]) == (12, 12, 0, 0)
    assert (summary["reasoner"], summary["model"], summary["model_calls"]) == ("humaniq", "openai:scripted", calls)
    assert summary["cost"] == summary["cost_bound"] == pytest.approx(calls * (100 * 10 + 10 * 100) / 1e6)
    assert f"model default (openai:scripted): {calls} calls, {110 * calls:,} tokens, $" in text.splitlines()[-1]


@pytest.mark.parametrize("limit", [("--most-money", "0.45"), ("--most-tokens", "9000")])
def test_a_limit_of_all_questions_leaves_the_others_unanswered_and_uncounted(
    home: Path, limit: tuple[str, str]
) -> None:
    with ModelServer(lambda _: ANSWER) as server:
        options = ("--world", "town", "--limit", "30", "--at-once", "3", *limit, "--json")
        done = evaluate(home, *options, model=server.url, price="10/100")
        # 110 tokens and 0.002 dollars a request, which may have up to 4,096 tokens in its reply alone.
        name, most = limit
        unit, bound = (0.002, 0.45) if name == "--most-money" else (110, 9_000)
        assert 0 < len(server.requests) * unit <= float(most) < len(server.requests) * unit + bound
    summary = json.loads(done.stdout)
    assert summary["left"] == 30 - summary["questions"] > 0
    assert (summary["failed"], summary["answered"]) == (0, summary["questions"])
    left = rf"showhow: {summary['left']} questions are left: the limit of .+ for all questions is reached after"
    assert re.search(rf"{left} {len(server.requests):,} requests.*--keep would store them", done.stderr)
    assert done.returncode == 1


def test_a_limit_of_money_that_lost_replies_reach_says_what_was_reported_and_what_was_not(
    home: Path,
) -> None:
    with ModelServer(lambda _: Says("Final Answer: Ada\nText says: Ada", usage=None)) as server:
        options = ("--world", "town", "--limit", "30", "--at-once", "1", "--most-money", "0.45")
        done = evaluate(home, *options, model=server.url, price="10/100")
    count = len(server.requests)
    said = rf"after {count} requests: \$0 as reported, and at most \$0\.\d+ of {count} whose tokens no reply reported"
    assert done.returncode == 1
    assert re.search(f"{said}; another one can use up to", done.stderr)


def test_a_time_limit_of_all_questions_ends_an_evaluation_whose_model_hangs(home: Path) -> None:
    with ModelServer(lambda request: ANSWER if request.place < 4 else Hangs()) as server:
        done = evaluate(
            home, "--world", "town", "--limit", "8", "--at-once", "1", "--most-seconds", "4", "--json", model=server.url
        )
    summary = json.loads(done.stdout)
    assert (summary["failed"], summary["left"]) == (0, 8 - summary["questions"])
    assert "the limit of 4 seconds for all questions is reached" in done.stderr


def test_a_model_without_a_price_cannot_be_limited_in_money(home: Path) -> None:
    with ModelServer(lambda _: ANSWER) as server:
        done = evaluate(home, "--world", "town", "--most-money", "1", model=server.url)
        assert (done.returncode, server.requests) == (1, [])
    assert "the price of openai:scripted is unknown" in done.stderr


def test_calls_without_reported_tokens_count_with_the_most_that_is_possible(home: Path) -> None:
    silent = Says("Final Answer: Ada\nText says: Ada", usage=None)
    with ModelServer(lambda request: silent if request.place == 0 else ANSWER) as server:
        options = ("--world", "town", "--limit", "4", "--at-once", "1", "--most-money", "100", "--json")
        done = evaluate(home, *options, model=server.url, price="10/100")
    summary = json.loads(done.stdout)
    assert (summary["answered"], summary["left"], summary["unreported_calls"], summary["cost"]) == (4, 0, 1, None)
    assert (summary["model_calls"] - 1) * 0.002 < summary["cost_bound"] < 1
    assert re.search(r"openai:scripted reported no tokens for a request of '.+'; it counts as at most", done.stderr)


@pytest.mark.long
def test_a_kept_evaluation_is_a_run_with_the_same_figures(home: Path, tmp_path: Path) -> None:
    copy = tmp_path / "home"
    shutil.copytree(home, copy)
    options = ("--world", "town", "--reasoner", "atomr", "--skills", "faulty:0.3:7:wrong", "--limit", "9", "--json")
    plain = json.loads(evaluate(copy, *options).stdout)
    done = evaluate(copy, *options, "--keep")
    kept = json.loads(done.stdout)
    run = kept.pop("run")
    assert f"the answers are stored in verification {run}" in done.stderr
    assert {**kept, "seconds": 0} == {**plain, "seconds": 0}
    listed = json.loads(run_in_process(copy, "runs", "list", "--json").stdout)
    assert [(row["id"], row["questions"], row["answered"]) for row in listed] == [(run, 9, plain["answered"])]
    # Generated anew under its name, the world has other questions; the stored run keeps those that it asked.
    shutil.rmtree(copy / "worlds" / "town")
    generate_world(copy / "worlds", "town", GenerationOptions(people=40, seed=3, depth=4, per_template=1))
    plain = json.loads(evaluate(copy, *options).stdout)
    again = json.loads(evaluate(copy, *options, "--keep").stdout)
    assert (again["by_kind"], again.pop("run") != run) == (plain["by_kind"], True)
    projects = [row["name"] for row in json.loads(run_in_process(copy, "project", "list", "--json").stdout)]
    assert len(projects) == 2
    assert all(name.startswith("Questions of town") for name in projects)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            ("--world", "town", "--reasoner", "oracle"),
            "there is no reasoner 'oracle'; there are replay, humaniq, fusion",
        ),
        (("--world", "nowhere", "--reasoner", "replay"), "nowhere"),
        (("--project", "nobody's", "--reasoner", "replay"), "there is no project"),
        (("--world", "town", "--reasoner", "fusion"), "fusion needs a language model: add a profile"),
    ],
)
def test_invalid_options_fail_with_one_sentence(options: tuple[str, ...], message: str, home: Path) -> None:
    done = evaluate(home, *options)
    assert done.returncode == 1
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_scripts_and_stored_runs_reply_in_place_of_the_model(home: Path) -> None:
    """In a home that has no model; stored traces repeat the gold answers that they have."""
    services = Services(Settings.from_env({"SHOWHOW_HOME": str(home)}), {})
    file = QuestionFile(home / "worlds" / "town" / QUESTIONS_FILE)
    rows = [file.load_row(head) for head in file.select(QuestionFilter())[:4]]
    records = list(make_world_gold_traces(services, "town", rows, "atomr"))
    upgrade(services.database)
    with services.database.begin() as session:
        assert [merge_trace(session, record) for record in records] == ["added"] * len(rows)
    services.close()
    stored = f"stored:{','.join(str(record.trace.id) for record in records)}"
    done = evaluate(home, "--project", "town", "--reasoner", "atomr", "--skills", stored, "--json")
    assert done.returncode == 0, done.stderr
    assert {name: json.loads(done.stdout)[name] for name in ("questions", "answered", "f1")} == {
        "questions": len(rows),
        "answered": len(rows),
        "f1": 1.0,
    }
    plan = {"nodes": [{"id": 0, "question": "Who?", "op": "Search", "args": [{"text": "Nobody at all"}]}]}
    lines = [{"skill": "plan", "reply": plan}]
    (home / "script.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = evaluate(
        home, "--world", "town", "--reasoner", "atomr", "--limit", "2", "--skills", "script:script.jsonl", "--json"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["failed"] == 2
    assert "The script script.jsonl has no reply for the skill " in done.stderr
    for value, told in (
        ("script:none.jsonl", "the script none.jsonl cannot be read"),
        ("stored:01a208a3-5add-739b-8f74-9a0f522bc44e", "there is no trace"),
    ):
        done = evaluate(home, "--world", "town", "--reasoner", "atomr", "--limit", "1", "--skills", value)
        assert (done.returncode, done.stdout) == (1, "")
        assert told in done.stderr
    done = evaluate(home, "--world", "town", "--reasoner", "atomr", "--skills", "person:plan")
    assert done.returncode == 1
    assert "no person can be asked for replies here" in done.stderr


def test_a_verification_of_a_world_stores_what_an_evaluation_of_it_finds(home: Path):
    options = ("--world", "town", "--reasoner", "atomr", "--skills", "oracle", "--limit", "6", "--json")
    evaluated = json.loads(evaluate(home, *options).stdout)
    verified = [json.loads(run_in_process(home, "verify", *options).stdout) for _ in range(2)]
    assert verified[0]["questions"] == evaluated["questions"] == 6
    assert (verified[0]["f1"], verified[0]["right"]) == (evaluated["f1"], evaluated["right"]) == (1.0, 6)
    # The second one asks the same questions of the same project.
    listed = run_in_process(home, "verify", "--project", "Questions of town", "--list", "--json")
    assert {row["id"] for row in json.loads(listed.stdout)} == {row["id"] for row in verified}
    refused = run_in_process(home, "verify", "--world", "nowhere", "--reasoner", "replay")
    assert refused.returncode == 1
    assert "no questions of its own" in refused.stderr
