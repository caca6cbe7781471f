"""`showhow world generate` in a process of its own: stages on stderr, and cleanup after a stop or a failure."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

SHOWHOW = Path(sys.executable).with_name("showhow")
FINISHED_STAGE = re.compile(r"\w+: [\d,]+ in \d+\.\d\d s")
STAGE_IN_PROGRESS = re.compile(r"\w+: [\d,]+( of [\d,]+)?(, [\d,]+ a second)?(, [\d,]+ s left)?")
STOPPED = "showhow: The generation was stopped; the world large was not made.\n"


@contextmanager
def start_generation(home: Path, *words: str) -> Iterator["subprocess.Popen[str]"]:
    """The running verb in a process group of its own, which ends with the block."""
    process = subprocess.Popen(
        [SHOWHOW, "world", "generate", *words],
        env={**os.environ, "SHOWHOW_HOME": str(home), "SHOWHOW_DATABASE_URL": ""},
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        with process:
            yield process
    finally:
        if is_running(process):
            os.killpg(process.pid, signal.SIGKILL)


def is_running(process: "subprocess.Popen[str]") -> bool:
    """Whether any process of the group is running."""
    try:
        os.killpg(process.pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for_end(process: "subprocess.Popen[str]") -> bool:
    """Wait up to a minute for all processes of the group; returns whether they have ended."""
    until = time.monotonic() + 60
    while is_running(process) and time.monotonic() < until:
        time.sleep(0.05)
    return not is_running(process)


def wait_for_articles(process: "subprocess.Popen[str]") -> None:
    """Read stderr until the stage of articles, when the worker processes are starting or running."""
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("articles: "):
            return
    raise AssertionError("no article was written")


def world_folders(home: Path) -> list[str]:
    return sorted(path.name for path in (home / "worlds").iterdir())


def test_every_stage_has_a_line_on_stderr_and_only_the_result_is_on_stdout(tmp_path: Path):
    with start_generation(
        tmp_path, "kin", "--people", "40", "--depth", "3", "--per-template", "1", "--json"
    ) as process:
        stdout, stderr = process.communicate()
    about = json.loads(stdout)
    assert (about["people"], about["name"]) == (40, "kin")
    ended = [line.partition(":")[0] for line in stderr.splitlines() if FINISHED_STAGE.fullmatch(line)]
    assert ended == ["people", "articles", "pages", "questions", "graph", "names"]
    of_stages = [line for line in stderr.splitlines() if re.match(rf"({'|'.join(ended)}): ", line)]
    assert all(FINISHED_STAGE.fullmatch(line) or STAGE_IN_PROGRESS.fullmatch(line) for line in of_stages)


@pytest.mark.parametrize(
    ("send", "which"),
    [(os.killpg, signal.SIGINT), (os.kill, signal.SIGINT), (os.kill, signal.SIGTERM)],
    ids=["Ctrl+C", "interrupt", "terminate"],
)
def test_a_stopped_generation_removes_the_world_and_reports_it(
    tmp_path: Path, send: Callable[[int, int], None], which: signal.Signals
):
    with start_generation(tmp_path, "large", "--people", "200000", "--processes", "2") as process:
        wait_for_articles(process)
        send(process.pid, which)
        stdout, stderr = process.communicate(timeout=60)
        assert (process.returncode, stdout) == (1, "")
        assert stderr.endswith(STOPPED)
        assert "Traceback" not in stderr
    assert wait_for_end(process)
    assert world_folders(tmp_path) == []


def test_workers_of_a_killed_generation_end_and_the_next_one_removes_its_files(tmp_path: Path):
    with start_generation(tmp_path, "large", "--people", "200000", "--processes", "2") as process:
        wait_for_articles(process)
        process.kill()
        process.wait()
        assert wait_for_end(process)
        assert "Traceback" not in process.stderr.read()
    assert world_folders(tmp_path) != []
    with start_generation(tmp_path, "small", "--people", "20", "--depth", "2", "--per-template", "1") as process:
        process.communicate()
    assert world_folders(tmp_path) == ["small"]


@pytest.mark.parametrize(
    ("split", "before", "in_it"),
    [("text=100", "people", "articles"), ("web=100", "articles", "pages"), ("graph=100", "pages", "graph")],
)
def test_a_full_disk_fails_with_one_sentence_and_removes_the_world(tmp_path: Path, split: str, before: str, in_it: str):
    program = """
import resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, 400_000))
from showhow.app.cli.main import main
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
    assert world_folders(tmp_path) == []
