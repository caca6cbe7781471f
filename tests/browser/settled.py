"""When a page has come to rest."""

from playwright.sync_api import Page, expect

PATIENCE = 60_000
"""Milliseconds that a page may take for anything."""
# A page on which nothing moves may never be called idle; what is due then happens after two seconds all the same.
_IDLE = "() => new Promise(done => requestIdleCallback(() => setTimeout(done, 250), {timeout: 2000}))"


def settle(page: Page) -> None:
    """Wait until the page is drawn and nothing runs."""
    expect(page.locator("[data-testid=stApp][data-test-script-state=notRunning]")).to_be_visible(timeout=PATIENCE)
    page.evaluate(_IDLE)
