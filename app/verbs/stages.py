"""Long work on the command line: a line for each of its stages, and its end by Ctrl+C or a signal."""

import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from app.verbs.output import CommandFailed
from worlds.generator.progress import Progress

_PAUSE = 2.0
"""Seconds between two lines about a stage where lines cannot be redrawn."""


def show_stages() -> Callable[[Progress], None]:
    """What writes each stage on stderr: one line that is redrawn on a terminal, elsewhere a line now and then."""
    redrawn = sys.stderr.isatty()
    told = time.monotonic()

    def show(progress: Progress) -> None:
        nonlocal told
        line = said(progress)
        if redrawn:
            sys.stderr.write(f"\r\x1b[K{line}" + ("\n" if progress.over else ""))
        elif progress.over or time.monotonic() - told >= _PAUSE:
            told = time.monotonic()
            sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    return show


def said(progress: Progress) -> str:
    """The stage in a line, with its rate and an estimate."""
    if progress.over:
        return f"{progress.stage}: {progress.done:,} in {progress.seconds:.2f} s"
    total = f" of {progress.total:,}" if progress.total else ""
    rate = f", {progress.rate:,.0f} a second" if progress.done else ""
    left = f", {progress.left:,.0f} s left" if progress.left is not None else ""
    return f"{progress.stage}: {progress.done:,}{total}{rate}{left}"


@contextmanager
def stoppable(sentence: str) -> Iterator[None]:
    """Let Ctrl+C, and a signal to end, end the work with that sentence."""
    former = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        raise CommandFailed(sentence) from None
    finally:
        signal.signal(signal.SIGTERM, former)
