"""A project without a world, all of its way in the browser: record, rate, review, freeze, ask, verify."""

from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.browser.annotator import Annotator
from tests.browser.server import Showhow
from tests.browser.settled import PATIENCE, settle
from tests.fixtures.any_task import prepare_examples
from tests.servers.model import ModelServer, Request, Says

pytestmark = pytest.mark.long

COUNT = "SELECT count(*) AS n FROM customer WHERE city = 'Bern'"


def reply(request: Request) -> Says:
    """Count the customers, then answer with the number."""
    messages = request.body["messages"]
    asked = max(index for index, message in enumerate(messages) if message["role"] == "user")
    if any(message["role"] == "tool" for message in messages[asked:]):
        return Says(calls=[("finish", {"thought": "Two.", "answers": ["2"], "found": True, "steps": [1]})])
    return Says(calls=[("query_shop", {"thought": "I count them.", "sql": COUNT})])


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(reply) as server:
        yield server


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory, model: ModelServer) -> Iterator[Showhow]:
    """A server with the examples of the how-to, and a scripted model."""
    showhow = Showhow(tmp_path_factory.mktemp("shop"))
    prepare_examples(showhow.home)
    showhow.environment |= {
        "SHOP": str(showhow.home / "shop.db"),
        "SHOWHOW_MODEL": "scripted",
        "SHOWHOW_MODEL_BASE_URL": model.url,
    }
    showhow.appoint("lead")
    showhow.start()
    yield showhow
    showhow.stop()


def open_page(page: Page, shop: Showhow, name: str, **query: str) -> None:
    page.goto(f"{shop.url}/{name}?{urlencode({'you': 'lead', 'project': 'Shop', **query})}")
    page.wait_for_load_state("networkidle")
    settle(page)


def record_in_browser(page: Page, shop: Showhow) -> None:
    """Ann records one step, rates it and submits the answer."""
    page.set_default_timeout(PATIENCE)
    ann = Annotator(page, shop.url, "ann", "Shop")
    ann.show("Which customer spent most?")
    expect(page.get_by_text("Answer the question from the shop's database")).to_be_visible()
    ann.thought.fill("Who paid the highest price?")
    expect(page.locator(".st-key-composer")).to_contain_text("Run one SELECT on customer(id, name, city)")
    ann.fill("Sql", "SELECT name FROM customer JOIN sale ON customer = id ORDER BY price DESC LIMIT 1")
    expect(ann.run()).to_contain_text("Ada Lund")
    ann.rate(5)
    ann.thought.fill("Where does she live?")
    ann.fill("Sql", "SELECT city FROM customer WHERE name = 'Ada Lund'")
    # What is typed and equals a value on screen is linked to it.
    expect(ann.run()).to_contain_text("(from step 1)")
    step = ann.steps.first
    ann.value(step, "Ada Lund")
    page.get_by_role("group", name="Use Ada Lund with").get_by_role("button", name="Use as answer").click()
    expect(page.get_by_label("Final answer", exact=True)).to_have_value("Ada Lund")
    expect(page.get_by_text("Runs again on its own question.")).to_be_visible()
    ann.settle()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Submitted for review.")).to_be_visible()


def test_questions_over_a_database_go_all_the_way_in_the_browser(page: Page, shop: Showhow, model: ModelServer):
    record_in_browser(page, shop)
    open_page(page, shop, "review")
    page.keyboard.press("Alt+h")
    history = page.get_by_role("dialog").get_by_label("History of the trace")
    expect(history).to_contain_text("ran Query shop")
    expect(history).to_contain_text("submitted")
    page.keyboard.press("Escape")
    expect(history).to_be_hidden()
    page.keyboard.press("Alt+a")
    expect(page.get_by_text("Approved. The trace is a demonstration now.")).to_be_visible()
    shop.run("library", "freeze", "shop", "--project", "Shop")

    # Ask proposes the project of the page, and the library with its demonstrations.
    open_page(page, shop, "ask")
    expect(page.get_by_role("combobox", name="World", exact=True)).to_have_value("Project Shop")
    expect(page.get_by_role("combobox", name="Library", exact=True)).to_have_value("shop:1")
    page.get_by_label("Question", exact=True).fill("How many customers live in Bern?")
    page.get_by_text("Language model", exact=True).click()
    settle(page)
    page.get_by_role("button", name="Ask", exact=False).last.click()
    expect(page.locator(".conclusion .answer")).to_have_text("2")
    assert "SELECT statements" in model.requests[-1].prompt
    assert "Which customer spent most?" in model.requests[-1].prompt
    assert "rticle" not in model.requests[-1].prompt
    page.reload()
    settle(page)
    expect(page.get_by_role("combobox", name="World", exact=True)).to_have_value("Project Shop")

    open_page(page, shop, "verify")
    page.keyboard.press("Alt+v")
    page.get_by_role("dialog").get_by_role("button", name="Verify").click()
    expect(page.locator(".st-key-verification_sizes")).to_be_visible()
    expect(page.locator(".st-key-verification_sizes")).to_contain_text("3")
