"""Output of verbs: text or JSON on stdout, and files that are written completely or not at all."""

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from app.progress import escape_controls
from guard.files import partial_path, remove_abandoned_partials

UnboundedOption = Annotated[
    bool, typer.Option("--unbounded", help="Read a trusted file whatever its size, its expansion and its memory.")
]


class CommandError(Exception):
    """The verb failed; the message is the one line on stderr, and the exit status is 1."""


def emit(value: Any, text: str, *, as_json: bool) -> None:
    """Write the result to stdout: `value` as JSON for programs, or `text` for people."""
    written = json.dumps(value, ensure_ascii=False, default=str) if as_json else text
    sys.stdout.write(f"{escape_controls(written)}\n")


@contextmanager
def open_atomically(file: Path, *, force: bool) -> Iterator[BinaryIO]:
    """Open a file that appears under its name only once it is complete; an existing one is replaced only with force."""
    if file.is_dir() or (file.exists() and not force):
        raise CommandError(f"{file} exists already; name another file, or replace it with --force")
    partial_file = partial_path(file)
    try:
        remove_abandoned_partials(file.parent, file.name)
        with partial_file.open("xb") as stream:
            yield stream
            stream.flush()
            # Without it, a machine that stops right after the rename could leave an empty file under the name.
            os.fsync(stream.fileno())
        partial_file.replace(file)
    except OSError as error:
        raise CommandError(f"{file} cannot be written ({error.strerror}); name another file") from error
    finally:
        partial_file.unlink(missing_ok=True)


@contextmanager
def fail_on_interrupt(message: str) -> Iterator[None]:
    """Turn Ctrl+C and SIGTERM inside the block into a CommandError with this message."""
    previous_handler = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        raise CommandError(message) from None
    finally:
        signal.signal(signal.SIGTERM, previous_handler)
