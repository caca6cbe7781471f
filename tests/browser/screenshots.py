"""Draws the README's pictures: `make screenshots` records a trace, reviews it, and walks through a world."""

import json
import re
import tempfile
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from tests.browser.annotator import Annotator
from tests.browser.conftest import launch
from tests.browser.server import Showhow
from tests.browser.visitor import Visitor
from worlds.family import Family, true_family
from worlds.generator.blocks import UNIVERSE
from worlds.generator.items import Items
from worlds.universe.universe import Universe

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
            answer = take_question(ada.page, showhow)
            record(ada)
            picture(ada, "annotate")
            hand_in(ada, answer)
            ada.page.goto(f"{showhow.url}/review?you=grace&project=Fictional+people")
            ada.page.get_by_role("button", name="Approve").wait_for()
            ada.settle()
            picture(ada, "review")
            walk(ada.page, showhow)
            picture(ada, "worlds", tall=1240)
        finally:
            browser.close()
            showhow.stop()


def take_question(page: Page, showhow: Showhow) -> str:
    """Out of the default world's questions one about a named person, which text and graph both answer; its answer."""
    rows = json.loads(showhow.run("world", "questions", "default", "--kind", "who", "--limit", "1000", "--json"))
    asked = re.compile(r"Who is the \w+ of [A-Z]\w+ [A-Z]\w+\?")
    row = next(row for row in rows if asked.fullmatch(row["text"]) and row["needs"][:2] == [["text"], ["graph"]])
    ada = Visitor(page, showhow.url, "ada")
    ada.look("default", view="questions", question=row["id"])
    ada.press("Alt+A")
    page.wait_for_selector(".st-key-acts")
    page.wait_for_load_state("networkidle")
    ada.settle()
    return str(row["answers"][0]["text"])


def record(ada: Annotator) -> None:
    """The question by text and by graph."""
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
    ada.saved(lambda: ada.thought.fill("The article named one; the graph should have it, too."))


def hand_in(ada: Annotator, answer: str) -> None:
    """Run the query, answer and submit."""
    ada.run()
    ada.page.keyboard.press("Control+Shift+Enter")
    ada.settle()
    ada.value(ada.steps.last, answer)
    ada.page.keyboard.press("Control+Enter")
    ada.page.get_by_text("Submitted.").wait_for()


def walk(page: Page, showhow: Showhow) -> None:
    """A person of a world whose facts are spread over its sources, with grandparents and children."""
    showhow.run("world", "generate", "isles", "--people", "500", "--seed", "7", "--split", "text=50,graph=35,web=15")
    universe = Universe.load(showhow.home / "worlds" / "isles" / UNIVERSE)
    everybody = (true_family(universe, Items(universe).person(row)) for row in range(len(universe)))
    chosen = max((family for family in everybody if family and _fits(family)), key=lambda family: len(family.people))
    ada = Visitor(page, showhow.url, "ada")
    ada.look("isles", view="look", entity=chosen.centre)


def _fits(family: Family) -> bool:
    """Whether the tree is as wide as a narrow window."""
    grown = family.children(family.centre)
    return len(family.siblings) <= 2 and 1 <= len(grown) <= 2 and len(family.parents) > 3


def picture(ada: Annotator, name: str, tall: int = 0) -> None:
    """One picture a size, `tall` pixels high if more is to be seen."""
    for suffix, (width, height) in SIZES.items():
        ada.page.set_viewport_size({"width": width, "height": tall or height})
        ada.page.wait_for_timeout(600)
        ada.page.screenshot(path=DOCS / f"{name}{suffix}.png")
    ada.page.set_viewport_size({"width": 1440, "height": 900})


if __name__ == "__main__":
    main()
