"""Actions of a person on the Ask page."""

from urllib.parse import urlencode

from playwright.sync_api import Locator, Page, expect

from tests.browser.settled import PATIENCE, settle

LONG = 90_000
"""Milliseconds for the first run of a server, which loads the encoder."""


class Asker:
    """A person with a browser on the Ask page."""

    def __init__(self, page: Page, url: str, name: str) -> None:
        self.page, self._url, self._name = page, url, name
        page.set_default_timeout(PATIENCE)
        expect.set_options(timeout=PATIENCE)

    def open(self, **query: str) -> None:
        """Open the page with these parameters, such as a trace."""
        self.page.goto(f"{self._url}/ask?{urlencode({'you': self._name, **query})}")
        self.page.wait_for_selector(".st-key-masthead")
        self.page.wait_for_load_state("networkidle")
        self.settle()

    def settle(self) -> None:
        """Wait until the page is drawn and no script runs."""
        settle(self.page)

    def ask(self, question: str) -> None:
        """Type the question, ask it by key, and wait until the URL has another trace."""
        before = self.page.url
        self.page.get_by_label("Question", exact=True).fill(question)
        self.page.keyboard.press("Control+Enter")
        self.page.wait_for_function(
            "before => location.href !== before && location.search.includes('trace=')", arg=before
        )

    def choose(self, label: str, option: str) -> None:
        """Choose an option of a select box."""
        field = self.page.get_by_label(label, exact=True)
        # A select box that has just opened closes when its drawer scrolls.
        field.scroll_into_view_if_needed()
        self.settle()
        field.click()
        self.page.get_by_role("option", name=option).click()
        self.settle()

    @property
    def trace(self) -> str:
        """The trace in the URL."""
        return self.page.url.partition("trace=")[2].partition("&")[0]

    @property
    def steps(self) -> Locator:
        """The steps in the notebook."""
        return self.page.locator("li.step")

    @property
    def answer(self) -> Locator:
        """The answer, once there is one."""
        return self.page.locator(".conclusion .answer")

    def wait_for_ending(self, word: str) -> None:
        """Wait until the page shows that ending of the run."""
        expect(self.page.get_by_text(f"{word}.", exact=True)).to_be_visible(timeout=LONG)
        self.settle()
