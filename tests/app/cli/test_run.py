"""The start of `showhow run`: what killed processes left is cleared away, one line each, and nothing of living ones."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from showhow.app.cli.output import CommandError
from showhow.app.cli.run import clear_leftovers, refuse_open_door
from showhow.runs.services import Services
from showhow.settings import Settings
from tests.app.cli.in_process import run_in_process
from tests.servers.loopback import free_port

ROOT = Path(__file__).resolve().parents[3]
# A process that uploads, builds and asks, and is killed or stays.
WORK = """
import sys
from pathlib import Path
from showhow.app.jobs import create_upload_folder
from showhow.runs.process import current_worker_id
from showhow.runs.services import Services
from showhow.settings import Settings
from tests.runs.test_resume import begun
from showhow.worlds.build import create_world_folder
services = Services(Settings.from_env({"SHOWHOW_HOME": sys.argv[1]}))
upload = create_upload_folder(services.settings.uploads_folder, "mine")
(upload.path / "articles.jsonl").write_text("{}")
with create_world_folder(services.settings.worlds_folder, "mine") as folder:
    (folder / "part").write_text("half")
    begun(services.database, current_worker_id())
    print("working", flush=True)
    input()
"""


def test_leftovers_of_a_killed_process_are_cleared_and_those_of_a_living_one_stay(tmp_path: Path):
    command = [sys.executable, "-c", WORK, str(tmp_path)]
    services = Services(Settings.from_env({"SHOWHOW_HOME": str(tmp_path)}))
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=ROOT, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "working\n"
        before = [*(tmp_path / "uploads").rglob("*"), *(tmp_path / "worlds").rglob("*")]
        assert clear_leftovers(services) == []
        assert [path for path in before if not path.exists()] == []
        process.send_signal(signal.SIGKILL)
    assert clear_leftovers(services) == [
        "Removed the half-built world mine: the process that built it was killed.",
        "Removed the files that were uploaded for the world mine: its import was killed.",
        "Ended the run on 'Who?', whose process was killed; continue it on the Ask page.",
    ]
    assert [*(tmp_path / "uploads").iterdir(), *(tmp_path / "worlds").iterdir()] == []
    assert clear_leftovers(services) == []
    services.close()


# Each writes one of the home's files, and is killed in the middle of it.
HALF_WRITTEN = {
    "profiles": "from showhow.llm.profiles import ProfileFile; from showhow.llm.types import ModelProfile; "
    "ProfileFile(home / 'models.json').save(ModelProfile('openai:gpt-5-mini', name='a'))",
    "export": "from showhow.tasks.task import open_atomically\n"
    "with open_atomically(home / 'traces.jsonl', force=False) as stream: stream.write(b'half')",
    "embeddings": "import numpy; from showhow.fewshot_library.encoder import _write_cache; "
    "_write_cache(home / 'libraries' / '1' / 'embeddings.npz', 'key', numpy.zeros(3)); ",
    "report": "from showhow.evaluation.comparison.selection_usage import save_report; "
    "save_report(home / 'libraries' / '1' / 'usage' / 'a.json', {})",
}
KILLED_BEFORE_THE_NAME = """
import os, pathlib, signal, sys
home = pathlib.Path(sys.argv[1])
def die(*_): os.kill(os.getpid(), signal.SIGKILL)
pathlib.Path.replace = die
"""


@pytest.mark.parametrize("kind", HALF_WRITTEN)
def test_half_written_files_of_killed_processes_are_removed_at_the_next_start(tmp_path: Path, kind: str):
    script = KILLED_BEFORE_THE_NAME + HALF_WRITTEN[kind]
    killed = subprocess.run([sys.executable, "-c", script, str(tmp_path)], cwd=ROOT, check=False)
    assert killed.returncode == -signal.SIGKILL
    (left,) = tmp_path.rglob("*.part")
    services = Services(Settings.from_env({"SHOWHOW_HOME": str(tmp_path)}))
    assert clear_leftovers(services) == [f"Removed {left}: the process that wrote it was killed."]
    assert not left.exists()
    assert clear_leftovers(services) == []
    services.close()


def test_a_leftover_that_cannot_be_removed_is_reported_and_does_not_stop_the_start(tmp_path: Path):
    services = Services(Settings.from_env({"SHOWHOW_HOME": str(tmp_path)}))
    # A folder where the lock of a killed build should be cannot be opened for writing.
    (tmp_path / "worlds" / ".building-1a2b.lock").mkdir(parents=True)
    assert clear_leftovers(services) == [
        f"What killed processes left in {tmp_path / 'worlds'} could not be removed (Is a directory)."
    ]
    services.close()


def test_other_machines_are_served_only_with_a_login(tmp_path: Path):
    done = run_in_process(tmp_path, "run", "--address", "0.0.0.0", "--port", str(free_port()))  # noqa: S104 - refused
    assert (done.returncode, done.stderr.count("\n")) == (1, 1), done.stderr
    assert "SHOWHOW_LOGIN=password" in done.stderr
    for address in ("::", "192.0.2.7", "fe80::1%1"):
        with pytest.raises(CommandError, match="login"):
            refuse_open_door(address, "")
        refuse_open_door(address, "password")


@pytest.mark.parametrize("address", ["127.0.0.1", "127.8.0.1", "localhost", "::1"])
def test_this_machine_is_served_without_a_login(address: str):
    refuse_open_door(address, "")
