"""Traces of thousands of steps and steps with large observations, drawn in a real browser."""

import time
from collections.abc import Iterator
from uuid import UUID

import pytest
from playwright.sync_api import Page, expect

from showhow.db.database import Database
from showhow.db.models import Trace
from showhow.db.people import users
from showhow.db.questions import projects
from showhow.db.traces import recording
from showhow.db.traces.recording import NewStep, StepResult
from tests.browser.server import Showhow
from tests.browser.settled import PATIENCE, settle

pytestmark = pytest.mark.long

STEPS = 1_000
MAX_NODES = 5_000
COUNT_NODES = """() => {
  const count = (root) => {
    const nodes = [...root.querySelectorAll("*")];
    return nodes.reduce((sum, node) => sum + (node.shadowRoot ? count(node.shadowRoot) : 0), nodes.length);
  };
  return count(document);
}"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    showhow = Showhow(tmp_path_factory.mktemp("long"))
    showhow.appoint("ann", "rob")
    showhow.start()
    yield showhow
    showhow.stop()


def record_trace(home: Showhow, steps: list[tuple[str, dict[str, object]]]) -> UUID:
    """Record a submitted trace of ann with these observations."""
    database = Database(f"sqlite:///{home.home / 'showhow.db'}")
    with database.begin() as session:
        ann = users.register_user(session, "ann")
        project = projects.list_projects(session)[0]
        question = projects.list_questions(session, project.id)[0]
        trace = recording.start_trace(session, question.id, ann.id)
        trace = Trace(question_id=question.id, author_id=ann.id)
        session.add(trace)
        session.flush()
        for position, (text, data) in enumerate(steps, 1):
            step = recording.build_step(
                trace.id, position, NewStep(thought=f"Thought {position}.", tool="read", arguments={"title": "T"})
            )
            recording.apply_result(step, StepResult(text=text, data=data, error=None, latency=0.1))
            session.add(step)
        trace.status, trace.final_answer = "submitted", "It."
        trace_id = trace.id
    database.close()
    return trace_id


def open_trace(page: Page, home: Showhow, trace: UUID, path: str = "review", **query: object) -> float:
    """Open the trace; return the seconds until its steps are drawn."""
    page.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    started = time.monotonic()
    parameters = "".join(f"&{name}={value}" for name, value in query.items())
    page.goto(f"{home.url}/{path}?you=rob&trace={trace}{parameters}")
    page.wait_for_selector("li.step")
    settle(page)
    return time.monotonic() - started


def numbers(page: Page) -> list[int]:
    return [int(text) for text in page.locator("li.step > .number").all_inner_texts()]


@pytest.fixture(scope="module")
def long_trace(home: Showhow) -> UUID:
    return record_trace(home, [(f"Seen {n}.", {}) for n in range(1, STEPS + 1)])


@pytest.mark.parametrize("path", ["review", "ask", ""])
def test_a_trace_of_a_thousand_steps_is_drawn_in_pages(page: Page, home: Showhow, long_trace: UUID, path: str) -> None:
    open_trace(page, home, long_trace, path)
    assert numbers(page) == list(range(1, 51))
    assert page.evaluate(COUNT_NODES) < MAX_NODES
    page.get_by_role("button", name="Later steps").first.click()
    expect(page.get_by_text("Steps 51–100 of 1,000").first).to_be_visible()
    assert numbers(page) == list(range(51, 101))
    page.get_by_label("Number of the step").first.fill("777")
    page.keyboard.press("Enter")
    expect(page.locator("#step-777")).to_be_in_viewport()
    page.get_by_role("button", name="Last").first.click()
    expect(page.get_by_text("Steps 951–1,000 of 1,000").first).to_be_visible()


def test_a_link_to_a_step_opens_its_page(page: Page, home: Showhow, long_trace: UUID) -> None:
    open_trace(page, home, long_trace, step=222)
    expect(page.locator("#step-222.focus")).to_be_in_viewport()
    assert numbers(page) == list(range(201, 251))


def test_large_observations_are_drawn_in_part_and_more_on_request(page: Page, home: Showhow) -> None:
    sentences = [f"Ada Reed laid stone {n}." for n in range(2_500)]
    article = {"title": "Wall", "entity": None, "sentences": sentences, "best": [{"place": 7, "text": sentences[7]}]}
    rows = [[{"kind": "literal", "value": f"{n} {column}"} for column in "abc"] for n in range(1_000)]
    table = {"columns": ["a", "b", "c"], "rows": rows, "boolean": None, "truncated": False}
    trace = record_trace(home, [("Wall", article), ("rows", table)] * 2)
    open_trace(page, home, trace)
    assert page.evaluate(COUNT_NODES) < MAX_NODES
    page.get_by_role("button", name="Expand all").click()
    step = page.locator("#step-1")
    step.get_by_text("The whole article, 2500 sentences").click()
    expect(step.get_by_text("Ada Reed laid stone 99.")).to_be_visible()
    step.get_by_role("button", name="Show 2,000 sentences").click()
    expect(step.get_by_text("Ada Reed laid stone 1999.")).to_be_attached()
    table_step = page.locator("#step-2")
    expect(table_step.get_by_text("999 a")).not_to_be_attached()
    table_step.get_by_role("button", name="Show all 1,000 rows").click()
    expect(table_step.get_by_text("999 a")).to_be_attached()
