"""Away from the happy path: a stopped server, a narrow window, another theme, and help where one is."""

import signal
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.conftest import open_context
from tests.browser.server import Showhow
from tests.browser.settled import PATIENCE, settle, visit

pytestmark = pytest.mark.long

AWAY = "Showhow's server is not running"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    showhow = Showhow(tmp_path_factory.mktemp("away"))
    showhow.appoint("ada")
    showhow.start()
    yield showhow
    showhow.stop()


def test_a_page_says_that_the_server_is_stopped_and_goes_on_when_it_runs_again(browser: Browser, home: Showhow):
    context = open_context(browser)
    page = context.new_page()
    visit(page, home, "/ask")
    closed: list[str] = []
    home.stop(signal.SIGKILL)
    alert = page.get_by_role("alert").filter(has_text=AWAY)
    expect(alert).to_be_visible(timeout=PATIENCE)
    expect(alert).to_contain_text("goes on by itself")
    expect(page.get_by_text("connected to the internet")).to_have_count(0)
    home.start(home.port)
    expect(alert).to_have_count(0, timeout=PATIENCE)
    # The page has run on the new server, and stays connected to it.
    page.on("console", lambda message: closed.append(message.text) if "1006" in message.text else None)
    settle(page)
    page.get_by_role("link", name="Library").click()
    expect(page.locator("h1")).to_have_text("Library")
    assert closed == []
    context.close()


def test_an_idle_page_stays_connected_after_a_restart(browser: Browser, home: Showhow):
    context = open_context(browser)
    page = context.new_page()
    visit(page, home, "/tools")
    home.stop()
    home.start(home.port)
    with page.expect_websocket(timeout=PATIENCE) as opened:
        pass
    # A connection without a message would be closed after ten seconds.
    opened.value.wait_for_event("framesent", timeout=PATIENCE)
    opened.value.wait_for_event("framereceived", timeout=PATIENCE)
    context.close()


@pytest.mark.parametrize("width", [1280, 1024, 800, 390])
def test_the_open_page_is_named_in_the_navigation_at_any_width(browser: Browser, home: Showhow, width: int):
    context = open_context(browser)
    page = context.new_page()
    page.set_viewport_size({"width": width, "height": 844})
    for name, title in (("worlds", "Worlds"), ("", "Annotate"), ("settings", "Settings")):
        visit(page, home, f"/{name}")
        header = page.get_by_test_id("stHeader")
        link = header.locator("[aria-current=page]:not([inert] *)")
        button = header.get_by_role("button").filter(visible=True).last
        shown = (
            link.inner_text()
            if link.count()
            else button.evaluate(
                "button => ['::before', '::after'].map(part => getComputedStyle(button, part).content).join(' ')"
            )
        )
        assert title in shown, (width, name, shown)
    context.close()


def test_a_theme_is_chosen_for_this_browser_and_holds_on_every_page(browser: Browser, home: Showhow):
    light, dark = "rgb(255, 255, 255)", "rgb(23, 22, 20)"
    context = open_context(browser)
    page = context.new_page()
    page.emulate_media(color_scheme="light")
    visit(page, home, "/tools")
    app = page.get_by_test_id("stApp")
    expect(app).to_have_css("background-color", light)
    page.get_by_role("button", name="You: ada").click()
    page.get_by_role("radio", name="Dark").click()
    expect(app).to_have_css("background-color", dark)
    visit(page, home, "/library?view=choose")
    expect(app).to_have_css("background-color", dark)
    expect(page.locator(".st-key-masthead")).to_have_css("color", "rgb(237, 235, 232)")
    visit(page, home, "/settings?view=you")
    page.get_by_role("radio", name="System").click()
    expect(app).to_have_css("background-color", light)
    page.emulate_media(color_scheme="dark")
    expect(app).to_have_css("background-color", dark)
    context.close()


def test_the_help_is_the_page_of_the_documentation_for_where_one_is(browser: Browser, home: Showhow):
    context = open_context(browser)
    page = context.new_page()
    for name, title in (("", "Annotate"), ("verify", "Verify"), ("settings", "Settings")):
        visit(page, home, f"/{name}")
        page.locator("h1").click()
        page.keyboard.press("?")
        dialog = page.get_by_role("dialog")
        expect(dialog.get_by_role("heading", name=f"The {title} page")).to_be_visible()
        expect(dialog.get_by_text("This help")).to_be_visible()
    with context.expect_page() as opened:
        dialog.get_by_role("link", name="Language models").click()
    documentation = opened.value
    expect(documentation.locator("main h1")).to_have_text("Language models")
    documentation.get_by_role("navigation").get_by_role("link", name="Libraries and the determinantal").click()
    expect(documentation.locator("main h1")).to_contain_text("Libraries")
    picture = documentation.locator("main img").first
    picture.scroll_into_view_if_needed()
    expect(picture).to_have_js_property("complete", value=True)
    assert picture.evaluate("picture => picture.naturalWidth") > 100
    context.close()
