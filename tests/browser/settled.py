"""Waiting until a page is drawn and idle."""

from playwright.sync_api import Page, expect

from app.widgets.person import COOKIE_PREFIX

PATIENCE = 60_000
"""Milliseconds to wait for a page."""
CONFIRM_NAME = (
    f"const prefix = '{COOKIE_PREFIX}';"
    """
const you = (new URLSearchParams(location.search).get("you") ?? "").trim();
const bytes = [...new TextEncoder().encode(you)].map((byte) => byte.toString(16).padStart(2, "0"));
if (you) document.cookie = `${prefix}${bytes.join("")}=1; path=/`;
"""
)
"""A script for pages: the browser has confirmed the name in the link before, so that the page does not ask for it."""
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
