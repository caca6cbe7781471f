import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import HOSTILE
from tests.browser.server import Showhow
from tests.browser.visitor import Visitor
from tests.reasoners.scripted import until

pytestmark = pytest.mark.long

MARKUP = "<b>bold</b> **stars** $x^2$ <img src=x onerror=\"document.title='broken'\">"
NASTY = {
    "id": "nasty",
    "text": f"Who is {MARKUP}?",
    "kind": MARKUP,
    "answers": [{"text": MARKUP, "entity": None}],
    "difficulty": 2,
    "hops": 1,
    "needs": [["text"], [MARKUP]],
    "sparql": f"# {MARKUP}\nASK {{ ?a ?b ?c }}",
    "tree": {
        "number": 0,
        "question": MARKUP,
        "answers": [{"text": MARKUP}],
        "count": 1,
        "children": [{"number": 1, "question": MARKUP, "operator": "Search", "arguments": [MARKUP], "answers": []}],
    },
    "triples": {"decomposition": [[MARKUP] * 3], "completed": [{"subject": MARKUP, "relation": MARKUP, "object": "o"}]},
    "subquestions": [{"question": MARKUP, "answers": [{"text": MARKUP}], "facts": [MARKUP], "retrieval": True}],
}


@pytest.fixture(scope="module")
def home(real: Showhow, shared_data: Path) -> Iterator[Showhow]:
    """The server with a published instance of PhantomWiki, and a world whose questions contain markup."""
    folder = shared_data / "phantomwiki" / "depth_20_size_50_seed_1"
    real.run("world", "import", "phantom", "--format", "phantomwiki", "--articles", str(folder))
    file = real.home / "worlds" / "hostile" / "questions.jsonl"
    file.write_text(json.dumps(NASTY) + "\n" + json.dumps({"text": "Another?", "id": "other"}) + "\n")
    yield real
    file.unlink()


def worlds_of(home: Showhow) -> set[str]:
    return {path.name for path in (home.home / "worlds").iterdir()}


def test_a_world_is_generated_while_the_page_is_reloaded(page: Page, home: Showhow):
    ann = Visitor(page, home.url, "ann")
    ann.open()
    ann.press("Alt+G")
    expect(ann.dialog).to_contain_text("Number of people.")
    ann.fill("Name", "no name!")
    ann.dialog.get_by_role("button", name="Generate").click()
    expect(ann.dialog).to_contain_text("cannot name a world")
    ann.fill("Name", "hostile")
    ann.dialog.get_by_role("button", name="Generate").click()
    expect(ann.dialog).to_contain_text("There is already a world 'hostile'")
    ann.fill("Name", "townsfolk")
    ann.fill("People", "120")
    ann.dialog.get_by_text("More options").click()
    ann.fill("Questions of each template", "1")
    ann.fill("Pairs with and without a fact", "2")
    ann.dialog.get_by_role("button", name="Generate").click()
    expect(ann.dialog).to_have_count(0)
    page.reload()
    # The job runs in the server, independently of the page.
    expect(page.get_by_text("townsfolk is ready")).to_be_visible(timeout=60_000)
    page.locator(".st-key-see_townsfolk button").click()
    expect(page.locator("h2.world")).to_have_text("townsfolk")
    expect(page.locator(".st-key-sizes")).to_contain_text("120")
    about = json.loads(home.run("world", "info", "townsfolk", "--json"))
    assert (about["people"], about["seed"], about["per_template"], about["pairs"]) == (120, 1, 1, 2)
    expect(page.locator(".st-key-sizes")).to_contain_text(f"{about['triples']:,}")
    expect(page.get_by_role("region", name="Facts by source")).to_contain_text("birthplace")
    ann.click(f"Show the {about['questions']:,} questions")
    row = json.loads(home.run("world", "questions", "townsfolk", "--limit", "1", "--json"))[0]
    expect(page.locator("h2.question")).to_have_text(row["text"])
    page.get_by_role("tab", name="Atomic tree").click()
    expect(page.get_by_role("tabpanel", name="Atomic tree")).to_contain_text(row["tree"]["children"][0]["question"])
    page.get_by_role("tab", name="Trace").click()
    ann.click("Make the trace")
    expect(page.locator("li.step").first).to_be_visible()
    expect(page.locator(".answers")).to_contain_text(row["answers"][0]["text"])


def test_a_stopped_generation_leaves_no_world(page: Page, home: Showhow):
    before = worlds_of(home)
    bea = Visitor(page, home.url, "bea")
    bea.open()
    bea.press("Alt+G")
    bea.fill("Name", "metropolis")
    bea.fill("People", "150000")
    bea.dialog.get_by_role("button", name="Generate").click()
    panel = page.locator(".st-key-job_metropolis")
    expect(panel).to_contain_text("Generating metropolis")
    # The panel shows the progress of a stage, so the work has begun.
    expect(panel).to_contain_text(re.compile(r"\d a second"), timeout=60_000)
    assert len(worlds_of(home)) > len(before)
    panel.get_by_role("button", name="Stop").click()
    expect(panel).to_contain_text("was stopped after", timeout=40_000)
    assert worlds_of(home) == before
    panel.get_by_role("button", name="Dismiss").click()
    expect(panel).to_have_count(0)


def test_a_question_file_is_shown_before_its_questions_are_imported(page: Page, home: Showhow):
    home.appoint("dan")
    dan = Visitor(page, home.url, "dan")
    dan.open("hostile", view="questions")
    dan.press("Alt+U")
    upload = dan.dialog.locator("input[type=file]")
    importing = dan.dialog.get_by_role("button", name=re.compile("^Import [0-9]"))

    def choose(name: str, *records: object) -> None:
        lines = "\n".join(json.dumps(record) for record in records)
        upload.set_input_files({"name": name, "mimeType": "", "buffer": lines.encode()})
        dan.settle()

    choose("things.jsonl", {"input": "Ada", "target": "x"})
    expect(dan.dialog).to_contain_text("No column is called question or text. Choose under Columns which one")
    expect(importing).to_have_count(0)

    choose("bare.jsonl", {"question": MARKUP})
    expect(dan.dialog).to_contain_text("none of its 1 questions has a gold answer")
    expect(importing).to_be_disabled()
    dan.dialog.get_by_text("Import them without gold answers").click()
    expect(importing).to_be_enabled()

    answer = {"answerType": "entity", "answer": [{"name": "Q1", "label": MARKUP}], "mention": "x"}
    good = {"id": "m1", "question": f"Who is {MARKUP}?", "complexityType": "generic", "answer": answer}
    choose("mixed.jsonl", good, {**good, "question": " "}, {**good, "question": ""}, *([good] * 6))
    expect(dan.dialog.locator(".st-key-survey_figures")).to_contain_text("mintaka")
    unread = dan.dialog.get_by_role("region", name="Records that cannot be read")
    expect(unread).to_contain_text("the field 'question' is blank")
    expect(unread).to_contain_text("line 2")
    preview = dan.dialog.get_by_role("region", name="The first questions")
    expect(preview.locator("tbody tr")).to_have_count(5)
    expect(preview).to_contain_text(f"Who is {MARKUP}?")
    dan.fill("Project", "Uploads")
    dan.fill("Split", "dev")
    importing.click()
    expect(page.get_by_text("Uploads: 1 question added, 6 existed already")).to_be_visible()
    (question,) = json.loads(home.run("questions", "list", "--project", "Uploads", "--json"))
    assert question["answers"] == [{"text": MARKUP, "entity": "Q1", "aliases": ["x"]}]
    assert page.title() != "broken"
    # The process of the import removes the upload after it has said what it did.
    until(lambda: not list((home.home / "uploads").glob("*")))


def test_a_world_is_imported_from_an_upload_and_a_malformed_file_is_reported(page: Page, home: Showhow):
    cleo = Visitor(page, home.url, "cleo")
    cleo.open()
    cleo.press("Alt+I")
    cleo.fill("Name", "mended")
    cleo.dialog.get_by_role("button", name="Import").click()
    expect(cleo.dialog).to_contain_text("Choose what to import")
    article = {"title": "A lamp", "text": "A lamp gives light."}
    uploads = cleo.dialog.locator("input[type=file]")
    uploads.first.set_input_files({"name": "x.jsonl", "mimeType": "", "buffer": b'{"title": "A lamp"}\n'})
    cleo.settle()
    cleo.dialog.get_by_role("button", name="Import").click()
    panel = page.locator(".st-key-job_mended")
    expect(panel).to_contain_text("'text' and 'sentences' are both missing", timeout=30_000)
    assert "mended" not in worlds_of(home)
    panel.get_by_role("button", name="Dismiss").click()
    cleo.settle()
    cleo.press("Alt+I")
    cleo.fill("Name", "mended")
    buffer = json.dumps(article).encode()
    cleo.dialog.locator("input[type=file]").first.set_input_files({"name": "x.jsonl", "mimeType": "", "buffer": buffer})
    cleo.settle()
    cleo.dialog.get_by_role("button", name="Import").click()
    expect(panel).to_contain_text("mended is ready", timeout=30_000)
    cleo.open("mended", view="look", title="A lamp")
    expect(page.locator(".article")).to_contain_text("A lamp gives light.")
    expect(page.get_by_text("This world has no graph.")).to_be_visible()
    cleo.press("Alt+3")
    expect(page.get_by_text("no graph to query")).to_be_visible()
    cleo.press("Alt+4")
    expect(page.get_by_text("This world has no questions of its own.")).to_be_visible()


def test_files_of_the_import_folder_are_offered_to_administrators_and_errors_shown_to_them_only(
    page: Page, home: Showhow
):
    offered = home.home / "offered"
    (offered / "deep").mkdir(parents=True)
    (offered / "good.jsonl").write_text('{"title": "An anchor", "text": "An anchor holds a ship."}\n')
    (offered / "deep" / "bad.jsonl").write_text("secret beginning\n")
    (offered / "link.jsonl").symlink_to(home.home / "hostile.jsonl")
    home.appoint("ivy")
    ivy = Visitor(page, home.url, "ivy")
    ivy.open()
    panel = page.locator(".st-key-job_offered")
    for file in ("deep/bad.jsonl", "good.jsonl"):
        ivy.press("Alt+I")
        ivy.fill("Name", "offered")
        ivy.choose("Files on the server")
        expect(ivy.dialog).to_contain_text(f"From the folder {offered} of the server.")
        ivy.dialog.get_by_label("Articles", exact=True).click()
        expect(page.get_by_role("option")).to_have_text(["deep/", "deep/bad.jsonl", "good.jsonl"])
        page.get_by_role("option", name=file, exact=True).click()
        ivy.settle()
        ivy.dialog.get_by_role("button", name="Import").click()
        if file == "good.jsonl":
            break
        expect(panel).to_contain_text("bad.jsonl, line 1: invalid JSON", timeout=30_000)
        kim = Visitor(page, home.url, "kim")
        kim.open()
        expect(panel).to_contain_text("was not made; an administrator can see why.")
        expect(panel).not_to_contain_text("bad.jsonl")
        expect(page.get_by_role("button", name="Import a world")).to_have_count(0)
        ivy.open()
        panel.get_by_role("button", name="Dismiss").click()
        ivy.settle()
    expect(panel).to_contain_text("offered is ready", timeout=30_000)
    # An administrator who is none any more when the button is pressed imports nothing.
    ivy.press("Alt+I")
    ivy.fill("Name", "later")
    home.run("users", "role", "ivy", "annotator")
    ivy.dialog.get_by_role("button", name="Import").click()
    expect(ivy.dialog).to_contain_text("showhow users role ivy")
    assert "later" not in worlds_of(home)


def test_an_article_links_to_graph_facts_and_to_a_family_tree(page: Page, home: Showhow):
    dee = Visitor(page, home.url, "dee")
    dee.open("phantom", view="look")
    expect(page.get_by_text("start with one of these")).to_be_visible()
    dee.fill("Search", "physician")
    dee.choose("entities")
    page.get_by_label("Search", exact=True).fill("Aida Wang")
    page.keyboard.press("Enter")
    dee.settle()
    page.locator(".st-key-hits button").first.click()
    dee.settle()
    expect(page.locator(".article h3")).to_have_text("Aida Wang")
    drawing = page.get_by_role("group", name="Graph facts of Aida Wang")
    expect(drawing).to_contain_text("occupation")
    tree = page.get_by_role("group", name="Family tree")
    expect(tree.locator(".centre")).to_contain_text("Aida Wang")
    relative = tree.get_by_role("button").first
    name = (relative.locator(".label").text_content() or "").strip()
    relative.focus()
    page.keyboard.press("Enter")
    dee.settle()
    expect(page.locator(".article h3")).to_have_text(name)
    expect(tree.locator(".centre")).to_contain_text(name)
    expect(tree).to_contain_text("Aida Wang")
    dee.choose("family in the graph")
    expect(tree.locator(".centre")).to_contain_text(name)
    page.reload()
    expect(page.locator(".article h3")).to_have_text(name)


def test_the_console_has_the_limits_and_messages_of_the_tool(page: Page, home: Showhow):
    eva = Visitor(page, home.url, "eva")
    eva.open("real", view="query")
    eva.click("some names")
    eva.press("Control+Enter")
    result = page.get_by_role("region", name="Result of the query")
    expect(result.locator("tbody tr")).to_have_count(20)
    eva.ask("SELECT ?a WHERE { ?a ?b ?c }")
    expect(page.get_by_text("1,000 rows; there are more")).to_be_visible()
    expect(result.locator("tbody tr")).to_have_count(1000)
    eva.ask("SELECT (COUNT(*) AS ?n) WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }")
    expect(page.get_by_role("alert")).to_contain_text("stopped at its limit of 2 s")
    eva.ask("SELEKT nonsense")
    expect(page.get_by_role("alert")).to_contain_text("not a valid SELECT or ASK")
    eva.ask("DELETE WHERE { ?a ?b ?c }")
    expect(page.get_by_role("alert")).to_be_visible()
    eva.ask("ASK { wd:Q1365431 wdt:P19 ?place }")
    expect(page.get_by_text("Yes ·")).to_be_visible()
    eva.ask("SELECT ?place WHERE { wd:Q1365431 wdt:P19 ?place }")
    result.get_by_role("button", name="Sonnac").click()
    eva.settle()
    expect(page.get_by_role("group", name="Graph facts of Sonnac")).to_be_visible()


def test_a_question_is_searched_opened_and_annotated(page: Page, home: Showhow):
    fay = Visitor(page, home.url, "fay")
    fay.open("phantom", view="questions")
    expect(page.get_by_text("Question 1 of 500")).to_be_visible()
    first = page.locator("h2.question").text_content()
    fay.press("Alt+N")
    expect(page.get_by_text("Question 2 of 500")).to_be_visible()
    expect(page.locator("h2.question")).not_to_have_text(first or "")
    fay.press("Alt+P")
    expect(page.locator("h2.question")).to_have_text(first or "")
    fay.fill("Search", "occupation is theatre manager")
    count = page.get_by_text(re.compile(r"Question 1 of \d+$"))
    expect(count).not_to_have_text("Question 1 of 500")
    text = page.locator("h2.question").text_content() or ""
    assert "occupation is theatre manager" in text
    answers = page.get_by_role("region", name="Gold answers")
    expect(answers.get_by_role("button").first).to_be_visible()
    fay.press("Alt+A")
    expect(page.locator("h1")).to_have_text(text)
    page.wait_for_selector(".st-key-acts")
    listed = json.loads(home.run("questions", "list", "--project", "phantom", "--json"))
    assert [question["text"] for question in listed] == [text]
    assert listed[0]["answers"]
    # Nothing is reserved before something is typed. Annotating again opens the same question and adds no second one.
    assert json.loads(home.run("traces", "list", "--project", "phantom", "--status", "all", "--json")) == []
    url = page.url
    fay.open("phantom", view="questions")
    fay.fill("Search", "occupation is theatre manager")
    fay.press("Alt+A")
    page.wait_for_selector(".st-key-acts")
    expect(page.locator("h1")).to_have_text(text)
    assert page.url == url
    assert len(json.loads(home.run("questions", "list", "--project", "phantom", "--json"))) == 1


def test_texts_of_a_world_and_its_questions_are_never_markup(page: Page, home: Showhow):
    gil = Visitor(page, home.url, "gil")
    gil.open("hostile", view="look")
    gil.fill("Search", "title")
    hits = page.locator(".st-key-hits")
    expect(hits).to_contain_text(HOSTILE[0]["title"])
    expect(hits).to_contain_text("<b>mark-up</b> & **stars** in it.")
    gil.open("hostile", view="look", title=HOSTILE[0]["title"])
    expect(page.locator(".article h3")).to_have_text(HOSTILE[0]["title"])
    expect(page.locator(".article")).to_contain_text("<b>mark-up</b> & **stars**")
    gil.open("hostile", view="questions")
    main = page.get_by_test_id("stMain")
    expect(page.locator("h2.question")).to_have_text(NASTY["text"])
    for part in ("Query", "Atomic tree", "Triples", "Sub-questions", "Everything"):
        page.get_by_role("tab", name=part).click()
        gil.settle()
        expect(page.get_by_role("tabpanel", name=part)).to_contain_text("**stars**")
    gil.press("Alt+1")
    chart = page.locator(".st-key-chart_needs [aria-label*='Sources that a question needs']").first
    expect(chart).to_have_attribute("aria-label", re.compile(re.escape(MARKUP)))
    assert main.locator("img, b, script").count() == 0
    gil.open("<img src=x>")
    expect(page.get_by_text("There is no world '<img src=x>'")).to_be_visible()
    assert "broken" not in page.title()


def test_a_page_opened_by_its_url_has_its_styles_as_first_page_of_a_new_server(page: Page, tmp_path: Path):
    fresh = Showhow(tmp_path)
    fresh.start()
    try:
        hal = Visitor(page, fresh.url, "hal")
        hal.open()
        expect(page.get_by_role("link", name="Annotate")).to_be_visible()
        expect(page.locator("h2.world")).to_have_text("default")
        assert (
            page.evaluate("getComputedStyle(document.querySelector('.st-key-masthead')).borderBottomStyle") == "solid"
        )
        page.evaluate("document.activeElement.blur()")
        hal.press("?")
        expect(hal.dialog).to_contain_text("Annotate the open question")
        hal.press("Escape")
        hal.press("Alt+I")
        expect(hal.dialog).to_contain_text("Articles, a graph, or both.")
        # No folder is named to import from.
        expect(hal.dialog.get_by_text("Files on the server")).to_have_count(0)
    finally:
        fresh.stop()
