"""Reports that took a while to make, kept as files until there is a newer one."""

import json
import os
from pathlib import Path
from typing import Any

Report = dict[str, Any]


def load_report(file: Path) -> Report | None:
    """The report that is kept there; None when there is none."""
    try:
        report: Report = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return report


def save_report(file: Path, report: Report) -> None:
    """Write it whole or not at all."""
    file.parent.mkdir(parents=True, exist_ok=True)
    beside = file.with_name(f".{file.name}.{os.getpid()}.part")
    try:
        beside.write_text(json.dumps(report, ensure_ascii=False), encoding="utf-8")
        beside.replace(file)
    finally:
        beside.unlink(missing_ok=True)
