"""Rules of the project's structure that no other tool checks."""

import ast
import re
import tomllib
from collections import Counter, defaultdict
from pathlib import Path

import pytest

from showhow.app.cli.main import VERBS
from showhow.tools.registry import BUILT_IN_TOOLS

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
VERBS_PAGE = (ROOT / "docs" / "verbs.md").read_text(encoding="utf-8")
TOOLS_PAGE = (ROOT / "docs" / "explanation" / "tools.md").read_text(encoding="utf-8")
LAYERS = next(
    contract["layers"] for contract in PROJECT["tool"]["importlinter"]["contracts"] if contract["type"] == "layers"
)
ROOMS = [*(room.strip() for layer in LAYERS for room in layer.split("|")), "migrations", "showhow"]
MODULES = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
VAGUE_NAMES = {"utils", "helpers", "common", "misc", "manager", "core"}
MAX_LINES = 450


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_fits_one_reading_and_has_a_specific_name(module: Path):
    text = module.read_text(encoding="utf-8")
    imports = [node for node in ast.parse(text).body if isinstance(node, ast.Import | ast.ImportFrom)]
    assert len(text.splitlines()) - sum((node.end_lineno or 0) - node.lineno + 1 for node in imports) <= MAX_LINES
    assert module.stem not in VAGUE_NAMES


def test_every_folder_with_modules_is_a_room_of_the_layers():
    folders = {path.parent.name for path in ROOT.glob("*/__init__.py")}
    assert folders == {*ROOMS, "tests"}


def test_every_package_is_installed():
    setup = PROJECT["tool"]["setuptools"]
    folders = {path.parent for path in MODULES if path.name == "__init__.py"}
    assert {name: ROOT / folder for name, folder in setup["package-dir"].items()} == {
        "showhow" if room == "showhow" else f"showhow.{room}": ROOT / room for room in ROOMS
    }
    assert set(setup["packages"]) == {package_of(folder) for folder in folders}


def package_of(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts if parts[0] == "showhow" else ("showhow", *parts))


def test_a_class_name_occurs_once():
    modules = defaultdict(list)
    for module in MODULES:
        for node in ast.parse(module.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                modules[node.name].append(str(module.relative_to(ROOT)))
    # The interface for other programs has the users' words, such as World and Library, once more.
    inside = {
        name: [place for place in places if not place.startswith("interface/")] or places
        for name, places in modules.items()
    }
    assert {name: places for name, places in inside.items() if len(places) > 1} == {}


def test_a_variable_is_named_for_what_it_holds():
    vague = Counter[str]()
    for module in MODULES:
        for node in ast.walk(ast.parse(module.read_text(encoding="utf-8"))):
            is_bound = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
            if is_bound and node.id in {"found", "told", "heard", "wanted", "each"}:
                vague[str(module.relative_to(ROOT))] += 1
    # Fields of stored JSON: GenerationOptions.each, Count.each, SourceCallCheck.told.
    stored = {"fiction/questions/expressions.py": 1, "fiction/universe/options.py": 1, "worlds/open.py": 1}
    assert vague == stored


def test_the_table_of_rooms_lists_exactly_the_rooms():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").split("ooms\n", 1)[1].split("\n## ")[0]
    rooms = re.findall(r"^\| `(\w+)/` ", text, flags=re.MULTILINE)
    assert {*rooms, "migrations"} == {*ROOMS, "tests"}


def test_the_files_that_the_architecture_names_exist():
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    rooms = "|".join(ROOMS)
    for name in re.findall(rf"`((?:{rooms})/[\w/]+\.py)", text):
        assert (ROOT / name).is_file(), name


def test_the_documentation_names_every_verb_and_tool():
    for name in VERBS:
        assert f"`showhow {name}" in VERBS_PAGE
    for name in BUILT_IN_TOOLS:
        assert f"| `{name}(" in TOOLS_PAGE
