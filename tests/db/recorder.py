"""Records steps into a store and is killed at random moments; what was acknowledged goes to a file of its own.

`python recorder.py URL TRACE ACKNOWLEDGED ROUNDS`: forks one recorder after the other from a warm process, so that two
hundred deaths take seconds.
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
from showhow.db.traces import recording, traces

LONGEST_LIFE = 0.04


def record(url: str, trace_id: UUID, acknowledged: int, opened: int) -> None:
    """Record steps until killed; a line, and a byte to `opened`, follow once each transaction is on disk."""
    store = Database(url)
    with store.read() as session:
        traces.load_trace(session, trace_id)
    os.write(opened, b"x")
    while True:
        with store.read() as session:
            trace = traces.load_trace(session, trace_id).trace
        new = recording.NewStep("a thought " * 50, "read", {"title": "Quay"})
        with store.begin() as session:
            step = recording.begin_step(session, trace_id, new, seen=trace.version, by=trace.author_id)
        os.write(acknowledged, f"begun {step.id} {step.position}\n".encode())
        os.write(opened, b"x")
        with store.begin() as session:
            result = recording.StepResult("found " * 500, {"n": 1}, None, 0.01)
            recording.complete_step(session, step.id, result, by=trace.author_id)
        os.write(acknowledged, f"completed {step.id} {step.position}\n".encode())
        os.write(opened, b"x")


def main(url: str, trace_id: UUID, file: Path, rounds: int) -> None:
    """Run one recorder after another and kill each after a random time."""
    chance = random.Random(20261121)
    acknowledged = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    for number in range(rounds):
        ready, opened = os.pipe()
        child = os.fork()
        if child == 0:
            record(url, trace_id, acknowledged, opened)
        # The recorder has the only other end, so that nobody waits for one that ended by itself.
        os.close(opened)
        # It is killed while it opens the database, or once it is open, has begun, completed, begun again: the machine's
        # speed does not decide how much is at stake.
        for _ in range(number % 5):
            os.read(ready, 1)
        time.sleep(chance.uniform(0, LONGEST_LIFE))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            sys.exit("a recorder ended by itself")
        os.close(ready)


if __name__ == "__main__":
    main(sys.argv[1], UUID(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
