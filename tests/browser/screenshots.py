"""Takes the screenshots of the README (`make screenshots`): each page with real data, in two sizes."""

import json
import os
import re
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

from fiction.family import Family, build_universe_family
from fiction.generator.world_files import UNIVERSE_FILE
from fiction.universe.items import ItemCatalog
from fiction.universe.universe import Universe
from tests.browser.annotator import Annotator
from tests.browser.asker import Asker
from tests.browser.conftest import launch, open_context
from tests.browser.librarian import Librarian
from tests.browser.server import PREPARED, Showhow
from tests.browser.settled import settle
from tests.browser.visitor import Visitor
from tools.registry import BUILT_IN_TOOLS

DOCS = Path(__file__).resolve().parents[2] / "docs"
WAY = DOCS / "tutorial"
Gold = dict[str, Any]
SIZES = {"": (1440, 900), "-narrow": (1024, 1100)}


def main() -> None:
    """Record, submit and review one trace, and take a screenshot of each page."""
    DOCS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        os.environ[PREPARED] = folder
        showhow = Showhow(Path(folder) / "shown")
        showhow.appoint("ada", "grace")
        showhow.start()
        browser = launch(playwright)
        try:
            ada = Annotator(open_context(browser).new_page(), showhow.url, "ada", "Fictional people")
            gold = take_question(ada.page, showhow)
            record(ada, gold)
            take_screenshot(ada, "annotate")
            submit_answer(ada, gold)
            ada.page.goto(f"{showhow.url}/review?you=grace&project=Fictional+people")
            ada.page.get_by_role("button", name="Approve", exact=True).wait_for()
            ada.settle()
            take_screenshot(ada, "review")
            open_family(ada.page, showhow)
            take_screenshot(ada, "worlds", tall=1240)
            open_selection(ada.page, showhow, gold["question"]["text"])
            take_screenshot(ada, "library", tall=1320)
            Asker(ada.page, showhow.url, "ada").open(trace=find_replayed_trace(showhow))
            take_screenshot(ada, "ask", tall=1240)
            verify(ada.page, showhow)
            take_screenshot(ada, "verify")
            compare(ada.page, showhow)
            take_screenshot(ada, "compare", tall=1240)
            show_way(browser, Path(folder) / "way")
        finally:
            browser.close()
            showhow.stop()


def take_question(page: Page, showhow: Showhow) -> Gold:
    """A question of the default world that needs an article and the graph, with the steps of its gold trace."""
    rows = json.loads(showhow.run("world", "questions", "default", "--kind", "comparison", "--limit", "1000", "--json"))
    pattern = re.compile(r"Who was born earlier, [A-Z]\w+ [A-Z]\w+ or [A-Z]\w+ [A-Z]\w+\?")
    row = next(row for row in rows if pattern.fullmatch(row["text"]) and row["needs"] == [["text", "graph"]])
    ada = Visitor(page, showhow.url, "ada")
    ada.open("default", view="questions", question=row["id"])
    ada.press("Alt+A")
    page.wait_for_selector(".st-key-acts")
    page.wait_for_load_state("networkidle")
    ada.settle()
    gold: Gold = json.loads(showhow.run("world", "trace", "default", row["id"], "--json"))
    return gold


def record(ada: Annotator, gold: Gold) -> None:
    """Record the steps of the gold trace by hand, and the final thought."""
    for step in gold["steps"]:
        ada.choose(f"Alt+{list(BUILT_IN_TOOLS).index(step['tool']) + 1}")
        ada.thought.fill(step["thought"])
        for name, value in step["arguments"].items():
            ada.fill_argument(name, ", ".join(value) if isinstance(value, list) else value)
        ada.run()
        ada.rate(4 if step["tool"] == "wikisearch" else 5)
    ada.wait_for_save(lambda: ada.thought.fill(gold["trace"]["final_thought"]))


def submit_answer(ada: Annotator, gold: Gold) -> None:
    """Fill in the final answer and submit."""
    ada.page.keyboard.press("Control+Shift+Enter")
    ada.settle()
    ada.fill("Final answer", gold["trace"]["final_answer"])
    ada.page.keyboard.press("Control+Enter")
    ada.page.get_by_text("Submitted for review.").wait_for()


def open_family(page: Page, showhow: Showhow) -> None:
    """Open a person with grandparents and children, in a world whose facts are split over all sources."""
    showhow.run("world", "generate", "isles", "--people", "500", "--seed", "7", "--split", "text=50,graph=35,web=15")
    universe = Universe.load(showhow.home / "worlds" / "isles" / UNIVERSE_FILE)
    families = (build_universe_family(universe, ItemCatalog(universe).person(row)) for row in range(len(universe)))
    largest = max((family for family in families if family and _fits(family)), key=lambda family: len(family.people))
    ada = Visitor(page, showhow.url, "ada")
    ada.open("isles", view="look", entity=largest.centre)


def _fits(family: Family) -> bool:
    """Whether the tree fits into a narrow window."""
    children = family.children(family.centre)
    return len(family.siblings) <= 2 and 1 <= len(children) <= 2 and len(family.parents) > 3


def open_selection(page: Page, showhow: Showhow, question: str) -> None:
    """Open the selection for that question from a version of the default demonstrations."""
    showhow.run("library", "freeze", "people")
    ada = Librarian(page, showhow.url, "ada")
    ada.open("people", view="choose")
    ada.select_for(question)


def find_replayed_trace(showhow: Showhow) -> str:
    """Find a question that replay answers in several steps; returns the id of its trace."""
    return str(_ask_until_replayed(showhow)["trace"])


def find_replayed_question(showhow: Showhow) -> str:
    """Find a question that replay answers in several steps."""
    return str(_ask_until_replayed(showhow)["question"])


def _ask_until_replayed(showhow: Showhow) -> dict[str, Any]:
    rows = json.loads(showhow.run("world", "questions", "default", "--kind", "comparison", "--limit", "1000", "--json"))
    for row in rows:
        with suppress(AssertionError):
            result: dict[str, Any] = json.loads(showhow.run("ask", row["text"], "--world", "default", "--json"))
            if result["steps"] > 2:
                return result
    raise AssertionError("no question of the default world can be answered by following a demonstration")


def verify(page: Page, showhow: Showhow) -> None:
    """Open a verification of replay on some of the default questions."""
    showhow.run("verify", "--project", "Fictional people", "--limit", "60")
    page.goto(f"{showhow.url}/verify?you=ada&project=Fictional+people")
    page.locator(".st-key-verification_sizes").wait_for()
    settle(page)


def compare(page: Page, showhow: Showhow) -> None:
    """Open the comparison of three runs: gold reasoning, the same with spoilt replies, and what retrieval supports."""
    questions = showhow.home / "questions.json"
    questions.write_text(showhow.run("world", "questions", "isles", "--limit", "40", "--json"), encoding="utf-8")
    showhow.run("questions", "import", str(questions), "--project", "Isles", "--world", "isles")
    for reasoner, skills in (("atomr", "oracle"), ("atomr", "faulty:0.2:7:wrong"), ("pdrr", "reader")):
        showhow.run("verify", "--project", "Isles", "--reasoner", reasoner, "--skills", skills)
    runs = [row["id"] for row in json.loads(showhow.run("runs", "list", "--project", "Isles", "--json"))][::-1]
    page.goto(f"{showhow.url}/compare?you=ada&project=Isles&runs={','.join(runs)}&order=losses")
    page.locator(".st-key-compare_choice").wait_for()
    page.wait_for_load_state("networkidle")
    settle(page)


def show_way(browser: Browser, home: Path) -> None:
    """Go the way of a new user on a server of their own, and take the tutorial's pictures."""
    from tests.browser.newcomer import walk  # noqa: PLC0415 - it uses this module's steps

    showhow = Showhow(home)
    showhow.appoint("grace")
    showhow.start()
    try:
        walk(open_context(browser).new_page(), showhow, _take_picture)
    finally:
        showhow.stop()


def _take_picture(page: Page, name: str) -> None:
    WAY.mkdir(exist_ok=True)
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0)
    page.wait_for_timeout(600)
    page.screenshot(path=WAY / f"{name}.png")


def take_screenshot(ada: Annotator, name: str, tall: int = 0) -> None:
    """Take a screenshot of each size, `tall` pixels high if that is given."""
    for suffix, (width, height) in SIZES.items():
        ada.page.set_viewport_size({"width": width, "height": tall or height})
        ada.page.wait_for_timeout(600)
        ada.page.screenshot(path=DOCS / f"{name}{suffix}.png")
    ada.page.set_viewport_size({"width": 1440, "height": 900})


if __name__ == "__main__":
    main()
