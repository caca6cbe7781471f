"""Runs a reasoner over a store and is killed at random moments; each time it goes on where it was.

`python killed_run.py URL TRACE CALLS STEPS DEATHS`: forks one runner after the other from a warm process. Every call of
the tool goes to a file of its own.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path
from typing import Annotated
from uuid import UUID

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from showhow.db.database import Database
from showhow.db.run_spec import RunLimits
from showhow.db.runs import runs
from showhow.reasoners.base import Action, Task
from showhow.runs.recorders import StoreRecorder
from showhow.runs.runner import RunControl, run_reasoner
from showhow.tools.tool import Observation, ToolContext
from tests.reasoners.scripted import NOWHERE, Scripted, tool_of

LONGEST_LIFE = 0.08


def go_on(url: str, trace_id: UUID, calls: Path, steps: int) -> None:
    """Run to the end."""
    store = Database(url)

    def count(_context: ToolContext, number: Annotated[int, "which"]) -> Observation:
        """Count up to the number."""
        with calls.open("a", encoding="utf-8") as file:
            file.write(f"{number}\n")
        return Observation(f"counted to {number}", {"value": str(number)})

    with store.begin() as session:
        trace = runs.reopen_run_trace(session, trace_id)
    script = [Action(f"Now {number}.", "count", {"number": number}) for number in range(1, steps + 1)]
    task = Task("How far?", NOWHERE, [tool_of(count)])
    run_reasoner(Scripted(script), task, StoreRecorder(store, trace), RunControl(RunLimits(steps=steps)))


def main(url: str, trace_id: UUID, calls: Path, steps: int, deaths: int) -> None:
    """Run one process after the other, each killed after a random time, and the last one to the end."""
    chance = random.Random(20261121)
    for _ in range(deaths):
        child = os.fork()
        if child == 0:
            go_on(url, trace_id, calls, steps)
            os._exit(0)
        time.sleep(chance.uniform(0.01, LONGEST_LIFE))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            sys.exit("a runner came to an end; give it more steps")
    go_on(url, trace_id, calls, steps)


if __name__ == "__main__":
    main(sys.argv[1], UUID(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), int(sys.argv[5]))
