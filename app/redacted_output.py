"""Standard output and standard error without secrets: what verbs print, tracebacks, and the log of the server."""

import io
import sys
from collections.abc import Callable
from threading import Lock
from typing import Any, TextIO

from showhow.guard.redaction import NOTHING_SECRET, RedactingStream, Redactor


class RedactedOutput(io.TextIOBase):
    """Passes texts on without secrets; only what may begin one waits for the next text. Thread-safe."""

    def __init__(self, target: TextIO, current_redactor: Callable[[], Redactor]) -> None:
        self._target = target
        self._current_redactor = current_redactor
        self._stream = RedactingStream(NOTHING_SECRET)
        self._lock = Lock()

    def write(self, text: str) -> int:
        """Pass the text on."""
        with self._lock:
            self._stream.redactor = self._current_redactor()
            self._target.write(self._stream.feed(text))
        return len(text)

    def flush(self) -> None:
        """Flush what was passed on."""
        self._target.flush()

    def finish(self) -> None:
        """Pass on what waits, since nothing follows."""
        with self._lock:
            self._target.write(self._stream.finish())
        self.flush()

    def writable(self) -> bool:
        """Whether texts can be written."""
        return True

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        return self._target.isatty()

    def fileno(self) -> int:
        """The descriptor, to which other programs write directly."""
        return self._target.fileno()

    @property
    def encoding(self) -> str:  # type: ignore[override]
        """The code of the target."""
        return self._target.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        """What the target does with characters that its code lacks."""
        return self._target.errors

    @property
    def buffer(self) -> Any:
        """The target's stream of bytes, for files that are written to standard output."""
        return self._target.buffer


def redact_output() -> tuple[RedactedOutput, RedactedOutput]:
    """Replace standard output and standard error, also for loggers that take them later."""
    outputs = []
    for name in ("stdout", "stderr"):
        target = getattr(sys, name)
        if isinstance(target, io.TextIOWrapper):
            # What the terminal's code lacks, also half characters of foreign texts, is written as an escape.
            target.reconfigure(errors="backslashreplace")
        if not isinstance(target, RedactedOutput):
            target = RedactedOutput(target, _current_redactor)
            setattr(sys, name, target)
        outputs.append(target)
    return outputs[0], outputs[1]


def _current_redactor() -> Redactor:
    # Before the services are built nothing has read a key, and help texts need not load what they need.
    module = sys.modules.get("showhow.app.services")
    return NOTHING_SECRET if module is None else module.output_redactor()
