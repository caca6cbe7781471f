"""What `make coverage` measures agrees with a tracer, in each process that runs, and is compared with the floors."""

import json
import os
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from tests.room_coverage import (
    MARGIN,
    PROJECT,
    ModuleCoverage,
    measure_rooms,
    print_missed,
    read_coverage,
    report,
    start,
    write_floors,
)

pytestmark = pytest.mark.long

PROGRAM = '''"""A module."""
from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import decimal

total = 0


class Counter:
    """Counts."""

    step = 1

    @property
    def double(self):
        return 2 * self.step


async def numbers(count):
    for number in range(count):
        yield number


async def sum_up(count):
    result = 0
    async for number in numbers(count):
        if number == 3:
            break
        result += number
    return result


def classify(value):
    global total
    match value:
        case int() if value > 100:
            kind = "large"
        case int() | float():
            kind = "number"
        case [first, *_]:
            kind = classify(first)
    if isinstance(value, str):
        kind = "text"
    elif value is None:
        return "nothing"
    else:
        total += 1
    return kind


def search(values, wish):
    for value in values:
        if value == wish:
            break
    else:
        return "absent"
    while True:
        try:
            value = 10 // (value - 2)
        except ZeroDivisionError:
            return "two"
        finally:
            value -= 1
        while value > 0:
            value -= 3
        if value < -2:
            return "low"


def unused(values):
    with open(values) as file:
        for line in file:
            print(line)


'''
RUNS = [
    "",
    "classify(5)",
    "classify(200), classify([[1]])",
    "classify('x')",
    "classify(None)",
    "search([1, 2], 2)",
    "search([], 2), search([9], 8)",
    "search([1, 3, 30], 30)",
    "asyncio.run(sum_up(2)), asyncio.run(sum_up(9)), Counter().double",
]
TRACER = """
import json, sys
path, arcs = sys.argv[1], set()
def trace(frame, event, argument, last=0):
    if frame.f_code.co_filename != path:
        return None
    def local(frame, event, argument):
        nonlocal last
        if event in {"line", "return"}:
            line = 0 if event == "return" else frame.f_lineno
            arcs.add((last, line))
            last = line
        return local
    return local
sys.settrace(trace)
try:
    exec(compile(open(path).read(), path, "exec"), {"__name__": "program"})
except UnboundLocalError:
    pass
sys.settrace(None)
print(json.dumps(sorted(arcs)))
"""


def run(folder: Path, *command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run Python with the measurement of that folder."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": ""}
    return subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, check=False)


def measure(program: Path, folder: Path) -> ModuleCoverage:
    [coverage] = read_coverage(folder)
    assert coverage.path == program
    return coverage


@pytest.mark.parametrize("calls", RUNS)
def test_lines_and_branches_are_those_that_a_tracer_sees(calls: str, tmp_path: Path):
    program, folder = tmp_path / "program.py", tmp_path / "measured"
    program.write_text(f"{PROGRAM}{calls}\n", encoding="utf-8")
    traced = subprocess.run(
        [sys.executable, "-c", TRACER, program], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    arcs = {(last, line) for last, line in json.loads(traced.stdout)}
    start(folder, [program])
    run(folder, "-c", f"import sys; sys.path.append({str(tmp_path)!r}); import program")
    coverage = measure(program, folder)
    lines = {point for point in coverage.points if isinstance(point, int)}
    assert coverage.covered & lines == {line for _last, line in arcs} & lines
    named = {point for point in coverage.points if isinstance(point, tuple)}
    source = program.read_text(encoding="utf-8").splitlines()
    cases = {number for number, line in enumerate(source, 1) if line.strip().startswith("case ")}
    for line, following in named:
        # The tracer stops at each case of a match.
        decisions = {line, *cases} if "match" in source[line - 1] else {line}
        others = decisions | {after for before, after in named if before == line and after}
        ways = {after for before, after in arcs if before in decisions}
        assert ((line, following) in coverage.covered) == bool({following} & ways if following else ways - others)
    assert "import decimal" not in {source[line - 1].strip() for line in lines}
    assert len(lines) > 40
    # Two of each `if`, `for` and `while` that can end, four of `match`.
    assert len(named) == 24


def test_killed_processes_children_and_pages_of_streamlit_are_measured(tmp_path: Path):
    module, page, folder = tmp_path / "module.py", tmp_path / "page.py", tmp_path / "measured"
    module.write_text(
        "import os, signal, sys\n"
        "def die():\n"
        "    os.kill(os.getpid(), signal.SIGKILL)\n"
        "def fork():\n"
        "    child = os.fork()\n"
        "    if not child:\n"
        "        os._exit(0)\n"
        "    os.waitpid(child, 0)\n"
    )
    page.write_text(
        "import streamlit as st\nif not st.query_params:\n    st.title('Page')\n    'magic'\nelse:\n    st.stop()\n"
    )
    start(folder, [module, page])
    prelude = f"import sys; sys.path.append({str(tmp_path)!r})"
    assert run(folder, "-c", f"{prelude}; import module; module.die()").returncode == -signal.SIGKILL
    assert run(folder, "-c", f"{prelude}; import module; module.fork()").returncode == 0
    script = f"from streamlit.testing.v1 import AppTest; AppTest.from_file({str(page)!r}).run().title[0]"
    done = run(folder, "-c", script)
    assert done.returncode == 0, done.stderr
    modules = {coverage.path: coverage for coverage in read_coverage(folder)}
    assert modules[module].points == modules[module].covered
    missed = modules[page].points - modules[page].covered
    assert missed == {6, (2, 6)}


def test_modules_with_marks_are_compiled_once_and_apart_from_those_without(tmp_path: Path):
    program, folder = tmp_path / "program.py", tmp_path / "measured"
    program.write_text("value = 1\n")
    is_marked = "hasattr(program, '__hits__'), 'marks' in sys.modules"
    script = f"import sys; sys.path.append({str(tmp_path)!r}); import program; print({is_marked})"
    start(folder, [program])
    words = [run(folder, "-c", script).stdout.split() for _ in range(2)]
    assert words == [["True", "True"], ["True", "False"]]
    plain = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert plain.stdout.split() == ["False", "False"]


def test_a_room_below_its_floor_or_without_one_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    coverage = [
        ModuleCoverage(tmp_path / "db" / "a.py", frozenset({1, 2, 3, (3, 0)}), frozenset({1, 2, (3, 0)})),
        ModuleCoverage(tmp_path / "db" / "b.py", frozenset({1, 2, 3, 4}), frozenset({1, 2, 3, 4})),
        ModuleCoverage(tmp_path / "llm" / "__init__.py", frozenset(), frozenset()),
        ModuleCoverage(tmp_path / "llm" / "c.py", frozenset({1, 2}), frozenset({1})),
    ]
    rooms = measure_rooms(coverage, tmp_path)
    assert rooms == {"db": 87.5, "llm": 50}
    text = PROJECT.read_text(encoding="utf-8")
    for project in (
        text,
        write_floors(text, {"db": 1, "tools": 99}),
        f"{write_floors(text, {'db': 1})}\n[tool.other]\nx = 1\n",
    ):
        changed = tomllib.loads(write_floors(project, rooms))
        assert changed["tool"]["showhow"]["coverage"] == {"db": 85, "llm": 50 - MARGIN}
        assert {**changed, "tool": {**changed["tool"], "showhow": 0}} == {
            **tomllib.loads(project),
            "tool": {**tomllib.loads(project)["tool"], "showhow": 0},
        }
    assert report(rooms, {"db": 85, "llm": 48})
    assert not report(rooms, {"db": 88, "llm": 48})
    assert not report(rooms, {"db": 85})
    print_missed(coverage, tmp_path)
    assert capsys.readouterr().out.splitlines()[-2:] == ["db/a.py: 3", "llm/c.py: 2"]
