"""A question that cannot be answered, from the Annotate page over the Review page to an approved demonstration."""

import json
import re
from collections.abc import Iterator
from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import Page, expect

from tests.browser.annotator import Annotator
from tests.browser.server import Showhow
from tests.browser.settled import settle
from tests.browser.test_review import picture

PROJECT = "Harbours"
FALSE_PREMISE = "This question cannot be answered: its premise is false."


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    showhow = Showhow(tmp_path_factory.mktemp("unanswerable") / "home")
    showhow.appoint("grace", "ann")
    questions = showhow.home / "questions.jsonl"
    record = {"question": "Who is the wife of the King of Alder Bay?", "unanswerable": "false premise"}
    questions.write_text(json.dumps(record) + "\n", encoding="utf-8")
    showhow.run("questions", "import", str(questions), "--project", PROJECT, "--world", "default")
    showhow.start()
    yield showhow
    showhow.stop()


@pytest.mark.long
def test_a_person_says_why_a_question_cannot_be_answered_and_a_reviewer_approves_it(page: Page, home: Showhow) -> None:
    ann = Annotator(page, home.url, "ann", PROJECT)
    ann.wait_for_save(lambda: ann.thought.fill("Is there such a king?"))
    ann.fill("Search for", "King of Alder Bay")
    ann.run()
    page.keyboard.press("Control+Shift+Enter")
    ann.settle()
    reason = page.get_by_label("Cannot be answered", exact=True)
    reason.click()
    page.get_by_role("option", name="False premise").click()
    expect(page.get_by_text(FALSE_PREMISE)).to_be_visible()
    expect(page.get_by_label("Final answer")).to_be_disabled()
    picture(page, "annotate-unanswerable")
    ann.wait_for_save(lambda: page.get_by_label("Final thought").fill("Alder Bay has no king."))
    # What was chosen is part of the draft.
    page.reload()
    page.wait_for_selector("li.step")
    ann.settle()
    expect(page.get_by_text(FALSE_PREMISE)).to_be_visible()
    trace = parse_qs(urlparse(page.url).query)["trace"][0]
    page.keyboard.press("Control+Enter")
    page.wait_for_function("trace => !location.search.includes(trace)", arg=trace)
    page.goto(f"{home.url}/review?you=grace&project={PROJECT}&trace={trace}")
    page.wait_for_selector(".st-key-review_filters")
    page.wait_for_load_state("networkidle")
    settle(page)
    gold = page.locator(".gold")
    expect(gold).to_contain_text(re.compile(rf"Gold answer: {FALSE_PREMISE}.*same set \(F1 1.00\)"))
    expect(gold).to_contain_text(f"Answer: {FALSE_PREMISE}")
    picture(page, "review-unanswerable")
    page.keyboard.press("Alt+a")
    expect(page.get_by_text("Approved. The trace is a demonstration now.")).to_be_visible()
    (exported,) = json.loads(home.run("traces", "list", "--project", PROJECT, "--json"))
    assert (exported["status"], exported["final_answer"]) == ("approved", FALSE_PREMISE)
