"""A page is its script, or a folder with it, and one entry of PAGES, which has its roles and its shortcuts."""

import re
from pathlib import Path

import pytest

import showhow.app.widgets.queue
import showhow.app.widgets.step_notes
from showhow.app.pages import main
from showhow.app.pages.main import PAGES, PageEntry, help_of, list_pages

PAGES_FOLDER = Path(main.__file__).parent


def test_every_script_of_a_page_is_in_the_navigation():
    beside = {file.name for file in PAGES_FOLDER.glob("*.py")} - {"__init__.py", "main.py"}
    inside = {f"{file.parent.name}/page.py" for file in PAGES_FOLDER.glob("*/page.py")}
    assert {entry.script for entry in PAGES} == beside | inside


@pytest.mark.parametrize("entry", PAGES, ids=lambda entry: entry.name)
def test_the_sheet_of_a_page_lists_every_alt_shortcut_of_its_buttons(entry: PageEntry):
    script = PAGES_FOLDER / entry.script
    files = [script] if script.parent == PAGES_FOLDER else sorted(script.parent.glob("*.py"))
    if entry.name == "annotate":
        files.append(Path(showhow.app.widgets.queue.__file__))
    if entry.name in ("annotate", "review"):
        files.append(Path(showhow.app.widgets.step_notes.__file__))
    keys = {key for file in files for key in re.findall(r'"(Alt\+[A-Z])"', file.read_text(encoding="utf-8"))}
    listed = {
        key for keys_of_action in help_of(entry.name).shortcuts for key in re.findall(r"Alt\+[A-Z]\b", keys_of_action)
    }
    assert keys == listed - {"Alt+T"}, "Alt+T is handled by notebook.js"


def test_a_new_page_is_listed_for_users_with_its_role():
    audit = PageEntry("audit", "Audit", ":material/history:", frozenset({"admin"}))
    assert list_pages(["annotator", "admin"], (*PAGES, audit))[-1] is audit
    assert audit not in list_pages(["annotator"], (*PAGES, audit))
    assert [entry.title for entry in list_pages(["annotator"])] == [
        "Annotate",
        "Ask",
        "Judge",
        "Project",
        "Library",
        "Verify",
        "Compare",
        "Worlds",
        "Tools",
        "Settings",
    ]
