"""A team's lead in the browser: the list of questions, tags and assignments, the table of answers, and gold answers."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path

import openpyxl
import pytest
from playwright.sync_api import Page, WebSocket, expect

from showhow.db.database import Database
from showhow.db.people import users
from showhow.db.questions import projects
from showhow.db.review import review
from showhow.db.traces import recording
from showhow.db.traces.recording import TraceAnswers
from tests.browser.annotator import Annotator
from tests.browser.server import Showhow
from tests.browser.settled import PATIENCE, settle
from tests.browser.visitor import Visitor

pytestmark = pytest.mark.long

GOLD = "Zanzibar Hidden"
PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c626001000000ffff030000060005"
    "57bfabd40000000049454e44ae426082"
)


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    """A project of 60 questions; Ada and Ben have answered the first one, and Lea leads them."""
    showhow = Showhow(tmp_path_factory.mktemp("team"))
    showhow.appoint("lea")
    rows = [{"question": f"Who owns quay {n}?", "answer": GOLD, "kind": "quay"} for n in range(60)]
    (showhow.home / "quays.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    showhow.run("questions", "import", str(showhow.home / "quays.jsonl"), "--project", "Quays", "--world", "default")
    database = Database(f"sqlite:///{showhow.home / 'showhow.db'}")
    with database.begin() as session:
        users.register_user(session, "rita")
        users.set_roles(session, "rita", [users.REVIEWER])
        lea = users.find_user(session, "lea")
        question = projects.list_questions(session, projects.get_project(session, "Quays").id)[0]
        for name, text in (("ada", "=Ada"), ("ben", "Ben")):
            author = users.register_user(session, name)
            trace = recording.start_trace(session, question.id, author.id)
            recording.begin_step(session, trace.id, recording.NewStep("so"), seen=trace.version, by=author.id)
            recording.submit_trace(session, trace.id, TraceAnswers(text), seen=trace.version, by=author.id)
            if name == "ada":
                review.approve_trace(session, trace.id, seen=trace.version, by=lea.id, comment="Well done.")
    database.close()
    showhow.start()
    yield showhow
    showhow.stop()


def open_project(page: Page, team: Showhow, person: str, view: str, **query: str) -> Visitor:
    visitor = Visitor(page, team.url, person)
    further = "".join(f"&{name}={value}" for name, value in query.items())
    page.goto(f"{team.url}/project?you={person}&project=Quays&view={view}{further}")
    page.wait_for_selector(".st-key-product_header")
    page.wait_for_load_state("networkidle")
    visitor.settle()
    return visitor


def choose(page: Page, label: str, option: str) -> None:
    page.get_by_label(label, exact=True).first.click()
    page.get_by_role("option", name=option, exact=True).click()
    settle(page)


def test_a_lead_filters_tags_and_assigns_questions_and_people_get_theirs_first(page: Page, team: Showhow):
    lea = open_project(page, team, "lea", "questions")
    table = page.get_by_role("region", name="Questions")
    expect(page.get_by_text("1–25 of 60 questions")).to_be_visible()
    expect(table).to_contain_text(GOLD)
    lea.fill("Page of 3", "3")
    expect(page.get_by_text("51–60 of 60 questions")).to_be_visible()
    for number in ("58", "60"):
        table.get_by_label(f"Mark {number}").check()
        settle(page)
    lea.click("Previous")
    table.get_by_label("Mark 26").check()
    expect(page.get_by_text("26–50 of 60 questions · 3 marked")).to_be_visible()
    lea.click("Change several")
    lea.dialog.get_by_label("Tag").fill("hard")
    page.get_by_role("option", name="Add: hard").click()
    settle(page)
    lea.dialog.get_by_role("button", name="Add tag").click()
    expect(page.get_by_text("3 questions now tagged hard.")).to_be_visible()
    choose(page, "Tag", "hard")
    expect(page.get_by_text("1–3 of 3 questions")).to_be_visible()
    lea.click("Change several")
    expect(lea.dialog.get_by_text("All 3 that match the filters")).to_be_visible()
    lea.dialog.get_by_role("combobox", name="Assign to").click()
    page.get_by_role("option", name="ben").click()
    page.keyboard.press("Escape")
    settle(page)
    if not lea.dialog.count():
        lea.click("Change several")
    lea.dialog.get_by_role("button", name="Assign", exact=True).click()
    expect(page.get_by_text("3 questions assigned to ben.")).to_be_visible()
    expect(table).to_contain_text("for ben")
    choose(page, "Tag", "any")
    choose(page, "Person", "ben")
    expect(page.get_by_text("1–4 of 4 questions")).to_be_visible()
    page.goto(f"{team.url}/?you=ben&project=Quays")
    expect(page.locator("h1").first).to_have_text("Who owns quay 25?")


def test_many_questions_are_archived_at_once_and_restored_and_reviewers_assign_them(page: Page, team: Showhow):
    lea = open_project(page, team, "lea", "questions")
    table = page.get_by_role("region", name="Questions")
    for number in ("1", "3"):
        table.get_by_label(f"Mark {number}", exact=True).check()
        settle(page)
    lea.click("Change several")
    lea.dialog.get_by_text("Archive or delete").click()
    goes = "Question Who owns quay 0? with 2 traces and 1 other question."
    expect(lea.dialog).to_contain_text(goes)
    lea.dialog.get_by_role("button", name="Archive").click()
    expect(page.get_by_text("1–25 of 58 questions")).to_be_visible()
    expect(page.get_by_text("marked")).to_have_count(0)
    page.goto(f"{team.url}/settings?you=lea&project=Quays&view=removed")
    row = page.locator("[class*=st-key-removed_]").filter(has_text=goes.removesuffix("."))
    row.get_by_role("button", name="Restore").click()
    expect(page.get_by_text("Restored:")).to_be_visible()
    rita = open_project(page, team, "rita", "questions")
    expect(page.get_by_text("1–25 of 60 questions")).to_be_visible()
    table.get_by_label("Mark 20").check()
    settle(page)
    rita.click("Change several")
    expect(rita.dialog.get_by_text("Archive or delete")).to_have_count(0)
    rita.dialog.get_by_role("button", name="Open to everybody").click()
    expect(page.get_by_text("1 question open to everybody.")).to_be_visible()


def test_a_name_leads_to_the_answers_of_a_person_and_the_table_is_downloaded(page: Page, team: Showhow, tmp_path: Path):
    lea = open_project(page, team, "lea", "overview")
    over_time = page.get_by_role("region", name="What each person has submitted over time")
    expect(over_time.locator("tbody tr").filter(has_text="ada").locator("td").nth(3)).to_have_text("1")
    page.get_by_role("region", name="What each person has done").get_by_role("button", name="ada").click()
    lea.settle()
    table = page.get_by_role("region", name="Answers of people")
    expect(table.locator("tbody tr")).to_have_count(1)
    expect(table).to_contain_text("Well done.")
    choose(page, "Person", "everybody")
    expect(table.locator("tbody tr")).to_have_count(2)
    files = {}
    for label in ("CSV", "Excel"):
        with page.expect_download() as download:
            page.get_by_role("button", name=label, exact=True).click()
        files[label] = tmp_path / download.value.suggested_filename
        download.value.save_as(files[label])
    (ada, ben) = csv.DictReader(io.StringIO(files["CSV"].read_text(encoding="utf-8"), newline=""))
    assert (ada["person"], ada["answer"], ada["gold"], ada["comment"]) == ("ada", "'=Ada", GOLD, "Well done.")
    assert (ben["agreement"], ben["status"]) == ("0.0", "submitted")
    rows = list(openpyxl.load_workbook(files["Excel"]).active.iter_rows(values_only=True))
    assert [row[4] for row in rows] == ["answer", "'=Ada", "Ben"]
    page.keyboard.press("Alt+e")
    choose(page, "Traces", "submitted and approved (2)")
    expect(page.get_by_role("button", name="Download 2 traces")).to_be_visible()


def test_no_gold_answer_is_sent_to_a_person_who_annotates_until_the_project_shows_them(page: Page, team: Showhow):
    received: list[bytes] = []

    def listen(socket: WebSocket) -> None:
        socket.on("framereceived", lambda data: received.append(data if isinstance(data, bytes) else data.encode()))

    page.on("websocket", listen)
    for view in ("questions", "answers", "overview", "settings"):
        open_project(page, team, "ben", view)
    expect(page.get_by_role("button", name="Save")).to_have_count(0)
    open_project(page, team, "ben", "answers")
    expect(page.get_by_role("region", name="Answers of people").locator("tbody tr")).to_have_count(1)
    for path in ("", "library", "worlds?view=questions", "compare", "verify"):
        page.goto(f"{team.url}/{path}{'&' if '?' in path else '?'}you=ben&project=Quays")
        page.wait_for_selector(".st-key-product_header")
        page.wait_for_load_state("networkidle")
        settle(page)
    assert len(received) > 10
    assert not any(GOLD.encode() in data for data in received)
    team.run("project", "edit", "Quays", "--show-gold")
    open_project(page, team, "ben", "questions")
    expect(page.get_by_role("region", name="Questions")).to_contain_text(GOLD)
    assert any(GOLD.encode() in data for data in received)
    team.run("project", "edit", "Quays", "--hide-gold")


def test_the_members_list_has_what_was_saved_and_guidelines_show_an_uploaded_picture(
    page: Page, team: Showhow, tmp_path: Path
):
    lea = open_project(page, team, "lea", "settings")
    page.keyboard.press("Alt+m")
    lea.dialog.get_by_label("Add or change").fill("dora")
    page.get_by_role("option", name="Add: dora").click()
    settle(page)
    lea.dialog.get_by_role("button", name="Save").click()
    expect(lea.dialog.get_by_text("With this link dora opens the project")).to_be_visible()
    expect(lea.dialog.get_by_role("region", name="People and their roles")).to_contain_text("dora")
    # The link of a person who is here already is shown again.
    lea.dialog.get_by_label("Add or change").click()
    page.get_by_role("option", name="ben").click()
    expect(lea.dialog.get_by_text("With this link ben opens the project")).to_be_visible()
    page.keyboard.press("Escape")
    settle(page)
    (tmp_path / "the map.png").write_bytes(PIXEL)
    page.get_by_text("Pictures", exact=True).click()
    page.get_by_test_id("stFileUploaderDropzoneInput").set_input_files(tmp_path / "the map.png")
    expect(page.get_by_text("![the map](the%20map.png)")).to_be_visible()
    page.get_by_label("Guidelines (Markdown)").fill("At ![the map](the%20map.png), not ![x](https://h.example/x.png).")
    page.get_by_label("Guidelines (Markdown)").press("Control+Enter")
    expect(page.get_by_text("Saved.")).to_be_visible()
    Annotator(page, team.url, "ben", "Quays")
    page.keyboard.press("Alt+g")
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("img", name="the map")).to_be_visible()
    assert dialog.get_by_role("img", name="the map").evaluate("image => image.naturalWidth") == 1
    expect(dialog.get_by_role("img")).to_have_count(1)
    expect(dialog.get_by_role("link", name="x")).to_have_attribute("href", "https://h.example/x.png")


def test_a_folder_that_is_chosen_in_the_browser_becomes_a_world(page: Page, team: Showhow, tmp_path: Path):
    folder = tmp_path / "harbour"
    (folder / "deep").mkdir(parents=True)
    (folder / "gull.md").write_text("# The Gull\n\nThe Gull is a ship.", encoding="utf-8")
    (folder / "deep" / "gull.txt").write_text("The other Gull is a bird of the harbour.", encoding="utf-8")
    (folder / "deep" / "program.exe").write_bytes(b"MZ")
    lea = Visitor(page, team.url, "lea")
    lea.open()
    lea.press("Alt+i")
    lea.fill("Name", "gulls")
    lea.dialog.get_by_text("A folder", exact=True).click()
    lea.settle()
    page.set_default_timeout(PATIENCE)
    lea.dialog.locator("input[type=file]").first.set_input_files(folder)
    lea.settle()
    lea.dialog.get_by_role("button", name="Import", exact=True).click()
    page.locator(".st-key-see_gulls button").click(timeout=120_000)
    lea.settle()
    titles = {article["title"] for article in json.loads(team.run("world", "search", "gulls", "Gull", "--json"))}
    assert titles == {"The Gull", "gull"}
