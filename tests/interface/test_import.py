"""`import showhow`: from any folder, at once, only what is documented."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import showhow

HEAVY = ("pandas", "numpy", "sqlalchemy", "torch", "langchain_core", "streamlit", "showhow.settings", "showhow.db")


def run_program(folder: Path, program: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a program that lies in the folder, as a person does, with a home that does not exist yet."""
    (folder / "program.py").write_text(program)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("SHOWHOW_", "PYTHONPATH"))}
    environ = {**kept, "SHOWHOW_HOME": str(folder / "home"), "HOME": str(folder), **variables}
    command = [sys.executable, "program.py"]
    return subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, check=False)


def test_the_import_loads_no_part_before_it_is_used(tmp_path: Path):
    done = run_program(tmp_path, f"import sys, showhow\nprint([name for name in {HEAVY} if name in sys.modules])\n")
    assert (done.returncode, done.stdout) == (0, "[]\n"), done.stderr


def test_the_interface_is_what_it_names_and_each_part_says_what_it_is():
    assert dir(showhow) == sorted(showhow.__all__)
    assert set(showhow.__all__) == set(showhow._MODULES)
    for name in showhow.__all__:
        assert getattr(showhow, name).__doc__, name
    with pytest.raises(AttributeError, match="showhow has no 'Trace'; it has Answer, Evaluation"):
        _ = showhow.Trace
    assert Path(showhow.__file__).with_name("py.typed").is_file()


PROGRAM = """
import showhow
library = showhow.Library.load("traces.jsonl")
picks = library.select("Which rivers flow into a lake?", k=2)
print(len(picks), {message["role"] for message in picks.as_messages()} <= {"system", "user", "assistant", "tool"})
with showhow.Home.temporary() as home:
    print(home.folder.parent.is_dir(), len(home.traces()))
print(home.folder.exists(), showhow.Home.temporary().folder)
"""
REACT = """Question: Where does the Rhine end?
Thought: I look.
Action: search
Action Input: {"query": "Rhine"}
Observation: It ends in the North Sea.
Thought: I know.
Final Answer: the North Sea

Question: Who built the quay?
Thought: I know.
Final Answer: Ada
"""


def test_a_program_in_another_folder_selects_from_a_file_and_makes_no_home(tmp_path: Path):
    (tmp_path / "traces.jsonl").write_text(REACT)
    done = run_program(tmp_path, PROGRAM)
    assert done.returncode == 0, done.stderr
    *lines, last_home = done.stdout.split()
    assert lines == ["2", "True", "True", "0", "False"]
    # One that nobody closed goes with its program.
    assert not Path(last_home).exists()
    assert not (tmp_path / "home").exists()
