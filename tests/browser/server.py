"""A real Showhow server with a home of its own on a free port, started as the command line does."""

import json
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

from showhow.db.database import Database
from showhow.db.people import users
from tests.app.cli.in_process import run_in_process
from tests.servers.loopback import free_port
from tests.servers.preloaded import PreloadedProcess

SHOWHOW = Path(sys.executable).with_name("showhow")
PREPARED = "PREPARED_SHOWHOW_HOMES"
"""The environment variable that names a folder shared by all workers of a test run (tests/conftest.py)."""


def copy_prepared_home(home: Path) -> None:
    """Copy the result of `showhow setup`, which runs once in a test run, into an empty home."""
    shutil.copytree(prepare_home()[0], home, dirs_exist_ok=True)


def prepare_home() -> tuple[Path, list[str]]:
    """The home that two concurrent setups made once others were killed, and what each of the two printed on stderr.

    No test may change it.
    """
    folder = Path(os.environ[PREPARED])
    prepared, printed = folder / "home", folder / "printed.json"
    with FileLock(folder / "lock"):
        if not prepared.exists():
            unfinished = folder / "unfinished"
            unfinished.mkdir()
            for seconds in (0.5, 1.5, 3.0):
                killed = _start_setup(unfinished)
                time.sleep(seconds)
                killed.kill()
                killed.communicate()
            concurrent = [_start_setup(unfinished) for _ in range(2)]
            outputs = [process.communicate(timeout=1_200)[1] for process in concurrent]
            if any(process.returncode for process in concurrent):
                shutil.rmtree(unfinished)
                raise AssertionError("\n".join(outputs))
            printed.write_text(json.dumps(outputs), encoding="utf-8")
            unfinished.rename(prepared)
    return prepared, json.loads(printed.read_text(encoding="utf-8"))


def _start_setup(home: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [SHOWHOW, "setup"],
        env=_environment(home),
        cwd=home,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def _environment(home: Path) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SHOWHOW_")}
    return {**inherited, "SHOWHOW_HOME": str(home), "OMP_NUM_THREADS": "1"}


class Showhow:
    """One home, with the default world unless `empty`, and its server.

    The server starts in seconds less where its modules are `preloaded`; else it may open at most `descriptors` files.
    """

    def __init__(
        self, home: Path, *, empty: bool = False, preloaded: bool = True, descriptors: int | None = None
    ) -> None:
        self.home = home
        self._is_preloaded = preloaded and descriptors is None
        self._descriptors = descriptors
        if not empty:
            copy_prepared_home(home)
        self.environment = _environment(home)
        self.port = 0
        self._process: subprocess.Popen[bytes] | PreloadedProcess | None = None

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

    def start(self, port: int = 0) -> float:
        """Start the server on the port, or on a free one; returns the seconds until it responded."""
        self.port = port or free_port()
        started = time.perf_counter()
        self._process = self._start_process("run", "--port", str(self.port))
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

    def _start_process(self, *words: str) -> "subprocess.Popen[bytes] | PreloadedProcess":
        log_path = self.home / "server.log"
        if self._is_preloaded:
            return PreloadedProcess(words, self.environment, self.home, log_path)
        limit = f"ulimit -n {self._descriptors}; " if self._descriptors else ""
        command = ["bash", "-c", f'{limit}exec "$@"', "bash", SHOWHOW, *words]
        with log_path.open("ab") as log:
            return subprocess.Popen(command, env=self.environment, stdout=log, stderr=log, cwd=self.home)

    @property
    def process_environment(self) -> dict[str, str]:
        """The environment that the process of the server has, which is not preloaded."""
        assert isinstance(self._process, subprocess.Popen)
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
