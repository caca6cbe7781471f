"""How verbs speak: results on stdout (JSON with --json), progress on stderr, a failure as one line."""

import json
import sys
from typing import Any


class CommandFailed(Exception):
    """The work failed; the message is the one line that the user sees, and the exit status is 1."""


def emit(value: Any, text: str, *, as_json: bool) -> None:
    """Write the result: `value` as JSON for programs, or `text` for people."""
    sys.stdout.write((json.dumps(value, ensure_ascii=False, default=str) if as_json else text) + "\n")


def progress(text: str) -> None:
    """Write one line of progress."""
    sys.stderr.write(text + "\n")
    sys.stderr.flush()
