"""`python -m tests.changed [BASE]`: the test files that a change since BASE (main) touches, a line each.

A test file is touched if it, or a module that it imports directly or through others, was changed. Tests that start the
program as a process import little of it; those are in the files marked `long`, which `make test-all` runs.
"""

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def list_touched_tests(root: Path, changed: Iterable[str]) -> list[str]:
    """The test files that import one of the changed files, all paths relative to the root."""
    files = [Path(line) for line in _git(root, "ls-files", "--cached", "--others", "--exclude-standard", "*.py")]
    modules = {_module_name(path): path for path in files}
    imported = {path: {*_list_imports(root, path, modules)} for path in files if (root / path).is_file()}
    reached = {Path(path) for path in changed}
    new = reached
    while new:
        new = {path for path, imports in imported.items() if imports & new} - reached
        reached |= new
    return sorted(str(path) for path in reached & imported.keys() if path.name.startswith("test_"))


def _module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _list_imports(root: Path, file: Path, modules: dict[str, Path]) -> Iterator[Path]:
    """The project's files that a file imports, also inside functions or by name as a text, and its conftest.py."""
    yield from (own for own in modules.values() if own.name == "conftest.py" and file.is_relative_to(own.parent))
    for node in ast.walk(ast.parse((root / file).read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "." in node.value:
            names = [node.value]
        for name in names:
            own = modules.get(name) or modules.get(name.removeprefix("showhow."))
            if own is not None:
                yield own


def _git(root: Path, *arguments: str) -> list[str]:
    return subprocess.run(["git", *arguments], cwd=root, check=True, capture_output=True, text=True).stdout.splitlines()


def main() -> None:
    """Print the touched test files."""
    base = _git(ROOT, "merge-base", "HEAD", sys.argv[1] if len(sys.argv) > 1 else "main")[0]
    changed = [*_git(ROOT, "diff", "--name-only", base), *_git(ROOT, "ls-files", "--others", "--exclude-standard")]
    sys.stdout.write("".join(f"{path}\n" for path in list_touched_tests(ROOT, changed)))


if __name__ == "__main__":
    main()
