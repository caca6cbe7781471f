"""The tour of a first run, and the parts of the Settings page about the person and the installation."""

import json
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.browser.server import Showhow
from tests.browser.settled import PATIENCE, settle

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    """A server with the default world and an administrator."""
    showhow = Showhow(tmp_path_factory.mktemp("tour"))
    showhow.appoint("grace")
    showhow.run("project", "create", "Empty", "--world", "default")
    showhow.start()
    yield showhow
    showhow.stop()


def open_page(page: Page, home: Showhow, name: str, you: str, **query: str) -> None:
    page.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    page.goto(f"{home.url}/{name}?{urlencode({'you': you, 'project': 'Fictional people', **query})}")
    page.wait_for_load_state("networkidle")
    settle(page)


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()
    settle(page)


def test_the_tour_leads_through_five_pages_ends_and_is_found_again(page: Page, home: Showhow):
    open_page(page, home, "", "nina")
    expect(page.get_by_text("New here?")).to_be_visible()
    press(page, "Start the tour")
    expect(page.get_by_text("Tour, 1 of 5: Record a step.")).to_be_visible()
    for number, path in ((2, "/"), (3, "/"), (4, "/library"), (5, "/ask")):
        press(page, "Next tip")
        expect(page.get_by_text(f"Tour, {number} of 5")).to_be_visible()
        page.wait_for_url(f"{home.url}{path}?**")
    press(page, "Step back")
    page.wait_for_url(f"{home.url}/library?**")
    press(page, "End the tour")
    expect(page.get_by_text("Tour, 4 of 5")).to_have_count(0)
    open_page(page, home, "", "nina")
    expect(page.get_by_label("Thought", exact=True)).to_be_visible()
    expect(page.get_by_text("New here?")).to_have_count(0)
    open_page(page, home, "settings", "nina", view="you")
    press(page, "Take the tour")
    expect(page.get_by_text("Tour, 1 of 5: Record a step.")).to_be_visible()
    expect(page.get_by_label("Thought", exact=True)).to_be_visible()


def test_a_reviewer_is_shown_the_review_page_and_the_tour_can_be_declined(page: Page, home: Showhow):
    open_page(page, home, "settings", "grace", view="you")
    press(page, "Take the tour")
    for _ in range(2):
        press(page, "Next tip")
    page.wait_for_url(f"{home.url}/review?**")
    open_page(page, home, "", "olaf")
    press(page, "No, thanks")
    expect(page.get_by_text("New here?")).to_have_count(0)
    open_page(page, home, "", "olaf")
    expect(page.get_by_label("Thought", exact=True)).to_be_visible()
    expect(page.get_by_text("New here?")).to_have_count(0)


def test_shortcuts_can_be_switched_off_and_the_browser_remembers_it(page: Page, home: Showhow):
    open_page(page, home, "settings", "grace", view="you")
    expect(page.get_by_text("Time zone:")).to_be_visible()
    page.get_by_text("Shortcuts", exact=True).last.click()
    settle(page)
    open_page(page, home, "tools", "grace")
    page.keyboard.press("Alt+2")
    page.keyboard.press("?")
    settle(page)
    expect(page.get_by_role("dialog")).to_have_count(0)
    assert "view=offered" not in page.url
    open_page(page, home, "settings", "grace", view="you")
    page.get_by_text("Shortcuts", exact=True).last.click()
    settle(page)
    open_page(page, home, "tools", "grace")
    page.keyboard.press("Alt+2")
    page.wait_for_url("**view=offered**")


def test_an_administrator_sees_what_is_stored_and_backs_it_up(page: Page, home: Showhow):
    open_page(page, home, "settings", "grace", view="installation")
    storage = page.get_by_label("Storage", exact=True)
    expect(storage).to_contain_text(str(home.home / "showhow.db"))
    expect(storage).to_contain_text("World default")
    expect(storage).to_contain_text("MB")
    expect(page.get_by_text("so live worlds are not asked: set SHOWHOW_CONTACT")).to_be_visible()
    expect(page.get_by_text("all-MiniLM-L6-v2, loaded")).to_be_visible()
    page.get_by_role("button", name="Back up now").first.click()
    expect(page.get_by_text("The last backup in")).to_be_visible()
    manifest = json.loads((home.home / "backups" / "backup.json").read_text(encoding="utf-8"))
    assert [world["name"] for world in manifest["worlds"]] == ["default"]
    open_page(page, home, "settings", "nina", view="installation")
    expect(page.get_by_label("Storage", exact=True)).to_contain_text("World default")
    expect(page.get_by_role("button", name="Back up now")).to_have_count(0)


def test_an_empty_project_says_what_to_do_next(page: Page, home: Showhow):
    open_page(page, home, "", "grace", project="Empty")
    expect(page.get_by_text("This project has no questions yet.")).to_be_visible()
    press(page, "Import questions")
    page.wait_for_url(f"{home.url}/project?**project=Empty**")
    expect(page.get_by_text("This project has no questions yet.")).to_be_visible()
