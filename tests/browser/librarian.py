"""Actions of a person on the Library page."""

from urllib.parse import urlencode

from playwright.sync_api import Locator

from tests.browser.visitor import Visitor


class Librarian(Visitor):
    """A person with a browser on the Library page."""

    def open(self, library: str = "", **query: str) -> None:
        """Open the page on a version, with further URL parameters."""
        parameters = {"you": self._name, **({"library": library} if library else {}), **query}
        self.page.goto(f"{self._url}/library?{urlencode(parameters)}")
        self.page.wait_for_selector(".st-key-masthead")
        self.page.wait_for_load_state("networkidle")
        self.settle()

    def choose_option(self, label: str, option: str) -> None:
        """Choose an option of a select box."""
        scope = self.dialog if self.dialog.count() else self.page
        field = scope.get_by_label(label, exact=True)
        # A select box that has just opened closes when the page scrolls.
        field.scroll_into_view_if_needed()
        self.settle()
        field.click()
        self.page.get_by_role("option", name=option).click()
        self.settle()

    def select_for(self, question: str) -> Locator:
        """Select demonstrations for a question; returns the picks, each with its reasons."""
        field = self.page.get_by_label("Question", exact=True)
        field.fill(question)
        field.press("Enter")
        picks = self.page.locator("[class*=st-key-pick_]")
        picks.first.locator("table.reasons").wait_for(timeout=60_000)
        self.settle()
        return picks

    def rows(self, table: str) -> list[list[str]]:
        """The texts of the cells of the table of that name."""
        region = self.page.get_by_role("region", name=table)
        region.wait_for(state="attached")
        body = region.locator("tbody tr")
        return [row.locator("td").all_text_contents() for row in body.all()]
