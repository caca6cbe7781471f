"""A real Showhow server with a home of its own on a free port, started by the command line."""

import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import psutil
from filelock import FileLock

from db import users
from db.database import Database
from tests.app.cli.in_process import run_in_process
from tests.servers.loopback import free_port

SHOWHOW = Path(sys.executable).with_name("showhow")
PREPARED = "PREPARED_SHOWHOW_HOMES"
"""The environment variable that names a folder shared by all workers of a test run (tests/conftest.py)."""


def copy_prepared_home(home: Path) -> None:
    """Copy the result of `showhow setup`, which runs once in a test run, into an empty home."""
    prepared = Path(os.environ[PREPARED]) / "home"
    with FileLock(f"{prepared}.lock"):
        if not prepared.exists():
            unfinished = prepared.with_name("unfinished")
            unfinished.mkdir()
            setup = subprocess.run(
                [SHOWHOW, "setup"],
                env=_environment(unfinished),
                cwd=unfinished,
                capture_output=True,
                text=True,
                check=False,
            )
            if setup.returncode:
                shutil.rmtree(unfinished)
            assert setup.returncode == 0, setup.stderr
            unfinished.rename(prepared)
    shutil.copytree(prepared, home, dirs_exist_ok=True)


def _environment(home: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SHOWHOW_")}
    return {**inherited, "SHOWHOW_HOME": str(home), "OMP_NUM_THREADS": "1"}


class Showhow:
    """One home, with the default world unless `empty`, and its server, which opens at most `descriptors` files."""

    def __init__(self, home: Path, *, empty: bool = False, descriptors: int | None = None) -> None:
        self.home = home
        self._descriptors = descriptors
        if not empty:
            copy_prepared_home(home)
        self.environment = _environment(home)
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, *words: str) -> str:
        """Run a verb in this process and return its stdout; raises AssertionError with its stderr if it fails."""
        done = run_in_process(self.home, *words, **self.environment)
        assert done.returncode == 0, f"showhow {' '.join(words)}: {done.stderr}"
        return done.stdout

    def appoint(self, *names: str) -> None:
        """Store people with all roles; people who come later are annotators."""
        database = Database(f"sqlite:///{self.home / 'showhow.db'}")
        with database.begin() as session:
            for name in names:
                users.register_user(session, name)
                users.set_roles(session, name, users.ROLES)
        database.close()

    def start(self) -> float:
        """Start the server; returns the seconds until it responded."""
        self.port = free_port()
        started = time.perf_counter()
        command = [*self._limit_descriptors(), SHOWHOW, "run", "--port", str(self.port)]
        with (self.home / "server.log").open("ab") as log:
            self._process = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log, cwd=self.home)
        # The first start may build the default world.
        while time.perf_counter() - started < 240:
            try:
                with urllib.request.urlopen(f"{self.url}/healthz", timeout=2) as reply:  # noqa: S310 - our own server
                    assert reply.read() == b"ok"
                    return time.perf_counter() - started
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                assert self._process.poll() is None, (self.home / "server.log").read_text()
                time.sleep(0.05)
        raise AssertionError((self.home / "server.log").read_text())

    def _limit_descriptors(self) -> list[str]:
        """The start of a command that may open at most that many files."""
        return ["bash", "-c", f'ulimit -n {self._descriptors}; exec "$@"', "bash"] if self._descriptors else []

    @property
    def process_environment(self) -> dict[str, str]:
        """The environment that the process of the server has."""
        assert self._process is not None
        return psutil.Process(self._process.pid).environ()

    @property
    def url(self) -> str:
        """The URL of the server."""
        return f"http://127.0.0.1:{self.port}"

    def stop(self, with_signal: signal.Signals = signal.SIGTERM) -> None:
        """Stop the server."""
        if self._process is not None:
            self._process.send_signal(with_signal)
            self._process.wait(timeout=20)
            self._process = None
