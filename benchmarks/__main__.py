"""`python -m showhow.benchmarks [NAME,...]`: prints measurements as JSON lines, after one about the machine."""

import importlib
import json
import os
import platform
import sys
import tempfile
from pathlib import Path
from typing import Any

MODULES = (
    "store_scale",
    "moving",
    "query_writing",
    "reading",
    "load",
    "pages",
    "selection",
    "fiction",
    "replay",
    "worlds",
    "agents",
    "reasoners",
    "live",
    "workers",
)
LONG_MODULES = ("real_model",)
DATA_FOLDER = Path(__file__).resolve().parents[2] / "shared" / "data"
RESULT_FIELDS = ("name", "size", "value", "unit", "peak_mb", "peer", "peer_value", "ratio", "note")


def main(only: str | None) -> int:
    """Run these benchmarks, by default all but the long ones, and print the results."""
    names = MODULES if only is None else tuple(only.split(","))
    known = (*MODULES, *LONG_MODULES)
    if unknown := [name for name in names if name not in known]:
        sys.stderr.write(f"there is no benchmark {unknown[0]!r}; the benchmarks are {', '.join(known)}\n")
        return 2
    _print_result(describe_machine())
    for name in names:
        module = importlib.import_module(f"showhow.benchmarks.{name}")
        with tempfile.TemporaryDirectory(prefix="showhow-bench-") as home:
            for line in module.run_benchmark(Path(home), DATA_FOLDER if DATA_FOLDER.is_dir() else None):
                _print_result({field: line.get(field) for field in RESULT_FIELDS})
    return 0


def describe_machine() -> dict[str, Any]:
    """Platform, cores, memory and load of the machine."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2**20
    return {
        "machine": platform.platform(),
        "python": platform.python_version(),
        "cores": os.cpu_count(),
        "memory_mb": memory,
        "load": [round(load, 2) for load in os.getloadavg()],
    }


def _print_result(line: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(line, ensure_ascii=False) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if len(sys.argv) > 1 else None))
