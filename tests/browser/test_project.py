"""The Project page, and a project of tasks without a world in the browser: create, import, record, review."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import pytest
from playwright.sync_api import Page, expect

from tests.browser.annotator import Annotator
from tests.browser.server import Showhow
from tests.browser.settled import PATIENCE, settle

pytestmark = pytest.mark.long

TOOL = '''
def find_plan(address: str) -> str:
    """Tell which plan the sender with this address pays for."""
    return {"ada@lund.example": "business"}.get(address, "free")
'''
SCHEMA = {
    "type": "object",
    "properties": {"urgency": {"enum": ["low", "high"]}, "team": {"type": "string"}},
    "required": ["urgency", "team"],
}
TASKS = [
    {"id": "1", "question": "Triage this message.", "kind": "mail", "attachments": {"from": "ada@lund.example"}},
    {"id": "2", "question": "Triage that message.", "kind": "chat", "attachments": {"mail": {"from": "x@y.example"}}},
]


@pytest.fixture(scope="module")
def inbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    """A server with a tool of its own, and projects that have no world."""
    showhow = Showhow(tmp_path_factory.mktemp("inbox"))
    (showhow.home / "inbox.py").write_text(TOOL, encoding="utf-8")
    (showhow.home / "tools.toml").write_text('[functions.find_plan]\nplace = "inbox:find_plan"\n', encoding="utf-8")
    (showhow.home / "tasks.jsonl").write_text("\n".join(map(json.dumps, TASKS)), encoding="utf-8")
    showhow.run("project", "create", "Mail", "--tools", "find_plan", "--instruction", "Say who takes the message.")
    showhow.appoint("lead")
    showhow.start()
    yield showhow
    showhow.stop()


def open_project(page: Page, inbox: Showhow, name: str, view: str) -> None:
    page.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    page.goto(f"{inbox.url}/project?you=lead&project={name}&view={view}")
    # Before it is drawn, a page is idle, too.
    page.locator(".st-key-masthead").wait_for()
    page.wait_for_load_state("networkidle")
    settle(page)


def import_tasks(page: Page, inbox: Showhow) -> None:
    """Upload the tasks into the empty project."""
    open_project(page, inbox, "Mail", "overview")
    expect(page.get_by_text("This project has no questions yet.")).to_be_visible()
    page.keyboard.press("Alt+u")
    page.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(inbox.home / "tasks.jsonl")
    page.get_by_text("Import them without gold answers").click()
    page.get_by_role("button", name="Import 2 questions").click()
    expect(page.get_by_text("2 questions added")).to_be_visible()


def set_answer_schema(page: Page, inbox: Showhow) -> None:
    """Save a schema of answers, after one that is refused."""
    open_project(page, inbox, "Mail", "settings")
    page.get_by_text("A JSON value that fits a schema").click()
    page.get_by_label("JSON Schema").fill('{"type": "thing"}')
    page.get_by_role("button", name="Save").click()
    expect(page.get_by_text("is not a JSON Schema")).to_be_visible()
    page.get_by_label("JSON Schema").fill(json.dumps(SCHEMA))
    page.get_by_label("JSON Schema").press("Control+Enter")
    expect(page.get_by_text("Saved.")).to_be_visible()
    page.reload()
    settle(page)
    expect(page.get_by_label("JSON Schema")).to_contain_text("urgency")


def record_answer(page: Page, inbox: Showhow) -> None:
    """Open a task from the list, take a step and submit an answer in the form of the schema."""
    open_project(page, inbox, "Mail", "questions")
    page.get_by_role("button", name="Triage that message.").click()
    page.wait_for_url("**question=**")
    address = f"{inbox.url}/?{urlsplit(page.url).query}"
    annotator = Annotator(page, inbox.url, "lead", "Mail")
    annotator.open(address)
    annotator.show("Triage that message.")
    assert json.loads(inbox.run("traces", "list", "--project", "Mail", "--json")) == [], "looking begins nothing"
    guest = Annotator(page.context.new_page(), inbox.url, "guest", "Mail")
    guest.open(address.replace("you=lead", "you=guest"))
    guest.show("Triage that message.")
    guest.page.close()
    expect(page.get_by_text("Say who takes the message.")).to_be_visible()
    annotator.thought.fill("Who wrote it?")
    annotator.fill("Address", "x@y.example")
    page.keyboard.press("Control+Enter")
    expect(annotator.steps).to_have_count(1)
    settle(page)
    page.keyboard.press("Control+Shift+Enter")
    expect(page.get_by_label("Final thought")).to_be_visible()
    expect(page.get_by_label("Answer from the text")).to_have_count(0)
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Fill in Urgency and Team.")).to_be_visible()
    page.get_by_text("low", exact=True).click()
    annotator.fill("Team", "accounts")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Submitted for review.")).to_be_visible()


def test_a_project_without_a_world_is_filled_set_up_worked_on_and_exported(page: Page, inbox: Showhow, tmp_path: Path):
    import_tasks(page, inbox)
    set_answer_schema(page, inbox)
    open_project(page, inbox, "Mail", "overview")
    expect(page.get_by_text("Nobody has worked on this project yet.")).to_be_visible()
    page.get_by_role("button", name="Annotate").click()
    expect(page.locator("h1")).to_have_text("Triage this message.")
    record_answer(page, inbox)
    open_project(page, inbox, "Mail", "overview")
    expect(page.get_by_text("1 of 2 questions done")).to_be_visible()
    expect(page.get_by_label("What each person has done")).to_contain_text("lead")
    open_project(page, inbox, "Mail", "agreement")
    expect(page.get_by_text("set People per question to 2 or more")).to_be_visible()
    open_project(page, inbox, "Mail", "questions")
    page.get_by_label("Status").click()
    page.get_by_role("option", name="in review").click()
    settle(page)
    table = page.get_by_label("Questions", exact=True)
    expect(table).to_contain_text('Triage that message. · mail: { "from": "x@y.example" }')
    expect(table).not_to_contain_text("Triage this message.")
    page.keyboard.press("Alt+e")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download 1 trace").click()
    file = tmp_path / "mail.jsonl"
    download.value.save_as(file)
    (row,) = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert json.loads(row["trace"]["final_answer"]) == {"urgency": "low", "team": "accounts"}
    assert row["project"]["instruction"] == "Say who takes the message."
    copied = tmp_path / "copied.jsonl"
    row["trace"]["id"] = str(UUID(int=1))
    row |= {"steps": [], "edits": [], "judgements": []}
    copied.write_text(f"{file.read_text(encoding='utf-8')}{json.dumps(row)}\n", encoding="utf-8")
    open_project(page, inbox, "Mail", "overview")
    page.keyboard.press("Alt+i")
    page.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(copied)
    expect(page.get_by_text("1 new, 1 already stored, 0 refused")).to_be_visible()
    assert UUID(int=1).hex not in inbox.run("traces", "list", "--json").replace("-", "")
    page.get_by_role("button", name="Import 1 trace").click()
    expect(page.get_by_text("1 added, 1 already stored, 0 differ, 0 refused")).to_be_visible()
    assert UUID(int=1).hex in inbox.run("traces", "list", "--json").replace("-", "")


def test_a_project_is_created_and_bad_traces_are_refused_before_anything_is_stored(page: Page, inbox: Showhow):
    open_project(page, inbox, "Mail", "overview")
    page.keyboard.press("Alt+n")
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_text("A project needs a name.")).to_be_visible()
    page.get_by_label("Name", exact=True).fill("Chores")
    page.get_by_label("Name", exact=True).press("Tab")
    page.get_by_role("dialog").get_by_label("World").click()
    page.get_by_role("option", name="No world").click()
    settle(page)
    page.get_by_role("button", name="Create").click()
    expect(page.get_by_text("has no world, so it needs tools of its own")).to_be_visible()
    page.get_by_role("dialog").get_by_label("Tools").click()
    page.get_by_role("option", name="Find plan").click()
    page.get_by_role("dialog").get_by_label("Instruction").fill("Tidy up.")
    page.get_by_role("button", name="Create").click()
    page.wait_for_url("**project=Chores**")
    settle(page)
    expect(page.get_by_label("Instruction", exact=True)).to_have_value("Tidy up.")
    bad = inbox.home / "bad.jsonl"
    bad.write_text('{"nothing": 1}\n', encoding="utf-8")
    page.keyboard.press("Alt+i")
    # Settings has a field of its own for files, of pictures.
    page.get_by_role("dialog").get_by_test_id("stFileUploaderDropzoneInput").set_input_files(bad)
    expect(page.get_by_role("dialog").get_by_role("alert")).to_be_visible()
    assert "chores" in inbox.run("project", "list").casefold()


def test_an_administrator_adds_a_member_and_sees_how_far_answers_agree(page: Page, inbox: Showhow):
    inbox.run("project", "create", "Pairs", "--tools", "find_plan")
    inbox.run("project", "edit", "Pairs", "--overlap", "2")
    (inbox.home / "pairs.jsonl").write_text('{"question": "Which plan?", "answer": "free"}\n', encoding="utf-8")
    inbox.run("questions", "import", str(inbox.home / "pairs.jsonl"), "--project", "Pairs")
    open_project(page, inbox, "Pairs", "overview")
    page.keyboard.press("Alt+m")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("region", name="People and their roles")).to_contain_text("lead")
    dialog.get_by_label("Add or change").fill("bea")
    page.get_by_role("option", name="Add: bea").click()
    dialog.get_by_role("button", name="reviewer").click()
    settle(page)
    dialog.get_by_role("button", name="Save").click()
    # The project by its id, which stays when it is renamed.
    expect(dialog.get_by_text(re.compile(rf"^{inbox.url}/\?you=bea&project=[0-9a-f-]{{36}}$"))).to_be_visible()
    assert "bea  annotator, reviewer" in inbox.run("users", "list")
    for name, answer in (("bea", "free"), ("lead", "Free.")):
        annotator = Annotator(page, inbox.url, name, "Pairs")
        annotator.thought.fill("Which one?")
        annotator.fill("Address", "x@y.example")
        annotator.run()
        page.keyboard.press("Control+Shift+Enter")
        annotator.fill("Final answer", answer)
        page.keyboard.press("Control+Enter")
        expect(page.get_by_text("Submitted for review.")).to_be_visible()
    open_project(page, inbox, "Pairs", "agreement")
    answers = page.get_by_label("Agreement by measure").locator("tbody tr").first
    expect(answers.locator("td").nth(5)).to_have_text("100%")
    expect(page.get_by_label("By pair of people").locator("tbody tr").first).to_contain_text("bea")


def test_two_people_who_save_different_settings_keep_both(page: Page, inbox: Showhow):
    inbox.run("project", "create", "Shared", "--tools", "find_plan", "--instruction", "Sort.")
    other = page.context.new_page()
    for view in (page, other):
        open_project(view, inbox, "Shared", "settings")
    page.get_by_label("Guidelines (Markdown)").fill("Read it twice.")
    page.get_by_label("Guidelines (Markdown)").press("Control+Enter")
    expect(page.get_by_text("Saved.")).to_be_visible()
    for instruction in ("Sort the mail.", "Sort all mail."):
        other.get_by_label("Instruction", exact=True).fill(instruction)
        other.get_by_label("Instruction", exact=True).press("Control+Enter")
        settle(other)
    other.reload()
    settle(other)
    expect(other.get_by_label("Instruction", exact=True)).to_have_value("Sort all mail.")
    expect(other.get_by_label("Guidelines (Markdown)")).to_have_value("Read it twice.")
    page.get_by_label("Instruction", exact=True).fill("Throw it away.")
    page.get_by_label("Instruction", exact=True).press("Control+Enter")
    expect(page.get_by_text("Somebody else has changed the instruction of the project")).to_be_visible()
    assert "Sort all mail." in inbox.run("project", "show", "Shared")


def test_the_last_tool_of_a_project_without_a_world_stays(page: Page, inbox: Showhow):
    inbox.run("project", "create", "Tool", "--tools", "find_plan")
    open_project(page, inbox, "Tool", "settings")
    page.get_by_role("button", name="Remove Find plan").click()
    expect(page.get_by_text("has no world, so it needs tools of its own")).to_be_visible()
    settle(page)
    expect(page.get_by_role("button", name="Remove Find plan")).to_be_visible()
    assert "tools find_plan" in inbox.run("project", "show", "Tool")
