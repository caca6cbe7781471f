"""Measures which lines and branches of each room the tests run, in all processes; `make coverage` runs it.

`start FOLDER` prepares a measurement: a process that has FOLDER on PYTHONPATH notes what it runs (measurement/).
`report FOLDER` compares each room with its floor in pyproject.toml; with `--write-floors` it sets the floors.
"""

import argparse
import ast
import math
import shutil
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.measurement.marks import Branch, byte_of, count_bytes, find_points

ROOT = Path(__file__).resolve().parents[1]
MEASUREMENT = Path(__file__).with_name("measurement")
PROJECT = ROOT / "pyproject.toml"
HEADER = "[tool.showhow.coverage]"
MARGIN = 2
"""How many points below its measured coverage a room's floor is set."""


@dataclass(frozen=True)
class ModuleCoverage:
    """The points of a module, and those of them that were run."""

    path: Path
    points: frozenset[int | Branch]
    covered: frozenset[int | Branch]


def start(folder: Path, modules: Iterable[Path]) -> None:
    """Empty the folder and make it one in which processes note what they run of the modules."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(MEASUREMENT, folder, ignore=shutil.ignore_patterns("__*__*"))
    size, rows = 0, []
    for module in modules:
        end = size + count_bytes(module.read_bytes())
        rows.append(f"{size}\t{end}\t{module}\n")
        size = end
    (folder / "regions").write_text("".join(rows), encoding="utf-8")
    (folder / "hits").write_bytes(bytes(size))


def read_coverage(folder: Path) -> list[ModuleCoverage]:
    """What the processes noted in the folder."""
    hits, coverage = (folder / "hits").read_bytes(), []
    for row in (folder / "regions").read_text(encoding="utf-8").splitlines():
        begin, end, path = row.split("\t")
        lines, branches = find_points(ast.parse(Path(path).read_bytes()))
        points = frozenset[int | Branch](lines | branches)
        region = hits[int(begin) : int(end)]
        coverage.append(ModuleCoverage(Path(path), points, frozenset(p for p in points if region[byte_of(p)])))
    return coverage


def measure_rooms(coverage: Iterable[ModuleCoverage], root: Path = ROOT) -> dict[str, float]:
    """Percentage of covered lines and branches per room."""
    covered, total = Counter[str](), Counter[str]()
    for module in coverage:
        room = module.path.relative_to(root).parts[0]
        covered[room] += len(module.covered)
        total[room] += len(module.points)
    return {room: 100 * covered[room] / total[room] for room in sorted(total) if total[room]}


def report(rooms: Mapping[str, float], floors: Mapping[str, float]) -> bool:
    """Print each room's coverage beside its floor; whether no room is below its floor, and each has one."""
    below = {room for room, percent in rooms.items() if percent < floors.get(room, math.inf)}
    for room, percent in rooms.items():
        floor = floors.get(room, "none: set it with --write-floors")
        sys.stdout.write(f"{room:16} {percent:5.1f} %   floor {floor}{'   BELOW' if room in below else ''}\n")
    return not below


def write_floors(project: str, rooms: Mapping[str, float]) -> str:
    """Return the text of pyproject.toml with the floor of each room `MARGIN` points below its coverage."""
    floors = "".join(f"{room} = {math.floor(percent - MARGIN)}\n" for room, percent in rooms.items())
    before, _, table = project.partition(f"{HEADER}\n")
    _, bracket, others = table.partition("\n[")
    return f"{before.rstrip()}\n\n{HEADER}\n{floors}{bracket}{others}"


def print_missed(coverage: Iterable[ModuleCoverage], root: Path = ROOT) -> None:
    """Print the lines of each module that no process ran."""
    for module in coverage:
        lines = sorted(point for point in module.points - module.covered if isinstance(point, int))
        if lines:
            sys.stdout.write(f"{module.path.relative_to(root)}: {', '.join(map(str, lines))}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; 1 if a room is below its floor or has none."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("action", choices=["start", "report"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--write-floors", action="store_true", help="set the floors; only after a run of all tests")
    parser.add_argument("--missed", action="store_true", help="list the lines that no process ran")
    options = parser.parse_args(arguments)
    folder = options.folder.resolve()
    text = PROJECT.read_text(encoding="utf-8")
    if options.action == "start":
        rooms = sorted({path.parent.name for path in ROOT.glob("*/__init__.py")} - {"benchmarks", "tests"})
        start(folder, [module for room in rooms for module in sorted((ROOT / room).rglob("*.py"))])
        return 0
    coverage = read_coverage(folder)
    measured = measure_rooms(coverage)
    if options.missed:
        print_missed(coverage)
    if options.write_floors:
        text = write_floors(text, measured)
        PROJECT.write_text(text, encoding="utf-8")
    floors = tomllib.loads(text)["tool"].get("showhow", {}).get("coverage", {})
    return 0 if report(measured, floors) else 1


if __name__ == "__main__":
    sys.exit(main())
