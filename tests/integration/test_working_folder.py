"""Showhow is started in a folder that is full of modules of somebody else; none of them is ever imported."""

import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import pytest

from tests.browser.server import copy_prepared_home
from tests.servers.loopback import free_port

pytestmark = pytest.mark.long

SHOWHOW = Path(sys.executable).with_name("showhow")
ROOMS = ("app", "db", "evaluation", "guard", "llm", "reasoners", "runs", "settings", "showhow", "tools", "worlds")
PACKAGES = (
    "sitecustomize",
    "usercustomize",
    "numpy",
    "sqlalchemy",
    "pydantic",
    "streamlit",
    "pyoxigraph",
    "langchain",
    "planted",
)
FUNCTION = "def count_words(text: str) -> int:\n    '''Count the words of a text.'''\n    return len(text.split())\n"
START_JOB = """
import sys
from showhow.app.jobs import JobRegistry
from showhow.fiction.universe.options import GenerationOptions
from showhow.tasks.task import dump_call
from showhow.tasks.worlds import GenerateWorld, generate
call = dump_call(generate, GenerateWorld(name="isle", options=GenerationOptions(people=50, seed=1)))
job = JobRegistry().start("world", "isle", "Generating", call, person_id=None)
job.process.wait(120)
sys.exit(job.process.returncode)
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("home")
    copy_prepared_home(home)
    (home / "my_tools.py").write_text(FUNCTION)
    (home / "tools.toml").write_text('[functions.count_words]\nplace = "my_tools:count_words"\n')
    return home


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder with a file for each module of the standard library, of ours and of some packages."""
    for name in {*sys.stdlib_module_names, *ROOMS, *PACKAGES}:
        # It must not fail, since an import that fails may be caught.
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'a').write({name!r} + '\\n')\n")
    planted = tmp_path / "planted-1.0.dist-info"
    planted.mkdir()
    (planted / "METADATA").write_text("Metadata-Version: 2.1\nName: planted\nVersion: 1.0\n")
    (planted / "entry_points.txt").write_text("[showhow.reasoners]\nplanted = planted:ENTRY\n")
    return tmp_path


def environment(home: Path) -> dict[str, str]:
    return {**os.environ, "SHOWHOW_HOME": str(home), "OMP_NUM_THREADS": "1"}


def imported(folder: Path) -> list[str]:
    file = folder / "imported"
    return file.read_text().splitlines() if file.exists() else []


@pytest.mark.parametrize(
    "command",
    [
        [SHOWHOW, "world", "query", "default", "SELECT * { ?s ?p ?o } LIMIT 1"],
        [SHOWHOW, "plugins"],
        [SHOWHOW, "tool", "count_words", "text=one two", "--world", "default"],
        [sys.executable, "-P", "-c", START_JOB],
    ],
    ids=[
        "a query, in the process of a graph",
        "the entry points of a package",
        "a function, in its process",
        "a job of a page",
    ],
)
def test_a_verb_and_the_processes_that_it_starts_import_nothing_from_there(command: list, home: Path, folder: Path):
    done = subprocess.run(command, cwd=folder, env=environment(home), capture_output=True, text=True, check=False)
    assert imported(folder) == []
    assert done.returncode == 0, done.stderr


def wait_until_healthy(port: int, server: "subprocess.Popen[bytes]") -> None:
    deadline = time.monotonic() + 120
    while True:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=2) as reply:
                assert reply.read() == b"ok"
                return
        except OSError:
            assert server.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_the_server_imports_nothing_from_there(home: Path, folder: Path):
    port = free_port()
    server = subprocess.Popen(
        [SHOWHOW, "run", "--port", str(port)],
        cwd=folder,
        env=environment(home),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        wait_until_healthy(port, server)
    finally:
        server.terminate()
        server.wait(20)
    assert imported(folder) == []
