"""Files in which people's labels are brought in; anybody may have written them, so a bounded worker reads them."""

import csv
from typing import Any

from showhow.guard.json_input import load_json
from showhow.guard.worker import WorkFailed, WorkLimits, run_bounded

LABEL_LIMITS = WorkLimits(seconds=20.0, megabytes=640, reply_bytes=64 << 20)
MAX_LABEL_MEGABYTES = 32


class UnreadableLabels(Exception):
    """A file of labels cannot be read; the message is a clause with the reason."""


def read_label_rows(name: str, content: bytes) -> list[dict[str, Any]]:
    """The rows of a file with this name, CSV or JSON Lines; UnreadableLabels if it is neither, or beyond the limits."""
    if len(content) > MAX_LABEL_MEGABYTES << 20:
        raise UnreadableLabels(f"it has more than {MAX_LABEL_MEGABYTES} MB; split it")
    try:
        rows: list[dict[str, Any]] = run_bounded(parse_label_rows, name, content, limits=LABEL_LIMITS)
    except WorkFailed as error:
        raise UnreadableLabels(str(error)) from error
    return rows


def parse_label_rows(name: str, content: bytes) -> list[dict[str, Any]]:
    """As `read_label_rows`; called in the worker."""
    try:
        text = content.decode("utf-8-sig")
        if name.lower().endswith(".csv"):
            # Cells beyond the header have no name.
            rows: list[Any] = list(csv.DictReader(text.splitlines(), restkey=""))
        else:
            rows = [load_json(line) for line in text.splitlines() if line.strip()]
    except (ValueError, csv.Error) as error:
        raise UnreadableLabels(f"it cannot be read as CSV or JSON Lines: {error}") from error
    if not rows:
        raise UnreadableLabels("it holds no label; each is a row with question, value and person")
    if not all(isinstance(row, dict) for row in rows):
        raise UnreadableLabels("it has a line that is no JSON object; each needs question, value and person")
    return rows
