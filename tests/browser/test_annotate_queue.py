"""What a person works on: after a submission, drafts, repairs, questions of one's own, an invitation, Fix this."""

import re
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from showhow.db.database import Database
from showhow.db.questions.projects import create_project
from showhow.db.removal.renaming import rename_project
from tests.browser.annotator import Annotator
from tests.browser.asker import Asker
from tests.browser.server import Showhow
from tests.browser.settled import PATIENCE, settle, visit

pytestmark = pytest.mark.long

PROJECT = "Fictional people"
TOO_HARD = "Which harbour sells the oldest lamp?"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    """A server with the default world, a verification with failures, and a person who was invited by name."""
    showhow = Showhow(tmp_path_factory.mktemp("queue"))
    showhow.appoint("grace", "ada")
    showhow.run("users", "add", "ben")
    hard = showhow.home / "hard.jsonl"
    hard.write_text(f'{{"question": "{TOO_HARD}", "answer": "none"}}\n', encoding="utf-8")
    showhow.run("questions", "import", str(hard), "--project", "Hard", "--world", "default")
    showhow.run("verify", "--project", "Hard")
    showhow.start()
    yield showhow
    showhow.stop()


def question_of(page: Page) -> str:
    return page.locator("h1").text_content() or ""


def open_work(page: Page, tab: str) -> Locator:
    """Open My work at a tab."""
    page.keyboard.press("Alt+q")
    dialog = page.get_by_role("dialog")
    dialog.get_by_text(re.compile(rf"^{tab} \d+$")).click()
    settle(page)
    return dialog


def search_and_rate(ada: Annotator) -> Locator:
    """Search, rate the result by a digit right after Run, and ask for more results; returns the step."""
    page, form = ada.page, ada.page.locator(".st-key-composer")
    # Under each tool stands what it does, and below what else the chosen one does, in words without identifiers.
    expect(form.locator(".st-key-tool_wikisearch button").first).to_contain_text("Search the articles")
    expect(form.locator(".st-key-tool_getRelationsAsHead button").first).to_contain_text(
        "List the relations that lead from"
    )
    expect(form.locator(".st-key-tool_summary")).to_contain_text("Returns titles with a snippet each, best first.")
    ada.choose("Alt+8")
    expect(form.locator(".st-key-tool_summary")).to_contain_text("(Ada, mother, Cora) gives mother for Ada")
    ada.choose("Alt+1")
    ada.fill("Search for", "born in")
    step = ada.run()
    # A digit rates, although the thought has the focus; the next one is typed.
    expect(ada.thought).to_be_focused()
    page.keyboard.press("4")
    expect(step.locator(".stars button.on")).to_have_count(4)
    ada.settle()
    page.keyboard.type("2 people may fit.")
    expect(ada.thought).to_have_value("2 people may fit.")
    expect(step.locator(".stars button.on")).to_have_count(4)
    # The same step has more results on demand.
    hits = step.locator("ul.hits > li")
    expect(hits).to_have_count(5)
    step.get_by_role("button", name="More results, up to 20").click()
    expect(hits).to_have_count(20)
    expect(ada.steps).to_have_count(1)
    expect(step).to_contain_text("Most results: 20")
    ada.settle()
    expect(ada.thought).to_have_value("2 people may fit.")
    return step


def answer_from_a_fork(ada: Annotator) -> None:
    """Fork at the step and submit a value of it, taken from the menu of the value."""
    page = ada.page
    before = page.url
    ada.steps.first.get_by_role("button", name="Fork here").click()
    page.wait_for_function("before => location.href !== before", arg=before)
    ada.settle()
    title = ada.steps.first.locator("button.value").first.text_content() or ""
    ada.value(ada.steps.first, title)
    page.get_by_role("group", name=f"Use {title} with").get_by_role("button", name="Use as answer").click()
    expect(page.get_by_label("Final answer", exact=True)).to_have_value(title)
    ada.settle()
    page.get_by_label("Final thought", exact=True).fill("The first one is meant.")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Submitted for review.")).to_be_visible()
    # What was done is told beside the buttons of the header, not over them.
    button = page.get_by_role("button", name="Guidelines", exact=True)
    button.hover(timeout=3_000)
    # Its key is shown while it is hovered, and is no part of its name.
    expect(button.locator("kbd")).to_be_visible()
    expect(button).to_have_attribute("aria-keyshortcuts", "Alt+G")


def test_a_person_answers_from_a_fork_and_goes_on_without_the_draft_that_was_left(page: Page, home: Showhow):
    ada = Annotator(page, home.url, "ada", PROJECT)
    first = question_of(page)
    search_and_rate(ada)
    answer_from_a_fork(ada)
    expect(page.locator("h1")).not_to_have_text(first)
    ada.settle()
    # The draft that was left is only in the list, from where it is opened or discarded; its question cannot be skipped.
    open_work(page, "Drafts").get_by_role("button", name="Continue").click()
    expect(page.locator("h1")).to_have_text(first)
    ada.settle()
    expect(page.get_by_role("button", name="Skip")).to_have_count(0)
    page.get_by_role("button", name="Later").click()
    expect(page.locator("h1")).not_to_have_text(first)
    ada.settle()
    dialog = open_work(page, "Drafts")
    dialog.get_by_role("button", name="Discard").click()
    settle(page)
    dialog.get_by_role("button", name="Discard the draft").click()
    expect(dialog).to_have_count(0)
    ada.settle()
    page.keyboard.press("Alt+q")
    expect(page.get_by_role("dialog").get_by_text("Drafts 0", exact=True)).to_be_visible()


def test_the_question_of_a_discarded_draft_begins_anew(page: Page, home: Showhow):
    ida = Annotator(page, home.url, "ida", PROJECT)
    first = question_of(page)
    ida.thought.fill("A slip.")
    ida.fill("Search for", "slip")
    ida.run()
    ida.wait_for_save(lambda: ida.thought.fill("Another slip."))
    dialog = open_work(page, "Drafts")
    dialog.get_by_role("button", name="Discard").click()
    settle(page)
    dialog.get_by_role("button", name="Discard the draft").click()
    expect(dialog).to_have_count(0)
    expect(ida.steps).to_have_count(0)
    ida.settle()
    assert question_of(page) == first
    expect(ida.thought).to_have_value("")
    expect(page.get_by_text("changed in another tab")).to_have_count(0)
    page.reload()
    ida.settle()
    assert "trace=" not in page.url


def test_a_skip_holds_although_its_reason_is_typed_in_one_go_after_a_long_look(page: Page, home: Showhow):
    page.clock.install()
    Annotator(page, home.url, "ada", PROJECT)
    skipped = question_of(page)
    # After such a time the next keystroke stores how long the person has worked on what they have begun.
    page.clock.fast_forward(35_000)
    page.keyboard.press("Alt+k")
    page.get_by_label("Why?").fill("unclear")
    page.keyboard.press("Control+Enter")
    expect(page.locator("h1")).not_to_have_text(skipped)
    settle(page)
    page.clock.fast_forward(5_000)
    dialog = open_work(page, "Skipped")
    expect(dialog.get_by_text(skipped)).to_be_visible()
    expect(dialog.get_by_text("Drafts 0")).to_be_visible()


def test_a_renamed_project_is_followed_and_a_link_with_its_former_name_says_so(page: Page, home: Showhow):
    database = Database(f"sqlite:///{home.home / 'showhow.db'}")
    with database.begin() as session:
        project_id = create_project(session, "Old name", "default").id
    visit(page, home, "/project?project=Old+name")
    with database.begin() as session:
        rename_project(session, "Old name", "New name")
    page.get_by_role("link", name="Library", exact=True).click()
    chosen = page.get_by_label("Current project")
    expect(chosen).to_have_value("New name")
    visit(page, home, "/project?project=Old+name")
    missing = page.get_by_text("There is no project Old name: it was renamed, archived or deleted")
    expect(missing).to_be_visible()
    # An invitation names the project by its id.
    visit(page, home, f"/project?project={project_id}")
    expect(chosen).to_have_value("New name")
    expect(missing).to_have_count(0)
    database.close()


def test_repairs_are_a_list_beside_the_queue_and_next_moves_on_from_one(page: Page, home: Showhow):
    ada = Annotator(page, home.url, "ada", "Hard")
    # The first screen is the question itself.
    expect(ada.thought).to_be_visible()
    expect(page.get_by_text("An answer to repair")).to_have_count(0)
    for _ in range(2):
        page.keyboard.press("Alt+e")
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("The agent gave no answer; the gold answer is none")
        dialog.get_by_role("button", name="Take").click()
        expect(page.get_by_text("An answer to repair")).to_be_visible()
        ada.settle()
        page.keyboard.press("Control+Enter")
        expect(page.get_by_text("An answer to repair")).to_have_count(0)
        expect(ada.thought).to_be_visible()
        ada.settle()
    # Once somebody has answered the question, it needs no repair.
    ada.fill("Search for", "lamp")
    ada.thought.fill("Is there a lamp?")
    ada.run()
    page.keyboard.press("Control+Shift+Enter")
    ada.settle()
    ada.fill("Final answer", "none")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Your queue is empty")).to_be_visible()
    settle(page)
    page.keyboard.press("Alt+e")
    expect(page.get_by_role("dialog")).to_contain_text("No wrong answer of the latest verification waits")


def test_an_invited_person_is_greeted_gets_the_tour_and_adds_a_question_where_the_project_allows_it(
    browser: Browser, home: Showhow
):
    context = browser.new_context(viewport={"width": 1024, "height": 900})
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{home.url}/?{urlencode({'you': 'ben', 'project': PROJECT})}")
    expect(page.get_by_role("heading", name=f"Welcome to {PROJECT}")).to_be_visible()
    expect(page.get_by_text("You are invited as annotator.")).to_be_visible()
    page.get_by_role("button", name="Yes, continue as ben").click()
    expect(page.get_by_role("button", name="Start the tour")).to_be_visible()
    page.get_by_role("button", name="No, thanks").click()
    settle(page)
    expect(page.get_by_role("button", name="New question")).to_have_count(0)

    lead = context.new_page()
    lead.set_default_timeout(PATIENCE)
    lead.goto(f"{home.url}/project?{urlencode({'you': 'grace', 'project': PROJECT, 'view': 'settings'})}")
    lead.get_by_role("button", name="Yes, continue as grace").click()
    lead.get_by_text("Annotators may add questions").click()
    settle(lead)
    lead.get_by_role("button", name="Save").click()
    expect(lead.get_by_text("Saved.")).to_be_visible()

    page.reload()
    page.get_by_role("button", name="New question").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label(f"A question for {PROJECT}").fill("Who keeps the northern lighthouse?")
    dialog.get_by_label(f"A question for {PROJECT}").press("Tab")
    settle(page)
    dialog.get_by_role("button", name="Add and open").click()
    expect(page.locator("h1")).to_have_text("Who keeps the northern lighthouse?")
    expect(dialog).to_have_count(0)
    context.close()


def test_fixing_an_asked_question_stays_in_the_chosen_project_and_says_where_the_draft_is(page: Page, home: Showhow):
    asker = Asker(page, home.url, "ada")
    asker.open(project="Hard")
    asker.ask("Which ship carries the bell of the northern lighthouse?")
    page.get_by_role("button", name="Fix this").first.click()
    expect(page.get_by_label("Thought", exact=True)).to_be_visible()
    expect(page.get_by_text("This question belongs to the project Asked of default")).to_be_visible()
    assert "project=Hard" in page.url
