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

from db.database import Database
from tests.servers.model import ModelServer, Reply, Request
from tests.servers.pupil import number_in, pupil

SHOWHOW = Path(sys.executable).with_name("showhow")
HARBOUR = Path(__file__).parents[1] / "tools"
PROJECT = "Harbour"
WRONG_SHARE = 7
"""Each seventh question is answered wrongly, so that scores differ."""


def counting_pupil(latency: float = 0.0) -> Callable[[Request], Reply]:
    """A model that answers each seventh question wrongly."""

    def reply(request: Request) -> Reply:
        number = number_in(request)
        wrong = frozenset({number}) if number % WRONG_SHARE == 0 else frozenset()
        return pupil(request, wrong=wrong, latency=latency)

    return reply


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
            process.communicate()
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

    def run(self, *words: object, **environ: str) -> str:
        """Run a verb; return its stdout."""
        done = subprocess.run(
            [SHOWHOW, *map(str, words)], capture_output=True, text=True, env=self.environ | environ, check=False
        )
        if done.returncode:
            raise RuntimeError(f"showhow {' '.join(map(str, words))} failed: {done.stderr}")
        return done.stdout

    def start_worker(self, *words: object, **environ: str) -> "subprocess.Popen[str]":
        """Start a worker."""
        return self.start("worker", *words, **environ)

    def share(self, *words: object) -> UUID:
        """Start a verification that workers share, and return its id."""
        return UUID(json.loads(self.run("verify", "--project", PROJECT, "--workers", "--detach", "--json", *words))["id"])

    def rows(self, query: str) -> list[Any]:
        """Query the database."""
        with self.database.read() as session:
            return [tuple(row) for row in session.connection().exec_driver_sql(query)]

    def log(self) -> str:
        """What verbs wrote on stderr."""
        return (self.folder / "verbs.log").read_text(encoding="utf-8")

    def wait_until(self, condition: Callable[[], bool], seconds: float = 300.0) -> None:
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
        """Whether all runs are finished."""
        return not self.rows("SELECT 1 FROM run WHERE finished_at IS NULL")


@dataclass(frozen=True)
class Ledger:
    """What the store and the model's server have counted of all runs."""

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
    def read(cls, home: SharedHome) -> "Ledger":
        """Read it after all runs have ended."""
        count = lambda query: int(home.rows(query)[0][0])  # noqa: E731
        # No two reasoners ask the same, so what was asked twice was repeated.
        asked = Counter(json.dumps(request.body, sort_keys=True) for request in home.server.requests)
        return cls(
            attempts=count("SELECT count(*) FROM attempt"),
            unfinished=count("SELECT count(*) FROM attempt WHERE state != 'ended' OR ending != 'answered'"),
            traces=count("SELECT count(*) FROM trace"),
            scored_twice=count(
                "SELECT count(*) FROM (SELECT attempt_id FROM score GROUP BY attempt_id, metric HAVING count(*) > 1) AS s"
            ),
            unscored=count(
                "SELECT count(*) FROM attempt WHERE id NOT IN (SELECT attempt_id FROM score WHERE metric = 'f1')"
            ),
            calls=count("SELECT count(*) FROM model_call"),
            lost=count("SELECT count(*) FROM model_call WHERE state = 'lost'"),
            requests=len(home.server.requests),
            repeats=sum(number - 1 for number in asked.values()),
        )


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
