import csv
import json
from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from playwright.sync_api import Page, expect

from showhow.tools.registry import tool_title
from tests.browser.annotator import Annotator
from tests.browser.librarian import Librarian
from tests.browser.server import Showhow

PROJECT = "Mechanics"


class Mechanic(Librarian):
    """A person with a browser on the Tools page."""

    def open(self, library: str = "", **query: str) -> None:
        del library  # The Tools page has no library.
        self.page.goto(f"{self._url}/tools?{urlencode({'you': self._name, **query})}")
        self.page.wait_for_selector(".st-key-masthead")
        self.page.wait_for_load_state("networkidle")
        self.settle()


def report(real: Showhow, *words: str) -> dict:
    quality: dict = json.loads(real.run("tools", "report", *words, "--json"))
    return quality


def record(page: Page, real: Showhow) -> None:
    """Record two calls with low ratings, one of which fails, for a question of a separate project."""
    questions = real.home / "tools_at_work.jsonl"
    questions.write_text(json.dumps({"question": "What is an article about?", "answer": "nothing"}), encoding="utf-8")
    real.run("questions", "import", str(questions), "--project", PROJECT, "--world", "hostile")
    max_ = Annotator(page, real.url, "max", PROJECT)
    max_.thought.fill("Is there anything?")
    max_.choose("Alt+1")
    max_.fill("Search for", "an article about nothing")
    max_.run()
    max_.rate(2)
    max_.thought.fill("Read <b>it</b>.")
    max_.choose("Alt+2")
    max_.fill("Title", "No such article")
    max_.fill("Question", "What is it?")
    expect(max_.run()).to_contain_text("There is no article titled")
    max_.rate(1)


@pytest.mark.long
def test_recorded_calls_are_counted_and_a_rating_links_to_its_step(page: Page, real: Showhow):
    record(page, real)
    max_ = Mechanic(page, real.url, "max")
    max_.open()
    max_.choose_option("Project", PROJECT)
    assert f"of_project={PROJECT}" in page.url
    quality = report(real, "--project", PROJECT)
    rows = {row[0]: row for row in max_.rows("Tool quality")}
    # A wide window shows every column.
    assert page.get_by_role("region", name="Tool quality").evaluate("table => table.scrollWidth <= table.clientWidth")
    calls = {tool_title(row["tool"]): f"{row['calls']:,}" for row in quality["tools"]}
    assert {name: row[1] for name, row in rows.items()} == calls
    (read,) = [row for row in quality["tools"] if row["tool"] == "read"]
    assert read["failures"]["not found"] >= 1
    assert rows["Read"][2].startswith(f"{read['failed']} (")
    with page.expect_download() as download:
        page.get_by_role("button", name="All as CSV").click()
    # The page runs again for a download, and Streamlit may lose a click of its first hundredths of a second.
    max_.settle()
    lines = list(csv.DictReader(download.value.path().read_text(encoding="utf-8").splitlines()))
    assert {row["tool"]: row["not found"] for row in lines}["read"] == str(read["failures"]["not found"])
    # A click on a tool selects it; a reload keeps the selection.
    page.get_by_role("region", name="Tool quality").get_by_role("button", name="Read", exact=True).click()
    expect(page.get_by_role("heading", name="Read", exact=True)).to_be_visible()
    max_.settle()
    page.reload()
    expect(page.locator(".st-key-chart_failures [aria-label*='of not found']").first).to_be_visible()
    max_.settle()
    worst = [w for w in report(real, "--project", PROJECT, "--tool", "read")["worst"] if w["rating"] < 5]
    shown_rows = max_.rows("Observations with the lowest ratings")
    assert [(row[0].count("★"), row[1]) for row in shown_rows] == [(row["rating"], "Read") for row in worst]
    assert page.get_by_text("Read <b>it</b>.").first.is_visible()
    # The link opens the trace with its step in view and highlighted.
    page.get_by_role("region", name="Observations with the lowest ratings").get_by_role("button").first.click()
    focused_step = page.locator("li.step.focus")
    expect(focused_step).to_be_in_viewport()
    expect(focused_step.locator(".number")).to_have_text(str(worst[0]["position"]))
    expect(focused_step.locator(".stars button.on")).to_have_count(worst[0]["rating"])
    assert worst[0]["trace_id"] in page.url


def test_what_a_tool_lacks_is_noted_at_its_step_and_listed_with_a_link(page: Page, real: Showhow):
    questions = real.home / "noted.jsonl"
    questions.write_text(json.dumps({"question": "Which quay is the longest?", "answer": "none"}), encoding="utf-8")
    real.run("questions", "import", str(questions), "--project", "Quays", "--world", "hostile")
    max_ = Annotator(page, real.url, "max", "Quays")
    max_.thought.fill("Is there a list?")
    max_.choose("Alt+1")
    max_.fill("Search for", "quays by length")
    step = max_.run()
    step.get_by_role("button", name="Note").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog.get_by_text("Write the note, then save it.")).to_be_visible()
    dialog.get_by_role("radio", name="A tool is missing here").click()
    dialog.get_by_label("Note", exact=True).fill("One that <b>sorts</b> by a number.")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_be_hidden()
    notes = page.get_by_role("list", name="Notes on step 1")
    expect(notes).to_have_text("A tool is missing here: One that <b>sorts</b> by a number. – max")
    trace = parse_qs(urlsplit(page.url).query)["trace"][0]

    reader = Mechanic(page, real.url, "mia")
    reader.open(of_project="Quays")
    assert [(row[0], row[1], row[2]) for row in reader.rows("What the tools lack")] == [
        ("Search", "A tool is missing here", "One that <b>sorts</b> by a number.")
    ]
    (noted,) = report(real, "--project", "Quays")["notes"]
    assert (noted["trace_id"], noted["position"], noted["kind"], noted["author"]) == (trace, 1, "missing tool", "max")
    page.get_by_role("region", name="What the tools lack").get_by_role("button").first.click()
    expect(page.locator("li.step.focus")).to_contain_text("A tool is missing here")
    assert trace in page.url


def test_filters_without_matches_show_a_hint(page: Page, real: Showhow):
    Mechanic(page, real.url, "max").open(since=f"{datetime.now(UTC) + timedelta(days=9):%Y-%m-%d}")
    expect(page.get_by_text("No matches. Try fewer filters.")).to_be_visible()


def test_the_second_view_lists_the_tools_of_a_project(page: Page, real: Showhow):
    olga = Mechanic(page, real.url, "olga")
    olga.open()
    olga.press("Alt+2")
    expect(page.get_by_text("The tools that people and models can use")).to_be_visible()
    assert "view=offered" in page.url
