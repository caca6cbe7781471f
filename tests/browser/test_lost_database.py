"""The file of the database disappears while a person works; the page keeps what was typed, and nothing is claimed."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.annotator import Annotator
from tests.browser.server import SHOWHOW, Showhow

pytestmark = pytest.mark.long

TYPED = "Who was the mother of this person?"


@pytest.fixture
def home(tmp_path: Path):
    showhow = Showhow(tmp_path / "home")
    showhow.start()
    yield showhow
    showhow.stop()


def test_a_page_keeps_what_was_typed_while_the_database_is_gone_and_goes_on_once_it_is_back(
    page: Page, home: Showhow, tmp_path: Path
):
    ada = Annotator(page, home.url, "ada", "Fictional people")
    ada.wait_for_save(lambda: ada.thought.fill("first"))
    ada.fill("Search for", "mother")
    ada.run()
    backup = tmp_path / "backup.db"
    home.run("db", "backup", str(backup))

    # A serving process holds SQLite's lock, also while nobody works.
    restore = [SHOWHOW, "db", "restore", str(backup)]
    refused = subprocess.run(restore, env=home.environment, capture_output=True, text=True, check=False)
    assert (refused.returncode, "in use" in refused.stderr) == (1, True)

    database = home.home / "showhow.db"
    moved = database.rename(tmp_path / "moved.db")
    ada.thought.fill(TYPED)
    status = page.locator(".status")
    expect(status).to_have_text(re.compile("^Not saved: .*showhow.db was removed or replaced"))
    ada.fill("Search for", "her")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("was removed or replaced while Showhow was using it").first).to_be_visible()
    ada.settle()
    expect(ada.steps).to_have_count(1)
    expect(ada.thought).to_have_value(TYPED)
    assert not database.exists()

    moved.rename(database)
    ada.run()
    expect(ada.steps.last).to_contain_text(TYPED)

    # Another file in its place, as `cp backup showhow.db` after `rm` makes it.
    database.unlink()
    shutil.copy(backup, database)
    ada.thought.fill(TYPED)
    expect(status).to_have_text(re.compile("^Not saved: .*restart Showhow"))
