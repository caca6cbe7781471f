import contextlib
import json
import re
import sqlite3
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from showhow.app.cli.setup import DEMONSTRATION_COUNT
from showhow.tools.registry import tool_title
from tests.browser.librarian import Librarian
from tests.browser.server import Showhow

pytestmark = pytest.mark.long

MARKUP = "<b>bold</b> **stars** $x^2$ <img src=x onerror=\"document.title='broken'\">"
HOSTILE = "mark <b>up** $x^2$"
QUESTION = "Which mountain is the highest one in Alaska?"
PROJECT = "HumanIQ Mintaka"


@pytest.fixture(scope="module")
def home(real: Showhow, shared_data: Path) -> Showhow:
    """The server with the published demonstrations, a version for Mintaka, and a version of a hostile trace."""
    real.appoint("ida", "joe", "ned")
    published = shared_data / "humaniq"
    for name in ("mintaka", "compmix"):
        real.run("traces", "import", str(published / f"{name}.json"))
    real.run("library", "freeze", "mintaka", "--project", PROJECT, "--licence", "CC BY 4.0")
    record = json.loads((published / "mintaka.json").read_text(encoding="utf-8"))[0]
    hostile = real.home / "hostile_traces.json"
    hostile.write_text(json.dumps([record | {"Question": MARKUP, "Dataset": HOSTILE}]), encoding="utf-8")
    real.run("traces", "import", str(hostile))
    real.run("library", "freeze", "former", "--project", f"HumanIQ {HOSTILE}", "--note", MARKUP)
    # No library can be called so any more, but former versions of the program took any name.
    with contextlib.closing(sqlite3.connect(real.home / "showhow.db")) as database, database:
        database.execute("UPDATE library SET name = ? WHERE name = 'former'", [HOSTILE])
    return real


def test_demonstrations_are_filtered_opened_and_exported(page: Page, home: Showhow, tmp_path: Path):
    ida = Librarian(page, home.url, "ida")
    ida.open("mintaka")
    expect(page.locator("h2.world")).to_have_text("mintaka, version 1")
    expect(page.get_by_text("1 of 20", exact=True)).to_be_visible()
    first = page.locator("h2.question").text_content() or ""
    ida.press("Alt+n")
    expect(page.get_by_text("2 of 20", exact=True)).to_be_visible()
    expect(page.locator("h2.question")).not_to_have_text(first)
    # The shortcuts also turn the pages of the list.
    for position in range(3, 14):
        ida.press("Alt+n")
        expect(page.get_by_text(f"{position} of 20", exact=True)).to_be_visible()
    ida.press("Alt+p")
    expect(page.get_by_text("12 of 20", exact=True)).to_be_visible()
    ida.fill("Search", "ALASKA tallest")
    expect(page.get_by_text("1 of 1", exact=True)).to_be_visible()
    expect(page.locator("h2.question")).to_have_text("What is the tallest mountain in alaska?")
    tool = page.locator("li.step").first.locator(".tool")
    expect(tool).to_have_text("Search")
    expect(tool).to_have_attribute("title", "wikisearch")
    ida.press("Alt+e")
    expect(ida.dialog).to_contain_text("1 demonstration of mintaka, version 1")
    ida.choose_option("Format", "openai")
    expect(ida.dialog).to_contain_text("This format does not represent:")
    with page.expect_download() as download:
        ida.dialog.get_by_role("button", name="Download 1 trace").click()
    file = tmp_path / "by_verb.jsonl"
    home.run("library", "export", str(file), "--library", "mintaka", "--text", "alaska tallest", "--format", "openai")
    assert download.value.path().read_bytes() == file.read_bytes()


def hold_out_alaska(home: Showhow) -> str:
    """A question of a split that a demonstration nearly has."""
    questions = home.home / "held_out.jsonl"
    question = {"question": "What is the tallest mountain in Alaska", "answer": "Denali", "split": "held-out"}
    questions.write_text(json.dumps(question), encoding="utf-8")
    home.run("questions", "import", str(questions), "--project", "Held out", "--world", "real")
    return question["question"]


def test_a_test_question_is_exported_to_train_with_on_request_only(page: Page, home: Showhow):
    question = hold_out_alaska(home)
    joe = Librarian(page, home.url, "joe")
    joe.open("mintaka")
    joe.press("Alt+e")
    expect(joe.dialog).not_to_contain_text("Keep out questions")
    joe.choose_option("Format", "openai")
    joe.fill("Keep out questions from split", "held-out")
    alert = joe.dialog.get_by_role("alert")
    expect(alert).to_contain_text("the format openai does not say which, so nothing was written", timeout=60_000)
    assert joe.rows("Test questions among the demonstrations")[0][1] == question
    joe.dialog.get_by_text("Write these too", exact=True).click()
    expect(joe.dialog.get_by_role("button", name="Download 20 traces")).to_be_visible()


def test_a_leak_is_refused_and_can_be_forced(page: Page, home: Showhow):
    question = hold_out_alaska(home)
    joe = Librarian(page, home.url, "joe")
    joe.open()
    joe.press("Alt+l")
    joe.fill("Name", "peaks")
    several = joe.dialog.get_by_text("choose one under Project to freeze its own")
    expect(several).to_be_visible()
    joe.choose_option("Project", PROJECT)
    expect(several).to_have_count(0)
    joe.fill("Keep out questions from split", "held-out")
    expect(joe.dialog).to_contain_text(re.compile(r"20 of \d+ approved traces match"))
    joe.dialog.get_by_role("button", name="Freeze", exact=True).click()
    alert = joe.dialog.get_by_role("alert")
    expect(alert).to_contain_text("1 demonstration leaks questions of the split 'held-out'", timeout=60_000)
    assert joe.rows("Test questions among the demonstrations") == [
        ["What is the tallest mountain in alaska?", question, "1.000"]
    ]
    assert "peaks" not in {version["name"] for version in json.loads(home.run("library", "list", "--json"))}
    joe.dialog.get_by_text("Freeze anyway: includes test questions").click()
    joe.settle()
    joe.dialog.get_by_role("button", name="Freeze", exact=True).click()
    expect(page.locator("h2.world")).to_have_text("peaks, version 1", timeout=60_000)
    expect(page.get_by_role("region", name="The card of this version")).to_contain_text("of a test split")
    library = json.loads(home.run("library", "show", "peaks", "--json"))
    assert (library["card"]["by"], len(library["demonstrations"])) == ("joe", 20)
    # Without the leaking demonstration no force is needed, and the comparison lists what was removed.
    joe.press("Alt+l")
    joe.fill("Name", "peaks")
    joe.fill("Search", "mountain")
    joe.dialog.get_by_role("button", name="Freeze", exact=True).click()
    expect(page.locator("h2.world")).to_have_text("peaks, version 2")
    joe.press("Alt+5")
    lines = home.run("library", "compare", "peaks:1", "peaks:2").splitlines()
    added, removed, kept_count = (part.split()[0] for part in lines[-1].split(", "))
    expect(page.get_by_text(f"{added} added, {removed} removed, {kept_count} kept.")).to_be_visible()
    assert len(joe.rows("Removed")) == int(removed)
    page.get_by_role("region", name="Removed").get_by_role("button").first.click()
    expect(joe.dialog.locator("h2.question")).to_be_visible()


def test_a_selection_is_explained_and_drawn(page: Page, home: Showhow):
    kim = Librarian(page, home.url, "kim")
    kim.open(view="choose")
    expect(page.get_by_text("Demonstrations are selected from a frozen version")).to_be_visible()
    kim.open("mintaka", view="choose")
    picks = kim.select_for(QUESTION)
    expected = json.loads(home.run("library", "select", "mintaka", QUESTION, "--json"))["picks"]
    expect(picks).to_have_count(3)
    for index, pick in enumerate(expected):
        card = picks.nth(index)
        expect(card.get_by_role("button").first).to_contain_text(pick["question"])
        numbers = card.locator("td.number").all_text_contents()
        assert [numbers[0], numbers[1]] == [f"{pick['relevance']:.2f}", f"{pick['novelty']:.2f}"]
        expect(card).to_contain_text(pick["runner_up"]["question"])
        assert card.locator("ol.actions li").all_text_contents() == [tool_title(name) for name in pick["actions"]]
    expect(page.locator(".st-key-drawings canvas, .st-key-drawings svg.marks")).to_have_count(2)
    page.get_by_text("Candidates by number").click()
    kim.settle()
    candidates = kim.rows("The candidates of the heat map")
    assert len(candidates) == 20
    assert [row[2] for row in candidates[:3]] == [pick["question"] for pick in expected]
    kim.choose_option("Mode", "Relevance only")
    expect(page.get_by_text("This mode")).to_be_visible()
    most_relevant = [row[2] for row in sorted(candidates, key=lambda row: -float(row[3]))[:3]]
    for index, question in enumerate(most_relevant):
        expect(picks.nth(index).get_by_role("button").first).to_contain_text(question)
    picks.first.get_by_role("button").first.click()
    expect(kim.dialog.locator("h2.question")).to_have_text(most_relevant[0])
    kim.dialog.get_by_role("button", name="Close").click()
    kim.select_for("What is the tallest mountain in alaska?")
    expect(page.get_by_text("Left out as the same question")).to_be_visible()


def test_usage_is_counted_on_the_page_or_by_a_job(page: Page, home: Showhow):
    lou = Librarian(page, home.url, "lou")
    lou.open("mintaka", view="usage")
    lou.choose_option("Questions of the project", "HumanIQ Compmix")
    lou.click("Count for 20 questions")
    page.locator(".st-key-usage_sizes").wait_for(timeout=60_000)
    lou.settle()
    used = lou.rows("Demonstrations by how often they are selected")
    assert sum(int(row[2]) for row in used) == 20 * 3
    never = lou.rows("Demonstrations that are never used")
    expect(page.get_by_text(f"Never used ({len(never)})")).to_be_visible()
    demonstrations = json.loads(home.run("library", "show", "mintaka:1", "--json"))["demonstrations"]
    assert {row[1] for row in used} | {row[0] for row in never} == {
        demonstration["question"] for demonstration in demonstrations
    }
    lou.choose_option("Questions of the project", "2Wiki")
    lou.click("Count for 300 questions")
    expect(page.locator(".st-key-usage_job")).to_contain_text("Counting mintaka:1 for 2Wiki")
    page.locator(".st-key-usage_sizes").wait_for(timeout=90_000)
    expect(page.locator(".st-key-usage_sizes")).to_contain_text("900")


def test_demonstrations_are_run_again_and_differences_are_shown_side_by_side(page: Page, home: Showhow):
    home.run("library", "freeze", "made", "--project", "Fictional people")
    ned = Librarian(page, home.url, "ned")
    ned.open("made", view="drift")
    ned.click(f"Run {DEMONSTRATION_COUNT} demonstrations again")
    expect(page.get_by_text("Every observation is the same as recorded.")).to_be_visible(timeout=90_000)
    # The world of the published demonstrations does not exist here.
    ned.open("mintaka", view="drift")
    ned.click("Run 20 demonstrations again")
    sizes = page.locator(".st-key-drift_sizes")
    sizes.wait_for(timeout=90_000)
    expect(sizes).to_contain_text(re.compile(r"run again\s*20\s*the same\s*0\s*differ\s*0\s*broken\s*20"))
    rows = ned.rows("Traces that differ")
    assert {row[1] for row in rows} == {"broken"}
    expect(page.get_by_role("heading", name=rows[0][0], exact=True)).to_be_visible()
    expect(page.get_by_text("There is no world").first).to_be_visible()
    assert page.locator(".beside").count() > 1
    ned.click("Open in Annotate")
    expect(page.locator("h1")).to_have_text(rows[0][0])


def test_texts_of_people_are_never_markup(page: Page, home: Showhow):
    mia = Librarian(page, home.url, "mia")
    reference = f"{HOSTILE}:1"
    mia.open(reference)
    main = page.get_by_test_id("stMain")
    expect(page.locator("h2.world")).to_have_text(f"{HOSTILE}, version 1")
    expect(page.locator("h2.question")).to_have_text(MARKUP)
    expect(page.locator(".st-key-list_demonstrations")).to_contain_text(MARKUP)
    mia.press("Alt+2")
    expect(page.get_by_role("region", name="The card of this version")).to_contain_text(MARKUP)
    mia.press("Alt+3")
    expect(page.locator(".st-key-examples")).to_contain_text(MARKUP)
    picks = mia.select_for("What?")
    expect(picks.first.get_by_role("button").first).to_contain_text(MARKUP)
    mia.press("Alt+5")
    expect(page.get_by_role("region", name="Added")).to_contain_text(MARKUP)
    assert main.locator("img, b, script").count() == 0
    mia.open("<img src=x>")
    expect(page.get_by_text("There is no library '<img src=x>'")).to_be_visible()
    assert "broken" not in page.title()
