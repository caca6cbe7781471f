"""Draws the README's pictures: `make screenshots` records a trace on the default world and reviews it."""

import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.browser.annotator import Annotator
from tests.browser.conftest import launch
from tests.browser.server import Showhow

DOCS = Path(__file__).resolve().parents[2] / "docs"
SIZES = {"": (1440, 900), "-narrow": (1024, 1100)}


def main() -> None:
    """Record, submit and review one trace, with a picture of each page."""
    DOCS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        showhow = Showhow(Path(folder))
        showhow.start()
        browser = launch(playwright)
        try:
            ada = Annotator(
                browser.new_page(viewport={"width": 1440, "height": 900}), showhow.url, "ada", "Fictional people"
            )
            record(ada)
            picture(ada, "annotate")
            hand_in(ada)
            ada.page.goto(f"{showhow.url}/review?you=grace&project=Fictional+people")
            ada.page.get_by_role("button", name="Approve").wait_for()
            ada.settle()
            picture(ada, "review")
        finally:
            browser.close()
            showhow.stop()


def record(ada: Annotator) -> None:
    """The first question of the default world, by text and by graph."""
    question = ada.page.locator("h1").inner_text()
    name = question.split(" of ")[-1].rstrip("?")
    ada.thought.fill(f"I need the article about {name} first.")
    ada.fill("query", name)
    found = ada.run()
    ada.rate(4)
    ada.choose("Alt+2")
    ada.value(found, name)
    ada.thought.fill("The article may say it.")
    ada.run()
    ada.rate(5)
    ada.choose("Alt+4")
    ada.value(found, found.locator("button.value").nth(1).inner_text())
    ada.thought.fill("The graph should agree; let me see the query first.")
    ada.run()
    ada.saved(lambda: ada.thought.fill("The first reading is the right one."))


def hand_in(ada: Annotator) -> None:
    """Run the query, answer and submit."""
    ada.run()
    ada.page.keyboard.press("Control+Shift+Enter")
    ada.settle()
    answer = ada.steps.last.locator("button.value").first
    ada.value(ada.steps.last, answer.inner_text())
    ada.page.keyboard.press("Control+Enter")
    ada.page.get_by_text("Submitted.").wait_for()


def picture(ada: Annotator, name: str) -> None:
    """One picture a size."""
    for suffix, (width, height) in SIZES.items():
        ada.page.set_viewport_size({"width": width, "height": height})
        ada.page.wait_for_timeout(600)
        ada.page.screenshot(path=DOCS / f"{name}{suffix}.png")
    ada.page.set_viewport_size({"width": 1440, "height": 900})


if __name__ == "__main__":
    main()
