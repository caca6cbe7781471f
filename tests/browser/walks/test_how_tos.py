"""The how-tos that need no model, done as they are written, on one server one after the other."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from showhow.db.database import Database
from showhow.db.questions import projects
from showhow.fiction.family import Family, build_universe_family
from showhow.fiction.generator.world_files import UNIVERSE_FILE
from showhow.fiction.universe.items import ItemCatalog
from showhow.fiction.universe.universe import Universe
from tests.browser.server import Showhow
from tests.browser.walks.walk import Walk

pytestmark = pytest.mark.long

PROJECT = "Fictional people"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    """A server with the default world, a lead and a reviewer."""
    showhow = Showhow(tmp_path_factory.mktemp("how_tos") / "home")
    showhow.appoint("ada", "grace")
    showhow.start()
    yield showhow
    showhow.stop()


def verify_and_fix(walk: Walk) -> None:
    page = walk.page
    assert "refused" in walk.run()
    walk.open("ada", PROJECT, "verify")
    walk.picture(page.locator(".st-key-verification_sizes"), page.get_by_role("region", name="Answers of this"))
    walk.go("Annotate")
    walk.click("Repairs")
    walk.click("Take")
    page.wait_for_url("**trace=**")
    walk.settle()
    walk.click("Start over")
    form = page.locator(".st-key-composer")
    gold = re.search(r"Gold answer: (.*)", form.inner_text())
    assert gold is not None
    record(walk, gold[1])
    walk.open("grace", PROJECT)
    walk.go("Review")
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_text("Approved. The trace is a demonstration now.")).to_be_visible()
    walk.go("Verify")
    start, end = walk.name("Freeze ... and ask the failures again").split("...")
    page.get_by_role("button", name=re.compile(f"{start}1 repair{end}")).click()
    expect(page.get_by_text("now right").first).to_be_visible(timeout=120_000)


def record(walk: Walk, answer: str) -> None:
    """Record one step on the open question, and submit the answer."""
    form = walk.page.locator(".st-key-composer")
    form.get_by_label("Thought", exact=True).fill("What do the articles say?")
    field = form.get_by_label("Search for", exact=True)
    # It has the next name of the question, if there is one.
    if not field.input_value():
        field.fill("people of the town")
    before = walk.page.locator("li.step").count()
    walk.page.keyboard.press("Control+Enter")
    expect(walk.page.locator("li.step")).to_have_count(before + 1)
    walk.settle()
    walk.page.keyboard.press("Control+Shift+Enter")
    walk.settle()
    form.get_by_label("Final answer", exact=True).fill(answer)
    walk.page.keyboard.press("Control+Enter")
    expect(walk.page.get_by_text("Submitted for review.")).to_be_visible()


def exports(walk: Walk) -> None:
    for _ in range(4):
        walk.run()
    walk.open("grace", PROJECT)
    for title in ("Project", "Library"):
        walk.go(title)
        walk.click("Export")
        expect(walk.page.get_by_role("dialog").get_by_role("button", name=re.compile("^Download"))).to_be_visible()
        walk.page.keyboard.press("Escape")
        expect(walk.page.get_by_role("dialog")).to_have_count(0)
        walk.settle()


def people(walk: Walk) -> None:
    """Two people answer the same questions; a reviewer looks at both, and approves one question's traces."""
    page = walk.page
    have_two_answer(walk)
    assert "mean distance to the others" in walk.run()
    walk.open("grace", PROJECT)
    walk.go("Review")
    walk.picture(page.get_by_role("region", name="Traces side by side"), page.get_by_text("Gold answer"))
    decide(walk)
    walk.go("Project")
    walk.click("Agreement")
    expect(page.get_by_role("region", name="By pair of people")).to_be_visible()


def have_two_answer(walk: Walk) -> None:
    """Have two people answer each question, and answer two of them: once differently, once the same."""
    page = walk.page
    walk.run()
    walk.open("ada", PROJECT)
    walk.go("Project")
    walk.click("Members")
    expect(page.get_by_role("region", name="People and their roles")).to_contain_text("cleo")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    walk.click("Settings")
    walk.fill(walk.name("People per question"), "2")
    page.get_by_role("button", name="Save", exact=True).first.click()
    expect(page.get_by_text("Saved.")).to_be_visible()
    database = Database(f"sqlite:///{walk.showhow.home / 'showhow.db'}")
    with database.read() as session:
        questions = projects.list_questions(session, projects.get_project(session, PROJECT).id)
        chosen = [str(question.id) for question in questions[-2:]]
    database.close()
    for question, answers in zip(chosen, (("no", "yes"), ("no", "no")), strict=True):
        for you, answer in zip(("ada", "cleo"), answers, strict=True):
            walk.open(you, PROJECT, question=question)
            record(walk, answer)


def decide(walk: Walk) -> None:
    """Approve both traces of a question and undo that; approve one of the other question, and take it back."""
    page = walk.page
    walk.click("Approve several")
    dialog = page.get_by_role("dialog")
    for you in ("ada", "cleo"):
        dialog.get_by_text(f"{you}: no").last.click()
        walk.settle()
    dialog.get_by_role("button", name="Approve 2 traces").click()
    expect(page.get_by_text("Approved 2 traces")).to_be_visible()
    walk.settle()
    walk.click("Undo")
    expect(page.get_by_text("Undone: 2 decisions.")).to_be_visible()
    page.get_by_role("button", name="Approve", exact=True).click()
    expect(page.get_by_text("Approved. The trace is a demonstration now.")).to_be_visible()
    walk.settle()
    page.get_by_text("Approved (", exact=False).first.click()
    walk.settle()
    walk.click("Take back")
    expect(page.get_by_text("Undone: 1 decision.")).to_be_visible()


def own_texts(walk: Walk) -> None:
    walk.run()
    walk.run()
    page, home = walk.page, walk.showhow.home
    walk.open("ada", "Mine")
    expect(page.locator("h1")).to_have_text("Where does the master of the harbour live?")
    walk.go("Worlds")
    walk.click("Import a world")
    walk.fill("Name", "uploaded")
    dialog = page.get_by_role("dialog")
    dialog.locator("input[type=file]").first.set_input_files(home / "documents" / "pilots.md")
    walk.settle()
    walk.fill("Project", "Uploaded")
    dialog.locator("input[type=file]").last.set_input_files(home / "questions.csv")
    walk.settle()
    for meaning, column in (("Question", "frage"), ("Answer", "antwort")):
        dialog.get_by_label(meaning, exact=True).click()
        page.get_by_role("option", name=column).click()
        walk.settle()
    expect(page.get_by_role("region", name="The first questions")).to_contain_text("Who leads the pilots?")
    dialog.get_by_role("button", name="Import", exact=True).click()
    page.locator(".st-key-see_uploaded button").click(timeout=120_000)
    walk.settle()
    expect(page.locator("h2.world")).to_have_text("uploaded")
    assert "isles" in walk.run()


def table_for_a_paper(walk: Walk) -> None:
    page = walk.page
    walk.run()
    walk.run()
    walk.open("ada", "Walk")
    walk.go("Compare")
    expect(page.get_by_role("region", name="Figures of each run").locator("tbody tr")).to_have_count(3)
    differences = page.get_by_role("region", name="Differences from the baseline")
    expect(differences.locator("tbody tr")).to_have_count(2)
    walk.picture(page.get_by_role("region", name="Figures of each run"), differences, height=1240)
    walk.choose("Answers", walk.name("Right, baseline wrong"))
    walk.see("Score", "Judge")
    runs = walk.showhow.run("runs", "list", "--project", "Walk", "--json")
    walk.stands_for["RUN"] = re.findall(r'"id": "([^"]+)"', runs)[-1]
    walk.run()
    walk.run()


def blind_study(walk: Walk) -> None:
    """A study is made and opened; a person judges a pair by keys; it is closed and reported."""
    page = walk.page
    walk.run()
    runs = re.findall(r'"id": "([^"]+)"', walk.showhow.run("runs", "list", "--project", "Harbour", "--json"))
    walk.stands_for |= {"First=RUN": f"First={runs[0]}", "Second=OTHER": f"Second={runs[1]}"}
    walk.run()
    walk.run()
    walk.open("ada", "Harbour")
    walk.go("Judge")
    walk.click("Start judging")
    expect(page.get_by_text("Is the left answer true?")).to_be_visible()
    for key in ("1", "2", "3", "1", "2", "3", "ArrowRight"):
        page.keyboard.press(key)
        walk.settle()
    expect(page.get_by_text("1 by you")).to_be_visible()
    walk.see("Undo")
    assert "nobody stops by a result" in walk.run()
    assert walk.run()


def worlds(walk: Walk) -> None:
    """The family of a person in the world that the page about own texts generates."""
    page = walk.page
    universe = Universe.load(walk.showhow.home / "worlds" / "isles" / UNIVERSE_FILE)
    families = (build_universe_family(universe, ItemCatalog(universe).person(row)) for row in range(len(universe)))
    largest = max((family for family in families if family and fits(family)), key=lambda family: len(family.people))
    walk.open("ada", PROJECT, "worlds", world="isles", view="look", entity=largest.centre)
    walk.picture(page.locator(".article"), page.get_by_role("heading", name="Family"), height=1240)
    walk.open("ada", PROJECT, "worlds", world="default", view="questions")
    walk.see("Annotate this")


def fits(family: Family) -> bool:
    """Whether the tree fits into the window."""
    return len(family.siblings) <= 2 and 1 <= len(family.children(family.centre)) <= 2 and len(family.parents) > 3


def libraries(walk: Walk) -> None:
    """The demonstrations that are selected for a question of two people."""
    page = walk.page
    walk.open("ada", PROJECT, "library", library="default:1", view="choose")
    field = page.get_by_label("Question", exact=True)
    rows = json.loads(walk.showhow.run("world", "questions", "default", "--kind", "comparison", "--json"))
    field.fill(rows[0]["text"])
    field.press("Enter")
    picks = page.locator("[class*=st-key-pick_]")
    expect(picks.first.locator("table.reasons")).to_be_visible()
    walk.settle()
    walk.picture(picks.first, height=1320)
    walk.see("Usage")


def settings(walk: Walk) -> None:
    walk.open("ada", PROJECT)
    walk.go("Settings")
    walk.see("Language models")
    walk.click("Installation")
    walk.see("Back up now")
    walk.click("You")
    walk.see("Take the tour")


def backup(walk: Walk) -> None:
    """The last one: the server is stopped, as the page says."""
    walk.showhow.stop()
    walk.run()
    walk.run()


def team(walk: Walk) -> None:
    """An administrator who is invited by verbs invites another person; the server serves without a login again."""
    page, environment = walk.page, walk.showhow.environment
    commands = walk.serve()
    (link,) = re.findall(r"/invite/\S+", commands)
    page.goto(f"{walk.showhow.url}{link}")
    for label in ("Password", "Password again"):
        page.get_by_label(label, exact=True).fill("correct horse battery")
    page.get_by_role("button", name=walk.name("Save and log in")).click()
    page.wait_for_selector(".st-key-product_header")
    walk.settle()
    walk.go("Project")
    walk.click("Members")
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Add or change").fill("mia")
    page.get_by_role("option", name="Add: mia").click()
    walk.settle()
    dialog.get_by_role("button", name="Save", exact=True).click()
    expect(dialog.get_by_text(re.compile(rf"^{walk.showhow.url}/invite/\S+$"))).to_be_visible()
    page.keyboard.press("Escape")
    walk.settle()
    page.get_by_text("You: lea").click()
    page.get_by_role("button", name=walk.name("Log out")).click()
    page.wait_for_url("**/login**")
    assert "ben is not logged in" in walk.run()
    walk.section("People whom a proxy knows")
    assert walk.name("Project")
    walk.section("Who did what")
    assert "entries follow each other" in walk.run()
    del environment["SHOWHOW_LOGIN"]


def install(walk: Walk) -> None:
    walk.serve()


def nothing(walk: Walk) -> None:
    """A page that tells what there is, or needs what is not here."""


WALKS: dict[str, Callable[[Walk], None]] = {
    "how-to/verify-and-fix.md": verify_and_fix,
    "how-to/exports.md": exports,
    "how-to/people.md": people,
    "how-to/own-texts-and-graph.md": own_texts,
    "explanation/worlds.md": worlds,
    "explanation/libraries.md": libraries,
    "how-to/table-for-a-paper.md": table_for_a_paper,
    "how-to/blind-study.md": blind_study,
    "how-to/settings.md": settings,
    "how-to/install-and-serve.md": install,
    "how-to/live-wikipedia.md": nothing,
    "how-to/several-machines.md": nothing,
    "how-to/telemetry.md": nothing,
    "how-to/plugins.md": nothing,
    # The last two: the server is another one afterwards.
    "how-to/team.md": team,
    "how-to/backup.md": backup,
}
NOT_RUN = {
    "how-to/install-and-serve.md": 3,
    "how-to/live-wikipedia.md": 2,
    "how-to/table-for-a-paper.md": 2,
    "how-to/plugins.md": 3,
    "how-to/team.md": 2,
}
"""How many blocks of a page are left out, each with its reason in the page."""


@pytest.mark.parametrize("name", WALKS)
def test_the_page_is_done_as_it_is_written(name: str, page: Page, home: Showhow, pictures: Path):
    walk = Walk(name, home, page, pictures)
    WALKS[name](walk)
    walk.finish()
    assert len(walk.not_run) == NOT_RUN.get(name, 0), walk.not_run
