"""The documentation of the interface does what it says: docstrings, the page and the notebook."""

import doctest
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import showhow

pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
MODULES = sorted({name for name in showhow._MODULES.values() if name.startswith("showhow.interface.")} | {"showhow"})


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_of_docstrings_hold(name: str, village):
    names = {"home": village.home, "world": village.world, "library": village.library, "traces": village.traces}
    module = importlib.import_module(name)
    result = doctest.testmod(module, extraglobs=names)
    assert result.failed == 0
    assert result.attempted > 0 or name == "showhow.interface.errors"


def test_the_examples_of_the_page_hold():
    result = doctest.testfile(str(ROOT / "docs" / "how-to" / "python.md"), module_relative=False, encoding="utf-8")
    assert result.failed == 0
    assert result.attempted > 15


def test_the_notebook_has_the_outputs_of_its_cells_and_is_short(tmp_path: Path):
    command = [sys.executable, ROOT / "docs" / "run_notebook.py", "--check"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (ROOT / "docs" / "how-to" / "notebook.md").read_text(encoding="utf-8")
    code = [part.split("\n```")[0] for part in page.split("```python\n")[1:]]
    assert sum(bool(line.strip()) for part in code for line in part.splitlines()) <= 30
