"""Actions of a person on the Annotate page, by keyboard and mouse."""

import re
import time
from collections.abc import Callable
from urllib.parse import quote

from playwright.sync_api import Locator, Page, expect

from showhow.tools.registry import BUILT_IN_TOOLS
from tests.browser.settled import CONFIRM_NAME, PATIENCE, settle

LABELS = {parameter.name: parameter.label for tool in BUILT_IN_TOOLS.values() for parameter in tool.parameters}
"""The label of each argument of the built-in tools; tools that share an argument share its label."""


class Annotator:
    """A person with a browser; every action waits until the page shows its effect."""

    def __init__(self, page: Page, url: str, name: str, project: str) -> None:
        self.page = page
        page.set_default_timeout(PATIENCE)
        # Also for a page outside the context of the fixture.
        page.add_init_script(CONFIRM_NAME)
        expect.set_options(timeout=PATIENCE)
        self.open(f"{url}/?you={quote(name)}&project={quote(project)}")

    def open(self, address: str) -> None:
        """Open a URL and wait for the form."""
        self.page.goto(address)
        self.page.wait_for_selector(".st-key-acts")
        # The components that listen for keys are loaded when they are first drawn.
        self.page.wait_for_load_state("networkidle")
        self.settle()

    def settle(self) -> None:
        """Wait until the page is drawn and no script runs."""
        settle(self.page)

    @property
    def steps(self) -> Locator:
        """The steps in the notebook."""
        return self.page.locator("li.step")

    @property
    def thought(self) -> Locator:
        """The field of the thought."""
        return self.page.get_by_label("Thought", exact=True)

    def show(self, text: str) -> None:
        """Wait until the page shows a question that contains the text."""
        self.page.wait_for_function("text => document.querySelector('h1')?.textContent.includes(text)", arg=text)

    def choose(self, key: str) -> None:
        """Choose a tool by its key."""
        self.page.keyboard.press(key)
        self.settle()

    def fill(self, label: str, text: str) -> None:
        """Type into a field of the form."""
        self.page.locator(".st-key-composer").get_by_label(label, exact=True).fill(text)

    def fill_argument(self, name: str, text: str) -> None:
        """Type the argument of that name into its field."""
        self.fill(LABELS[name], text)

    def run(self) -> Locator:
        """Run the step by its key; returns the new step."""
        before = self.steps.count()
        self.page.keyboard.press("Control+Enter")
        expect(self.steps).to_have_count(before + 1, timeout=PATIENCE)
        self.settle()
        return self.steps.last

    def value(self, step: Locator, text: str) -> None:
        """Click a value of an observation."""
        step.get_by_role("button", name=text, exact=True).first.click()
        self.settle()

    def rate(self, stars: int) -> None:
        """Rate the last observation by the key that works wherever the focus is."""
        self.page.keyboard.press(f"Alt+Shift+Digit{stars}")
        expect(self.steps.last.locator(".stars button.on")).to_have_count(stars)

    def wait_for_save(self, after: Callable[[], None]) -> None:
        """Call `after`, which types text, and wait until the page reports that it is saved."""
        status = self.page.locator(".status")
        before = status.text_content()
        after()
        deadline = time.monotonic() + PATIENCE / 1000
        while status.text_content() == before and time.monotonic() < deadline:
            self.page.wait_for_timeout(100)
        expect(status).to_have_text(re.compile(r"^Saved \d\d:\d\d:\d\d$"))
