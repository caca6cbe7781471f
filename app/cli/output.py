"""How verbs speak: results on stdout (JSON with --json), progress on stderr, a failure as one line.

Files that verbs write for their users.
Long work on the command line: a line for each of its stages, and its end by Ctrl+C or a signal.
"""

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, BinaryIO

from fewshot_library.formats.format import ExportLosses
from fiction.generator.progress import StageProgress


@contextmanager
def open_atomically(file: Path, *, force: bool) -> Iterator[BinaryIO]:
    """A file that takes its place only when all of it is written; one that is there is replaced only by force."""
    if file.is_dir() or (file.exists() and not force):
        raise CommandError(f"{file} is there already; name another file, or replace it with --force")
    beside = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        with beside.open("xb") as stream:
            yield stream
            stream.flush()
            # Else a machine that stops right after the rename could leave an empty file under the name.
            os.fsync(stream.fileno())
        beside.replace(file)
    except OSError as failed:
        raise CommandError(f"{file} cannot be written ({failed.strerror}); name another place") from failed
    finally:
        beside.unlink(missing_ok=True)


def emit_losses(losses: ExportLosses, file: Path, *, as_json: bool) -> None:
    """What was written, and on stderr what the format could not keep."""
    for line in losses.summary_lines():
        print_progress(line)
    value = {
        "written": losses.written,
        "lost": dict(losses.lost),
        "refused": [asdict(each) for each in losses.refused],
    }
    emit(value, f"{losses.written} traces written to {file}", as_json=as_json)


_MIN_INTERVAL_SECONDS = 2.0
"""Seconds between two lines about a stage where lines cannot be redrawn."""


def make_stage_printer() -> Callable[[StageProgress], None]:
    """What writes each stage on stderr: one line that is redrawn on a terminal, elsewhere a line now and then."""
    redrawn = sys.stderr.isatty()
    told = time.monotonic()

    def show(progress: StageProgress) -> None:
        nonlocal told
        line = format_progress(progress)
        if redrawn:
            sys.stderr.write(f"\r\x1b[K{line}" + ("\n" if progress.finished else ""))
        elif progress.finished or time.monotonic() - told >= _MIN_INTERVAL_SECONDS:
            told = time.monotonic()
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    return show


def format_progress(progress: StageProgress) -> str:
    """The stage in a line, with its rate and an estimate."""
    if progress.finished:
        return f"{progress.stage}: {progress.done:,} in {progress.seconds:.2f} s"
    total = f" of {progress.total:,}" if progress.total else ""
    rate = f", {progress.rate:,.0f} a second" if progress.done else ""
    left = f", {progress.remaining_seconds:,.0f} s left" if progress.remaining_seconds is not None else ""
    return f"{progress.stage}: {progress.done:,}{total}{rate}{left}"


@contextmanager
def fail_on_interrupt(sentence: str) -> Iterator[None]:
    """Let Ctrl+C, and a signal to end, end the work with that sentence."""
    former = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        raise CommandError(sentence) from None
    finally:
        signal.signal(signal.SIGTERM, former)


class CommandError(Exception):
    """The work failed; the message is the one line that the user sees, and the exit status is 1."""


def emit(value: Any, text: str, *, as_json: bool) -> None:
    """Write the result: `value` as JSON for programs, or `text` for people."""
    sys.stdout.write((json.dumps(value, ensure_ascii=False, default=str) if as_json else text) + "\n")


def print_progress(text: str) -> None:
    """Write one line of progress."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
