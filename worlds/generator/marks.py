"""What is wrong on the web pages of a generated world, by address."""

from pathlib import Path
from typing import Any

from worlds.importers.files import json_objects

LARGEST = 64_000_000
"""Bytes of a file that is read whole for the sake of one page."""


def marks_by_address(file: Path) -> dict[str, list[dict[str, Any]]] | None:
    """The marks of every page that has any; None for a file that is too large to be looked through."""
    if file.stat().st_size > LARGEST:
        return None
    return {row["address"]: row["marks"] for _, row in json_objects(file) if row.get("marks")}
