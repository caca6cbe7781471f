"""The how-tos about tools of others and language models, done as they are written, with a scripted model."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.server import Showhow
from tests.browser.walks.walk import Walk
from tests.servers.model import ModelServer, Request, Says

pytestmark = pytest.mark.long

CITIES = [("population", {"city": city, "year": 2020, "unit": "people"}) for city in ("Oslo", "Lima")]
QUERY = "SELECT name FROM customer JOIN sale ON customer = id ORDER BY price DESC LIMIT 1"
COUNT = "SELECT count(*) AS customers FROM customer WHERE city = 'Bern'"


def reply(request: Request) -> Says:
    """Call the tool of a connection check; run one query of the shop, then answer."""
    if request.tools == ["population"]:
        return Says("I look up both cities.", calls=CITIES)
    messages = request.body["messages"]
    asked = max(index for index, message in enumerate(messages) if message["role"] == "user")
    if any(message["role"] == "tool" for message in messages[asked:]):
        return Says(
            calls=[("finish", {"thought": "She it is.", "answers": ["Cora Berg"], "found": True, "steps": [1]})]
        )
    return Says(calls=[("query_shop", {"thought": "I look it up.", "sql": QUERY})])


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(reply) as server:
        yield server


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> Iterator[Showhow]:
    """A home whose server the pages start."""
    showhow = Showhow(tmp_path_factory.mktemp("others") / "home")
    showhow.environment |= {"SHOWHOW_MODEL": "scripted", "SHOWHOW_MODEL_BASE_URL": model.url}
    showhow.appoint("lead", "ann")
    yield showhow
    showhow.stop()


def tools_of_others(walk: Walk, _: ModelServer) -> None:
    assert "wordcount" in walk.run()
    walk.showhow.start()
    walk.section("What tools can reach")
    walk.open("lead", "Words")
    walk.go("Tools")
    walk.click("Available tools")
    expect(walk.page.get_by_text("Wordcount").first).to_be_visible()


def models(walk: Walk, model: ModelServer) -> None:
    if not walk.showhow.port:
        walk.showhow.start()
    walk.open("lead", "Words")
    walk.go("Settings")
    walk.click("Add a profile")
    walk.page.get_by_test_id("stButtonGroup").get_by_text("vLLM", exact=True).click()
    walk.settle()
    for label, text in (("Name", "local"), ("Model", "openai:scripted"), ("Base URL", model.url)):
        walk.fill(label, text)
    walk.fill("Environment variable of the key", "")
    walk.click("Test connection")
    expect(walk.page.get_by_text("openai:scripted answered in")).to_be_visible(timeout=120_000)


def any_task(walk: Walk, _: ModelServer) -> None:
    page = walk.page
    walk.section("Questions over a SQLite database")
    walk.serve()
    walk.open("ann", "Shop")
    walk.go("Annotate")
    expect(page.locator("h1")).to_have_text("Which customer spent most?")
    annotate(walk, QUERY, "Ada Lund")
    walk.open("ann", "Shop")
    expect(page.locator("h1")).to_have_text("How many customers live in Bern?")
    annotate(walk, COUNT, "2")
    for _ in range(2):
        walk.open("lead", "Shop")
        walk.go("Review")
        page.get_by_role("button", name="Approve", exact=True).click()
        expect(page.get_by_text("Approved. The trace is a demonstration now.")).to_be_visible()
    assert "Cora Berg" in walk.run()

    walk.section("A support inbox behind an MCP server")
    walk.run()
    walk.showhow.stop()
    walk.showhow.start()
    walk.open("ann", "Inbox")
    expect(page.locator("h1")).to_have_text("Triage this message.")
    # A server that starts slowly is offered at the next look.
    if not page.get_by_role("button", name="Inbox find messages").count():
        page.reload()
        walk.settle()

    def choose(_: Locator) -> None:
        for field, value in (("Urgency", "high"), ("Team", "operations")):
            page.get_by_role("radiogroup", name=walk.name(field)).get_by_text(value, exact=True).click()
            walk.settle()

    submit(walk, "Word", "down", choose)
    walk.section("Without a model")
    assert "1" in walk.run().splitlines()


def annotate(walk: Walk, query: str, answer: str) -> None:
    """Record the query, and submit the answer to the open question."""
    submit(walk, "Sql", query, lambda form: form.get_by_label("Final answer", exact=True).fill(answer))


def submit(walk: Walk, field: str, text: str, answer: Callable[[Locator], None]) -> None:
    """Record one step with the first tool of the project, and submit the answer."""
    page = walk.page
    form = page.locator(".st-key-composer")
    form.get_by_label("Thought", exact=True).fill("I look it up.")
    form.get_by_role("textbox", name=field, exact=True).fill(text)
    page.keyboard.press("Control+Enter")
    expect(page.locator("li.step")).to_have_count(1)
    walk.settle()
    page.keyboard.press("Control+Shift+Enter")
    walk.settle()
    answer(form)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Submitted for review.")).to_be_visible()


WALKS: dict[str, Callable[[Walk, ModelServer], None]] = {
    "how-to/tools-of-others.md": tools_of_others,
    "how-to/models.md": models,
    "how-to/any-task.md": any_task,
}
NOT_RUN = {"how-to/tools-of-others.md": 2, "how-to/models.md": 1}
"""How many blocks of a page are left out, each with its reason in the page."""


@pytest.mark.parametrize("name", WALKS)
def test_the_page_is_done_as_it_is_written(name: str, page: Page, home: Showhow, model: ModelServer, pictures: Path):
    walk = Walk(name, home, page, pictures)
    WALKS[name](walk, model)
    walk.finish()
    assert len(walk.not_run) == NOT_RUN.get(name, 0), walk.not_run
