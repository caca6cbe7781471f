"""What a person does on the Ask page."""

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

    def look(self, **place: str) -> None:
        """Open the page, on a trace where one is named."""
        self.page.goto(f"{self._url}/ask?{urlencode({'you': self._name, **place})}")
        self.page.wait_for_selector(".st-key-masthead")
        self.page.wait_for_load_state("networkidle")
        self.settle()

    def settle(self) -> None:
        """Wait until the page is drawn and nothing runs."""
        settle(self.page)

    def ask(self, question: str) -> None:
        """Type the question and ask it by key; the address names another trace then."""
        before = self.page.url
        self.page.get_by_label("Question", exact=True).fill(question)
        self.page.keyboard.press("Control+Enter")
        self.page.wait_for_function(
            "before => location.href !== before && location.search.includes('trace=')", arg=before
        )

    def choose(self, label: str, option: str) -> None:
        """Choose an option of a box."""
        self.page.get_by_label(label, exact=True).click()
        self.page.get_by_role("option", name=option).click()
        self.settle()

    @property
    def trace(self) -> str:
        """The trace that the address names."""
        return self.page.url.partition("trace=")[2].partition("&")[0]

    @property
    def steps(self) -> Locator:
        """The steps in the notebook."""
        return self.page.locator("li.step")

    @property
    def answer(self) -> Locator:
        """The answer, once there is one."""
        return self.page.locator(".conclusion .answer")

    def ended(self, word: str) -> None:
        """Wait until the page says that the run ended so."""
        expect(self.page.get_by_text(f"{word}.", exact=True)).to_be_visible(timeout=LONG)
        self.settle()
