"""Iteration in a child process: order, failures, and termination."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PROGRAM = """
import os, signal, sys, time
from showhow.worlds.folder import WorldError
from showhow.fiction.generator.build import run_in_process

def numbers(count):
    yield from range(count)

def fails(kind):
    yield 1
    raise OSError(28, "No space left") if kind == "disk" else WorldError("there is no such thing")

def killed():
    yield os.getpid()
    os.kill(os.getpid(), signal.SIGKILL)

def endless():
    yield os.getpid()
    while True:
        yield bytes(1000)

def alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True

def received(work, *arguments):
    found = []
    try:
        with run_in_process(work, *arguments) as items:
            for item in items:
                found.append(item)
    except (OSError, WorldError) as failed:
        return len(found), type(failed).__name__, str(failed)
    return found

def before_and_after():
    with run_in_process(endless) as items:
        process = next(items)
        before = alive(process)
    return before, alive(process)

if __name__ == "__main__":
    print({said})
"""


def result(tmp_path: Path, outcome: str) -> str:
    """Run the program in this mode and return its output."""
    (tmp_path / "program.py").write_text(PROGRAM.replace("{said}", outcome))
    done = subprocess.run(
        [sys.executable, tmp_path / "program.py"],
        env={"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == ""
    return done.stdout.strip()


@pytest.mark.parametrize("count", [0, 1, 5000])
def test_items_arrive_in_order(tmp_path: Path, count: int):
    assert result(tmp_path, f"received(numbers, {count}) == list(range({count}))") == "True"


@pytest.mark.parametrize(
    ("work", "failure"),
    [
        ("fails, 'disk'", "(1, 'OSError', '[Errno 28] No space left')"),
        ("fails, 'world'", "(1, 'WorldError', 'there is no such thing')"),
        ("killed", "(1, 'WorldError', 'A worker process of the generation was killed; generate the world again.')"),
    ],
)
def test_a_failure_of_the_child_is_raised_by_the_iteration(tmp_path: Path, work: str, failure: str):
    assert result(tmp_path, f"received({work})") == failure


def test_the_child_process_ends_with_the_block(tmp_path: Path):
    assert result(tmp_path, "before_and_after()") == "(True, False)"
