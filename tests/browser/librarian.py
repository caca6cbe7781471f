"""What a person does on the Library page."""

from urllib.parse import urlencode

from playwright.sync_api import Locator

from tests.browser.visitor import Visitor


class Librarian(Visitor):
    """A person with a browser on the Library page."""

    def look(self, library: str = "", **place: str) -> None:
        """Open the page on a version, at a view and a place of it."""
        wanted = {"you": self._name, **({"library": library} if library else {}), **place}
        self.page.goto(f"{self._url}/library?{urlencode(wanted)}")
        self.page.wait_for_selector(".st-key-masthead")
        self.page.wait_for_load_state("networkidle")
        self.settle()

    def take(self, label: str, option: str) -> None:
        """Choose an option of a box that opens."""
        where = self.dialog if self.dialog.count() else self.page
        field = where.get_by_label(label, exact=True)
        # A box that has just been opened closes again when the page scrolls.
        field.scroll_into_view_if_needed()
        self.settle()
        field.click()
        self.page.get_by_role("option", name=option).click()
        self.settle()

    def inquire(self, question: str) -> Locator:
        """Ask which demonstrations would be put before a question; gives the picks, each with its reasons."""
        field = self.page.get_by_label("Question", exact=True)
        field.fill(question)
        field.press("Enter")
        picks = self.page.locator("[class*=st-key-pick_]")
        picks.first.locator("table.reasons").wait_for(timeout=60_000)
        self.settle()
        return picks

    def rows(self, table: str) -> list[list[str]]:
        """What stands in the table of that name."""
        body = self.page.get_by_role("region", name=table).locator("tbody tr")
        return [row.locator("td").all_text_contents() for row in body.all()]
