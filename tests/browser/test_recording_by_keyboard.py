"""Recording, reviewing and correcting by keyboard: where the focus goes, what a value offers, what an undo returns."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.annotator import Annotator
from tests.browser.server import Showhow
from tests.browser.settled import settle

PROJECT = "Fictional people"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    showhow = Showhow(tmp_path_factory.mktemp("keyboard"))
    showhow.appoint("grace", "ann", "ben")
    showhow.start()
    yield showhow
    showhow.stop()


@pytest.fixture(scope="module")
def person(home: Showhow) -> str:
    """The title of an article about a person."""
    rows = json.loads(home.run("world", "questions", "default", "--kind", "comparative", "--limit", "1", "--json"))
    trace = json.loads(home.run("world", "trace", "default", rows[0]["id"], "--json"))
    return next(str(step["arguments"]["query"]) for step in trace["steps"] if step["tool"] == "wikisearch")


def record_two_steps(ann: Annotator, person: str) -> None:
    """Search for the person, and read the article that a click on its title fills in."""
    ann.thought.fill("Find the article.")
    ann.fill("Search for", person)
    ann.run()
    ann.value(ann.steps.last, person)
    ann.choose("Alt+2")
    ann.thought.fill("Read the article.")
    ann.run()


def go_to_a_field_while_the_form_is_drawn(ann: Annotator, tool_key: str, field: Locator) -> None:
    """Choose a tool and go to a field at once; the form that is drawn anew leaves the focus there."""
    ann.page.keyboard.press(tool_key)
    field.focus()
    # The focus would move within 400 ms of the key.
    ann.page.wait_for_timeout(600)
    ann.settle()
    expect(field).to_be_focused()


def submit(eve: Annotator, answer: str) -> str:
    """Submit the answer; returns the id of the trace."""
    trace = eve.page.url.partition("trace=")[2].partition("&")[0]
    eve.page.keyboard.press("Control+Shift+Enter")
    eve.settle()
    eve.fill("Final answer", answer)
    eve.page.keyboard.press("Control+Enter")
    expect(eve.page.get_by_text("Submitted for review.")).to_be_visible()
    return trace


def open_review(page: Page, home: Showhow, trace: str) -> None:
    page.goto(f"{home.url}/review?you=grace&project=Fictional+people&trace={trace}")
    page.locator(".st-key-decision").wait_for()
    page.wait_for_load_state("networkidle")
    settle(page)


@pytest.mark.long
def test_a_value_offers_its_tools_goes_along_to_another_and_an_undo_gives_the_step_back(
    page: Page, home: Showhow, person: str
):
    ann = Annotator(page, home.url, "ann", PROJECT)
    ann.thought.fill("Find the article.")
    ann.fill("Search for", person)
    step = ann.run()
    # After Run, the next thought can be typed at once; the new observation is announced.
    expect(ann.thought).to_be_focused()
    expect(page.locator(".live")).to_contain_text("Step 1: Search.")

    title = ann.page.get_by_label("Title", exact=True)
    ann.value(step, person)
    expect(page.get_by_label("Search for", exact=True)).to_have_value(person)
    menu = page.get_by_role("group", name=f"Use {person} with")
    expect(menu.get_by_role("button", name="Find id")).to_be_visible()
    menu.get_by_role("button", name="Read").click()
    expect(title).to_have_value(person)
    expect(menu).to_have_count(0)
    ann.settle()
    ann.choose("Alt+3")
    ann.choose("Alt+2")
    expect(page.locator(".st-key-tool_read button").first).to_have_attribute("aria-pressed", "true")
    # The focus is in the first field that is still empty.
    expect(ann.thought).to_be_focused()
    expect(title).to_have_value(person)
    go_to_a_field_while_the_form_is_drawn(ann, "Alt+2", title)
    ann.thought.focus()
    page.keyboard.type("Read the article.")
    step = ann.run()

    page.keyboard.press("Alt+Shift+4")
    expect(step.locator(".stars button.on")).to_have_count(4)
    step.get_by_role("button", name="Rate step 2: 4 of 5").click()
    expect(step.locator(".stars button.on")).to_have_count(0)
    ann.settle()
    page.keyboard.press("Alt+z")
    expect(ann.steps).to_have_count(1)
    ann.settle()
    expect(ann.thought).to_have_value("Read the article.")
    expect(title).to_have_value(person)
    ann.run()

    # An id that is clicked for the answer stands for its name.
    page.keyboard.press("Control+Shift+Enter")
    ann.settle()
    ann.steps.first.locator(".id button.value").first.click()
    expect(page.get_by_label("Final answer")).to_have_value(person)


def test_steps_fold_to_an_outline_that_is_searched_and_copied(page: Page, home: Showhow, person: str):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    ben = Annotator(page, home.url, "ben", PROJECT)
    record_two_steps(ben, person)
    page.get_by_role("button", name="Fold all").click()
    outline = page.get_by_role("button", name="Show step 2: Read")
    expect(outline).to_be_visible()
    expect(page.get_by_text("Read the article.", exact=True)).not_to_be_visible()
    outline.press("Enter")
    expect(page.get_by_text("Read the article.", exact=True)).to_be_visible()
    search = page.get_by_label("Search in the trace")
    search.fill("find the article")
    expect(page.get_by_text("1 of 2 steps")).to_be_visible()
    expect(ben.steps.last).to_be_hidden()
    search.fill("")
    page.get_by_role("button", name="Markdown", exact=True).click()
    expect(page.locator(".live")).to_have_text("Copied.")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert "## Step 2" in copied
    assert f'`read(title="{person}"' in copied


@pytest.mark.long
def test_returned_work_is_found_fixed_and_reviewed_with_its_difference(page: Page, home: Showhow, person: str):
    eve = Annotator(page, home.url, "eve", PROJECT)
    record_two_steps(eve, person)
    open_review(page, home, submit(eve, "nobody"))
    expect(page.get_by_text("another set (F1 0.00)")).to_be_visible()
    expect(page.get_by_role("button", name="Show step 1: Search")).to_be_visible()
    # The key sends the comment as it is typed; the bar stays while the steps scroll.
    page.get_by_role("button", name="Expand all").click()
    page.set_viewport_size({"width": 1440, "height": 500})
    page.mouse.move(700, 400)
    page.mouse.wheel(0, 2_000)
    expect(page.locator(".st-key-approve button")).to_be_in_viewport()
    page.get_by_label("Comment").fill("Step 2 reads the wrong article.")
    page.keyboard.press("Alt+j")
    expect(page.get_by_text("Returned to its author.")).to_be_visible()

    eve = Annotator(page, home.url, "eve", PROJECT)
    page.keyboard.press("Alt+q")
    dialog = page.get_by_role("dialog")
    for tab in ("Returned 1", "Drafts 0", "Submitted 0", "Approved 0", "Skipped 0"):
        expect(dialog.get_by_text(tab, exact=True)).to_be_visible()
    dialog.get_by_role("button", name="Fix").click()
    expect(dialog).to_have_count(0)
    expect(page.get_by_role("alert").filter(has_text="Returned by grace:")).to_contain_text("Step 2 reads the wrong")
    eve.settle()
    eve.thought.fill("Search again.")
    eve.choose("Alt+1")
    eve.fill("Search for", person)
    eve.run()
    open_review(page, home, submit(eve, "nobody else"))
    difference = page.get_by_role("region", name="What changed")
    expect(difference).to_contain_text("Search again.")
    expect(page.get_by_text("The first 2 steps are the same.")).to_be_visible()
