"""Start the weather server for tests."""

import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from showhow.tools.external.config import ExternalToolsConfig, McpServerConfig
from showhow.tools.registry import ToolRegistry
from tests.servers.loopback import free_port

WEATHER = Path(__file__).with_name("weather.py")
PATIENCE = 120
SECRET = "sesame-5f1c"  # noqa: S105 - planted to be looked for


WAITING = """
import runpy, socket, sys, time
_, weather, transport, port = sys.argv
while True:
    try:
        socket.create_connection(("127.0.0.1", int(port)), timeout=1).close()
        break
    except OSError:
        time.sleep(0.05)
sys.argv = [weather, transport]
runpy.run_path(weather, run_name="__main__")
"""
"""A weather server that starts once somebody listens on a port."""


def arguments_of_waiting_weather(port: int) -> list[str]:
    """The arguments of Python for the weather server that starts once somebody listens on the port."""
    return ["-c", WAITING, str(WEATHER), "stdio", str(port)]


def weather_by_command(**limits: object) -> McpServerConfig:
    """The configuration of the weather server as a child process."""
    config = {"command": sys.executable, "args": [str(WEATHER), "stdio"], "environment": ["WEATHER_KEY"], **limits}
    return McpServerConfig.model_validate(config)


def registry_of(**servers: McpServerConfig) -> ToolRegistry:
    """A registry with these servers."""
    return ToolRegistry(ExternalToolsConfig(servers=servers), {**os.environ, "WEATHER_KEY": SECRET})


def served(transport: str) -> tuple[str, subprocess.Popen[bytes]]:
    """The weather server over HTTP: its address and its process."""
    port = free_port()
    process = subprocess.Popen([sys.executable, str(WEATHER), transport, str(port)])
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return f"http://127.0.0.1:{port}/{'mcp' if transport == 'http' else 'sse'}", process
        except OSError:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.1)
