import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import HOSTILE
from tests.browser.server import Showhow
from tests.browser.visitor import Visitor

pytestmark = pytest.mark.xdist_group("browser")
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
    """The server over real texts, with a published instance of PhantomWiki and a world that tries to be mark-up."""
    folder = shared_data / "phantomwiki" / "depth_20_size_50_seed_1"
    real.run("world", "import", "phantom", "--format", "phantomwiki", "--articles", str(folder))
    file = real.home / "worlds" / "hostile" / "questions.jsonl"
    file.write_text(json.dumps(NASTY) + "\n" + json.dumps({"text": "Another?", "id": "other"}) + "\n")
    yield real
    file.unlink()


def worlds_of(home: Showhow) -> set[str]:
    return {path.name for path in (home.home / "worlds").iterdir()}


def test_a_world_is_generated_by_the_form_while_the_page_is_reloaded(page: Page, home: Showhow):
    ann = Visitor(page, home.url, "ann")
    ann.look()
    ann.press("Alt+G")
    expect(ann.dialog).to_contain_text("Number of people.")
    ann.fill("Name", "no name!")
    ann.dialog.get_by_role("button", name="Generate").click()
    expect(ann.dialog).to_contain_text("cannot name a world")
    ann.fill("Name", "hostile")
    ann.dialog.get_by_role("button", name="Generate").click()
    expect(ann.dialog).to_contain_text("There is a world 'hostile' already")
    ann.fill("Name", "townsfolk")
    ann.fill("People", "120")
    ann.dialog.get_by_text("More options").click()
    ann.fill("Questions of each template", "1")
    ann.dialog.get_by_role("button", name="Generate").click()
    expect(ann.dialog).to_have_count(0)
    page.reload()
    # The work goes on in the server, whoever looks.
    expect(page.get_by_text("townsfolk is ready")).to_be_visible(timeout=60_000)
    ann.click("Open")
    expect(page.locator("h1")).to_have_text("townsfolk")
    expect(page.locator(".st-key-sizes")).to_contain_text("120")
    about = json.loads(home.run("world", "info", "townsfolk", "--json"))
    assert (about["people"], about["seed"], about["per_template"]) == (120, 1, 1)
    expect(page.locator(".st-key-sizes")).to_contain_text(f"{about['triples']:,}")
    expect(page.get_by_role("region", name="Facts by source")).to_contain_text("birthplace")
    ann.click(f"See the {about['questions']:,} questions")
    row = json.loads(home.run("world", "questions", "townsfolk", "--limit", "1", "--json"))[0]
    expect(page.locator("h2.question")).to_have_text(row["text"])
    page.get_by_role("tab", name="Atomic tree").click()
    expect(page.get_by_role("tabpanel", name="Atomic tree")).to_contain_text(row["tree"]["children"][0]["question"])
    page.get_by_role("tab", name="Trace").click()
    ann.click("Make the trace")
    expect(page.locator("li.step").first).to_be_visible()
    expect(page.locator(".answers")).to_contain_text(row["answers"][0]["text"])


def test_a_world_that_is_stopped_in_the_middle_leaves_nothing(page: Page, home: Showhow):
    before = worlds_of(home)
    bea = Visitor(page, home.url, "bea")
    bea.look()
    bea.press("Alt+G")
    bea.fill("Name", "metropolis")
    bea.fill("People", "150000")
    bea.dialog.get_by_role("button", name="Generate").click()
    panel = page.locator(".st-key-job_metropolis")
    expect(panel).to_contain_text("Generating metropolis")
    # A stage with its rate: it is in the middle of the work.
    expect(panel).to_contain_text(re.compile(r"\d a second"), timeout=60_000)
    assert len(worlds_of(home)) > len(before)
    panel.get_by_role("button", name="Stop").click()
    expect(panel).to_contain_text("was stopped after", timeout=40_000)
    assert worlds_of(home) == before
    panel.get_by_role("button", name="Dismiss").click()
    expect(panel).to_have_count(0)


def test_a_world_is_imported_from_an_upload_and_a_bad_file_is_told(page: Page, home: Showhow):
    cleo = Visitor(page, home.url, "cleo")
    cleo.look()
    cleo.press("Alt+I")
    cleo.fill("Name", "mended")
    cleo.dialog.get_by_role("button", name="Import").click()
    expect(cleo.dialog).to_contain_text("Name what to import")
    cleo.choose("Upload")
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
    cleo.choose("Upload")
    buffer = json.dumps(article).encode()
    cleo.dialog.locator("input[type=file]").first.set_input_files({"name": "x.jsonl", "mimeType": "", "buffer": buffer})
    cleo.settle()
    cleo.dialog.get_by_role("button", name="Import").click()
    expect(panel).to_contain_text("mended is ready", timeout=30_000)
    cleo.look("mended", view="look", title="A lamp")
    expect(page.locator(".article")).to_contain_text("A lamp gives light.")
    expect(page.get_by_text("This world has no graph.")).to_be_visible()
    cleo.press("Alt+3")
    expect(page.get_by_text("no graph to query")).to_be_visible()
    cleo.press("Alt+4")
    expect(page.get_by_text("no questions of its own")).to_be_visible()


def test_an_article_leads_through_the_graph_to_others_and_to_a_family(page: Page, home: Showhow):
    dee = Visitor(page, home.url, "dee")
    dee.look("phantom", view="look")
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


def test_the_console_has_the_limits_and_the_words_of_the_tool(page: Page, home: Showhow):
    eva = Visitor(page, home.url, "eva")
    eva.look("real", view="query")
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
    expect(page.get_by_role("alert")).to_contain_text("no valid SELECT or ASK")
    eva.ask("DELETE WHERE { ?a ?b ?c }")
    expect(page.get_by_role("alert")).to_be_visible()
    eva.ask("ASK { wd:Q1365431 wdt:P19 ?place }")
    expect(page.get_by_text("Yes ·")).to_be_visible()
    eva.ask("SELECT ?place WHERE { wd:Q1365431 wdt:P19 ?place }")
    result.get_by_role("button", name="Sonnac").click()
    eva.settle()
    expect(page.get_by_role("group", name="Graph facts of Sonnac")).to_be_visible()


def test_a_question_is_found_opened_and_annotated(page: Page, home: Showhow):
    fay = Visitor(page, home.url, "fay")
    fay.look("phantom", view="questions")
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
    # Once more is the same draft, and no second question.
    here = page.url
    fay.look("phantom", view="questions")
    fay.fill("Search", "occupation is theatre manager")
    fay.press("Alt+A")
    page.wait_for_selector(".st-key-acts")
    expect(page.locator("h1")).to_have_text(text)
    assert page.url == here
    assert len(json.loads(home.run("questions", "list", "--project", "phantom", "--json"))) == 1


def test_text_of_a_world_and_its_questions_is_never_markup(page: Page, home: Showhow):
    gil = Visitor(page, home.url, "gil")
    gil.look("hostile", view="look")
    gil.fill("Search", "title")
    hits = page.locator(".st-key-hits")
    expect(hits).to_contain_text(HOSTILE[0]["title"])
    expect(hits).to_contain_text("<b>mark-up</b> & **stars** in it.")
    gil.look("hostile", view="look", title=HOSTILE[0]["title"])
    expect(page.locator(".article h3")).to_have_text(HOSTILE[0]["title"])
    expect(page.locator(".article")).to_contain_text("<b>mark-up</b> & **stars**")
    gil.look("hostile", view="questions")
    main = page.get_by_test_id("stMain")
    expect(page.locator("h2.question")).to_have_text(NASTY["text"])
    for part in ("Query", "Atomic tree", "Triples", "Sub-questions", "Everything"):
        page.get_by_role("tab", name=part).click()
        gil.settle()
        expect(page.get_by_role("tabpanel", name=part)).to_contain_text("**stars**")
    gil.press("Alt+1")
    expect(page.get_by_role("region", name="Sources that a question needs")).to_contain_text(MARKUP)
    assert main.locator("img, b, script").count() == 0
    gil.look("<img src=x>")
    expect(page.get_by_text("There is no world '<img src=x>'")).to_be_visible()
    assert "broken" not in page.title()


def test_a_page_opened_by_its_address_is_dressed_on_a_server_that_nobody_has_seen_yet(page: Page, tmp_path: Path):
    fresh = Showhow(tmp_path)
    fresh.start()
    try:
        hal = Visitor(page, fresh.url, "hal")
        hal.look()
        expect(page.get_by_role("link", name="Annotate")).to_be_visible()
        expect(page.locator("h1")).to_have_text("default")
        assert (
            page.evaluate("getComputedStyle(document.querySelector('.st-key-masthead')).borderBottomStyle") == "solid"
        )
        page.evaluate("document.activeElement.blur()")
        hal.press("?")
        expect(hal.dialog).to_contain_text("Annotate the open question")
    finally:
        fresh.stop()
