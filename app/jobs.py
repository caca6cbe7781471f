"""Long work of the command line beside the server: each a process of its own, shown while it runs, ended by a stop."""

import atexit
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock, Thread

from worlds.folder import WorldError

# A server that was started in the background ignores interrupts, and would hand that down.
_ENTRY = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); from app.cli import main; main()"
_CHECKOUT = Path(__file__).resolve().parents[1]
_PATIENCE = 10.0
"""Seconds that a stopped process has to clean up."""
_FRACTION = re.compile(r"(\d[\d,]*) (?:of|/) (\d[\d,]*)")
_PERCENT = re.compile(r"(\d+(?:\.\d+)?) ?%")


@dataclass
class Job:
    """One verb at work on a world; `said` is its last line."""

    world: str
    doing: str
    """Generating, importing ..."""
    process: subprocess.Popen[str]
    scratch: Path | None = None
    """A folder that is removed when the work is over."""
    said: str = ""
    started: float = field(default_factory=time.monotonic)
    ended: float | None = None
    stopping: bool = False

    @property
    def state(self) -> str:
        """running, done, stopped or failed."""
        if self.ended is None:
            return "running"
        if self.process.returncode == 0:
            return "done"
        return "stopped" if self.stopping else "failed"

    @property
    def seconds(self) -> float:
        """How long it has been or was at work."""
        return (self.ended or time.monotonic()) - self.started

    @property
    def share(self) -> float | None:
        """How much is done, from 0 to 1, if its last line says so."""
        if percent := _PERCENT.search(self.said):
            return min(1.0, float(percent[1]) / 100)
        if fraction := _FRACTION.search(self.said):
            done, whole = (int(number.replace(",", "")) for number in fraction.groups())
            return min(1.0, done / whole) if whole else None
        return None

    def stop(self) -> None:
        """Interrupt it as Ctrl+C does, so that nothing half made stays; one that does not end is killed."""
        if not self.stopping and self.ended is None:
            self.stopping = True
            self._signal(signal.SIGINT)
            Thread(target=self._insist, daemon=True).start()

    def follow(self) -> None:
        """Read what it says until it ends."""
        assert self.process.stderr is not None  # noqa: S101 - tells the type checker that it is a pipe
        with self.process.stderr as lines:
            for line in lines:
                self.said = line.strip().removeprefix("showhow: ") or self.said
        self.process.wait()
        if self.scratch is not None:
            shutil.rmtree(self.scratch, ignore_errors=True)
        self.ended = time.monotonic()

    def _insist(self) -> None:
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(_PATIENCE)
            return
        self._signal(signal.SIGKILL)

    def _signal(self, which: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, which)


class Jobs:
    """The jobs of this server, for whoever looks at its pages."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}
        self._lock = Lock()
        atexit.register(self.stop_all)

    def start(self, world: str, doing: str, arguments: Sequence[str], scratch: Path | None = None) -> Job:
        """Run `showhow` with the arguments; WorldError when that world is being worked on already."""
        with self._lock:
            known = self._jobs.get(world)
            if known is not None and known.state == "running":
                raise WorldError(f"{world!r} is being made already; wait for it, stop it, or choose another name.")
            process = subprocess.Popen(  # noqa: S603 - our own command line, no shell
                [sys.executable, "-c", _ENTRY, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                errors="replace",
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": str(_CHECKOUT)},
            )
            job = self._jobs[world] = Job(world, doing, process, scratch)
        Thread(target=job.follow, daemon=True).start()
        return job

    def all(self) -> list[Job]:
        """Every job that is at work or was not dismissed yet, the latest first."""
        return sorted(self._jobs.values(), key=lambda job: -job.started)

    def dismiss(self, job: Job) -> None:
        """Forget a job that is over."""
        with self._lock:
            if self._jobs.get(job.world) is job and job.state != "running":
                del self._jobs[job.world]

    def stop_all(self) -> None:
        """End every process, as when the server ends."""
        for job in self.all():
            job.stop()
        for job in self.all():
            with suppress(subprocess.TimeoutExpired):
                job.process.wait(_PATIENCE)
