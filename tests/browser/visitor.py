"""Actions of a person on the Worlds page."""

from urllib.parse import urlencode

from playwright.sync_api import Locator, Page, expect

from tests.browser.settled import PATIENCE, settle


class Visitor:
    """A person with a browser on the Worlds page; every action waits until the page is drawn."""

    def __init__(self, page: Page, url: str, name: str) -> None:
        self.page, self._url, self._name = page, url, name
        page.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)

    def open(self, world: str = "", **query: str) -> None:
        """Open the page on a world, with further URL parameters."""
        parameters = {"you": self._name, **({"world": world} if world else {}), **query}
        self.page.goto(f"{self._url}/worlds?{urlencode(parameters)}")
        self.page.wait_for_selector(".st-key-masthead")
        self.page.wait_for_load_state("networkidle")
        self.settle()

    def settle(self) -> None:
        """Wait until the page is drawn and no script runs."""
        settle(self.page)

    def press(self, key: str) -> None:
        """Press a shortcut."""
        self.page.keyboard.press(key)
        self.settle()

    def click(self, name: str) -> None:
        """Click the button of that name."""
        self.page.get_by_role("button", name=name).first.click()
        self.settle()

    def choose(self, option: str) -> None:
        """Choose an option of a button group."""
        self.page.get_by_test_id("stButtonGroup").get_by_text(option, exact=True).click()
        self.settle()

    @property
    def dialog(self) -> Locator:
        """The open dialog."""
        return self.page.get_by_role("dialog")

    def fill(self, label: str, text: str) -> None:
        """Type into a field, of the open dialog if there is one, and leave the field."""
        scope = self.dialog if self.dialog.count() else self.page
        field = scope.get_by_label(label, exact=True)
        field.fill(text)
        field.press("Tab")
        self.settle()

    def ask(self, sparql: str) -> None:
        """Run a query in the console."""
        self.page.get_by_label("SPARQL").fill(sparql)
        self.page.keyboard.press("Control+Enter")
        self.page.wait_for_timeout(300)
        self.settle()
