"""`showhow setup`: once, twice, concurrently, and killed."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from showhow.app.cli.setup import DEMONSTRATION_COUNT, WORLD_OPTIONS
from showhow.db.models import GENERATED_REASONER
from showhow.fewshot_library.formats import showhow
from showhow.fiction.questions.question_file import read_question_rows
from showhow.fiction.questions.templates import build_templates
from showhow.tools.registry import BUILT_IN_TOOLS
from showhow.worlds.folder import list_world_names
from showhow.worlds.open import read_world_metadata
from tests.app.cli.in_process import run_in_process
from tests.browser.server import prepare_home

SHOWHOW = Path(sys.executable).with_name("showhow")
LOADED = """
import sys
from showhow.app.cli.setup import prepare
from showhow.app.services import current_services
prepare(current_services())
heavy = {"faker", "showhow.fiction.generator.build", "showhow.benchmarks", "torch"} & set(sys.modules)
sys.stdout.write(str([*heavy]))
"""


def environment_of(home: Path) -> dict[str, str]:
    return {**os.environ, "SHOWHOW_HOME": str(home), "SHOWHOW_DATABASE_URL": ""}


def setup(home: Path) -> subprocess.Popen[str]:
    command = [SHOWHOW, "setup"]
    return subprocess.Popen(
        command, env=environment_of(home), cwd=home, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def assert_success(process: subprocess.Popen[str]) -> str:
    """Return its progress."""
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == 0, stderr
    return stderr


def assert_ready(home: Path) -> None:
    """Assert that there is one default world, one project, each question once, and no other folder."""
    assert list_world_names(home / "worlds") == ["default"] == [path.name for path in (home / "worlds").iterdir()]
    about = read_world_metadata(home / "worlds", "default")
    assert (about["people"], about["seed"], about["kind"]) == (1000, 1, "generated")
    assert about["split"] == "text=50,graph=35,web=15"
    words = ("questions", "list", "--project", "Fictional people", "--limit", "1000", "--json")
    stdout = run_in_process(home, *words).stdout
    texts = [row["text"] for row in read_question_rows(home / "worlds" / "default")]
    assert [question["text"] for question in json.loads(stdout)] == texts
    assert len(texts) == WORLD_OPTIONS.per_template * len(build_templates(WORLD_OPTIONS))


@pytest.fixture(scope="module")
def prepared() -> Path:
    """A home in which setups were killed at different times, then two concurrent ones succeeded; not to be changed."""
    return prepare_home()[0]


@pytest.fixture
def home(prepared: Path, tmp_path: Path) -> Path:
    """A copy of the prepared home, to be changed."""
    return Path(shutil.copytree(prepared, tmp_path / "home"))


def test_killed_and_concurrent_setups_make_one_world_and_one_project() -> None:
    prepared, printed = prepare_home()
    assert_ready(prepared)
    assert sum("answering some of its questions" in text for text in printed) == 1, printed


def test_a_second_setup_changes_nothing_and_loads_no_large_library(home: Path) -> None:
    before = read_world_metadata(home / "worlds", "default")
    command = [sys.executable, "-c", LOADED]
    root = Path(__file__).resolve().parents[3]
    stdout = subprocess.run(
        command, env=environment_of(home), cwd=root, capture_output=True, text=True, check=True
    ).stdout
    assert stdout == "[]"
    assert read_world_metadata(home / "worlds", "default") == before
    assert_ready(home)


def test_the_demonstrations_are_generated_traces_of_every_kind_with_the_gold_answers(
    prepared: Path, tmp_path: Path
) -> None:
    file = tmp_path / "shown.jsonl"
    assert run_in_process(prepared, "traces", "export", file, "--status", "approved").returncode == 0
    records = list(showhow.read_records(file))
    assert len(records) == DEMONSTRATION_COUNT
    kinds = {row["kind"] for row in read_question_rows(prepared / "worlds" / "default")}
    assert {record.question.kind for record in records} == kinds
    for record in records:
        assert (record.trace.reasoner, record.trace.result.generated) == (GENERATED_REASONER, True)
        assert record.creator_name.startswith("generated")
        assert record.trace.final_answer == ", ".join(answer["text"] for answer in record.question.gold_answers)
        assert all(
            step.thought and step.tool in BUILT_IN_TOOLS and step.data and not step.error for step in record.steps
        )
    assert {step.tool for record in records for step in record.steps} >= {"wikisearch", "read", "runQuery", "websearch"}


def test_a_removed_world_is_built_again_for_the_same_project(home: Path) -> None:
    before = read_world_metadata(home / "worlds", "default")["hash"]
    shutil.rmtree(home / "worlds" / "default")
    assert_success(setup(home))
    assert read_world_metadata(home / "worlds", "default")["hash"] == before
    assert_ready(home)


def test_a_folder_without_world_toml_is_reported_and_kept(tmp_path: Path) -> None:
    other = tmp_path / "worlds" / "default" / "notes.txt"
    other.parent.mkdir(parents=True)
    other.write_text("mine", "utf-8")
    process = setup(tmp_path)
    _, stderr = process.communicate(timeout=300)
    assert process.returncode == 1
    assert f"{other.parent} has no world.toml" in stderr
    assert "Traceback" not in stderr
    assert other.read_text("utf-8") == "mine"
