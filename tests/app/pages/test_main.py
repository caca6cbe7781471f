"""A page is its folder and one line of PAGES."""

from pathlib import Path

from app.pages import main
from app.pages.main import PAGES, PageEntry, list_pages


def test_every_folder_with_a_page_is_in_the_navigation():
    folders = {file.parent.name for file in Path(main.__file__).parent.glob("*/page.py")}
    assert {entry.folder for entry in PAGES} == folders


def test_an_added_page_is_offered_to_those_with_its_role():
    settings = PageEntry("settings", "Settings", ":material/settings:", frozenset({"admin"}))
    assert list_pages(["annotator", "admin"], (*PAGES, settings))[-1] is settings
    assert settings not in list_pages(["annotator"], (*PAGES, settings))
    assert [entry.title for entry in list_pages(["annotator"])] == [
        "Annotate",
        "Ask",
        "Library",
        "Verify",
        "Worlds",
        "Tools",
    ]
