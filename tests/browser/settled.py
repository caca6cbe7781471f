"""Waiting until a page is drawn and idle."""

from playwright.sync_api import Page, expect

from tests.browser.server import Showhow

PATIENCE = 60_000
"""Milliseconds to wait for a page."""
CONFIRM_NAME = """
new MutationObserver(() => {
  const button = document.querySelector(".st-key-confirm_person button");
  if (button && !button.dataset.pressed) { button.dataset.pressed = "yes"; button.click(); }
}).observe(document, {subtree: true, childList: true});
"""
"""A script for pages: the browser confirms at once that its user is the person that the link names."""
_IDLE_APP = "[data-testid=stApp][data-test-script-state=notRunning]"
_REST = """
() => new Promise(done => {
  const begin = () => {
    // A page that never rests, such as one with a clock, counts as drawn after two seconds.
    const end = setTimeout(finish, 2000);
    let rest = setTimeout(finish, 250);
    const observer = new MutationObserver(() => { clearTimeout(rest); rest = setTimeout(finish, 250); });
    observer.observe(document.body, {subtree: true, childList: true, attributes: true, characterData: true});
    function finish() { observer.disconnect(); clearTimeout(rest); clearTimeout(end); done(); }
  };
  requestIdleCallback(begin, {timeout: 2000});
})
"""
"""A script that waits until the browser is idle and nothing on the page has changed for 250 ms."""


def settle(page: Page) -> None:
    """Wait until no script runs and the page is drawn."""
    expect(page.locator(_IDLE_APP)).to_be_visible(timeout=PATIENCE)
    page.evaluate(_REST)
    expect(page.locator(_IDLE_APP)).to_be_visible(timeout=PATIENCE)


def visit(page: Page, home: Showhow, address: str) -> None:
    """Open the address as Ada, and wait until its page is drawn."""
    page.goto(f"{home.url}{address}{'&' if '?' in address else '?'}you=ada")
    page.wait_for_selector(".st-key-product_header")
    page.wait_for_load_state("networkidle")
    settle(page)
