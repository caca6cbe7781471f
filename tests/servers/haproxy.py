"""The proxy of compose.yaml on loopback: haproxy.cfg, with servers of this machine in place of containers."""

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.servers.loopback import free_port

CONFIGURATION = Path(__file__).resolve().parents[2] / "haproxy.cfg"
COOKIE = "showhow_server"
"""The cookie that names the server of a browser: app1, app2, ... in the order of the ports."""


@contextmanager
def run_haproxy(ports: Sequence[int]) -> Iterator[str]:
    """Serve the servers at these ports of this machine; yields the URL once one of them is ready."""
    port = free_port()
    servers = "\n".join(
        f"    server app{number} 127.0.0.1:{at} cookie app{number} check" for number, at in enumerate(ports, start=1)
    )
    text = CONFIGURATION.read_text(encoding="utf-8")
    for pattern, replacement in ((r"    bind .*", f"    bind 127.0.0.1:{port}"), (r"    server-template .*", servers)):
        text, count = re.subn(pattern, replacement, text)
        assert count == 1, pattern
    program = shutil.which("haproxy") or "/usr/sbin/haproxy"
    with tempfile.TemporaryDirectory(prefix="showhow-haproxy-") as folder:
        file = Path(folder) / "haproxy.cfg"
        file.write_text(text, encoding="utf-8")
        with (Path(folder) / "log").open("wb") as log:
            process = subprocess.Popen([program, "-db", "-f", str(file)], stdout=log, stderr=log)
            try:
                _wait_until_ready(f"http://127.0.0.1:{port}", process, Path(folder) / "log")
                yield f"http://127.0.0.1:{port}"
            finally:
                process.kill()
                process.wait()


def _wait_until_ready(url: str, process: "subprocess.Popen[bytes]", log: Path) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        assert process.poll() is None, log.read_text(encoding="utf-8")
        try:
            if httpx.get(f"{url}/readyz", timeout=10).text == "ok":
                return
        except httpx.TransportError:
            pass
        time.sleep(0.05)
    raise AssertionError(log.read_text(encoding="utf-8"))
