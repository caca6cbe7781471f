"""`showhow setup`: once, twice, several at a time, and killed in the middle."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from worlds.folder import world_names
from worlds.open import about_world
from worlds.questions.question_file import question_rows

SHOWHOW = Path(sys.executable).with_name("showhow")
QUICK = """
import sys, time
from app.resources import database
from app.verbs.setup import prepare
database()
start = time.perf_counter()
prepare()
taken = time.perf_counter() - start
heavy = [name for name in ("faker", "worlds.generator", "torch") if name in sys.modules]
sys.stdout.write(f"{taken} {heavy}")
"""


def environ(home: Path) -> dict[str, str]:
    return {**os.environ, "SHOWHOW_HOME": str(home), "SHOWHOW_DATABASE_URL": ""}


def setup(home: Path) -> subprocess.Popen[str]:
    command = [SHOWHOW, "setup"]
    return subprocess.Popen(
        command, env=environ(home), cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def done(process: subprocess.Popen[str]) -> None:
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said


def assert_ready(home: Path) -> None:
    """One default world, one project, every question once, nothing left over."""
    assert world_names(home / "worlds") == ["default"] == [path.name for path in (home / "worlds").iterdir()]
    about = about_world(home / "worlds", "default")
    assert (about["people"], about["seed"], about["kind"]) == (300, 1, "generated")
    command = [SHOWHOW, "questions", "list", "--project", "Fictional people", "--limit", "1000", "--json"]
    told = subprocess.run(command, env=environ(home), cwd=home, capture_output=True, text=True, check=True).stdout
    asked = [row["text"] for row in question_rows(home / "worlds" / "default")]
    assert [question["text"] for question in json.loads(told)] == asked
    assert len(asked) > 100


def test_a_second_setup_changes_nothing_and_is_quick(tmp_path: Path) -> None:
    done(setup(tmp_path))
    before = about_world(tmp_path / "worlds", "default")
    command = [sys.executable, "-c", QUICK]
    root = Path(__file__).resolve().parents[2]
    told = subprocess.run(command, env=environ(tmp_path), cwd=root, capture_output=True, text=True, check=True).stdout
    taken, _, heavy = told.partition(" ")
    assert heavy == "[]"
    assert float(taken) < 0.25  # 0.01 s on a quiet machine
    assert about_world(tmp_path / "worlds", "default") == before
    assert_ready(tmp_path)


def test_several_setups_at_once_make_one_world_and_one_project(tmp_path: Path) -> None:
    for process in [setup(tmp_path) for _ in range(3)]:
        done(process)
    assert_ready(tmp_path)


def test_a_setup_that_was_killed_is_completed_by_the_next(tmp_path: Path) -> None:
    for seconds in (0.4, 0.6, 0.8, 1.0):
        process = setup(tmp_path)
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        process.communicate()
    done(setup(tmp_path))
    assert_ready(tmp_path)


def test_a_world_that_was_removed_is_built_again_for_the_same_project(tmp_path: Path) -> None:
    done(setup(tmp_path))
    before = about_world(tmp_path / "worlds", "default")["hash"]
    world = tmp_path / "worlds" / "default"
    world.rename(tmp_path / "removed")
    done(setup(tmp_path))
    assert about_world(tmp_path / "worlds", "default")["hash"] == before
    assert_ready(tmp_path)


def test_a_folder_in_the_worlds_place_that_is_none_is_named_and_left_alone(tmp_path: Path) -> None:
    other = tmp_path / "worlds" / "default" / "notes.txt"
    other.parent.mkdir(parents=True)
    other.write_text("mine", "utf-8")
    process = setup(tmp_path)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert f"{other.parent} has no world.toml" in said
    assert "Traceback" not in said
    assert other.read_text("utf-8") == "mine"
