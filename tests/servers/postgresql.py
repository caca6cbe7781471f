"""A PostgreSQL server of its own on loopback, in a folder that is removed with it."""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import psutil
import psycopg

from tests.servers.loopback import free_port


class PostgresqlServer:
    """A running server; `address` is its address without a database's name.

    With `durable`, a commit waits for the disk, as it does in production.
    """

    def __init__(self, *, durable: bool = False, connections: int = 100) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="showhow-postgresql-"))
        self._run: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": self._folder}
        if os.geteuid() == 0:  # the server refuses to run as root
            shutil.chown(self._folder, "postgres", "postgres")
            self._run |= {"user": "postgres", "group": "postgres", "extra_groups": []}
        data = self._folder / "data"
        make = [find_program("initdb"), "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C"]
        subprocess.run([*make, "--no-sync"], check=True, **self._run)
        port = free_port()
        options = {
            "listen_addresses": "127.0.0.1",
            "unix_socket_directories": "",
            "fsync": "on" if durable else "off",
            "max_connections": connections,
            "port": port,
        }
        settings = [word for name, value in options.items() for word in ("-c", f"{name}={value}")]
        self._command = [find_program("postgres"), "-D", data, *settings]
        self.address = f"postgresql://postgres@127.0.0.1:{port}"
        self.start()

    def __enter__(self) -> "PostgresqlServer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._server = subprocess.Popen(self._command, **self._run)
        end = time.monotonic() + 30
        while time.monotonic() < end and self._server.poll() is None:
            try:
                psycopg.connect(f"{self.address}/postgres", connect_timeout=2).close()
            except psycopg.OperationalError:
                time.sleep(0.05)
            else:
                return
        raise RuntimeError("the PostgreSQL of the tests did not start")

    def stop(self) -> None:
        """Stop it at once, as in a crash; the next start undoes what is not committed."""
        self._server.send_signal(signal.SIGQUIT)
        try:
            self._server.wait(30)
        except subprocess.TimeoutExpired:
            # Once in a while it waits for its children longer than a test can.
            children = psutil.Process(self._server.pid).children()
            self._server.kill()
            for child in children:
                with suppress(psutil.NoSuchProcess):
                    child.kill()
            self._server.wait(30)

    def close(self) -> None:
        """Stop it, and remove its folder."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def create_database(self, name: str, template: str | None = None) -> str:
        """Create a database, as a copy of the template, and return its address."""
        with psycopg.connect(f"{self.address}/postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}" + (f" TEMPLATE {template}" if template else ""))
        return f"{self.address}/{name}"


def find_program(name: str) -> str:
    """The path of one of PostgreSQL's programs."""
    program = shutil.which(name) or max(map(str, Path("/usr/lib/postgresql").glob(f"*/bin/{name}")), default=None)
    if program is None:
        raise RuntimeError(f"PostgreSQL's {name} is not installed; apt-get install postgresql")
    return program
