"""Showhow as its users run it: a home of its own, a free port, the real command line."""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from filelock import FileLock

SHOWHOW = Path(sys.executable).with_name("showhow")
PREPARED = "PREPARED_SHOWHOW_HOMES"
"""The environment variable that names a folder shared by all workers of a test run (tests/conftest.py)."""


def copy_prepared_home(home: Path) -> None:
    """Copy what `showhow setup` makes into an empty home; it is made once in a test run."""
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
    return {**inherited, "SHOWHOW_HOME": str(home), "OMP_NUM_THREADS": "1", "SHOWHOW_AGENT_API": "true"}


class Showhow:
    """One home, and a server on it while it is started; the default world is there unless the home is to be empty."""

    def __init__(self, home: Path, *, empty: bool = False) -> None:
        self.home = home
        if not empty:
            copy_prepared_home(home)
        self.environment = _environment(home)
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None

    def run(self, *words: str) -> str:
        """What a verb prints; an AssertionError with its complaint when it fails."""
        done = subprocess.run([SHOWHOW, *words], env=self.environment, capture_output=True, text=True, check=False)
        assert done.returncode == 0, f"showhow {' '.join(words)}: {done.stderr}"
        return done.stdout

    def start(self) -> float:
        """Serve; gives the seconds until the server answered."""
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        started = time.perf_counter()
        command = [SHOWHOW, "run", "--port", str(self.port)]
        with (self.home / "server.log").open("ab") as log:
            self._process = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log, cwd=self.home)
        # The first start makes the default world.
        while time.perf_counter() - started < 240:
            try:
                with urllib.request.urlopen(f"{self.url}/healthz", timeout=2) as reply:  # noqa: S310 - our own server
                    assert reply.read() == b"ok"
                    return time.perf_counter() - started
            except (urllib.error.URLError, ConnectionError, TimeoutError):
                assert self._process.poll() is None, (self.home / "server.log").read_text()
                time.sleep(0.05)
        raise AssertionError((self.home / "server.log").read_text())

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"http://127.0.0.1:{self.port}"

    def stop(self, with_signal: signal.Signals = signal.SIGTERM) -> None:
        """End the server."""
        if self._process is not None:
            self._process.send_signal(with_signal)
            self._process.wait(timeout=20)
            self._process = None
