"""Progress and failures of verbs on stderr: text for people, or one JSON object a line with `--json-progress`.

A program that runs a verb reads the JSON lines with `parse_progress_event`; it never has to parse text.
"""

import json
import sys
import time
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from typing import Literal

from showhow.fiction.generator.progress import StageProgress

EventKind = Literal["progress", "note", "error"]
_json_lines: ContextVar[bool] = ContextVar("json_lines", default=False)
_MIN_INTERVAL_SECONDS = 2.0
"""Minimum seconds between two lines of one stage if lines cannot be redrawn."""


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """One line on stderr: progress with counts, a note, or the error that ended the verb."""

    event: EventKind
    message: str
    """The text for people."""
    stage: str | None = None
    """The stage of work that has several."""
    done: int | None = None
    total: int | None = None
    """The expected number of units; None or 0 while it is unknown."""
    seconds: float | None = None
    """Seconds since the stage began."""

    @property
    def fraction(self) -> float | None:
        """The completed share, from 0 to 1; None while the total is unknown."""
        return min(1.0, self.done / self.total) if self.done is not None and self.total else None


def parse_progress_event(line: str) -> ProgressEvent | None:
    """Parse one line of `--json-progress`; returns None for a line that another program or library wrote."""
    try:
        return ProgressEvent(**json.loads(line))
    except (ValueError, TypeError):
        return None


_CONTROLS = {
    code: f"\\u{code:04x}" for code in (*range(32), *range(127, 160), *range(0x202A, 0x202F), *range(0x2066, 0x206A))
} | {ord("\t"): "\t", ord("\n"): "\n"}


def escape_controls(text: str) -> str:
    """The text, or JSON, without what a terminal would obey in the texts of others, or show in another order."""
    return text.translate(_CONTROLS)


def write_json_progress() -> None:
    """Write the progress of this verb as JSON lines."""
    _json_lines.set(True)


def print_progress(message: str) -> None:
    """Write a note about the work."""
    _write_event(ProgressEvent("note", message))


def print_result(message: str) -> None:
    """Write the result for the program that runs the verb; people read it on stdout."""
    if _json_lines.get():
        _write_event(ProgressEvent("note", message))


def print_count(done: int, total: int, units: str) -> None:
    """Write how many of the units are done."""
    _write_event(ProgressEvent("progress", f"{done:,} of {total:,} {units}", units, done, total))


def print_error(message: str) -> None:
    """Write the one line that states why the verb failed."""
    _write_event(ProgressEvent("error", message), prefix="showhow: ")


def _write_event(event: ProgressEvent, prefix: str = "") -> None:
    line = json.dumps(asdict(event), ensure_ascii=False) if _json_lines.get() else prefix + event.message
    sys.stderr.write(f"{escape_controls(line)}\n")
    sys.stderr.flush()


def make_stage_printer() -> Callable[[StageProgress], None]:
    """Return a callback that writes the progress of stages: redrawn on a terminal, else a line every two seconds."""
    redrawn = sys.stderr.isatty() and not _json_lines.get()
    interval = 0.5 if _json_lines.get() else _MIN_INTERVAL_SECONDS
    last_line = time.monotonic()

    def print_stage(progress: StageProgress) -> None:
        nonlocal last_line
        message = format_stage(progress)
        if redrawn:
            sys.stderr.write(f"\r\x1b[K{message}" + ("\n" if progress.finished else ""))
            sys.stderr.flush()
        elif progress.finished or time.monotonic() - last_line >= interval:
            last_line = time.monotonic()
            counts = (progress.stage, progress.done, progress.total, round(progress.seconds, 3))
            _write_event(ProgressEvent("progress", message, *counts))

    return print_stage


def format_stage(progress: StageProgress) -> str:
    """Format a stage as one line, with its rate and the estimated time left."""
    if progress.finished:
        return f"{progress.stage}: {progress.done:,} in {progress.seconds:.2f} s"
    total = f" of {progress.total:,}" if progress.total else ""
    rate = f", {progress.rate:,.0f} a second" if progress.done else ""
    remaining = f", {progress.remaining_seconds:,.0f} s left" if progress.remaining_seconds is not None else ""
    return f"{progress.stage}: {progress.done:,}{total}{rate}{remaining}"
