"""The tutorial, done as it is written, from an empty home to the comparison of two runs."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from showhow.tools.registry import tool_title
from tests.browser.annotator import LABELS
from tests.browser.server import Showhow
from tests.browser.walks.walk import Walk

pytestmark = pytest.mark.long

PROJECT = "Fictional people"
REASON = "Compare steps 2 and 5."
Gold = dict[str, Any]


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Showhow]:
    """A home with the default world, which nobody has used, and a server in a process that the command line starts."""
    showhow = Showhow(tmp_path / "home", preloaded=False)
    yield showhow
    showhow.stop()


def test_the_tutorial_is_done_as_it_is_written(page: Page, fresh: Showhow, pictures: Path):
    walk = Walk("tutorial.md", fresh, page, pictures)
    start(walk)
    gold = record(walk)
    let_review(walk, gold)
    freeze(walk)
    ask(walk)
    compare(walk)
    walk.finish()
    assert walk.not_run == []
    environment = fresh.process_environment
    assert (environment["MALLOC_ARENA_MAX"], environment["OMP_NUM_THREADS"]) == ("2", "1")


def start(walk: Walk) -> None:
    """Start, and open the page as Ada."""
    walk.section("Start")
    walk.serve()
    walk.page.goto(f"{walk.showhow.url}/?you=ada")
    walk.page.wait_for_selector(".st-key-acts")
    walk.page.wait_for_load_state("networkidle")
    walk.settle()
    walk.see("Start the tour")
    walk.picture(walk.page.locator("h1"), walk.page.get_by_label("Thought", exact=True))


def steps(walk: Walk) -> Locator:
    """The steps of the notebook."""
    return walk.page.locator("li.step")


def record(walk: Walk) -> Gold:
    """Record the question that the page names, as its gold trace does, and submit a wrong answer."""
    walk.section("Record")
    walk.go("Project")
    walk.click("Questions")
    walk.fill("Search", walk.quote("Griffith Martinsson"))
    question = walk.quote("Who was born earlier, Griffith Martinsson or Amiah Gilmartin?")
    walk.page.get_by_role("button", name=question, exact=True).click()
    expect(walk.page.locator("h1")).to_have_text(question)
    walk.settle()
    gold = gold_of(walk.showhow, question)
    walk.press("Alt+2")
    walk.press("Alt+1")
    for step in gold["steps"]:
        record_step(walk, step)
    thought = walk.page.get_by_label(walk.name("Thought"), exact=True)
    thought.fill(gold["trace"]["final_thought"])
    walk.picture(steps(walk).last, steps(walk).last.locator(".stars button.on"), thought)
    choose_tool(walk, walk.name("Search"))
    walk.fill("Search for", "too many")
    run_step(walk)
    walk.press("Alt+Z")
    expect(steps(walk)).to_have_count(len(gold["steps"]))
    steps(walk).last.get_by_role("button", name=walk.name("Note")).click()
    walk.fill("Note", "It could say how many there are.")
    walk.page.get_by_role("dialog").get_by_role("button", name="Save").click()
    expect(walk.page.get_by_role("list", name=re.compile("^Notes on step"))).to_contain_text("how many there are")
    walk.settle()
    walk.press("Ctrl+Shift+Enter")
    submit(walk, gold, "Nobody")
    return gold


def gold_of(showhow: Showhow, question: str) -> Gold:
    """The gold trace of a question of the default world."""
    rows = json.loads(showhow.run("world", "questions", "default", "--limit", "1000", "--json"))
    (number,) = [row["id"] for row in rows if row["text"] == question]
    gold: Gold = json.loads(showhow.run("world", "trace", "default", number, "--json"))
    return gold


def record_step(walk: Walk, step: Gold) -> None:
    """Record one step by the button of its tool, and rate it."""
    thought = walk.page.get_by_label("Thought", exact=True)
    thought.fill(step["thought"])
    choose_tool(walk, tool_title(step["tool"]))
    for name, value in step["arguments"].items():
        text = ", ".join(value) if isinstance(value, list) else value
        walk.page.locator(".st-key-composer").get_by_label(LABELS[name], exact=True).fill(text)
    run_step(walk)
    walk.page.keyboard.press("5")
    expect(steps(walk).last.locator(".stars button.on")).to_have_count(5)


def choose_tool(walk: Walk, title: str) -> None:
    """Press the button of a tool, which also says what the tool does."""
    named = re.compile(rf"^{re.escape(title)} [A-Z]")
    walk.page.locator(".st-key-tools").get_by_role("button", name=named).first.click()
    walk.settle()


def run_step(walk: Walk) -> None:
    before = steps(walk).count()
    walk.press("Ctrl+Enter")
    expect(steps(walk)).to_have_count(before + 1)
    walk.settle()


def submit(walk: Walk, gold: Gold, answer: str) -> None:
    """Write the answer into the open form, and submit it."""
    form = walk.page.locator(".st-key-composer")
    form.get_by_label("Final thought", exact=True).fill(gold["trace"]["final_thought"])
    form.get_by_label("Final answer", exact=True).fill(answer)
    walk.page.keyboard.press("Control+Enter")
    expect(walk.page.get_by_text("Submitted for review.")).to_be_visible()


def let_review(walk: Walk, gold: Gold) -> None:
    """Ada makes Grace a reviewer, who returns the trace; Ada fixes it, and Grace approves it."""
    page = walk.page
    walk.section("Review")
    appoint_grace(walk)
    return_with_a_reason(walk)
    walk.open("ada", PROJECT)
    page.get_by_role("button", name=re.compile(rf"{walk.name('My work')}.*1 returned")).click()
    walk.settle()
    walk.click("Fix")
    page.wait_for_url("**trace=**")
    walk.settle()
    walk.press("Ctrl+Shift+Enter")
    field = page.get_by_label("Final answer", exact=True)
    expect(field).to_have_value("Nobody")
    walk.picture(page.get_by_text(REASON), field)
    submit(walk, gold, gold["trace"]["final_answer"])
    approve(walk)


def appoint_grace(walk: Walk) -> None:
    page = walk.page
    walk.go("Project")
    walk.click("Members")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label(walk.name("Add or change")).fill("grace")
    page.get_by_role("option", name="Add: grace").click()
    dialog.get_by_role("button", name=walk.name("reviewer")).click()
    walk.settle()
    walk.click("Save")
    expect(dialog.get_by_text("you=grace")).to_be_visible()


def return_with_a_reason(walk: Walk) -> None:
    page = walk.page
    walk.open("grace", PROJECT)
    walk.go("Review")
    comment = page.locator("[class*='st-key-comment_'] :is(textarea, input)").first
    comment.fill(REASON)
    comment.blur()
    walk.settle()
    walk.picture(comment, page.get_by_text("Gold answer:"), page.get_by_text("Nobody"), steps(walk))
    walk.click("Return")
    expect(page.get_by_text("Returned to its author.")).to_be_visible()


def approve(walk: Walk) -> None:
    """Look at the history, approve the trace, take that back, and approve it again."""
    page = walk.page
    walk.open("grace", PROJECT)
    walk.go("Review")
    walk.click("History")
    history = page.get_by_role("dialog").get_by_label("History of the trace")
    expect(history).to_contain_text("forked another trace at step 5")
    page.keyboard.press("Escape")
    expect(history).to_be_hidden()
    # The closed dialog gives the focus back, and the button would show its key.
    page.evaluate("document.activeElement.blur()")
    walk.picture(page.get_by_text("Gold answer:"), page.get_by_text("same set"), steps(walk))
    walk.click("Approve")
    expect(page.get_by_text("Approved. The trace is a demonstration now.")).to_be_visible()
    walk.click("Undo")
    expect(page.get_by_text("Undone: 1 decision.")).to_be_visible()
    walk.click("Approve")


def freeze(walk: Walk) -> None:
    walk.section("Freeze")
    walk.go("Library")
    walk.click("Freeze a version")
    walk.fill(walk.name("Name"), "ours")
    walk.click("Freeze")
    walk.page.wait_for_url("**library=ours**")
    walk.settle()
    walk.picture(walk.page.get_by_text("61 demonstrations"))
    assert "61" in walk.run()


def ask(walk: Walk) -> None:
    walk.section("Ask")
    question = re.search(r": (.*\?) \(", walk.run())
    assert question is not None
    walk.open("ada", PROJECT)
    walk.go("Ask")
    page = walk.page
    page.get_by_label(walk.name("Library"), exact=True).click()
    page.get_by_role("option", name="ours").first.click()
    walk.settle()
    page.get_by_label(walk.name("Question"), exact=True).fill(question[1])
    walk.press("Ctrl+Enter")
    answer = page.locator(".conclusion .answer")
    expect(answer).to_be_visible(timeout=180_000)
    walk.settle()
    walk.picture(answer, steps(walk))
    walk.click("Fix this")
    expect(page.get_by_label("Thought", exact=True)).to_be_visible()


def compare(walk: Walk) -> None:
    walk.section("Compare")
    walk.run()
    walk.open("ada", PROJECT)
    walk.go("Compare")
    page = walk.page
    figures = page.get_by_role("region", name="Figures of each run").locator("tbody tr")
    expect(figures).to_have_count(2)
    for row in figures.all():
        # The questions, and the score with its interval.
        expect(row.locator("td").nth(1)).to_have_text("12")
        expect(row.locator("td").nth(2)).to_have_text(re.compile(r"^\d\.\d+ \[\d\.\d+, \d\.\d+\]$"))
    walk.picture(figures.first, figures.last, page.get_by_role("region", name="Differences from the baseline"))
