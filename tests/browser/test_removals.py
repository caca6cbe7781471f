"""What is named, archived and deleted on the pages, and brought back under Settings."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.asker import Asker
from tests.browser.server import Showhow
from tests.browser.visitor import Visitor

pytestmark = pytest.mark.long

PEOPLE = "Fictional people"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    """Three runs of replay that differ in nothing but the name of one."""
    showhow = Showhow(tmp_path_factory.mktemp("removals"))
    verify = ("verify", "--project", PEOPLE, "--reasoner", "replay", "--limit", "3")
    showhow.run(*verify)
    showhow.run(*verify)
    showhow.run(*verify, "--name", "With repairs", "--note", "after the first week")
    showhow.appoint("ada")
    showhow.start()
    yield showhow
    showhow.stop()


def visit(page: Page, home: Showhow, path: str) -> Visitor:
    ada = Visitor(page, home.url, "ada")
    page.goto(f"{home.url}/{path}{'&' if '?' in path else '?'}you=ada&project={PEOPLE}")
    page.locator(".st-key-masthead").wait_for()
    page.wait_for_load_state("networkidle")
    ada.settle()
    return ada


def put_away(page: Page, ada: Visitor, button: str, act: str) -> None:
    """Archive or delete what the page shows, in its dialog."""
    page.get_by_role("button", name=button, exact=False).first.click()
    dialog = page.get_by_role("dialog", name="Manage")
    dialog.get_by_text("Archive or delete").click()
    dialog.get_by_role("button", name=act).click()
    expect(page.get_by_test_id("stToast").last).to_contain_text("Settings, Archived and deleted, restores it")
    expect(dialog).to_have_count(0)
    ada.settle()


def restore(page: Page, home: Showhow, name: str) -> None:
    ada = visit(page, home, "settings?view=removed")
    row = page.locator("[class*=st-key-removed_]").filter(has_text=name).first
    row.get_by_role("button", name="Restore").click()
    expect(page.get_by_text("Restored:")).to_be_visible()
    ada.settle()


def test_a_run_gets_a_name_and_a_note_is_deleted_and_restored(page: Page, home: Showhow):
    ada = visit(page, home, "verify")
    rows = page.locator(".st-key-list")
    expect(rows).to_contain_text("With repairs")
    expect(page.get_by_text("after the first week").first).to_be_visible()
    rows.get_by_role("button", name=re.compile("default:1")).first.click()
    ada.settle()
    page.get_by_role("button", name="Manage").click()
    dialog = page.get_by_role("dialog", name="Manage")
    dialog.get_by_label("Name", exact=True).fill("Baseline")
    dialog.get_by_label("Note", exact=True).fill("before any repair")
    dialog.get_by_role("button", name="Save").click()
    expect(rows).to_contain_text("Baseline")
    expect(page.get_by_text("before any repair").first).to_be_visible()
    visit(page, home, "compare")
    figures = page.get_by_role("region", name="Figures of each run")
    expect(figures).to_contain_text("Baseline")
    expect(page.get_by_text("after the first week").first).to_be_visible()
    ada = visit(page, home, "verify")
    put_away(page, ada, "Manage", "Delete")
    expect(rows).not_to_contain_text("With repairs")
    restore(page, home, "With repairs")
    visit(page, home, "verify")
    expect(rows).to_contain_text("With repairs")


def test_a_project_is_renamed_deleted_and_restored_with_its_questions(page: Page, home: Showhow):
    ada = visit(page, home, "project")
    page.get_by_role("button", name="Manage").click()
    dialog = page.get_by_role("dialog", name="Manage")
    dialog.get_by_label("Name", exact=True).fill("People of fiction")
    dialog.get_by_role("button", name="Save").click()
    expect(page.locator("h1")).to_have_text("People of fiction")
    page.get_by_role("button", name="Manage").click()
    dialog.get_by_text("Archive or delete").click()
    expect(dialog).to_contain_text(re.compile(r"Project People of fiction with \d+ runs, \d+ traces and \d+ questions"))
    expect(dialog).to_contain_text("The library default:1 keeps its")
    expect(dialog).to_contain_text("30 days")
    dialog.get_by_role("button", name="Delete").click()
    expect(page.locator("h1")).not_to_have_text("People of fiction")
    ada.settle()
    restore(page, home, "People of fiction")
    page.goto(f"{home.url}/project?you=ada&project=People of fiction")
    expect(page.locator("h1")).to_have_text("People of fiction")
    home.run("project", "rename", "People of fiction", PEOPLE)


def test_a_library_and_a_world_are_archived_and_restored(page: Page, home: Showhow):
    ada = visit(page, home, "library?library=default:1")
    put_away(page, ada, "Manage", "Archive")
    expect(page.locator(".st-key-list")).not_to_contain_text("default")
    restore(page, home, "default:1")
    ada = visit(page, home, "worlds?world=default")
    put_away(page, ada, "Manage", "Archive")
    expect(page.get_by_text("There is no world yet.")).to_be_visible()
    assert not (home.home / "worlds" / "default").exists()
    restore(page, home, "World default")
    visit(page, home, "worlds?world=default")
    expect(page.locator("h2.world")).to_have_text("default")


def test_what_is_typed_on_ask_comes_back_after_a_restart(page: Page, home: Showhow):
    ada = Asker(page, home.url, "ada")
    ada.open()
    field = page.get_by_label("Question", exact=True)
    field.fill("Who is the mother of")
    expect(page.get_by_text(re.compile(r"Saved \d"))).to_be_visible()
    port = home.port
    home.stop()
    home.start(port)
    ada.open()
    expect(field).to_have_value("Who is the mother of")
    field.fill("")
    field.press("Tab")
    ada.settle()
