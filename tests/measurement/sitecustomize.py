"""Notes which lines and branches of the project this process runs; Python imports it at start, if it is on the path.

All processes map one file. A process that is killed, is forked or ends by `os._exit` therefore loses nothing.
"""

import builtins
import mmap
from importlib import _bootstrap_external
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
"""What `tests/room_coverage.py start` wrote: a copy of this module, and each module's region of the file `hits`."""

AST_ONLY = 0x400
"""`ast.PyCF_ONLY_AST`; most processes need no `ast` and start sooner without it."""


def _read_regions() -> dict[str, tuple[int, int]]:
    rows = (line.split("\t") for line in (FOLDER / "regions").read_text(encoding="utf-8").splitlines())
    return {path: (int(start), int(end)) for start, end, path in rows}


def _map_hits() -> memoryview:
    with (FOLDER / "hits").open("r+b") as file:
        return memoryview(mmap.mmap(file.fileno(), 0))


REGIONS, HITS = _read_regions(), _map_hits()


def hits_of(path: str) -> memoryview:
    """The bytes of a module, which its marks set to 1."""
    start, end = REGIONS[path]
    return HITS[start:end]


def _compile_marked(source: Any, filename: Any, mode: str, flags: int = 0, *arguments: Any, **options: Any) -> Any:
    """Compile as usual, with marks if it is a module of the project: imported, or a page that Streamlit runs."""
    if mode == "exec" and not flags & AST_ONLY and isinstance(filename, str) and filename in REGIONS:
        # Compiled modules are stored, so that most processes compile none and need no `ast`.
        from marks import mark  # noqa: PLC0415

        source = mark(source, filename)
    return _compile(source, filename, mode, flags, *arguments, **options)


def _name_cache(path: str, *arguments: Any, **options: Any) -> str:
    """Store compiled modules with marks apart from those without."""
    return f"{FOLDER}/compiled{path}c" if path in REGIONS else _cache_from_source(path, *arguments, **options)


_compile, builtins.compile = builtins.compile, _compile_marked
_cache_from_source, _bootstrap_external.cache_from_source = _bootstrap_external.cache_from_source, _name_cache
