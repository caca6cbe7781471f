"""Runs a reasoner with branches over a store and is killed at random moments; each time it goes on where it was.

`python killed_tree.py URL TRACE CALLS DEATHS`: forks one runner after the other from a warm process. Every call of the
tool and of the skill goes to one file.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path
from uuid import UUID

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from showhow.db.database import Database
from showhow.db.run_spec import RunLimits
from showhow.db.runs import runs
from showhow.runs.recorders import StoreRecorder
from showhow.runs.runner import RunControl, run_reasoner
from tests.runs.test_branches import Delays, RandomTree

QUESTION, DEPTH = "q23", 6
LONGEST_LIFE = 0.15


class NotedDelays(Delays):
    """Notes each call in a file before it works."""

    calls_file: Path

    def work(self, text: str) -> str:
        with self.calls_file.open("a", encoding="utf-8") as file:
            file.write(f"{text}\n")
        return super().work(text)


def go_on(url: str, trace_id: UUID, calls: Path) -> None:
    """Run to the end."""
    store = Database(url)
    delays = NotedDelays(0)
    delays.calls_file = calls
    with store.begin() as session:
        trace = runs.reopen_run_trace(session, trace_id)
    run_reasoner(
        RandomTree(DEPTH), delays.task(QUESTION), StoreRecorder(store, trace), RunControl(RunLimits(steps=None))
    )


def main(url: str, trace_id: UUID, calls: Path, deaths: int) -> None:
    """Run one process after the other, each killed after a random time, and the last one to the end."""
    chance = random.Random(20261123)
    for _ in range(deaths):
        child = os.fork()
        if child == 0:
            go_on(url, trace_id, calls)
            os._exit(0)
        time.sleep(chance.uniform(0.02, LONGEST_LIFE))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            sys.exit("a runner came to an end; give it a larger tree")
    go_on(url, trace_id, calls)


if __name__ == "__main__":
    main(sys.argv[1], UUID(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
