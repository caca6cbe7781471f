"""Background jobs of the server: tasks (tasks/task.py), each in a process of its own.

A job is a process, so that stopping it interrupts all its work; it reports progress as JSON lines (tasks/progress.py).
It acts as the person who started it: the store checks their role, and what it stores is theirs (app/services.act_as).
Uploads are stored in a folder of the home while a job imports them.
"""

import atexit
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock, Thread
from typing import Literal
from uuid import UUID

from showhow.guard.environment import open_held_variables, read_environment
from showhow.tasks.progress import ProgressEvent, parse_progress_event
from showhow.worlds.folder import ScratchFolder, claim_abandoned_folders

# A server that was started in the background ignores SIGINT, and its child processes would inherit that.
_ENTRY_POINT = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from showhow.app.cli.main import main; main()"
)
_GRACE_SECONDS = 10.0
"""Seconds that a stopped process may clean up without a word of progress before it is killed."""
_UPLOAD_PREFIX = "import-"
JobState = Literal["running", "done", "stopped", "failed"]


class JobError(Exception):
    """A job cannot be started; the message states the reason."""


@dataclass
class Job:
    """One task that was started: its process, its last progress event, and its state."""

    kind: str
    """world, usage, drift or verification."""
    name: str
    """The object of the work, such as the name of a world; unique among the jobs of its kind."""
    activity: str
    """A verb form for the panel, such as Generating or Importing."""
    process: subprocess.Popen[str]
    scratch: ScratchFolder | None = None
    """A folder that is removed when the job ends."""
    last_event: ProgressEvent | None = None
    started_at: float = field(default_factory=time.monotonic)
    ended_at: float | None = None
    stopping: bool = False
    _heard_at: float = field(default_factory=time.monotonic)
    """When it last reported progress, or was stopped."""

    @property
    def state(self) -> JobState:
        """Running, or the way it ended."""
        if self.ended_at is None:
            return "running"
        if self.process.returncode == 0:
            return "done"
        return "stopped" if self.stopping else "failed"

    @property
    def seconds(self) -> float:
        """Elapsed seconds."""
        return (self.ended_at or time.monotonic()) - self.started_at

    @property
    def message(self) -> str:
        """Its last line of progress, or the error that ended it; empty before the first."""
        return self.last_event.message if self.last_event else ""

    @property
    def fraction(self) -> float | None:
        """The completed share, from 0 to 1; None if it is unknown."""
        return self.last_event.fraction if self.last_event else None

    @property
    def error(self) -> str:
        """Why a failed job failed, in one sentence."""
        if self.last_event and self.last_event.event == "error":
            return self.last_event.message
        return f"the process ended with status {self.process.returncode} and no message; see the server's log"

    @property
    def was_killed(self) -> bool:
        """Whether its process was killed, so that it could not clean up."""
        return self.ended_at is not None and self.process.returncode == -signal.SIGKILL

    def stop(self) -> None:
        """Interrupt it as Ctrl+C does, so that it cleans up; a process that stops reporting progress is killed."""
        if not self.stopping and self.ended_at is None:
            self.stopping = True
            self._heard_at = time.monotonic()
            self._send_signal(signal.SIGINT)
            Thread(target=self._kill_after_grace, daemon=True).start()

    def read_progress(self) -> None:
        """Read its progress until it ends; lines of other programs go to the server's log."""
        assert self.process.stderr is not None  # noqa: S101 - tells the type checker that it is a pipe
        with self.process.stderr as lines:
            for line in lines:
                event = parse_progress_event(line)
                if event is None:
                    sys.stderr.write(line)
                else:
                    self.last_event = event
                    self._heard_at = time.monotonic()
        self.process.wait()
        if self.scratch is not None:
            self.scratch.remove()
        self.ended_at = time.monotonic()

    def _kill_after_grace(self) -> None:
        while (seconds_left := self._heard_at + _GRACE_SECONDS - time.monotonic()) > 0:
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(seconds_left)
                return
        self._send_signal(signal.SIGKILL)

    def _send_signal(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)


class JobRegistry:
    """The jobs of this server, by kind and name; thread-safe."""

    def __init__(self) -> None:
        self._jobs: dict[tuple[str, str], Job] = {}
        self._lock = Lock()
        atexit.register(self.stop_all)

    def start(  # noqa: PLR0913 - each is a part of the job
        self,
        kind: str,
        name: str,
        activity: str,
        call: str,
        scratch: ScratchFolder | None = None,
        *,
        person_id: UUID | None,
    ) -> Job:
        """Run what `tasks.task.dump_call` wrote as this person; JobError if a job of that kind and name is running.

        Without a person it may do everything, as the command line.
        """
        person = [] if person_id is None else [f"--person={person_id}"]
        with self._lock:
            existing_job = self._jobs.get((kind, name))
            if existing_job is not None and existing_job.state == "running":
                raise JobError(f"{name!r} is already running; wait for it, or stop it.")
            environment, held = open_held_variables(read_environment())
            try:
                process = subprocess.Popen(  # noqa: S603 - our own command line, no shell
                    [sys.executable, "-P", "-c", _ENTRY_POINT, "--json-progress", *person, "job"],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                    text=True,
                    encoding="utf-8",
                    errors="replace",
                    start_new_session=True,
                    # The job may outlive a killed server, and still needs the folder.
                    pass_fds=(held,) if scratch is None else (held, scratch.descriptor),
                    env={**environment, "PYTHONIOENCODING": "utf-8"},
                )
            finally:
                os.close(held)
            assert process.stdin is not None  # noqa: S101 - tells the type checker that it is a pipe
            with suppress(BrokenPipeError), process.stdin as stdin:
                stdin.write(call)
            job = self._jobs[kind, name] = Job(kind, name, activity, process, scratch)
        Thread(target=job.read_progress, daemon=True).start()
        return job

    def list_jobs(self, kind: str) -> list[Job]:
        """Return the jobs of that kind that are running or not dismissed, latest first."""
        with self._lock:
            matching = [job for job in self._jobs.values() if job.kind == kind]
        return sorted(matching, key=lambda job: -job.started_at)

    def find(self, kind: str, name: str) -> Job | None:
        """Return the job of that kind and name if it is running or not dismissed."""
        return self._jobs.get((kind, name))

    def dismiss(self, job: Job) -> None:
        """Remove a job that has ended from the list."""
        with self._lock:
            if self._jobs.get((job.kind, job.name)) is job and job.state != "running":
                del self._jobs[job.kind, job.name]

    def stop_all(self) -> None:
        """Stop every job and wait for its process; called when the server ends."""
        with self._lock:
            running = [job for job in self._jobs.values() if job.state == "running"]
        for job in running:
            job.stop()
        for job in running:
            with suppress(subprocess.TimeoutExpired):
                job.process.wait(_GRACE_SECONDS)


def create_upload_folder(uploads: Path, world: str) -> ScratchFolder:
    """A new folder for the files that a job imports into this world; OSError if it cannot be written."""
    return ScratchFolder(uploads, _UPLOAD_PREFIX, world)


def remove_abandoned_uploads(uploads: Path) -> list[str]:
    """Remove the uploads of killed imports, and return a sentence about each."""
    return [
        f"Removed the files that were uploaded for the world {folder.name.split('-', 2)[-1]}: its import was killed."
        for folder in claim_abandoned_folders(uploads, _UPLOAD_PREFIX)
    ]
