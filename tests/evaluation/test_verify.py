"""`showhow verify` with a model over real HTTP: killed, stopped, limited, continued; and its failures."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from uuid import UUID

import pytest
from sqlalchemy import select

from showhow.db.database import Database
from showhow.db.models import Trace
from showhow.db.people.users import register_user
from showhow.db.review import review
from showhow.db.runs.runs import trace_version
from showhow.db.traces import recording
from showhow.evaluation import shared_model
from tests.app.cli.in_process import run_in_process
from tests.servers.model import Cut, Fails, ModelServer, Reply, Request
from tests.servers.pupil import number_in, pupil

pytestmark = pytest.mark.long

BIN = Path(sys.executable).with_name("showhow")
HARBOUR = Path(__file__).parents[1] / "tools"
PROJECT = "Harbour"
AT_ONCE = 6
PROCESSES: list[subprocess.Popen[str]] = []
"""The processes that the current test has started."""


@pytest.fixture(autouse=True)
def end_processes() -> Iterator[None]:
    """Kill processes that a failed test leaves running."""
    yield
    while PROCESSES:
        process = PROCESSES.pop()
        process.kill()
        process.communicate()


class Home:
    """A home with a project of questions over the harbour, and a scripted model behind its verbs."""

    def __init__(self, folder: Path, questions: int) -> None:
        self.folder = folder
        folder.mkdir()
        rows = [
            {"question": f"Who is number {number}?", "answer": f"Answer {number}", "kind": f"kind {number % 4}"}
            for number in range(questions)
        ]
        file = folder / "questions.jsonl"
        file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        self.run(
            "world", "import", "harbour", "--articles", HARBOUR / "harbour.jsonl", "--graph", HARBOUR / "harbour.ttl"
        )
        self.run("questions", "import", file, "--project", PROJECT, "--world", "harbour")

    def command(
        self, *words: object, server: ModelServer | None = None, model: str = "openai:scripted"
    ) -> subprocess.Popen[str]:
        """Start a verb in its own process."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("SHOWHOW_")}
        process = subprocess.Popen(
            [BIN, *map(str, words)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=inherited | {"SHOWHOW_HOME": str(self.folder)} | settings_for(server, model),
        )
        PROCESSES.append(process)
        return process

    def run(
        self, *words: object, server: ModelServer | None = None, status: int = 0, model: str = "openai:scripted"
    ) -> tuple[str, str]:
        """Run a verb; return its stdout and stderr."""
        done = run_in_process(self.folder, *map(str, words), **settings_for(server, model))
        assert done.returncode == status, done.stderr
        return done.stdout, done.stderr

    def verify(self, server: ModelServer, *words: object, status: int = 0) -> dict[str, object]:
        """The report of a verification."""
        out, err = self.run("verify", "--project", PROJECT, "--json", *words, server=server, status=status)
        return (json.loads(out) if out else {}) | ({"said": err.strip().splitlines()[-1]} if status else {})

    def rows(self, query: str) -> list[tuple[object, ...]]:
        """Query the database."""
        store = sqlite3.connect(f"file:{self.folder / 'showhow.db'}?mode=ro", uri=True)
        try:
            return store.execute(query).fetchall()
        finally:
            store.close()


def settings_for(server: ModelServer | None, model: str) -> dict[str, str]:
    settings = {"OPENAI_API_KEY": "none", "SHOWHOW_MODEL_PRICE": "1000/1000"}
    return settings if server is None else settings | {"SHOWHOW_MODEL": model, "SHOWHOW_MODEL_BASE_URL": server.url}


def body_of(request: Request) -> str:
    return json.dumps(request.body, sort_keys=True)


def test_a_sample_has_its_share_of_each_kind_where_the_file_repeats_the_kinds_in_turn(tmp_path):
    home = Home(tmp_path / "home", 32)
    with ModelServer(pupil) as server:
        home.run("verify", "--project", PROJECT, "--limit", "8", server=server)
    kinds = home.rows("SELECT q.kind, count(*) FROM trace t JOIN question q ON q.id = t.question_id GROUP BY q.kind")
    assert sorted(kinds) == [(f"kind {number}", 2) for number in range(4)]


def test_a_killed_verification_loses_no_question_and_pays_for_no_reply_twice(tmp_path):
    home = Home(tmp_path / "home", 200)
    kills = 0
    killed = {40: Event(), 120: Event()}

    def reply(request: Request) -> Reply:
        # However slow the machine is, the verification is not far beyond its share when it is killed.
        for share, is_over in killed.items():
            if number_in(request) >= share + 40:
                is_over.wait(120)
        return pupil(request, latency=0.03)

    with ModelServer(reply) as server:
        for share, is_over in killed.items():
            working = home.command("verify", "--project", PROJECT, "--at-once", AT_ONCE, server=server)
            assert working.stderr is not None
            for line in working.stderr:
                if " of 200 questions" in line and int(line.split()[0]) >= share:
                    break
            working.send_signal(signal.SIGKILL)
            working.communicate()
            assert working.returncode == -signal.SIGKILL
            kills += 1
            is_over.set()
        half_way = home.rows("SELECT count(*) FROM trace WHERE ending IS NOT NULL")[0][0]
        assert 120 <= half_way < 200
        report = home.verify(server, "--at-once", AT_ONCE)
    assert (report["questions"], report["left"], report["right"], report["f1"]) == (200, 0, 200, 1.0)
    assert home.rows("SELECT count(*), count(DISTINCT question_id), count(DISTINCT run_id) FROM trace") == [
        (200, 200, 1)
    ]
    assert home.rows("SELECT DISTINCT ending, status FROM trace") == [("answered", "submitted")]
    assert home.rows("SELECT count(*) FROM step WHERE removed_at IS NULL") == [(200,)]
    assert home.rows("SELECT count(*), count(DISTINCT attempt_id) FROM score WHERE metric = 'f1'") == [(200, 200)]
    # Only what was on its way when the process died was asked for again.
    asked = Counter(map(body_of, server.requests))
    again = sum(count - 1 for count in asked.values())
    assert again <= kills * AT_ONCE
    # Each request is a row; what was lost counts as the most that it can have cost.
    ((lost,),) = home.rows("SELECT count(*) FROM model_call WHERE state = 'lost'")
    assert again <= lost <= kills * AT_ONCE
    ((answered,),) = home.rows("SELECT count(*) FROM model_call WHERE state = 'answered'")
    assert report["model_calls"] == answered + lost
    assert report["unreported_calls"] == lost
    assert report["cost"] == pytest.approx(answered * 0.11)
    assert (report["cost_bound"] > report["cost"] + lost) if lost else report["cost_bound"] == report["cost"]
    assert home.run("db", "check")[0] == "the database is sound\n"


def test_an_interrupted_verification_says_how_to_continue_and_is_locked(tmp_path):
    home = Home(tmp_path / "home", 30)
    go_on = Event()

    def reply(request: Request) -> Reply:
        # However slow the machine is, the first one is at work until the second one was refused.
        if request.place >= 20:
            go_on.wait(120)
        return pupil(request)

    with ModelServer(reply) as server:
        working = home.command("verify", "--project", PROJECT, server=server)
        assert working.stderr is not None
        assert any(line.startswith("2 of 30") for line in working.stderr)
        second = home.verify(server, status=1)
        assert "another process is running this verification" in str(second["said"])
        working.send_signal(signal.SIGINT)
        _, err = working.communicate(timeout=60)
        assert working.returncode == 1
        assert err.strip().endswith("the verification was stopped; the same command continues it")
        before = home.rows("SELECT count(*) FROM trace")[0][0]
        assert before < 30
        # Who was stopped has not failed.
        assert "0 failed" in home.run("verify", "--project", PROJECT, "--list")[0]
        go_on.set()
        report = home.verify(server, "--at-once", 8)
        assert (report["questions"], report["right"]) == (30, 30)
        assert home.rows("SELECT count(*), count(DISTINCT question_id) FROM trace") == [(30, 30)]
        # What is over is not begun anew by the next one: that is another verification.
        assert home.verify(server, "--at-once", 8)["id"] != report["id"]


@pytest.mark.parametrize("at_once", [1, 8])
def test_the_cost_limit_is_never_exceeded_and_cached_replies_cost_nothing(tmp_path, at_once):
    home = Home(tmp_path / "home", 20)
    # Three replies a question, of 110 tokens each at a tenth of a cent; a request may have up to 9,000 tokens.
    reply, most, bound = 0.11, 12, 9
    with ModelServer(lambda request: pupil(request, latency=0.02)) as server:
        report = home.verify(server, "--at-once", at_once, "--most-money", most, status=1)
        assert most - bound < len(server.requests) * reply <= most
        assert (report["failed"], report["answered"] + report["left"]) == (0, 20)
        assert report["left"] > 0
        command = f"`showhow verify --go-on {report['id']}` continues"
        assert report["said"] == f"showhow: {report['left']} questions are left; {command}"
        # What unfinished questions have used counts too.
        asked = len(server.requests)
        assert (report["model_calls"], report["cost"]) == (asked, pytest.approx(asked * reply))
        again = home.verify(server, "--at-once", at_once, "--most-money", most, status=1)
        # A question that is begun sends a shorter request than the one that found no room, which may fit in.
        assert again["id"] == report["id"]
        assert asked <= len(server.requests) <= most / reply
        assert again["left"] > 0
        out, _ = home.run("verify", "--go-on", report["id"], "--at-once", 4, "--json", server=server)
        rest = json.loads(out)
        assert (rest["id"], rest["left"], rest["right"], len(server.requests)) == (report["id"], 0, 20, 60)
        assert rest["cost"] == pytest.approx(60 * reply)


def test_a_verification_never_mixes_two_models(tmp_path):
    home = Home(tmp_path / "home", 6)
    refused = Fails(401, "no")
    with ModelServer(lambda request: pupil(request) if request.place < 8 else refused) as server:
        home.verify(server, "--at-once", 1, status=1)
        ((first,),) = home.rows("SELECT id FROM run")
        asked, server.script = len(server.requests), pupil
        told = home.run("verify", "--go-on", first, server=server, status=1, model="openai:another")[1]
        assert "started with the model openai:scripted, and openai:another is set up now" in told
        assert len(server.requests) == asked
        # The same words start a verification of its own.
        out, _ = home.run("verify", "--project", PROJECT, "--json", server=server, model="openai:another")
        assert json.loads(out)["right"] == 6
        assert json.loads(out)["id"].replace("-", "") != str(first).replace("-", "")
        # With the former model the first one continues.
        report = home.verify(server)
        assert (report["id"].replace("-", ""), report["right"]) == (str(first).replace("-", ""), 6)
    models = home.rows(
        "SELECT DISTINCT json_extract(r.spec, '$.model'), c.model FROM run r "
        "JOIN trace t ON t.run_id = r.id JOIN model_call c ON c.trace_id = t.id"
    )
    assert sorted(models) == [("openai:another", "openai:another"), ("openai:scripted", "openai:scripted")]


def test_an_unavailable_model_stops_the_verification_without_failed_questions(tmp_path, monkeypatch):
    monkeypatch.setattr("showhow.llm.client._INITIAL_BACKOFF_SECONDS", 0.01)
    home = Home(tmp_path / "home", 12)
    refused = Fails(401, "no")
    with ModelServer(lambda request: pupil(request) if request.place < 8 else refused) as server:
        told = home.verify(server, "--at-once", 2, status=1)["said"]
        assert "refuses the key (401)" in told
        assert told.endswith("The same command again continues the verification.")
        asked = len(server.requests)
        assert asked <= 10
        with ModelServer([]) as gone:
            pass
        # A run continues only at its address, so this is another verification.
        assert "does not answer" in home.verify(gone, status=1)["said"]
        server.script = pupil
        report = home.verify(server)
        assert (report["right"], report["failed"]) == (12, 0)
        # The last reply of a run is in no step, so it is asked for again if the run stopped behind it.
        assert 36 - 8 <= len(server.requests) - asked <= 36 - 8 + 2


def out_of_order(number: int, fault: Reply) -> Callable[[Request], Reply]:
    """Answers all questions but this one."""
    return lambda request: fault if number_in(request) == number else pupil(request)


@pytest.mark.parametrize(
    "fault",
    [Fails(429, "Rate limit reached; try again in 100ms"), Fails(503, "overloaded"), Fails(529, "overloaded"), Cut()],
    ids=["rate limit", "unavailable", "overloaded", "cut"],
)
def test_a_question_that_the_server_failed_is_left_and_never_in_the_annotators_queue(tmp_path, monkeypatch, fault):
    monkeypatch.setattr(shared_model, "_FIRST_PAUSE", 0.2)
    monkeypatch.setattr("showhow.llm.client._INITIAL_BACKOFF_SECONDS", 0.1)
    home = Home(tmp_path / "home", 4)
    with ModelServer(out_of_order(2, fault)) as server:
        words = ("verify", "--project", PROJECT, "--at-once", 2, "--seconds", 5)
        out, err = home.run(*words, "--json", server=server, status=1)
        report = json.loads(out)
        # The rate limiter may slow down the other questions, too.
        assert (report["right"] + report["left"], report["failed"], report["refused"]) == (4, 0, 0), err
        assert 1 <= report["left"] <= 2
        assert "questions stayed unfinished: " in err
        assert "list of repairs" not in home.run(*words, server=server, status=1)[0]
        server.script = pupil
        again = home.verify(server, "--seconds", 5, "--most-seconds", 60)
        assert (again["id"], again["right"], again["left"]) == (report["id"], 4, 0)


def test_questions_that_the_server_failed_are_asked_again_until_the_time_limit(tmp_path, monkeypatch):
    monkeypatch.setattr(shared_model, "_FIRST_PAUSE", 0.2)
    home = Home(tmp_path / "home", 8)
    failing = Fails(503, "restarting")
    words = ("verify", "--project", PROJECT, "--at-once", 4, "--seconds", 9, "--most-seconds", 120, "--json")
    # More requests fail than four questions send within their time limit.
    with ModelServer(lambda request: failing if request.place < 24 else pupil(request)) as server:
        out, err = home.run(*words, server=server)
    report = json.loads(out)
    assert (report["right"], report["left"], report["failed"]) == (8, 0, 0), err
    assert "the unfinished questions are asked again in" in err


def test_a_reply_without_usage_does_not_end_a_limited_verification(tmp_path):
    home = Home(tmp_path / "home", 4)

    def reply(request: Request) -> Reply:
        return replace(pupil(request), usage=None) if request.place == 1 else pupil(request)

    with ModelServer(reply) as server:
        report = home.verify(server, "--at-once", 1, "--most-money", 1000)
        assert (report["right"], report["left"], report["unreported_calls"]) == (4, 0, 1)
        assert 11 * 0.11 < report["cost_bound"] < 1000
        assert (report["cost"], report["model"]) == (None, "openai:scripted")
        # Later commands know its bound, too.
        (listed,) = json.loads(home.run("verify", "--project", PROJECT, "--list", "--json")[0])
        assert listed["cost_bound"] == pytest.approx(report["cost_bound"])


def test_every_report_names_the_model(tmp_path):
    home = Home(tmp_path / "home", 2)
    with ModelServer(pupil) as server:
        out, err = home.run("verify", "--project", PROJECT, server=server)
        calls = len(server.requests)
        assert f"model default (openai:scripted): {calls} calls, {calls * 110} tokens, ${calls * 0.11:.4f}" in out
        assert "over 2 questions with openai:scripted" in err
    assert "model default (openai:scripted)" in home.run("verify", "--project", PROJECT, "--list")[0]
    out, _ = home.run("verify", "--project", PROJECT, "--reasoner", "replay")
    assert "no model" in out


def test_impossible_verifications_are_refused_in_one_sentence(tmp_path):
    home = Home(tmp_path / "home", 2)
    told = {
        ("--project", "None"): "there is no project 'None'",
        ("--project", PROJECT, "--reasoner", "oracle"): "there is no reasoner 'oracle'",
        ("--project", PROJECT, "--reasoner", "humaniq", "--option", "pipeline=magic"): "there is no pipeline 'magic'",
        ("--again", "x"): "'x' is not the id of a verification",
        ("--again", "0192f0c1-2f5e-7c4a-8d32-000000000000"): "there is no verification 0192f0c1",
        ("--list",): "name an existing project",
    }
    for words, sentence in told.items():
        _, err = home.run("verify", *words, status=1)
        assert sentence in err
        assert "Traceback" not in err
    assert home.run("verify", status=2)[0] == ""


def test_failures_are_ordered_by_repair_priority_and_no_repairs_freeze_no_version(tmp_path):
    home = Home(tmp_path / "home", 12)
    # Of kind 1 all three are wrong, of kind 2 one.
    with ModelServer(lambda request: pupil(request, wrong=frozenset({1, 5, 9, 2}))) as server:
        report = home.verify(server, "--at-once", 4)
        kinds = {name: (told["questions"], told["right"]) for name, told in report["by_kind"].items()}
        assert kinds == {"kind 0": (3, 3), "kind 1": (3, 0), "kind 2": (3, 2), "kind 3": (3, 3)}
        told, _ = home.run("verify", "--project", PROJECT, "--list")
        assert report["id"] in told
        waiting = json.loads(home.run("repair", "list", str(report["id"]), "--json")[0])
        assert [row["kind"] for row in waiting[:2]] == ["kind 1", "kind 1"]
        assert [(row["waits"], row["repair"]) for row in waiting] == [(True, None)] * 4
        _, err = home.run("verify", "--again", report["id"], server=server, status=1)
    assert "no repair of this verification is approved yet" in err


def repair(home: Home, number: int) -> None:
    """Fork the failed trace of the question, give the right answer, and approve it."""
    store = Database(f"sqlite:///{home.folder / 'showhow.db'}")
    try:
        with store.begin() as session:
            person = register_user(session, "ada").id
            failed = session.scalars(select(Trace).where(Trace.final_answer == f"Nobody {number}")).one()
        draft = json.loads(home.run("repair", "fork", failed.id, "--as", "ada", "--step", 1, "--json")[0])
        with store.begin() as session:
            fork = session.get_one(Trace, UUID(draft["trace"]))
            answers = recording.TraceAnswers(f"Answer {number}")
            recording.submit_trace(session, fork.id, answers, seen=fork.version, by=person)
            review.approve_trace(session, fork.id, seen=trace_version(session, fork.id), by=person)
    finally:
        store.close()


def test_a_repair_in_the_library_corrects_the_other_failures(tmp_path):
    home = Home(tmp_path / "home", 12)
    error = frozenset({1, 5, 9, 2})
    with ModelServer(lambda request: pupil(request, wrong=error, taught_by=1)) as server:
        first = home.verify(server, "--at-once", 4)
        repair(home, 1)
        assert "approved by ada" in home.run("repair", "list", first["id"])[0]
        out, _ = home.run("repair", "finish", first["id"], "--json", server=server)
        again = json.loads(out)
        assert (again["again_of"], again["library"]) == (first["id"], "default:1")
        assert (again["questions"], again["right"], again["left"]) == (4, 3, 0)
        assert (again["before"]["questions"], again["before"]["right"], first["before"]) == (4, 0, None)
        # The repair of question 1 is in the library, but is not shown to question 1.
        own = [
            request for request in server.requests if request.tools and request.prompt.count("Who is number 1?") == 2
        ]
        assert own == []


def test_a_verification_is_paused_and_resumed_with_more_questions_at_the_same_time(tmp_path):
    home = Home(tmp_path / "home", 40)
    at_work: set[int] = set()
    most = 0
    is_open = Event()

    def reply(request: Request) -> Reply:
        nonlocal most
        number = number_in(request)
        at_work.add(number)
        most = max(most, len(at_work))
        answered = pupil(request, latency=0.05)
        if request.place >= 15:
            is_open.wait(120)
        if request.body["messages"][-1]["role"] == "tool" or not request.tools:
            at_work.discard(number)
        return answered

    with ModelServer(reply) as server:
        working = home.command("verify", "--project", PROJECT, "--at-once", 2, server=server)
        assert working.stderr is not None
        lines = iter(working.stderr)
        run_id = next(line for line in lines if line.startswith("verification ")).split()[1]
        assert any(line.startswith("2 of 40") for line in lines)
        home.run("verify", "--pause", run_id)
        is_open.set()
        # The questions at work are finished, then nothing is begun.
        begun = -1
        while begun != (begun := home.rows("SELECT count(*) FROM trace")[0][0]) or home.rows(
            "SELECT count(*) FROM attempt WHERE state = 'leased'"
        ) != [(0,)]:
            time.sleep(1.5)
        assert begun < 40
        assert working.poll() is None
        home.run("verify", "--resume", run_id, "--at-once", 8)
        out, _ = working.communicate(timeout=120)
        assert working.returncode == 0, out
        assert 2 < most <= 8
    assert home.rows("SELECT count(*), count(DISTINCT trace_id) FROM attempt WHERE state = 'ended'") == [(40, 40)]
    assert "nothing to pause" in home.run("verify", "--pause", run_id, status=1)[1]


def test_each_question_is_asked_as_often_as_it_is_repeated(tmp_path):
    home = Home(tmp_path / "home", 10)
    counts: Counter[int] = Counter()

    def reply(request: Request) -> Reply:
        number = number_in(request)
        is_first = request.tools and request.body["messages"][-1]["role"] != "tool"
        counts[number] += bool(is_first)
        # Question 3 is answered wrongly each time, question 4 the first time.
        return pupil(request, wrong=frozenset({3} | ({4} if counts[4] <= 1 else set())))

    with ModelServer(reply) as server:
        report = home.verify(server, "--repetitions", 3, "--at-once", 1)
        assert (report["questions"], report["left"], report["right"]) == (30, 0, 26)
        # Nine questions are right at least once, eight each time; two of three answers to question 4 are right.
        assert report["pass_at_k"]["3"] == pytest.approx(0.9)
        # The answers to a question that failed several times are one failure to repair.
        assert (
            "2 failures are in the annotators' list of repairs"
            in home.run("verify", "--go-on", report["id"], server=server)[0]
        )
        assert report["pass_hat_k"] == pytest.approx({"1": 26 / 30, "2": (8 + 1 / 3) / 10, "3": 0.8})
        assert set(counts.values()) == {3}
        again = home.verify(server, "--at-once", 1)
        assert (again["questions"], again["id"] != report["id"]) == (10, True)
    assert home.rows("SELECT count(*), count(DISTINCT question_id), max(repetition) FROM attempt") == [(40, 10, 3)]


def test_a_verification_whose_questions_changed_is_not_continued(tmp_path):
    home = Home(tmp_path / "home", 20)
    with ModelServer(pupil) as server:
        stopped = home.verify(server, "--most-money", 12, "--at-once", 1, status=1)
        assert stopped["left"] > 0
        with sqlite3.connect(home.folder / "showhow.db") as store:
            store.execute('UPDATE question SET gold_answers = \'[{"text": "Nobody"}]\' WHERE position = 6')
        refused = home.verify(server, "--go-on", stopped["id"], status=1)
    assert "questions or gold answers changed" in str(refused["said"])


def test_a_verification_that_was_killed_while_it_was_started_is_completed_by_the_same_command(tmp_path):
    home = Home(tmp_path / "home", 6)
    refused = Fails(401, "no")
    with ModelServer(lambda _: refused) as server:
        home.verify(server, "--at-once", 1, status=1)
        ((first,),) = home.rows("SELECT id FROM run")
        with sqlite3.connect(home.folder / "showhow.db") as store:
            store.execute("DELETE FROM attempt WHERE position > 2")
        server.script = pupil
        assert "its start was interrupted" in str(home.verify(server, "--go-on", first, status=1)["said"])
        report = home.verify(server)
    assert (report["id"].replace("-", ""), report["questions"], report["right"]) == (str(first).replace("-", ""), 6, 6)
