"""Caches reports as JSON files, each until it is replaced by a newer one."""

import json
import os
from pathlib import Path
from typing import Any

Report = dict[str, Any]


def load_report(file: Path) -> Report | None:
    """Load a cached report; None if there is none."""
    try:
        report: Report = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return report


def save_report(file: Path, report: Report) -> None:
    """Write a report atomically."""
    file.parent.mkdir(parents=True, exist_ok=True)
    part_file = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        part_file.write_text(json.dumps(report, ensure_ascii=False), encoding="utf-8")
        part_file.replace(file)
    finally:
        part_file.unlink(missing_ok=True)
