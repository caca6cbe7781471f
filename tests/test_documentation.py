"""The documentation: every command that it shows parses, and its generated pages name all that the code offers."""

import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from showhow.app.cli.main import VERBS, build_command_line
from showhow.benchmarks.__main__ import LONG_MODULES, MODULES
from showhow.fewshot_library.formats import FORMATS
from showhow.reasoners.registry import REASONERS
from showhow.tools.registry import BUILT_IN_TOOLS

ROOT = Path(__file__).resolve().parents[1]
PAGES = [*ROOT.glob("*.md"), *sorted((ROOT / "docs").rglob("*.md"))]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
COMMAND = re.compile(r"^    (?:\.venv/bin/)?((?:showhow|make) .*)$", re.MULTILINE)
INLINE = re.compile(r"`((?:showhow|make) [^`]*)`")


def shown_commands(page: Path) -> list[str]:
    """The commands of blocks, and those in a sentence that show more than a name."""
    text = page.read_text(encoding="utf-8")
    return [*COMMAND.findall(text), *(command for command in INLINE.findall(text) if command.startswith("make "))]


def parse_verb(words: list[str]) -> None:
    """Parse the words after `showhow` as the command line does; typer's error names what does not exist."""
    command: Any = typer.main.get_command(build_command_line(words[0]))
    path = ["showhow"]
    while hasattr(command, "commands"):
        word = words.pop(0)
        assert word in command.commands, f"there is no verb {word!r} in {' '.join(path)}"
        command = command.commands[word]
        path.append(word)
    command.make_context(" ".join(path), words)


def parse_target(words: list[str]) -> None:
    """Check the target and the variables of a `make` command."""
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            assert re.search(rf"^{re.escape(name)}:", MAKEFILE, re.MULTILINE), f"there is no target {name!r}"
            continue
        assert f"$({name})" in MAKEFILE, f"no target reads {name}"
        if name == "ONLY" and value != "name":
            assert value in {*MODULES, *LONG_MODULES}, f"there is no benchmark {value!r}"


def parse_command(command: str) -> None:
    """Check one shown command."""
    program, *words = shlex.split(command.partition(" > ")[0], comments=True)
    parse_verb(words) if program == "showhow" else parse_target(words)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_shown_command_parses(page: Path):
    for command in shown_commands(page):
        try:
            parse_command(command)
        except Exception as error:
            raise AssertionError(f"{command}: {error}") from error


def test_the_readme_points_to_both_examples_that_need_no_world():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    section = next(part for part in readme.split("\n- ") if "docs/how-to/any-task.md" in part)
    assert "SQLite" in section
    assert "MCP" in section


def test_the_pages_show_commands():
    assert sum(len(shown_commands(page)) for page in PAGES) > 40


@pytest.mark.parametrize(
    "command",
    [
        "showhow nothing",
        "showhow world nothing",
        "showhow ask Who --world w --nothing 1",
        "make nothing",
        "make bench ONLY=x",
    ],
)
def test_a_command_that_does_not_exist_is_found(command: str):
    with pytest.raises(Exception, match=r"(?i)no |nothing"):
        parse_command(command)


def test_the_generated_pages_name_everything():
    pages = runpy.run_path(str(ROOT / "docs" / "site_pages.py"))["reference_pages"]()
    for name in VERBS:
        assert f"\n## showhow {name}" in pages["verbs"]
    for name in BUILT_IN_TOOLS:
        assert f"\n## {name}(" in pages["tools"]
    for name in REASONERS:
        assert f"\n## {name}\n" in pages["reasoners"]
    for name in FORMATS:
        assert f"\n| `{name}` |" in pages["formats"]
    settings = (ROOT / "showhow" / "settings.py").read_text(encoding="utf-8")
    variables = set(re.findall(r'values(?:\.get\(|, )"(\w+)"', settings))
    assert set(re.findall(r"^\| `(\w+)` \|", pages["settings"], re.MULTILINE)) == variables


def test_a_broken_link_fails_the_build(tmp_path: Path):
    (tmp_path / "docs").mkdir()
    settings = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    kept = settings.split("\nnav:")[0].replace("hooks: [docs/site_pages.py]\n", "")
    (tmp_path / "mkdocs.yml").write_text(kept, encoding="utf-8")
    build = [Path(sys.executable).with_name("mkdocs"), "build", "--strict"]
    for link, status in (("index.md", 0), ("missing.md", 1)):
        (tmp_path / "docs" / "index.md").write_text(f"# Start\n\n[link]({link})\n", encoding="utf-8")
        done = subprocess.run(build, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stderr


def test_each_statement_about_security_names_tests_that_exist():
    text = (ROOT / "docs" / "explanation" / "security.md").read_text(encoding="utf-8")
    statements = re.findall(r"^- (?:.*\n)(?:  .*\n)*", text, re.MULTILINE)
    for statement in statements:
        names = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", statement)
        assert names or "matter of trust" in statement, statement
        for file, name in names:
            defined = re.search(rf"^(?:async )?def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
            assert defined is not None, f"{file} has no test {name}"
    assert len(statements) == text.count("\n- ")
