"""The Review page, from its list to an undone decision: traces of a question side by side, and what stays in sight."""

import os
from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from playwright.sync_api import Locator, Page, expect

from showhow.db.database import Database
from showhow.db.models import Question
from showhow.db.people import users
from showhow.db.questions import projects
from showhow.db.review import review
from showhow.db.runs.runs import trace_version
from showhow.db.traces import recording, traces
from showhow.db.traces.recording import NewStep, StepResult, TraceAnswers
from tests.browser.server import Showhow
from tests.browser.settled import PATIENCE, settle
from tests.browser.test_every_page import find_violations

PROJECT = "Fictional people"
REASON = "step 2 reads the wrong article"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    showhow = Showhow(tmp_path_factory.mktemp("review") / "home")
    showhow.appoint("grace", "ann", "ben")
    showhow.start()
    yield showhow
    showhow.stop()


@pytest.fixture(scope="module")
def store(home: Showhow) -> Iterator[Database]:
    database = Database(f"sqlite:///{home.home / 'showhow.db'}")
    yield database
    database.close()


@pytest.fixture(scope="module")
def questions(store: Database) -> list[Question]:
    with store.read() as session:
        return projects.list_questions(session, projects.get_project(session, PROJECT).id)


def submit(
    store: Database, question: Question, author: str, *titles: str, answer: str, parent: UUID | None = None
) -> UUID:
    """Submit a trace that reads these articles, in a fork of the parent's first step if there is one."""
    with store.begin() as session:
        by = users.register_user(session, author).id
        if parent is None:
            trace = recording.start_trace(session, question.id, by)
        else:
            trace = traces.fork_trace(session, parent, 1, by)
        for title in titles:
            new = NewStep(f"{author} wonders about {title}.", "read", {"title": title})
            step = recording.begin_step(session, trace.id, new, seen=trace.version, by=by)
            recording.complete_step(session, step.id, StepResult(f"{title} is a place. " * 60, {}, None, 0.1), by=by)
            session.refresh(trace)
        recording.submit_trace(session, trace.id, TraceAnswers(answer), seen=trace.version, by=by)
        return trace.id


def status(store: Database, trace_id: UUID) -> str:
    with store.read() as session:
        return traces.load_trace(session, trace_id).trace.status


def open_review(page: Page, home: Showhow, **parameters: object) -> None:
    page.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    query = "".join(f"&{name}={value}" for name, value in parameters.items())
    page.goto(f"{home.url}/review?you=grace&project={PROJECT.replace(' ', '+')}{query}")
    page.wait_for_selector(".st-key-review_filters")
    page.wait_for_load_state("networkidle")
    settle(page)


def picture(page: Page, name: str) -> None:
    """Take pictures of the page in both themes and two widths, where a folder for them is named."""
    if folder := os.environ.get("SHOWHOW_SCREENSHOTS"):
        for theme in ("light", "dark"):
            page.emulate_media(color_scheme=theme)
            for width, height in ((1440, 900), (1024, 900)):
                page.set_viewport_size({"width": width, "height": height})
                settle(page)
                page.screenshot(path=Path(folder) / f"{name}-{theme}-{width}.png")
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": 1440, "height": 900})
        settle(page)


def rows(page: Page) -> Locator:
    return page.locator("[class*='st-key-row_'] button")


def choose(page: Page, label: str, option: str) -> None:
    page.get_by_label(label, exact=True).click()
    page.get_by_role("option", name=option, exact=True).click()
    settle(page)


def is_covered(page: Page, selector: str) -> bool:
    """Whether something lies over the middle of the element, or it is out of the window."""
    return bool(
        page.locator(selector).evaluate(
            """element => { const box = element.getBoundingClientRect();
            const top = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
            return !top || !(element.contains(top) || top.contains(element)); }"""
        )
    )


def compare_the_disputed_question(page: Page) -> None:
    """The question whose answers differ comes first; its traces stand side by side, with what differs marked."""
    expect(rows(page)).to_have_count(3)
    expect(rows(page).first).to_contain_text("bank clerk")
    expect(page.get_by_text("2 answers differ")).to_have_count(1)
    sides = page.get_by_role("region", name="Traces side by side")
    expect(sides.locator("tr.answer td.differs")).to_have_count(2)
    expect(sides.locator("tbody tr", has_text="Bodo is a place").locator("th")).to_contain_text("differs")
    expect(sides.get_by_text("no such step")).to_have_count(1)
    expect(page.get_by_role("button", name="Show step 1: Read")).to_contain_text("ann wonders about Oslo.")
    picture(page, "review-disputed")
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        settle(page)
        assert find_violations(page) == []


def comment_and_open_the_other_trace(page: Page, other: UUID) -> None:
    """Type a comment and leave at once; the other trace has an empty field, and opens expanded as this one was."""
    page.get_by_role("button", name="Expand all").click()
    comment = page.locator(".st-key-decision input")
    comment.fill("Why not Bodo")
    expect(page.locator(".st-key-decision .status")).to_contain_text("Saved")
    comment.press_sequentially("?")
    page.locator(".st-key-decision").get_by_text("ben, submitted").click()
    page.wait_for_function("trace => location.search.includes(trace)", arg=str(other))
    settle(page)
    expect(comment).to_have_value("")
    expect(page.locator(".st-key-decision .status")).to_have_text("")
    expect(page.get_by_role("button", name="Fold all")).to_be_visible()


def scroll_with_the_decision_in_sight(page: Page) -> None:
    page.set_viewport_size({"width": 1024, "height": 600})
    for distance in (150, 500, 5_000):
        page.mouse.move(800, 450)
        page.mouse.wheel(0, distance)
        settle(page)
        for selector in (".gold p >> nth=0", ".st-key-approve button", ".st-key-return button"):
            expect(page.locator(selector)).to_be_in_viewport()
            assert not is_covered(page, selector), (distance, selector)
    picture(page, "review-scrolled")
    page.set_viewport_size({"width": 1440, "height": 900})


def search(page: Page, text: str, count: int) -> None:
    page.get_by_label("Search", exact=True).fill(text)
    page.keyboard.press("Enter")
    expect(rows(page)).to_have_count(count)
    settle(page)


def filter_and_sort(page: Page) -> None:
    search(page, "alder", 1)
    search(page, "", 3)
    choose(page, "Agreement", "Answers agree")
    expect(rows(page)).to_have_count(1)
    choose(page, "Agreement", "Any")
    choose(page, "Sort", "Oldest first")
    expect(rows(page).first).to_contain_text("laboratory technician")
    choose(page, "Author", "ben")
    expect(rows(page)).to_have_count(2)
    choose(page, "Author", "anybody")


def approve_two(page: Page) -> None:
    page.keyboard.press("Alt+l")
    dialog = page.get_by_role("dialog")
    for row in ("ann: A, B", "ben: B, A"):
        dialog.get_by_text(row).click()
        settle(page)
    picture(page, "review-several")
    dialog.get_by_role("button", name="Approve 2 traces").click()
    expect(page.get_by_text("Approved 2 traces")).to_be_visible()
    expect(page.get_by_text("Submitted (3)")).to_be_visible()
    expect(page.get_by_text("Approved (2)")).to_be_visible()
    settle(page)


@pytest.mark.long
def test_a_reviewer_finds_the_disputed_question_compares_decides_in_bulk_and_undoes_it(
    page: Page, home: Showhow, store: Database, questions: list[Question]
):
    alone = submit(store, questions[0], "ann", "Alder Bay", answer="Alder Bay")
    first = submit(store, questions[1], "ann", "Oslo", "Bergen", answer="Bergen")
    second = submit(store, questions[1], "ben", "Oslo", "Bodo", "Bergen", answer="Bodo")
    agreed = [
        submit(store, questions[2], name, "Tromso", answer=answer)
        for name, answer in (("ann", "A, B"), ("ben", "B, A"))
    ]
    open_review(page, home)
    compare_the_disputed_question(page)
    comment_and_open_the_other_trace(page, second)
    scroll_with_the_decision_in_sight(page)
    comment = page.locator(".st-key-decision input")
    open_review(page, home, trace=first)
    expect(comment).to_have_value("Why not Bodo?")
    open_review(page, home)
    expect(comment).to_have_value("Why not Bodo?")
    filter_and_sort(page)
    approve_two(page)
    assert [status(store, trace) for trace in agreed] == ["approved"] * 2
    page.keyboard.press("Alt+z")
    expect(page.get_by_text("Submitted (5)")).to_be_visible()
    assert [status(store, trace) for trace in (alone, *agreed)] == ["submitted"] * 3


def test_a_resubmitted_trace_says_why_it_was_returned_and_what_changed(
    page: Page, home: Showhow, store: Database, questions: list[Question]
):
    returned = submit(store, questions[3], "ann", "Oslo", "Bergen", answer="Bergen")
    with store.begin() as session:
        ben = users.register_user(session, "ben").id
        review.reject_trace(session, returned, seen=trace_version(session, returned), by=ben, comment=REASON)
    open_review(page, home)
    expect(page.get_by_text("Returned (1)")).to_be_visible()
    again = submit(store, questions[3], "ann", "Bodo", answer="Bodo", parent=returned)
    open_review(page, home, trace=again)
    expect(page.get_by_text("Returned (0)")).to_be_visible()
    expect(page.get_by_text("resubmitted", exact=True)).to_be_visible()
    expect(page.get_by_role("alert").filter(has_text="Returned before by ben")).to_contain_text(REASON)
    expect(page.get_by_text("The first step is the same.")).to_be_visible()
    difference = page.get_by_role("region", name="What changed")
    expect(difference.locator("tbody tr")).to_have_count(2)
    expect(difference.locator("tbody tr").first).to_contain_text("Bergen")
    expect(difference.locator("tbody tr").first).to_contain_text("Bodo")
    picture(page, "review-resubmitted")
    page.keyboard.press("Alt+a")
    expect(page.get_by_text("Approved. The trace is a demonstration now.")).to_be_visible()
    # After a reload the page no longer offers Undo; the reviewer's own decision can still be taken back.
    open_review(page, home, trace=again)
    assert status(store, again) == "approved"
    page.get_by_role("button", name="Take back").click()
    expect(page.get_by_text("Undone: 1 decision.")).to_be_visible()
    assert status(store, again) == "submitted"
