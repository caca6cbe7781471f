"""`showhow world generate` as a user runs it: stages on stderr, and nothing left of what is stopped."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

SHOWHOW = Path(sys.executable).with_name("showhow")
ENDED = re.compile(r"\w+: [\d,]+ in \d+\.\d\d s")
AT_WORK = re.compile(r"\w+: [\d,]+( of [\d,]+)?(, [\d,]+ a second)?(, [\d,]+ s left)?")
STOPPED = "showhow: The world large was not made: the work was stopped, and nothing of it stays.\n"


@contextmanager
def generating(home: Path, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """The verb at work in a group of its own, of which nothing outlives the block."""
    process = subprocess.Popen(
        [SHOWHOW, "world", "generate", *words],
        env={**os.environ, "SHOWHOW_HOME": str(home), "SHOWHOW_DATABASE_URL": ""},
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A test run that was started in the background ignores SIGINT, and its child processes would inherit that.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509 - calls C alone
    )
    try:
        with process:
            yield process
    finally:
        if at_work(process):
            os.killpg(process.pid, signal.SIGKILL)


def at_work(process: "subprocess.Popen[str]") -> bool:
    """Whether any process of the group is still there."""
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    return True


def ended(process: "subprocess.Popen[str]") -> bool:
    """Whether all of the group end by themselves, the last ones a little later than the first."""
    until = time.monotonic() + 60
    while at_work(process) and time.monotonic() < until:
        time.sleep(0.05)
    return not at_work(process)


def wait_for_articles(process: "subprocess.Popen[str]") -> None:
    """Read stderr until the universe is made, so that the processes that write articles are started or at work."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("articles: "):
            return
    raise AssertionError("no article was written")


def left_behind(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "worlds").iterdir())


def test_every_stage_is_told_in_a_line_and_the_result_alone_is_on_stdout(tmp_path: Path):
    with generating(tmp_path, "kin", "--people", "40", "--depth", "3", "--per-template", "1", "--json") as process:
        told, stages = process.communicate()
    about = json.loads(told)
    assert (about["people"], about["name"]) == (40, "kin")
    ended = [line.partition(":")[0] for line in stages.splitlines() if ENDED.fullmatch(line)]
    assert ended == ["people", "articles", "pages", "questions", "graph", "names"]
    of_stages = [line for line in stages.splitlines() if re.match(rf"({'|'.join(ended)}): ", line)]
    assert all(ENDED.fullmatch(line) or AT_WORK.fullmatch(line) for line in of_stages)


@pytest.mark.parametrize(
    ("send", "which"),
    [(os.killpg, signal.SIGINT), (os.kill, signal.SIGINT), (os.kill, signal.SIGTERM)],
    ids=["Ctrl+C", "interrupt", "terminate"],
)
def test_a_world_that_is_stopped_leaves_nothing_and_says_so(
    tmp_path: Path, send: Callable[[int, int], None], which: signal.Signals
):
    with generating(tmp_path, "large", "--people", "200000", "--processes", "2") as process:
        wait_for_articles(process)
        send(process.pid, which)
        told, said = process.communicate(timeout=60)
        assert (process.returncode, told) == (1, "")
        assert said.endswith(STOPPED)
        assert "Traceback" not in said
    assert ended(process)
    assert left_behind(tmp_path) == []


def test_the_processes_of_a_killed_one_end_and_the_next_sweeps_what_it_left(tmp_path: Path):
    with generating(tmp_path, "large", "--people", "200000", "--processes", "2") as process:
        wait_for_articles(process)
        process.kill()
        process.wait()
        assert ended(process)
        assert "Traceback" not in process.stderr.read()
    assert len(left_behind(tmp_path)) == 1
    with generating(tmp_path, "small", "--people", "20", "--depth", "2", "--per-template", "1") as process:
        process.communicate()
    assert left_behind(tmp_path) == ["small"]


@pytest.mark.parametrize(
    ("split", "before", "in_it"),
    [("text=100", "people", "articles"), ("web=100", "articles", "pages"), ("graph=100", "pages", "graph")],
)
def test_a_full_disk_is_told_in_one_sentence_and_nothing_stays(tmp_path: Path, split: str, before: str, in_it: str):
    program = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
from app.cli.main import main
if __name__ == "__main__":
    main()
"""
    (tmp_path / "limited.py").write_text(program)
    words = ["world", "generate", "large", "--people", "3000", "--processes", "2", "--split", split]
    done = subprocess.run(
        [sys.executable, tmp_path / "limited.py", *words],
        env={**os.environ, "SHOWHOW_HOME": str(tmp_path), "PYTHONPATH": str(Path(__file__).resolve().parents[3])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert f"\n{before}: " in f"\n{done.stderr}"
    assert f"\n{in_it}: " not in done.stderr
    assert "\nshowhow: The world large cannot be written to" in done.stderr
    assert "Traceback" not in done.stderr
    assert left_behind(tmp_path) == []
