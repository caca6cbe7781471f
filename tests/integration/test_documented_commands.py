"""The commands of the tutorial and of the how-tos about the default world run as they are written, in their order."""

import re
import shlex
from pathlib import Path

import pytest

from tests.app.cli.in_process import run_in_process
from tests.browser.server import copy_prepared_home

DOCS = Path(__file__).parents[2] / "docs"
PAGES = ("tutorial.md", "how-to/verify-and-fix.md", "how-to/exports.md")


@pytest.mark.parametrize("name", PAGES)
def test_every_command_of_the_page_runs_in_its_order(name: str, tmp_path: Path):
    copy_prepared_home(tmp_path)
    page = (DOCS / name).read_text(encoding="utf-8")
    commands = re.findall(r"^    \.venv/bin/showhow (.*)$", page, re.MULTILINE)
    assert len(commands) > 1
    for command in commands:
        done = run_in_process(tmp_path, *shlex.split(command))
        assert done.returncode == 0, f"showhow {command}: {done.stderr}"
        assert done.stdout.strip(), command


def test_the_readme_points_to_both_examples_that_need_no_world():
    readme = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    section = next(part for part in readme.split("\n- ") if "docs/how-to/any-task.md" in part)
    assert "SQLite" in section
    assert "MCP" in section
