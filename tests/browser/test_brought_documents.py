"""What people bring: documents of five kinds and a table with columns of its own become a world and a project."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.server import Showhow
from tests.browser.visitor import Visitor
from tests.worlds.test_documents import MARKDOWN, WRAPPED, make_docx

pytestmark = pytest.mark.long

REPORT = """<h1>Report of the pilots</h1><p>The pilots of Gullhaven guided forty ships last year, and all of them came
to the quay in time and whole, although it was a stormy year.</p><p>Their master is Tilda Moor.</p>"""
TABLE = "sep=;\nNr;Frage;Antwort\n1;Who is the master of the harbour?;Lena Brandt\n2;Who leads the pilots?;Tilda Moor\n"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    showhow = Showhow(tmp_path_factory.mktemp("documents"))
    showhow.appoint("ivy")
    showhow.start()
    yield showhow
    showhow.stop()


@pytest.fixture
def documents(browser: Browser, tmp_path: Path) -> list[Path]:
    """A text, Markdown, HTML, a PDF that a browser made, a Word document, and a file that is none."""
    files = {
        "notes.txt": WRAPPED.encode("cp1252"),
        "harbour.md": MARKDOWN.encode(),
        "gull.html": b"<title>The Gull</title><p>The Gull is a ship.</p>",
        "trade.docx": make_docx([("berschrift1", "Trade"), ("", "Salt comes in spring.")]),
        "broken.docx": b"no document",
    }
    for name, data in files.items():
        (tmp_path / name).write_bytes(data)
    page = browser.new_page()
    page.set_content(REPORT)
    page.pdf(path=tmp_path / "pilots.pdf")
    page.close()
    return [tmp_path / name for name in (*files, "pilots.pdf")]


def check_tools_for_documents(page: Page, ivy: Visitor, project: str) -> None:
    """Where there are only documents, people get the tools for them, and no field for what a graph would say."""
    page.get_by_role("link", name="Annotate", exact=True).click()
    expect(page.get_by_label("Current project")).to_have_value(project)
    tools = page.locator(".st-key-tools [class*=st-key-tool_]")
    expect(tools).to_have_text([re.compile("^Search"), re.compile("^Read")])
    ivy.settle()
    page.get_by_role("button", name="Finish").click()
    expect(page.get_by_label("Answer from the text")).to_be_visible()
    expect(page.get_by_label("Answer from the graph")).to_have_count(0)


def test_documents_and_a_table_become_a_world_and_a_project_in_one_go(
    page: Page, home: Showhow, documents: list[Path], tmp_path: Path
):
    ivy = Visitor(page, home.url, "ivy")
    ivy.open()
    ivy.press("Alt+i")
    ivy.fill("Name", "port")
    ivy.dialog.locator("input[type=file]").first.set_input_files(documents)
    ivy.settle()
    ivy.fill("Project", "Harbour")
    table = tmp_path / "questions.csv"
    table.write_bytes(TABLE.encode("utf-16"))
    ivy.dialog.locator("input[type=file]").last.set_input_files(table)
    ivy.settle()
    # The names of the columns say nothing; the person does.
    expect(ivy.dialog.get_by_text("no column is called question or text")).to_be_visible()
    for meaning, column in (("Question", "frage"), ("Answer", "antwort"), ("Id", "nr")):
        ivy.dialog.get_by_label(meaning, exact=True).click()
        page.get_by_role("option", name=column).click()
        ivy.settle()
    preview = page.get_by_role("region", name="The first questions")
    expect(preview).to_contain_text("Who leads the pilots?")
    expect(preview).to_contain_text("Tilda Moor")
    ivy.dialog.get_by_role("button", name="Import", exact=True).click()
    page.locator(".st-key-see_port button").click(timeout=120_000)
    ivy.settle()
    expect(page.locator("h2.world")).to_have_text("port")
    expect(page.get_by_text("broken.docx: it is damaged")).to_be_visible()
    expect(page.get_by_text("This world has no questions of its own.")).to_be_visible()
    ivy.open("port", view="look", title="The harbour")
    article = page.locator(".article").first
    expect(article.locator("h4")).to_have_text("Ships")
    expect(article.locator("p").first).to_have_text("The harbour was built in 1871. It froze twice.")
    ivy.open("port", view="look", title="pilots")
    expect(article.locator("p").last).to_have_text("Their master is Tilda Moor.")
    ivy.open("port")
    ivy.click("Open Harbour")
    expect(page.locator("h1")).to_contain_text("Harbour")
    page.goto(f"{home.url}/project?you=ivy&project=Harbour&view=questions")
    expect(page.get_by_text("Who is the master of the harbour?").first).to_be_visible()
    check_tools_for_documents(page, ivy, "Harbour")


def test_a_world_without_questions_says_what_to_do(page: Page, home: Showhow, tmp_path: Path):
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("A quay is a place for ships.", encoding="utf-8")
    home.run("world", "import", "quays", "--articles", str(folder))
    ivy = Visitor(page, home.url, "ivy")
    for view in ("overview", "questions"):
        ivy.open("quays", view=view)
        expect(page.get_by_text("This world has no questions of its own.")).to_be_visible()
        expect(page.get_by_role("button", name="Import questions")).to_be_visible()
    ivy.click("Make a project")
    page.wait_for_url("**/project?*view=questions*")
    ivy.open("quays")
    expect(page.get_by_role("button", name="Open quays")).to_be_visible()
