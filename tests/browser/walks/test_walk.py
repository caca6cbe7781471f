"""The walks themselves: what a page says and a walk leaves out fails, and so does what a walk does beside the page."""

from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.server import Showhow
from tests.browser.walks import test_how_tos, test_how_tos_with_a_model
from tests.browser.walks.page import DOCS, Commands, File, NotRun, Picture, parse_page, read_page
from tests.browser.walks.walk import Walk

pytestmark = pytest.mark.long

TEXT = """# A page

Click *Run*, or press Ctrl+Enter.

    .venv/bin/showhow world list

## Files

`tools.toml` says it, for `shop`:

    [functions.shop]

![It](tutorial/it.png)

<!-- not run: it needs
Docker -->

    docker build .
"""


def test_a_page_has_blocks_pictures_names_and_keys_in_its_order():
    before, first, second = parse_page("page.md", TEXT)
    assert (before.items, before.names) == ([], set())
    assert (first.heading, first.items) == ("A page", [Commands((".venv/bin/showhow world list",))])
    assert first.names == {"Run", "Ctrl+Enter"}
    files = [File("tools.toml", "[functions.shop]\n"), Picture("tutorial/it.png"), NotRun("it needs Docker")]
    assert (second.items, second.names) == (files, set())


@pytest.mark.parametrize("mark", ["", "<!-- not run: -->\n\n", "Run `docker`:\n\n"])
def test_a_block_that_nobody_can_do_needs_a_reason(mark: str):
    with pytest.raises(ValueError, match="what is done with this block"):
        parse_page("page.md", f"# A page\n\n{mark}    docker build .\n")


@pytest.fixture
def walk(page: Page, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Walk:
    """A walk of that page, in an empty home without a server."""
    (tmp_path / "page.md").write_text(TEXT, encoding="utf-8")
    monkeypatch.setattr("tests.browser.walks.page.DOCS", tmp_path)
    return Walk("page.md", Showhow(tmp_path, empty=True), page, tmp_path)


def test_a_walk_uses_all_of_the_page_and_nothing_else(walk: Walk):
    with pytest.raises(AssertionError, match="has no 'Start'"):
        walk.name("Start")
    with pytest.raises(AssertionError, match="leaves out Commands"):
        walk.finish()
    assert "no worlds" in walk.run()
    walk.name("Ctrl+Enter")
    with pytest.raises(AssertionError, match=r"nothing in the walk uses \['Run'\]"):
        walk.section("Files")
    walk.name("Run")
    walk.section("Files")
    with pytest.raises(AssertionError, match="no picture"):
        walk.picture()
    walk.page.set_content("<div data-testid=stApp data-test-script-state=notRunning>It</div>")
    walk.picture(walk.page.get_by_text("It"))
    walk.finish()
    assert (walk.not_run, (walk.showhow.home / "tutorial" / "it.png").is_file()) == (["it needs Docker"], True)


def test_every_how_to_is_walked_and_every_picture_is_taken():
    walked = {"tutorial.md", *test_how_tos.WALKS, *test_how_tos_with_a_model.WALKS}
    # Their programs are run by tests/interface/test_documents.py.
    programs = {"how-to/notebook.md", "how-to/python.md"}
    assert {path.relative_to(DOCS).as_posix() for path in (DOCS / "how-to").glob("*.md")} <= walked | programs
    items = [item for page in walked for section in read_page(page) for item in section.items]
    taken = {item.path for item in items if isinstance(item, Picture)}
    # `make rooms` draws the rooms.
    assert {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.png")} == taken | {
        "rooms.png",
        "how-to/notebook.png",
    }
