"""Verifications that several worker processes share: a home, its database, its workers and a counting model.

Tests and `make bench ONLY=workers` use the same: questions "Who is number N?" about a harbour, answered by the pupil.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any
from uuid import UUID

from sqlalchemy import bindparam, text

from showhow.db.database import Database
from tests.app.cli.in_process import run_in_process
from tests.servers.model import ModelServer, Reply, Request, Says
from tests.servers.pupil import number_in, pupil

SHOWHOW = Path(sys.executable).with_name("showhow")
HARBOUR = Path(__file__).parents[1] / "tools"
PROJECT = "Harbour"
WRONG_SHARE = 7
"""Each seventh question is answered wrongly, so that scores differ."""


class CountingPupil:
    """A model that answers each seventh question wrongly, after `latency` seconds, in text or in the JSON of skills."""

    def __init__(self, latency: float = 0.0) -> None:
        self.latency = latency

    def __call__(self, request: Request) -> Reply:
        number = number_in(request)
        is_wrong = number % WRONG_SHARE == 0
        form = request.body.get("response_format") or {"json_schema": {"schema": {"required": ()}}}
        names = form["json_schema"]["schema"]["required"]
        if "answers" not in names:
            return pupil(request, wrong=frozenset({number} if is_wrong else ()), latency=self.latency)
        answer = {"text": f"{'Nobody' if is_wrong else 'Answer'} {number}", "entity": None, "of": None}
        values: dict[str, Any] = {"answers": [answer], "support": [], "unknown": False}
        return Says(json.dumps({name: values.get(name, "I know.") for name in names}), latency=self.latency)


@dataclass
class SharedHome:
    """A home with a project of questions; verbs of it run in processes of their own."""

    folder: Path
    database_url: str
    server: ModelServer
    questions: int
    environ: dict[str, str] = field(default_factory=dict)
    processes: list["subprocess.Popen[str]"] = field(default_factory=list)

    def __post_init__(self) -> None:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("SHOWHOW_")}
        self.environ = inherited | {
            "SHOWHOW_HOME": str(self.folder),
            "SHOWHOW_DATABASE_URL": self.database_url,
            "SHOWHOW_MODEL": "openai:scripted",
            "SHOWHOW_MODEL_BASE_URL": self.server.url,
            "SHOWHOW_MODEL_PRICE": "1/1",
            "OPENAI_API_KEY": "none",
        }
        self.folder.mkdir(exist_ok=True)
        rows = [
            {"question": f"Who is number {number}?", "answer": f"Answer {number}", "kind": f"kind {number % 4}"}
            for number in range(self.questions)
        ]
        file = self.folder / "questions.jsonl"
        file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        articles, graph = HARBOUR / "harbour.jsonl", HARBOUR / "harbour.ttl"
        if not (self.folder / "worlds" / "harbour").is_dir():
            self.run("world", "import", "harbour", "--articles", articles, "--graph", graph)
        self.run("questions", "import", file, "--project", PROJECT, "--world", "harbour")
        self.database = Database(self.database_url)

    def __enter__(self) -> "SharedHome":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
        self.database.close()

    def start(self, *words: object, **environ: str) -> "subprocess.Popen[str]":
        """Start a verb; its stderr goes to a file of the home."""
        with (self.folder / "verbs.log").open("a", encoding="utf-8") as log:
            process = subprocess.Popen(
                [SHOWHOW, *map(str, words)],
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=self.environ | environ,
            )
        self.processes.append(process)
        return process

    def run(self, *words: object) -> str:
        """Run a verb in this process; return its stdout."""
        settings = {name: value for name, value in self.environ.items() if name.startswith(("SHOWHOW_", "OPENAI_"))}
        done = run_in_process(self.folder, *map(str, words), **settings)
        if done.returncode:
            raise RuntimeError(f"showhow {' '.join(map(str, words))} failed: {done.stderr}")
        return done.stdout

    def start_worker(self, *words: object, **environ: str) -> "subprocess.Popen[str]":
        """Start a worker."""
        return self.start("worker", *words, **environ)

    def share(self, *words: object) -> UUID:
        """Start a verification that workers share, and return its id."""
        return UUID(
            json.loads(self.run("verify", "--project", PROJECT, "--workers", "--detach", "--json", *words))["id"]
        )

    def rows(self, query: str, **values: object) -> list[Any]:
        """Query the database; a list among the values is for IN."""
        expanding = [bindparam(name, expanding=True) for name, value in values.items() if isinstance(value, list)]
        with self.database.read() as session:
            return [tuple(row) for row in session.execute(text(query).bindparams(*expanding), values)]

    def log(self) -> str:
        """What verbs wrote on stderr."""
        return (self.folder / "verbs.log").read_text(encoding="utf-8")

    def wait_until(self, condition: Callable[[], bool], seconds: float = 120.0) -> None:
        """Wait for the condition; RuntimeError with the verbs' log if it does not come true in time."""
        waiting = threading.Event()
        for _ in range(int(seconds / 0.05)):
            if condition():
                return
            waiting.wait(0.05)
        raise RuntimeError(f"the condition did not come true within {seconds} s:\n{self.log()[-4000:]}")

    def count_ended(self) -> int:
        """The attempts that have ended, of all runs."""
        return int(self.rows("SELECT count(*) FROM attempt WHERE state = 'ended'")[0][0])

    def are_finished(self) -> bool:
        """Whether all runs are finished; RuntimeError if one was stopped."""
        if stopped := self.rows("SELECT stop_reason FROM worker_run WHERE stop_reason IS NOT NULL"):
            raise RuntimeError(f"a run was stopped: {stopped[0][0]}\n{self.log()[-4000:]}")
        return not self.rows("SELECT 1 FROM run WHERE finished_at IS NULL")


@dataclass(frozen=True)
class Ledger:
    """What the store has counted of ended runs, and the model's server of the requests since they were begun."""

    attempts: int
    unfinished: int
    traces: int
    scored_twice: int
    unscored: int
    calls: int
    lost: int
    requests: int
    repeats: int

    @classmethod
    def read(cls, home: SharedHome, runs: Sequence[UUID], first_request: int) -> "Ledger":
        """Read it; the requests begin with this one."""
        requests = home.server.requests[first_request:]

        def count(query: str) -> int:
            return int(home.rows(query, runs=[str(run) for run in runs])[0][0])

        of_runs = "run_id IN :runs"
        calls = f"FROM model_call JOIN trace ON trace.id = trace_id WHERE {of_runs}"
        repeated = f"SELECT attempt_id FROM score WHERE {of_runs} GROUP BY attempt_id, metric HAVING count(*) > 1"
        scored = f"SELECT attempt_id FROM score WHERE {of_runs} AND metric = 'f1'"
        # No two attempts of a test ask the same, so what was asked twice was repeated.
        asked = Counter(json.dumps(request.body, sort_keys=True) for request in requests)
        return cls(
            attempts=count(f"SELECT count(*) FROM attempt WHERE {of_runs}"),
            unfinished=count(
                f"SELECT count(*) FROM attempt WHERE {of_runs} AND (state != 'ended' OR ending != 'answered')"
            ),
            traces=count(f"SELECT count(*) FROM trace WHERE {of_runs}"),
            scored_twice=count(f"SELECT count(*) FROM ({repeated}) AS repeated"),
            unscored=count(f"SELECT count(*) FROM attempt WHERE {of_runs} AND id NOT IN ({scored})"),
            calls=count(f"SELECT count(*) {calls}"),
            lost=count(f"SELECT count(*) {calls} AND state = 'lost'"),
            requests=len(requests),
            repeats=sum(number - 1 for number in asked.values()),
        )

    def find_faults(self, most_lost: int) -> list[str]:
        """What does not hold although at most so many calls were in flight when they were interrupted."""
        holds = {
            "every attempt is finished": not self.unfinished,
            "every attempt has one trace": self.traces == self.attempts,
            "every answer is scored once": not (self.scored_twice or self.unscored),
            # A process may be killed between storing a call and sending its request.
            "every request is a call": self.calls - self.lost <= self.requests <= self.calls,
            "only lost calls are repeated": self.repeats <= self.lost <= most_lost,
        }
        return [f"{rule}: {self}" for rule, held in holds.items() if not held]


def kill_at_random_moments(
    home: SharedHome, workers: list["subprocess.Popen[str]"], shares: Sequence[int], start: Callable[[], Any], seed: int
) -> None:
    """Kill -9 one of the workers each time that so many attempts have ended, and start another in its place."""
    chance = random.Random(seed)
    for share in shares:
        home.wait_until(lambda share=share: home.count_ended() >= share)
        threading.Event().wait(chance.uniform(0.0, 0.3))
        number = chance.randrange(len(workers))
        workers[number].send_signal(signal.SIGKILL)
        workers[number].wait()
        workers[number] = start()
