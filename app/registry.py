"""The tools that there are here: ours, and those of others that the user's file declares."""

import os
from pathlib import Path
from threading import Lock

from app.resources import settings
from tools.foreign.declared import read_declared
from tools.registry import Registry

FILE = "tools.toml"
_opened: dict[tuple[Path, int], Registry] = {}
"""One, by the file that it was made from and when that was written."""
_opening = Lock()


def registry() -> Registry:
    """Every tool, behind one door; the file is read again when it was changed."""
    stamp = _stamp(tools_file())
    with _opening:
        former = [] if stamp in _opened else [*_opened.values()]
        if stamp not in _opened:
            _opened.clear()
            declared = read_declared(stamp[0]) if stamp[1] or settings().tools else None
            _opened[stamp] = Registry(declared, os.environ)
        found = _opened[stamp]
    for each in former:
        each.close()
    return found


def tools_file() -> Path:
    """The file that declares tools of others; it need not be there."""
    return settings().tools or settings().home / FILE


def _stamp(file: Path) -> tuple[Path, int]:
    try:
        return file, file.stat().st_mtime_ns
    except OSError:
        return file, 0
