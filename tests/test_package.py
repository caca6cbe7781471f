"""The rooms are one package: what is imported and installed is showhow.db, showhow.tools and so on, nothing else."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.test_shape import MODULES, ROOMS, ROOT, package_of

# A page draws when it is imported, and the warden runs by its path only; benchmarks need the tests.
IMPORTED = [
    package_of(path)
    for path in MODULES
    if path.name not in {"__init__.py", "__main__.py", "warden.py"}
    and not {"pages", "migrations", "benchmarks"} & set(path.parts)
]
PROGRAM = f"""
import importlib, json, sys
for name in {IMPORTED}:
    importlib.import_module(name)
print(json.dumps({{name: getattr(module, "__file__", None) for name, module in sys.modules.items()}}))
"""


def test_no_module_is_imported_by_the_bare_name_of_its_room():
    bare = []
    for file in [*MODULES, *sorted((ROOT / "tests").rglob("*.py")), *sorted((ROOT / "docs").rglob("*.py"))]:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            bare += [f"{file}: {name}" for name in names if name.partition(".")[0] in {*ROOMS} - {"showhow"}]
    assert bare == []


def test_no_process_has_a_module_of_ours_under_another_name_too():
    command = [sys.executable, "-P", "-W", "ignore", "-c", PROGRAM]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    theirs = json.loads(done.stdout.splitlines()[-1])
    ours = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
    ours.pop("__main__", None)
    modules = {str(path) for path in MODULES}
    assert theirs.keys() >= set(IMPORTED)
    for files in (theirs, ours):
        assert [name for name, file in files.items() if file in modules and name.partition(".")[0] != "showhow"] == []


@pytest.mark.parametrize("beside", ["settings.py", "db.py", "tools.py", "guard/__init__.py", "showhow/notes.txt"])
def test_what_lies_beside_a_program_does_not_clash(beside: str, tmp_path: Path):
    (tmp_path / beside).parent.mkdir(exist_ok=True)
    (tmp_path / beside).write_text("raise SystemExit('imported by mistake')\n", encoding="utf-8")
    program = "import showhow, showhow.runs.services, showhow.tools.registry; print(showhow.__file__)"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.stdout.strip(), done.stderr) == (str(ROOT / "showhow" / "__init__.py"), "")
