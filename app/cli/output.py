"""Output of verbs: text or JSON on stdout."""

import json
import sys
from typing import Annotated, Any

import typer

from showhow.tasks.progress import escape_controls
from showhow.tasks.task import TaskError

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
UnboundedOption = Annotated[
    bool, typer.Option("--unbounded", help="Read a trusted file whatever its size, its expansion and its memory.")
]


class CommandError(TaskError):
    """The verb failed; the message is the one line on stderr, and the exit status is 1."""


def emit(value: Any, text: str, *, as_json: bool) -> None:
    """Write the result to stdout: `value` as JSON for programs, or `text` for people."""
    written = json.dumps(value, ensure_ascii=False, default=str) if as_json else text
    sys.stdout.write(f"{escape_controls(written)}\n")
