"""Client of one graph process: started at the first request, killed when it exceeds its limits."""

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from showhow.worlds.source import QueryRefused, SourceError, SourceTimeout, SourceUnavailable
from showhow.worlds.sparql_syntax import shorten_parser_message

_START_TIMEOUT = 20.0
"""Seconds within which a new process must have opened its graph."""
_PROJECT_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Limits of one query."""

    timeout_seconds: float = 2.0
    max_rows: int = 1000
    memory_bytes: int = 2 << 30
    """Address space of the process in bytes."""
    reply_bytes: int = 8 << 20
    """Size of a reply in bytes."""


class GraphWorker:
    """One process over one graph, for one caller at a time."""

    def __init__(self, folder: Path, limits: QueryLimits) -> None:
        # Made absolute, because the process starts in another working directory.
        self._folder = folder.resolve()
        self._limits = limits
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        """The id of the process; None while none runs."""
        return self._process.pid if self._process is not None else None

    def request(self, request: dict[str, Any]) -> dict[str, Any]:
        """The reply to a request; a process that exceeds its limits or dies is replaced at the next request."""
        limits = self._limits
        line = (
            json.dumps(
                request | {"seconds": limits.timeout_seconds, "rows": limits.max_rows, "bytes": limits.reply_bytes}
            )
            + "\n"
        )
        try:
            process = self._ensure_process()
            reply: dict[str, Any] = json.loads(self._send_line(process, line.encode()))
        # After every exception, also KeyboardInterrupt, the process is ended and the exception raised again: a late
        # reply must never be read as the reply to the next request.
        except BaseException:
            self.close()
            raise
        if "refused" in reply:
            raise QueryRefused(reply["refused"])
        if "unreadable" in reply:
            message = shorten_parser_message(reply["unreadable"])
            raise QueryRefused(
                f"The query is not a valid SELECT or ASK: {message} (line:column). Correct it there and run it again."
            )
        if "failed" in reply:
            raise SourceUnavailable(f"The graph could not answer: {reply['failed']}.")
        return reply

    def close(self) -> None:
        """End the process, whatever it is doing."""
        process, self._process = self._process, None
        if process is None:
            return
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                _close_quietly(pipe)

    def _ensure_process(self) -> subprocess.Popen[bytes]:
        if self._process is not None and self._process.poll() is not None:
            self.close()
        if self._process is None:
            command = [
                sys.executable,
                "-P",
                "-m",
                "showhow.worlds.embedded.graph_process",
                str(self._folder),
                str(self._limits.memory_bytes),
            ]
            self._process = subprocess.Popen(  # noqa: S603 - our own module and the world's folder, no shell
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=_PROJECT_ROOT
            )
            self._read_line(self._process, _START_TIMEOUT)
        return self._process

    def _send_line(self, process: subprocess.Popen[bytes], line: bytes) -> bytes:
        assert process.stdin is not None  # noqa: S101 - tells the type checker that it is a pipe
        try:
            process.stdin.write(line)
            process.stdin.flush()
        except BrokenPipeError:
            raise self._describe_exit(process) from None
        return self._read_line(process, self._limits.timeout_seconds)

    def _read_line(self, process: subprocess.Popen[bytes], seconds: float) -> bytes:
        assert process.stdout is not None  # noqa: S101 - tells the type checker that it is a pipe
        deadline = time.monotonic() + seconds
        received = bytearray()
        with selectors.DefaultSelector() as selector:
            selector.register(process.stdout, selectors.EVENT_READ)
            while not received.endswith(b"\n"):
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise SourceTimeout(
                        f"The query was stopped at its limit of {seconds:g} s; ask for less, "
                        "for example with more conditions or without sorting."
                    )
                part = os.read(process.stdout.fileno(), 1 << 20)
                if not part:
                    raise self._describe_exit(process)
                received += part
        return bytes(received)

    def _describe_exit(self, process: subprocess.Popen[bytes]) -> SourceError:
        assert process.stderr is not None  # noqa: S101 - tells the type checker that it is a pipe
        code = process.wait()
        stderr = process.stderr.read().decode(errors="replace").strip()
        # Threads that Rust started report a stack overflow; the main thread ends with SIGSEGV.
        if "overflowed its stack" in stderr or code == -signal.SIGSEGV:
            return QueryRefused("The query is nested too deeply; write it with fewer brackets.")
        # Without memory, a process may have none left for the words, and only abort.
        if any(word in stderr for word in ("memory allocation", "MemoryError", "bad_alloc")) or code == -signal.SIGABRT:
            return SourceTimeout(
                f"The query was stopped at its limit of {self._limits.memory_bytes >> 20:,} MB of memory; "
                "ask for less, for example with more conditions or without sorting."
            )
        if code == -signal.SIGALRM:
            return SourceTimeout(
                f"The query was stopped at its limit of {self._limits.timeout_seconds:g} s; ask for less."
            )
        reason = (
            f"ended by signal {-code}"
            if code < 0
            else (stderr.splitlines()[-1] if stderr else f"ended with status {code}")
        )
        return SourceUnavailable(f"The process that answers queries to {self._folder} has died ({reason}); ask again.")


def _close_quietly(pipe: Any) -> None:
    # The process is dead, so unwritten data has no reader.
    with contextlib.suppress(BrokenPipeError):
        pipe.close()
