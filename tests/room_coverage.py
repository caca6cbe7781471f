"""Checks the branch coverage of each room against its floor in pyproject.toml; `make coverage` runs it last."""

import json
import sys
import tomllib
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def measure_rooms(report: dict[str, dict[str, dict[str, dict[str, int]]]]) -> dict[str, float]:
    """Percentage of covered lines and branches per room, from the JSON report of `coverage json`."""
    covered, total = Counter[str](), Counter[str]()
    for path, module in report["files"].items():
        room, summary = Path(path).parts[0], module["summary"]
        covered[room] += summary["covered_lines"] + summary["covered_branches"]
        total[room] += summary["num_statements"] + summary["num_branches"]
    return {room: 100 * covered[room] / total[room] for room in sorted(total) if total[room]}


def main() -> int:
    """Print each room's coverage beside its floor; 1 if a room is below its floor or has none."""
    floors = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["showhow"]["coverage"]
    rooms = measure_rooms(json.load(sys.stdin))
    below = [room for room, percent in rooms.items() if percent < floors.get(room, 101)]
    for room, percent in rooms.items():
        floor = floors.get(room, "none")
        sys.stdout.write(f"{room:16} {percent:5.1f} %   floor {floor}{'   BELOW' if room in below else ''}\n")
    return 1 if below else 0


if __name__ == "__main__":
    sys.exit(main())
