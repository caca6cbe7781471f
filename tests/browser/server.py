"""Showhow as its users run it: a home of its own, a free port, the real command line."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

SHOWHOW = Path(sys.executable).with_name("showhow")


class Showhow:
    """One home, and a server on it while it is started."""

    def __init__(self, home: Path) -> None:
        self.home = home
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SHOWHOW_")}
        self.environment = {**kept, "SHOWHOW_HOME": str(home), "OMP_NUM_THREADS": "1", "SHOWHOW_AGENT_API": "true"}
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
