"""What holds on every page: no serious accessibility violation, one primary act, a header, both themes."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from showhow.app.pages.main import PAGES
from tests.browser.conftest import CONFIRM_NAME
from tests.browser.server import Showhow
from tests.browser.settled import settle, visit

pytestmark = pytest.mark.long

VIEWS = {
    "project": ("questions", "answers", "agreement", "settings"),
    "library": ("overview", "choose"),
    "worlds": ("look", "query", "questions"),
    "tools": ("offered",),
}
"""Views that are checked besides the one with which a page opens."""
ADDRESSES = [
    f"/{'' if entry is PAGES[0] else entry.name}{f'?view={view}' if view else ''}"
    for entry in PAGES
    for view in ("", *VIEWS.get(entry.name, ()))
]
SOLID_BUTTONS = """
() => [...document.querySelectorAll('[data-testid=stMain] button[kind=primary]')]
  .filter(button => button.offsetParent && !button.hasAttribute('aria-pressed')).length
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    showhow = Showhow(tmp_path_factory.mktemp("pages"))
    showhow.appoint("ada")
    showhow.start()
    yield showhow
    showhow.stop()


def find_violations(page: Page) -> list[tuple[str, str, str]]:
    """The serious violations of accessibility, and skipped levels of headings: address, rule, element."""
    return [
        (page.url, violation["id"], violation["nodes"][0]["html"])
        for violation in Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
        if violation["impact"] in ("serious", "critical") or violation["id"] == "heading-order"
    ]


def measure_brightness(page: Page) -> str:
    return str(page.evaluate("getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"))


def test_every_page_can_be_read_in_both_themes_by_a_screen_reader_and_in_a_narrow_window(
    browser: Browser, home: Showhow
):
    context = browser.new_context(viewport={"width": 1440, "height": 900}, has_touch=True)
    context.add_init_script(CONFIRM_NAME)
    page = context.new_page()
    failures: list[str] = []
    page.on("response", lambda response: failures.append(response.url) if response.status >= 400 else None)
    page.on("console", lambda message: failures.append(message.text) if message.type == "error" else None)
    for address in ADDRESSES:
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": 1440, "height": 900})
        visit(page, home, address)
        assert page.locator("h1").count() == 1, address
        assert page.evaluate(SOLID_BUTTONS) <= 1, address
        assert page.title().endswith(" · Showhow"), address
        assert measure_brightness(page) == "rgb(255, 255, 255)"
        assert find_violations(page) == []
        page.emulate_media(color_scheme="dark")
        settle(page)
        assert measure_brightness(page) != "rgb(255, 255, 255)"
        assert find_violations(page) == []
        page.set_viewport_size({"width": 390, "height": 844})
        settle(page)
        assert page.evaluate("document.querySelector('[data-testid=stMain]').scrollWidth <= innerWidth"), address
    assert failures == []
    visit(page, home, "/")
    # The composer docks at the bottom, with its act in view.
    box = page.locator(".st-key-run button").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 844
    # So is the field of the tool, above the buttons.
    field = page.get_by_label("Search for").bounding_box()
    assert field is not None
    assert field["y"] + field["height"] <= box["y"]
    context.close()


def test_the_name_of_the_project_and_the_words_of_tables_stay_whole(page: Page, home: Showhow):
    visit(page, home, "/tools")
    for width in (1024, 720, 390):
        page.set_viewport_size({"width": width, "height": 844})
        settle(page)
        name = page.get_by_label("Current project")
        expect(name).to_have_value("Fictional people")
        assert name.evaluate("field => field.scrollWidth <= field.clientWidth"), width
        tool = page.get_by_role("region", name="Tool quality").get_by_role("button", name="Write query")
        assert tool.evaluate("button => button.getClientRects().length") == 1, width


def test_the_options_and_the_limits_of_a_question_are_in_one_drawer(page: Page, home: Showhow):
    visit(page, home, "/ask")
    drawers = page.locator(".st-key-ask_fields").get_by_test_id("stPopover")
    expect(drawers).to_have_count(1)
    drawers.get_by_role("button").click()
    drawer = page.get_by_test_id("stPopoverBody")
    for label in ("Minimum confidence", "Steps", "Seconds"):
        expect(drawer.get_by_label(label, exact=True)).to_be_visible()


def test_the_project_stays_chosen_on_the_way_through_the_pages(page: Page, home: Showhow, tmp_path: Path):
    questions = tmp_path / "questions.jsonl"
    questions.write_text(
        '{"question": "What lies behind :material/home: the hill?", "answer": "a town"}\n', encoding="utf-8"
    )
    home.run("questions", "import", str(questions), "--project", "Second", "--world", "default")
    visit(page, home, "/")
    page.get_by_label("Current project").click()
    page.get_by_role("option", name="Second").click()
    question = page.locator("h1")
    expect(question).to_have_text("What lies behind :material/home: the hill?")
    page.get_by_role("link", name="Review").click()
    expect(page.locator("h1")).to_have_text("Review")
    expect(page.get_by_role("link", name="Review")).to_have_attribute("aria-current", "page")
    page.get_by_role("link", name="Annotate").click()
    expect(question).to_have_text("What lies behind :material/home: the hill?")
    # Beside the question, the header and the offer of the tour leave room for the first step.
    bench, asked = page.locator(".st-key-bench").bounding_box(), question.bounding_box()
    assert bench is not None
    assert asked is not None
    assert bench["y"] - asked["height"] <= 150
