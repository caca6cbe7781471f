import json
import re
import signal
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import BrowserContext, Page, Playwright, expect

from tests.browser.annotator import Annotator
from tests.browser.conftest import HOSTILE, launch
from tests.browser.server import Showhow

pytestmark = pytest.mark.long

QUESTION = "Where was the husband of Octavie Coudreau born?"


def open_question(annotator: Annotator, text: str) -> None:
    """Skip questions, with a reason, until the page shows the one with this text."""
    for _ in range(12):
        if text in (annotator.page.locator("h1").text_content() or ""):
            return
        before = annotator.page.locator("h1").text_content()
        annotator.page.keyboard.press("Alt+K")
        annotator.page.get_by_label("Why?").fill("another one first")
        annotator.page.get_by_role("dialog").get_by_role("button", name="Skip").click()
        annotator.page.wait_for_function("before => document.querySelector('h1')?.textContent !== before", arg=before)
        annotator.settle()
    raise AssertionError(f"the queue never came to {text!r}")


def trace_of(page: Page) -> str:
    return parse_qs(urlparse(page.url).query)["trace"][0]


def ask_the_text(ada: Annotator) -> None:
    """Find the husband in the text: search, then read."""
    ada.wait_for_save(lambda: ada.thought.fill("Who was her husband?"))
    ada.fill("Search for", "Octavie Coudreau")
    hits = ada.run()
    expect(hits).to_contain_text("(from the question)")
    ada.rate(4)
    ada.choose("Alt+2")
    ada.value(hits, "Octavie Coudreau")
    ada.wait_for_save(lambda: ada.thought.fill("Read about her."))
    article = ada.run()
    expect(article).to_contain_text("(from step 1)")
    expect(article.locator("mark").first).to_be_visible()
    ada.rate(5)


def reload_while_typing(ada: Annotator) -> None:
    """Reload the page; the steps and the typed text are kept."""
    ada.choose("Alt+3")
    ada.wait_for_save(lambda: ada.thought.fill("Which entity is Henri Coudreau?"))
    ada.page.reload()
    ada.page.wait_for_selector("li.step")
    ada.settle()
    expect(ada.steps).to_have_count(2)
    expect(ada.thought).to_have_value("Which entity is Henri Coudreau?")
    ada.value(ada.steps.nth(1), "Henri Coudreau")
    ada.run()
    expect(ada.steps.last).to_contain_text("Q1365431")


def undo_a_slip(ada: Annotator) -> None:
    """Run a wrong step and undo it."""
    ada.choose("Alt+6")
    ada.fill("Entities", "Q1365431")
    ada.run()
    ada.page.keyboard.press("Alt+Z")
    expect(ada.steps).to_have_count(3)
    ada.settle()


def fork_and_ask_the_graph(ada: Annotator) -> str:
    """Fork at the third step, query the birthplace and submit the answer; returns the id of the fork."""
    first = trace_of(ada.page)
    ada.steps.nth(2).get_by_role("button", name="Fork here").click()
    ada.page.wait_for_function("first => !location.search.includes(first)", arg=first)
    ada.settle()
    expect(ada.steps).to_have_count(3)
    ada.choose("Alt+5")
    ada.thought.fill("Where was he born?")
    ada.fill("SPARQL query", "SELECT ?place WHERE { wd:Q1365431 wdt:P19 ?place }")
    born = ada.run()
    expect(born).to_contain_text("Sonnac")
    expect(born).to_contain_text("(from step 3)")
    ada.rate(5)
    ada.page.keyboard.press("Control+Shift+Enter")
    ada.settle()
    ada.value(ada.steps.last, "Sonnac")
    expect(ada.page.get_by_label("Final answer")).to_have_value("Sonnac")
    expect(ada.page.get_by_label("Answer from the graph")).to_have_value("Sonnac")
    forked = trace_of(ada.page)
    ada.page.keyboard.press("Control+Enter")
    ada.page.wait_for_function("forked => !location.search.includes(forked)", arg=forked)
    return forked


def approve(page: Page, address: str) -> None:
    """Approve the trace as a reviewer."""
    page.goto(address)
    expect(page.get_by_text("Gold answer:")).to_contain_text("Sonnac")
    expect(page.get_by_role("button", name="Approve", exact=True)).to_be_visible()
    page.wait_for_timeout(500)
    page.keyboard.press("Alt+A")
    expect(page.get_by_text("Approved. The trace is a demonstration now.")).to_be_visible()


def test_a_question_that_needs_both_sources_is_recorded_reviewed_exported_and_imported_elsewhere(
    page: Page, real: Showhow, tmp_path: Path
):
    ada = Annotator(page, real.url, "ada", "2Wiki")
    open_question(ada, QUESTION)
    ask_the_text(ada)
    reload_while_typing(ada)
    undo_a_slip(ada)
    first = trace_of(page)
    forked = fork_and_ask_the_graph(ada)
    approve(page, f"{real.url}/review?you=grace&project=2Wiki&trace={forked}")

    sent, back = tmp_path / "sent.jsonl", tmp_path / "back.jsonl"
    real.run("traces", "export", str(sent), "--status", "approved", "--project", "2Wiki")
    other = Showhow(tmp_path / "other")
    report = json.loads(other.run("traces", "import", str(sent), "--json"))
    assert report["added"] == 1, report
    other.run("traces", "export", str(back), "--status", "approved", "--project", "2Wiki")
    assert back.read_bytes() == sent.read_bytes()
    trace = json.loads(sent.read_text())
    assert first in json.dumps(trace), "the trace knows the one it was forked from"
    assert [step["tool"] for step in trace["steps"]] == ["wikisearch", "read", "getWikiDataID", "runQuery"]
    assert [step["rating"] for step in trace["steps"]] == [4, 5, None, 5]
    assert all(step["active_seconds"] is not None and step["wall_seconds"] > 0 for step in trace["steps"][:2])


def test_typed_text_survives_a_killed_browser_and_a_killed_server(
    playwright: Playwright, real: Showhow, tmp_path: Path
):
    first = launch(playwright)
    bob = Annotator(first.new_page(), real.url, "bob", "2Wiki")
    bob.thought.fill("A step that is on disk.")
    bob.fill("Search for", "river")
    bob.run()
    bob.wait_for_save(lambda: bob.thought.fill("Half a thought, not yet ru"))
    address = bob.page.url
    first.close()
    port = real.port
    real.stop(signal.SIGKILL)
    real.start()
    second = launch(playwright)
    again = Annotator(second.new_page(), real.url, "bob", "2Wiki")
    again.open(address.replace(str(port), str(real.port)))
    expect(again.steps).to_have_count(1)
    expect(again.thought).to_have_value("Half a thought, not yet ru")
    second.close()


def test_two_tabs_on_one_trace_do_not_overwrite_each_other(context: BrowserContext, real: Showhow):
    first_tab = Annotator(context.new_page(), real.url, "carol", "2Wiki")
    second_tab = Annotator(context.new_page(), real.url, "carol", "2Wiki")
    expect(second_tab.page.locator("h1")).to_have_text(first_tab.page.locator("h1").text_content() or "")
    first_tab.thought.fill("from the first tab")
    first_tab.fill("Search for", "first")
    first_tab.run()
    second_tab.thought.fill("from the second tab")
    second_tab.fill("Search for", "second")
    second_tab.page.keyboard.press("Control+Enter")
    expect(second_tab.page.get_by_text("changed in another tab")).to_be_visible()
    expect(second_tab.steps).to_have_count(1)
    expect(second_tab.thought).to_have_value("from the second tab")
    # A retry within 1.5 seconds is refused, since the person cannot have seen the newer state.
    second_tab.page.wait_for_timeout(1600)
    second_tab.run()
    expect(second_tab.steps).to_have_count(2)
    expect(second_tab.steps.first).to_contain_text("from the first tab")


def test_text_from_a_world_is_never_markup(page: Page, real: Showhow):
    dan = Annotator(page, real.url, "dan", "Hostile")
    expect(page.locator("h1")).to_have_text(f"What is **{HOSTILE[0]['title']}**?")
    dan.thought.fill("<script>document.title = 'broken'</script> **b** 😀")
    dan.fill("Search for", "title")
    step = dan.run()
    expect(step).to_contain_text(HOSTILE[0]["title"])
    expect(step).to_contain_text("<b>mark-up</b> & **stars**")
    assert page.locator("li.step img, li.step b, li.step script").count() == 0
    assert "broken" not in page.title()
    dan.choose("Alt+2")
    dan.value(step, HOSTILE[0]["title"])
    article = dan.run()
    expect(article).to_contain_text("<b>mark-up</b> & **stars** in it.")
    expect(article).to_contain_text("😀")


def test_a_thought_of_a_megabyte_is_stored_exactly(page: Page, real: Showhow, tmp_path: Path):
    eve = Annotator(page, real.url, "eve", "Hostile")
    long = ("An endless thought; " * 52_500)[:1_048_576].strip()
    eve.thought.fill(long)
    eve.fill("Search for", "title")
    step = eve.run()
    assert step.locator(".thought").text_content() == long
    real.run("traces", "export", str(tmp_path / "all.jsonl"), "--status", "draft", "--project", "Hostile")
    lines = (tmp_path / "all.jsonl").read_text().splitlines()
    assert long in [step["thought"] for line in lines for step in json.loads(line)["steps"]]


def test_a_failed_tool_shows_its_error_and_the_trace_continues(page: Page, real: Showhow):
    finn = Annotator(page, real.url, "finn", "2Wiki")
    finn.choose("Alt+5")
    finn.fill("SPARQL query", "SELECT (COUNT(*) AS ?n) WHERE { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i }")
    runaway = finn.run()
    expect(runaway.locator(".observation.error")).to_contain_text("2 s")
    finn.fill("SPARQL query", "SELEKT nonsense")
    expect(finn.run().locator(".observation.error")).to_be_visible()
    finn.fill("SPARQL query", "ASK { wd:Q1365431 wdt:P19 ?place }")
    expect(finn.run()).to_contain_text("Yes")


def test_an_empty_form_is_refused_beside_its_button(page: Page, real: Showhow):
    gil = Annotator(page, real.url, "gil", "2Wiki")
    gil.fill("Search for", "")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Fill in “Search for”, then run.")).to_be_visible()
    expect(gil.steps).to_have_count(0)
    page.keyboard.press("Control+Shift+Enter")
    expect(page.get_by_label("Final answer", exact=True)).to_be_visible()
    gil.settle()
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Enter a final answer, or say why the question cannot be answered.")).to_be_visible()


def test_shortcuts_are_unique_shown_and_listed(page: Page, real: Showhow):
    ida = Annotator(page, real.url, "ida", "2Wiki")
    expect(page.get_by_role("button", name="Run", exact=False).last).to_be_visible()
    expect(page.locator(".st-key-finish button")).to_contain_text("Shift")
    labels = [button.text_content() or "" for button in page.get_by_role("button").all()]
    keys = [match.group() for text in labels if (match := re.search(r"(?:Ctrl|Alt) \+ (?:Shift \+ )?\w+", text))]
    assert len(keys) >= 9
    assert len(set(keys)) == len(keys), keys
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Rate the last observation")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    ida.thought.click()
    page.keyboard.type("1?2")
    expect(ida.thought).to_have_value("1?2")


def submit_and_return(jo: Annotator, url: str) -> str:
    """Submit a wrong answer and return it as a reviewer; returns the id of the trace."""
    jo.thought.fill("Anything may tell.")
    jo.fill("Search for", "anything")
    jo.run()
    trace = trace_of(jo.page)
    jo.page.keyboard.press("Control+Shift+Enter")
    jo.settle()
    jo.page.get_by_label("Final answer").fill("wrong")
    jo.page.get_by_label("Final thought").fill("The article says so.")
    jo.page.keyboard.press("Control+Enter")
    jo.page.wait_for_function("trace => !location.search.includes(trace)", arg=trace)
    jo.page.goto(f"{url}/review?you=grace&project=2Wiki&trace={trace}")
    jo.settle()
    jo.page.get_by_role("button", name="Return").click()
    expect(jo.page.get_by_text("Say what is wrong with the trace")).to_be_visible()
    jo.page.get_by_label("Comment").fill("Look at the second article.")
    jo.page.get_by_role("button", name="Return").click()
    expect(jo.page.get_by_text("Returned to its author.")).to_be_visible()
    return trace


def test_returned_work_opens_first_with_its_comment_and_answers(page: Page, real: Showhow):
    jo = Annotator(page, real.url, "jo", "2Wiki")
    trace = submit_and_return(jo, real.url)
    jo = Annotator(page, real.url, "jo", "2Wiki")
    assert trace_of(page) == trace
    notice = page.get_by_role("alert").filter(has_text="Returned by grace:")
    expect(notice).to_contain_text("Look at the second article.")
    queue = page.locator(".st-key-queue button")
    expect(queue).to_contain_text("1 returned")

    # A postponed trace stays in the queue.
    page.get_by_role("button", name="Next question").click()
    page.wait_for_function("trace => !location.search.includes(trace)", arg=trace)
    jo.settle()
    page.keyboard.press("Alt+Q")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Look at the second article.")
    dialog.get_by_role("button", name="Fix").click()
    expect(page.get_by_role("dialog")).to_have_count(0)
    expect(jo.steps).to_have_count(1)
    expect(notice).to_contain_text("Look at the second article.")
    expect(queue).not_to_contain_text("returned")
    page.keyboard.press("Control+Shift+Enter")
    jo.settle()
    expect(page.get_by_label("Final answer")).to_have_value("wrong")
    expect(page.get_by_label("Final thought")).to_have_value("The article says so.")


def test_my_queue_lists_two_drafts_of_one_question_and_minute(page: Page, real: Showhow):
    lea = Annotator(page, real.url, "lea", "2Wiki")
    lea.thought.fill("One step is enough to fork.")
    lea.fill("Search for", "anything")
    lea.run()
    first = trace_of(page)
    lea.steps.first.get_by_role("button", name="Fork here").click()
    page.wait_for_function("first => !location.search.includes(first)", arg=first)
    lea.settle()
    page.keyboard.press("Alt+Q")
    expect(page.get_by_role("dialog").get_by_role("button", name="Continue")).to_have_count(2)
    expect(page.locator(".stException")).to_have_count(0)


def test_a_trace_without_a_step_or_a_thought_is_not_submitted(page: Page, real: Showhow):
    max_ = Annotator(page, real.url, "max", "2Wiki")
    page.keyboard.press("Control+Shift+Enter")
    max_.settle()
    page.get_by_label("Final answer").fill("a guess")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Run at least one step before you submit")).to_be_visible()
    page.keyboard.press("Control+Shift+Enter")
    max_.settle()
    max_.fill("Search for", "anything")
    max_.run()
    page.keyboard.press("Control+Shift+Enter")
    max_.settle()
    page.get_by_label("Final answer").fill("a guess")
    page.keyboard.press("Control+Enter")
    expect(page.get_by_text("Write a thought to at least one step")).to_be_visible()


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Showhow]:
    showhow = Showhow(tmp_path)
    showhow.start()
    yield showhow
    showhow.stop()


def test_an_unusable_database_shows_one_sentence_and_the_page_recovers(page: Page, fresh: Showhow):
    kim = Annotator(page, fresh.url, "kim", "Fictional people")
    kim.thought.fill("This cannot be stored yet.")
    kim.fill("Search for", "anything")
    with sqlite3.connect(fresh.home / "showhow.db", isolation_level=None) as other:
        other.execute("ALTER TABLE step RENAME TO hidden")
        page.keyboard.press("Control+Enter")
        expect(page.get_by_text("not of this program's version").first).to_be_visible(timeout=15_000)
        other.execute("ALTER TABLE hidden RENAME TO step")
    other.close()
    expect(page.locator(".stException")).to_have_count(0)
    page.reload()
    page.wait_for_selector(".st-key-acts")
    kim.settle()
    expect(kim.thought).to_have_value("This cannot be stored yet.")
    kim.run()


def walk_the_graph(uma: Annotator) -> None:
    """Take a step with each of the four tools; every id after the first is clicked."""
    field = uma.page.locator(".st-key-composer").get_by_label
    uma.choose("Alt+7")
    uma.thought.fill("What is known of him?")
    uma.value(uma.steps.last, "Q1365431")
    relations = uma.run()
    expect(relations).to_contain_text("(from step 1)")
    expect(relations.get_by_role("listitem").filter(has_text="place of birth")).to_contain_text("1 fact")

    # The next tool is chosen, and the entity is still the same.
    expect(field("Entity", exact=True)).to_have_value("Q1365431")
    uma.value(relations, "P19")
    expect(field("Relation", exact=True)).to_have_value("P19")
    tails = uma.run()
    expect(tails).to_contain_text("Sonnac")
    expect(tails).to_contain_text("(from step 2)")

    uma.choose("Alt+8")
    place = tails.get_by_role("button", name=re.compile(r"^Q\d+$")).text_content() or ""
    uma.value(tails, place)
    expect(field("Entity", exact=True)).to_have_value(place)
    uma.value(uma.run(), "P19")
    expect(field("Entity", exact=True)).to_have_value(place)
    expect(uma.run()).to_contain_text("Henri Coudreau")


def test_a_person_walks_the_graph_by_clicking_relations_and_entities(page: Page, real: Showhow, tmp_path: Path):
    uma = Annotator(page, real.url, "uma", "2Wiki")
    uma.choose("Alt+3")
    uma.thought.fill("Which entity is Henri Coudreau?")
    uma.fill("Title", "Henri Coudreau")
    uma.run()
    walk_the_graph(uma)
    page.keyboard.press("Control+Shift+Enter")
    uma.settle()
    uma.value(uma.steps.nth(2), "Sonnac")
    expect(page.get_by_label("Answer from the graph")).to_have_value("Sonnac")
    trace = trace_of(page)
    page.keyboard.press("Control+Enter")
    page.wait_for_function("trace => !location.search.includes(trace)", arg=trace)

    sent, back = tmp_path / "sent.jsonl", tmp_path / "back.jsonl"
    submitted = ("--status", "submitted", "--project", "2Wiki")
    real.run("traces", "export", str(tmp_path / "all.jsonl"), *submitted)
    lines = (tmp_path / "all.jsonl").read_bytes().splitlines(keepends=True)
    # Other tests submit traces to the same server.
    sent.write_bytes(next(line for line in lines if trace in line.decode()))
    other = Showhow(tmp_path / "other")
    assert json.loads(other.run("traces", "import", str(sent), "--json"))["added"] == 1
    other.run("traces", "export", str(back), *submitted)
    assert back.read_bytes() == sent.read_bytes()
    steps = json.loads(sent.read_text())["steps"][1:]
    assert [(step["tool"], step["arguments"].keys() - {"limit"}) for step in steps] == [
        ("getRelationsAsHead", {"entity"}),
        ("getTailEntities", {"entity", "relation"}),
        ("getRelationsAsTail", {"entity"}),
        ("getHeadEntities", {"entity", "relation"}),
    ]
    ends = [step["origins"][name]["from"] for step in steps for name in step["arguments"] if name != "limit"]
    assert ends == ["step"] * 6
