"""The way of a new user, without the README: record, submit, be returned, fix, be approved, freeze, ask, compare."""

import json
import re
from collections.abc import Callable
from urllib.parse import urlencode

from playwright.sync_api import Page, expect

from tests.browser.annotator import Annotator
from tests.browser.asker import Asker
from tests.browser.screenshots import Gold, find_replayed_question, record, submit_answer, take_question
from tests.browser.server import Showhow
from tests.browser.settled import PATIENCE, settle

PROJECT = "Fictional people"
Picture = Callable[[Page, str], None]
REASON = "The answer is not one of the two people of the question. Compare the dates of steps 3 and 5."


def walk(page: Page, showhow: Showhow, picture: Picture) -> None:
    """Go the way as ada, who annotates, and grace, who reviews; `picture` is called where there is something to see."""
    page.set_default_timeout(PATIENCE)
    ada = Annotator(page, showhow.url, "ada", PROJECT)
    picture(page, "1-first-page")
    gold = take_question(page, showhow)
    record(ada, gold)
    picture(page, "2-record")
    submit_answer(ada, gold | {"trace": gold["trace"] | {"final_answer": "Nobody"}})
    _return(page, showhow, picture)
    _fix(ada, showhow, gold, picture)
    _approve_and_freeze(page, showhow, picture)
    _ask(page, showhow, picture)
    _compare(page, showhow, picture)


def _open(page: Page, showhow: Showhow, name: str, you: str, **query: str) -> None:
    page.goto(f"{showhow.url}/{name}?{urlencode({'you': you, 'project': PROJECT, **query})}")
    page.wait_for_load_state("networkidle")
    settle(page)


def _return(page: Page, showhow: Showhow, picture: Picture) -> None:
    """Grace returns the trace with a reason."""
    _open(page, showhow, "review", "grace")
    comment = page.locator("[class*='st-key-comment_'] :is(textarea, input)").first
    comment.fill(REASON)
    comment.blur()
    settle(page)
    picture(page, "3-return")
    page.keyboard.press("Alt+J")
    expect(page.get_by_text("Returned to its author.")).to_be_visible()


def _fix(ada: Annotator, showhow: Showhow, gold: Gold, picture: Picture) -> None:
    """Ada finds the returned work, corrects the answer and submits again."""
    page = ada.page
    _open(page, showhow, "", "ada")
    page.get_by_role("button", name=re.compile(r"1 returned")).click()
    page.get_by_role("dialog").get_by_role("button", name="Fix").click()
    page.wait_for_url("**trace=**")
    ada.settle()
    expect(page.get_by_text(REASON).first).to_be_visible()
    picture(page, "4-fix")
    submit_answer(ada, gold)


def _approve_and_freeze(page: Page, showhow: Showhow, picture: Picture) -> None:
    _open(page, showhow, "review", "grace")
    picture(page, "5-approve")
    page.keyboard.press("Alt+A")
    expect(page.get_by_text("Approved. The trace is a demonstration now.")).to_be_visible()
    _open(page, showhow, "library", "grace")
    page.keyboard.press("Alt+L")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("ours")
    dialog.get_by_label("Name", exact=True).press("Tab")
    settle(page)
    dialog.get_by_role("button", name="Freeze").click()
    page.wait_for_url("**library=ours**")
    settle(page)
    picture(page, "6-freeze")


def _ask(page: Page, showhow: Showhow, picture: Picture) -> None:
    """Ask a question that a demonstration of the new library shows how to answer."""
    asker = Asker(page, showhow.url, "ada")
    asker.open(project=PROJECT)
    asker.choose("Library", "ours:1")
    asker.ask(find_replayed_question(showhow))
    expect(asker.answer).to_be_visible()
    asker.settle()
    picture(page, "7-ask")


def _compare(page: Page, showhow: Showhow, picture: Picture) -> None:
    """Compare what replay answers with the new library, and with a smaller one."""
    showhow.run("library", "freeze", "few", "--project", PROJECT, "--kind", "comparison")
    for library in ("ours", "few"):
        showhow.run("verify", "--project", PROJECT, "--library", library, "--limit", "30")
    runs = [row["id"] for row in json.loads(showhow.run("runs", "list", "--project", PROJECT, "--json"))][:2][::-1]
    _open(page, showhow, "compare", "ada", runs=",".join(runs))
    page.locator(".st-key-compare_choice").wait_for()
    settle(page)
    picture(page, "8-compare")
