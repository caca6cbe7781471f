"""Temporary folders that outlive a killed process, and never a living one."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Barrier, Thread

import pytest

from showhow.worlds.folder import ScratchFolder, claim_abandoned_folders

ROOT = Path(__file__).resolve().parents[2]
HOLD = """
import sys
from pathlib import Path
from showhow.worlds.folder import ScratchFolder
folder = ScratchFolder(Path(sys.argv[1]), "x-", "held-name")
(folder.path / "file").write_text("content")
print(folder.path, flush=True)
if len(sys.argv) > 2:
    import subprocess
    child = subprocess.Popen(["sleep", "600"], pass_fds=[folder.descriptor])
    print(child.pid, flush=True)
input()
"""


def sweep(folder: Path) -> list[str]:
    return [path.name for path in claim_abandoned_folders(folder, "x-")]


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_folder_is_private_and_removed_with_its_lock(tmp_path: Path):
    scratch = ScratchFolder(tmp_path / "new", "x-", "name")
    assert scratch.path.stat().st_mode & 0o077 == 0
    assert len(names_in(tmp_path / "new")) == 2
    assert sweep(tmp_path / "new") == []
    scratch.remove()
    assert names_in(tmp_path / "new") == []


def test_the_folder_of_a_killed_process_is_claimed_and_that_of_a_living_one_is_not(tmp_path: Path):
    command = [sys.executable, "-c", HOLD, tmp_path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True) as process:
        assert process.stdout is not None
        path = Path(process.stdout.readline().strip())
        assert sweep(tmp_path) == []
        assert (path / "file").read_text() == "content"
        process.send_signal(signal.SIGKILL)
    assert sweep(tmp_path) == [path.name]
    assert names_in(tmp_path) == []
    assert sweep(tmp_path) == []


def test_a_child_that_inherited_the_lock_keeps_the_folder_after_its_parent_was_killed(tmp_path: Path):
    command = [sys.executable, "-c", HOLD, tmp_path, "child"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True) as process:
        assert process.stdout is not None
        path, child = Path(process.stdout.readline().strip()), int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
        process.wait()
        try:
            assert sweep(tmp_path) == []
            assert (path / "file").exists()
        finally:
            os.kill(child, signal.SIGKILL)
        # The output ends when the child, which inherited it, is gone.
        process.stdout.read()
    assert sweep(tmp_path) == [path.name]


def test_a_folder_that_was_moved_away_stays_and_other_prefixes_are_not_touched(tmp_path: Path):
    (tmp_path / "x-abandoned-name").mkdir()
    (tmp_path / "y-other").mkdir()
    for folder in claim_abandoned_folders(tmp_path, "x-"):
        folder.rename(tmp_path / "rescued")
    assert names_in(tmp_path) == ["rescued", "y-other"]


def test_a_missing_parent_has_nothing_abandoned(tmp_path: Path):
    assert sweep(tmp_path / "none") == []


@pytest.mark.parametrize("workers", [4])
def test_folders_made_while_others_clean_up_are_never_removed(tmp_path: Path, workers: int):
    start, failures = Barrier(workers * 2), []

    def make() -> None:
        start.wait()
        for number in range(100):
            scratch = ScratchFolder(tmp_path, "x-", f"{number}")
            (scratch.path / "file").write_text("")
            if not (scratch.path / "file").exists():
                failures.append(scratch.path)
            scratch.remove()

    def clean() -> None:
        start.wait()
        for _ in range(100):
            failures.extend(claim_abandoned_folders(tmp_path, "x-"))

    threads = [Thread(target=work) for work in (make, clean) for _ in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert [name for name in names_in(tmp_path) if not name.endswith(".lock")] == []
