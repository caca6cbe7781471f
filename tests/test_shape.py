"""Rules of the house that no tool checks."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("app", "bench", "reasoners", "fewshot_library", "tools", "worlds", "db", "migrations")
MODULES = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
DRAWERS = {"utils", "helpers", "common", "misc", "manager", "core", "services"}


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_is_short_enough_to_be_read_at_one_sitting_and_named_for_what_is_in_it(module: Path):
    assert len(module.read_text(encoding="utf-8").splitlines()) <= 300
    assert module.stem not in DRAWERS


def test_every_package_is_installed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    listed = set(project["tool"]["setuptools"]["packages"])
    found = {".".join(path.parent.relative_to(ROOT).parts) for path in MODULES if path.name == "__init__.py"}
    assert listed == found


def test_the_readmes_map_lists_exactly_the_rooms():
    table = (ROOT / "README.md").read_text(encoding="utf-8").split("## The rooms")[1].split("##")[0]
    listed = set(re.findall(r"^\| `(\w+)/` ", table, flags=re.MULTILINE))
    assert listed == {*ROOMS, "tests"}


def test_the_readmes_verbs_and_tools_are_those_that_there_are():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    verbs = (ROOT / "app" / "cli.py").read_text(encoding="utf-8")
    for name in re.findall(r'^    "(\w+)": Verb\(', verbs, flags=re.MULTILINE):
        assert f"`showhow {name}" in readme
    registry = (ROOT / "tools" / "registry.py").read_text(encoding="utf-8")
    for name in re.findall(r'Tool\.ours\("(\w+)"', registry):
        assert f"| `{name}(" in readme
