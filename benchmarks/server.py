"""Runs `showhow run` as a child process for benchmarks."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

SHOWHOW_COMMAND = Path(sys.executable).with_name("showhow")
START_TIMEOUT = 120


@dataclass(frozen=True, slots=True)
class AppServer:
    """A running server: URL, process id, and seconds from start to first response."""

    url: str
    process_id: int
    start_seconds: float

    def peak_mb(self) -> float:
        """Peak resident memory of the process in MB."""
        for line in Path(f"/proc/{self.process_id}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) / 1024
        raise RuntimeError(f"/proc/{self.process_id}/status has no VmHWM")


def server_environment(home: Path) -> dict[str, str]:
    """Environment for a child process: this one's without SHOWHOW_ variables, with the given home."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("SHOWHOW_")}
    return {**inherited, "SHOWHOW_HOME": str(home), "SHOWHOW_AGENT_API": "true"}


@contextmanager
def run_app_server(home: Path) -> Iterator[AppServer]:
    """Run a server for this home on a free port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    started = time.perf_counter()
    with (home / "server.log").open("wb") as log:
        command = [str(SHOWHOW_COMMAND), "run", "--port", str(port)]
        process = subprocess.Popen(command, env=server_environment(home), stdout=log, stderr=log, cwd=home)  # noqa: S603 - our own
    try:
        yield AppServer(url, process.pid, _wait_until_ready(url, process, started))
    finally:
        process.terminate()
        process.wait(timeout=30)


def _wait_until_ready(url: str, process: subprocess.Popen[bytes], started: float) -> float:
    while time.perf_counter() - started < START_TIMEOUT:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with status {process.returncode}")
        try:
            if httpx.get(f"{url}/healthz", timeout=5).text == "ok":
                return time.perf_counter() - started
        except httpx.TransportError:
            time.sleep(0.02)
    raise RuntimeError(f"the server did not answer within {START_TIMEOUT} s")
