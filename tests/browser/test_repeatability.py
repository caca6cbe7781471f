"""A trace says whether it can be repeated, when it is recorded, reviewed and listed; a click links or tries."""

from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from tests.browser.annotator import Annotator
from tests.browser.server import Showhow
from tests.browser.settled import PATIENCE, settle
from tests.fixtures.any_task import prepare_examples
from tests.integration.test_any_task_replay import IN_BERN, open_services, record

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    """A server with the examples of the how-to."""
    showhow = Showhow(tmp_path_factory.mktemp("examples"))
    prepare_examples(showhow.home)
    showhow.environment |= {"SHOP": str(showhow.home / "shop.db")}
    showhow.appoint("lead")
    showhow.start()
    yield showhow
    showhow.stop()


def open_page(page: Page, examples: Showhow, name: str, **query: str) -> None:
    page.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    page.goto(f"{examples.url}/{name}?{urlencode({'you': 'lead', **query})}")
    page.wait_for_load_state("networkidle")
    settle(page)


def test_an_argument_that_needs_a_link_is_linked_by_a_click(page: Page, examples: Showhow):
    ann = Annotator(page, examples.url, "ann", "Inbox")
    ann.show("Triage this message.")
    ann.thought.fill("Who wrote it?")
    ann.fill("Word", "down")
    expect(ann.run()).to_contain_text("ada@lund.example")
    ann.thought.fill("Which plan do they pay for?")
    ann.choose("Alt+2")
    # It is a part of a value alone, so that it is not linked by itself.
    ann.fill("Address", "lund.example")
    ann.run()
    page.keyboard.press("Control+Shift+Enter")
    settle(page)
    said = page.locator(".st-key-repeatability")
    expect(said).to_contain_text("Typed, so the same for other names: Address of step 2")
    said.get_by_role("button", name="Link to “ada@lund.example” of step 1").click()
    expect(said).to_contain_text("Runs again on its own question. Every argument is linked")
    expect(said.get_by_role("button", name="Link to", exact=False)).to_have_count(0)
    for choice in ("high", "operations"):
        page.locator(".st-key-composer").get_by_text(choice, exact=True).click()
        settle(page)
    said.get_by_role("button", name="Try other names").click()
    # The other message of the project has other words around the linked one, and the verdict was judged.
    expect(said).to_contain_text("Not tried with other names")
    expect(said).to_contain_text("Runs again on its own question.")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Submitted for review.")).to_be_visible()
    open_page(page, examples, "review", project="Inbox")
    expect(page.locator(".st-key-repeatability")).to_contain_text("Runs again on its own question.")


def test_the_library_says_tries_and_filters_which_demonstrations_work_for_other_names(page: Page, examples: Showhow):
    services = open_services(examples.home)
    record(services, "Shop", "s2", [("query_shop", {"sql": IN_BERN})], "2")
    services.close()
    open_page(page, examples, "library", project="Shop")
    listed, filters = page.locator(".st-key-list_demonstrations"), page.locator(".st-key-filters_approved")
    filters.get_by_role("combobox", name="Project").click()
    page.get_by_role("option", name="Shop").click()
    settle(page)
    expect(listed).to_contain_text("not tried")
    listed.get_by_role("button", name="Try 1 demonstration with other names").click()
    expect(listed).to_contain_text("runs again on its own question")
    said = page.locator(".st-key-repeatability")
    said.get_by_label("A question with other names").fill("How many customers live in Basel?")
    said.get_by_role("button", name="Try other names").click()
    expect(said).to_contain_text("Works for other names.")
    expect(said).to_contain_text("“How many customers live in Basel?” → 1")
    expect(listed).to_contain_text("works for other names")
    filters.get_by_role("combobox", name="Repeats").click()
    page.get_by_role("option", name="needs a link").click()
    expect(page.get_by_text("No matches. Try fewer filters.")).to_be_visible()
