"""Roles in the browser: what an annotator is offered, and two reviewers who decide on the same trace."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from showhow.db.database import Database
from showhow.db.people import users
from showhow.db.questions import projects
from showhow.db.traces import recording, traces
from showhow.db.traces.recording import NewStep, TraceAnswers
from tests.browser.conftest import open_context
from tests.browser.server import Showhow
from tests.browser.settled import PATIENCE, settle

PROJECT = "Fictional people"
REASON = "the second step names no source"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    showhow = Showhow(tmp_path_factory.mktemp("roles") / "home")
    showhow.appoint("grace", "rita")
    showhow.run("users", "add", "cleo")
    showhow.start()
    yield showhow
    showhow.stop()


@pytest.fixture
def store(home: Showhow) -> Iterator[Database]:
    database = Database(f"sqlite:///{home.home / 'showhow.db'}")
    yield database
    database.close()


def open_page(page: Page, home: Showhow, path: str, person: str, **parameters: str) -> None:
    page.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    query = "".join(f"&{name}={value}" for name, value in parameters.items())
    page.goto(f"{home.url}/{path}?you={person}&project={PROJECT.replace(' ', '+')}{query}")
    page.wait_for_selector(".st-key-masthead")
    settle(page)


def picture(page: Page, name: str) -> None:
    if folder := os.environ.get("SHOWHOW_SCREENSHOTS"):
        page.screenshot(path=Path(folder) / f"{name}.png")


@pytest.mark.long
def test_an_annotator_can_start_no_verification_no_freezing_and_no_export(page: Page, home: Showhow):
    open_page(page, home, "verify", "cleo")
    expect(page.locator(".st-key-verify button")).to_be_disabled()
    expect(page.get_by_text("Reviewers and administrators can verify them.")).to_be_visible()
    picture(page, "annotator_verify")
    page.keyboard.press("Alt+v")
    settle(page)
    expect(page.get_by_role("dialog")).to_have_count(0)
    open_page(page, home, "library", "cleo")
    expect(page.locator(".st-key-freeze")).to_have_count(0)
    expect(page.locator(".st-key-export button").first).to_be_disabled()
    picture(page, "annotator_library")
    open_page(page, home, "library", "cleo", view="drift")
    expect(page.locator(".st-key-run_drift button").first).to_be_disabled()
    open_page(page, home, "tools", "cleo", view="offered")
    expect(page.get_by_text("An administrator can change the tools of a project.")).to_be_visible()
    picture(page, "annotator_tools")


def test_of_two_reviewers_one_decides_and_the_other_reads_what_happened_and_keeps_the_reason(
    browser: Browser, home: Showhow, store: Database
):
    with store.begin() as session:
        cleo = users.register_user(session, "cleo")
        question = projects.list_questions(session, projects.get_project(session, PROJECT).id)[0]
        trace = recording.start_trace(session, question.id, cleo.id)
        recording.begin_step(session, trace.id, NewStep("The article says so."), seen=1, by=cleo.id)
        session.refresh(trace)
        recording.submit_trace(session, trace.id, TraceAnswers("Ada Reed"), seen=trace.version, by=cleo.id)
    contexts = [open_context(browser) for _ in range(2)]
    grace, rita = (context.new_page() for context in contexts)
    # The list's first trace, which no link names: the list changes as soon as the other decides.
    open_page(grace, home, "review", "grace")
    open_page(rita, home, "review", "rita")
    rita.locator(".st-key-decision input").fill(REASON)
    grace.locator(".st-key-approve button").click()
    expect(grace.get_by_text("Approved. The trace is a demonstration now.")).to_be_visible()
    rita.locator(".st-key-return button").click()
    refusal = "This trace was approved by grace after you opened it; look at it, then decide."
    expect(rita.get_by_text(refusal)).to_be_visible()
    expect(rita.locator(".st-key-decision input")).to_have_value(REASON)
    picture(rita, "second_reviewer")
    with store.read() as session:
        assert traces.load_trace(session, trace.id).trace.status == "approved"
    # Now rita has read the newer state, and decides otherwise.
    settle(rita)
    rita.locator(".st-key-return button").click()
    expect(rita.get_by_text("Returned to its author.")).to_be_visible()
    with store.read() as session:
        record = traces.load_trace(session, trace.id)
    assert (record.trace.status, record.judgements[-1].comment) == ("rejected", REASON)
    for context in contexts:
        context.close()
