"""Verbs in a process of their own that has the modules of the project already: it is forked from one that imports them.

Each Python process of the project imports for seconds; a worker of the tests does so once for all of its servers.
"""

import importlib
import multiprocessing
import os
import runpy
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from multiprocessing.context import ForkServerContext
from pathlib import Path
from types import ModuleType
from typing import Never

ROOT = Path(__file__).parents[2]
ROOMS = (
    "db",
    "evaluation",
    "fewshot_library",
    "fiction",
    "guard",
    "interface",
    "llm",
    "oracles",
    "reasoners",
    "runs",
    "tools",
    "showhow",
    "worlds",
    "app/cli",
)
"""Folders of the modules; not the pages, which register components with the running Streamlit server."""


class PreloadedProcess:
    """`showhow WORDS`, running in `folder`, with that environment only; what it prints is appended to `log`.

    It has the methods of subprocess.Popen that a server needs.
    """

    def __init__(self, words: Sequence[str], environment: dict[str, str], folder: Path, log: Path) -> None:
        self._process = _fork_server().Process(
            target=run_verb, args=(list(words), environment, folder, log), daemon=True
        )
        with _importable():
            self._process.start()

    def poll(self) -> int | None:
        """The exit status once the process has ended, negative for a signal."""
        return self._process.exitcode

    def send_signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended."""
        if self._process.exitcode is None and self._process.pid is not None:
            os.kill(self._process.pid, number)

    def wait(self, timeout: float) -> None:
        """Wait for the end of the process; raises TimeoutError after that many seconds."""
        self._process.join(timeout)
        if self._process.exitcode is None:
            raise TimeoutError(f"the process {self._process.pid} has not ended within {timeout:g} s")


@contextmanager
def _importable() -> Iterator[None]:
    """What a new process takes over from this one: the tests on the module path, and no main module to import again.

    pytest imports tests without the path. The main module may be a page: Streamlit's AppTest leaves the last one there.
    """
    path, main = sys.path, sys.modules["__main__"]
    sys.path, sys.modules["__main__"] = [*path, str(ROOT)], ModuleType("__main__")
    try:
        yield
    finally:
        sys.path, sys.modules["__main__"] = path, main


@cache
def _fork_server() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    modules = sorted(path.relative_to(ROOT) for room in ROOMS for path in (ROOT / room).rglob("*.py"))
    names = [
        ".".join(["showhow", *path.with_suffix("").parts]).replace("showhow.showhow.", "showhow.")
        for path in modules
        if path.name not in ("__init__.py", "__main__.py")
    ]
    context.set_forkserver_preload(["streamlit.web.bootstrap", *names])
    return context


def run_verb(words: list[str], environment: dict[str, str], folder: Path, log: Path) -> None:
    """Run the verb in this process, and the server that it becomes."""
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    for standard in (sys.stdout, sys.stderr):
        os.dup2(descriptor, standard.fileno())
    os.close(descriptor)
    # The program that replaces this process would import everything again.
    os.execv = _run_module  # type: ignore[assignment]
    importlib.import_module("showhow.app.cli.main").main(words)


def _run_module(_program: str, command: Sequence[str]) -> Never:
    """Run the module of a command `python ... -m MODULE WORDS` in this process."""
    at = command.index("-m") + 1
    sys.argv = list(command[at:])
    # As in a process of its own, it runs under the name __main__ only.
    sys.modules.pop(command[at], None)
    runpy.run_module(command[at], run_name="__main__", alter_sys=True)
    raise SystemExit
