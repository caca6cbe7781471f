"""The Ask page: refusal, fix, approval and replay without a model; a run that is watched, stopped and continued."""

import json
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from showhow.app.widgets.notebook import STEPS_PER_PAGE
from showhow.db.database import Database
from showhow.db.questions import projects
from showhow.worlds.open import open_world
from tests.browser.asker import LONG, Asker
from tests.browser.librarian import Librarian
from tests.browser.server import Showhow
from tests.browser.settled import settle
from tests.servers.model import ModelServer, Request, Says

pytestmark = pytest.mark.long

LIVES = re.compile(r"^(?P<who>.+) lives in (?P<where>\w+)\.$")
PROJECT = "Asked of default"
TOOLS = """
[functions.oracle]
place = "slow_oracle:ask"
seconds = 300
"""
ORACLE = """
import time
from pathlib import Path

def ask(question: str) -> str:
    \"""Ask a slow oracle.\"""
    while not Path(__file__).with_name("awake").exists():
        time.sleep(0.1)
    return "at last"
"""
HARBOUR = Path(__file__).parents[1] / "tools" / "harbour.jsonl"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    """A server with the default world, without a model."""
    showhow = Showhow(tmp_path_factory.mktemp("ask"))
    showhow.appoint("grace", "ida")
    showhow.start()
    yield showhow
    showhow.stop()


def residents(home: Showhow) -> list[tuple[str, str]]:
    """People and towns, from articles that state the residence in the same words."""
    text = open_world(home.home / "worlds", "default").text
    assert text is not None
    town_by_person: dict[str, str] = {}
    for hit in text.search("lives in", 60):
        for sentence in text.article(hit.title).sentences:
            match = LIVES.match(sentence)
            if match and match["who"] == hit.title:
                town_by_person[hit.title] = match["where"]
    return list(town_by_person.items())


def unusual_question(person: str) -> str:
    """A question in words that no tool and no demonstration of the setup knows."""
    return f"In which town would one knock at the door of {person}?"


def ask_refused_question(ida: Asker, question: str) -> str:
    """Ask a question that no demonstration matches; returns the refused trace, which a reload shows again."""
    page = ida.page
    ida.open()
    expect(page.get_by_text("No model is set up. Add one on the Settings page")).to_be_visible()
    ida.ask(question)
    ida.wait_for_ending("Refused")
    expect(page.get_by_text("I can't follow any demonstration here")).to_be_visible()
    trace = ida.trace
    ida.open(trace=trace)
    ida.wait_for_ending("Refused")
    expect(page.get_by_label("Question", exact=True)).to_have_value(question)
    return trace


def fix_run(ida: Asker, person: str, town: str) -> str:
    """Continue from the steps of the run, read the article and submit the answer; returns the id of the fixed trace."""
    page, refused_trace = ida.page, ida.trace
    form = page.locator(".st-key-composer")
    kept = ida.steps.count()
    page.locator(".st-key-fix button").click()
    form.wait_for()
    page.wait_for_load_state("networkidle")
    ida.settle()
    assert refused_trace not in page.url
    expect(page.locator("li.step")).to_have_count(kept)
    page.keyboard.press("Alt+2")
    ida.settle()
    question = unusual_question(person)
    for label, text in {"Thought": f"{question} The article may tell.", "Title": person, "Question": question}.items():
        form.get_by_label(label, exact=True).fill(text)
    page.keyboard.press("Control+Enter")
    expect(page.locator("li.step").last).to_contain_text(f"{person} lives in {town}.")
    ida.settle()
    page.keyboard.press("Control+Shift+Enter")
    ida.settle()
    page.get_by_label("Final answer").fill(town)
    trace = ida.trace
    page.keyboard.press("Control+Enter")
    page.wait_for_function("mended => !location.search.includes(mended)", arg=trace)
    return trace


def approve_and_freeze(page: Page, home: Showhow, trace: str) -> None:
    """Approve the trace as a reviewer and freeze the next version of the library."""
    page.goto(f"{home.url}/review?you=grace&project={PROJECT.replace(' ', '+')}&trace={trace}")
    # A run that was refused before its first step has none to fork at.
    expect(page.get_by_text(re.compile("forked at step|a restart of another trace"))).to_be_visible()
    settle(page)
    page.keyboard.press("Alt+A")
    expect(page.get_by_text("Approved. The trace is a demonstration now.")).to_be_visible()
    grace = Librarian(page, home.url, "grace")
    grace.open("default")
    grace.press("Alt+l")
    grace.dialog.get_by_role("button", name="Freeze").last.click()
    expect(page.locator("h2.world")).to_have_text("default, version 2", timeout=LONG)


def test_a_refused_question_is_fixed_approved_frozen_and_then_answered_by_replay(page: Page, home: Showhow):
    (first, town), (second, other_town), *_ = residents(home)
    ida = Asker(page, home.url, "ida")
    ask_refused_question(ida, unusual_question(first))
    approve_and_freeze(page, home, fix_run(ida, first, town))

    ida.open()
    expect(page.get_by_label("Library")).to_have_value("default:2")
    ida.ask(unusual_question(second))
    expect(ida.answer).to_have_text(other_town, timeout=LONG)
    ida.settle()
    expect(page.get_by_role("button", name="step").first).to_be_visible()
    page.get_by_text("Demonstrations", exact=True).click()
    followed = page.locator("[class*=st-key-pick_]").filter(has_text="Followed by the replay.")
    expect(followed).to_contain_text(unusual_question(first), timeout=LONG)
    expect(followed).to_contain_text(f"{first} → {second}")
    expect(followed.locator("table.reasons")).to_contain_text("Relevance")


def save(ida: Asker, project: str, message: str) -> None:
    """Save the question in a project, a new one named Kept or that one, and wait for the message."""
    page, dialog = ida.page, ida.page.get_by_role("dialog")
    page.get_by_role("button", name="Save as question").click()
    dialog.wait_for()
    # Elements of the previous dialog disappear once the new one is drawn completely.
    ida.settle()
    dialog.get_by_label("Project", exact=True).click()
    page.get_by_role("option", name=project).click()
    ida.settle()
    if project != "Kept":
        dialog.get_by_role("textbox", name="Name of the project").fill("Kept")
    dialog.get_by_role("textbox", name="Gold answer").fill("Nobody")
    page.keyboard.press("Control+Enter")
    expect(dialog.get_by_text(message)).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    ida.settle()


def test_an_example_is_asked_shared_and_saved_as_a_question_once(page: Page, context: BrowserContext, home: Showhow):
    ida = Asker(page, home.url, "ida")
    ida.open()
    page.locator(".st-key-examples_to_ask").get_by_role("button").last.click()
    expect(page.get_by_label("Question", exact=True)).not_to_have_value("")
    ida.settle()
    question = page.get_by_label("Question", exact=True).input_value()
    questions = json.loads(home.run("world", "questions", "default", "--limit", "1000", "--json"))
    assert question in [row["text"] for row in questions]
    ida.ask(question)
    share = page.get_by_role("button", name="Share")
    expect(share).to_be_visible(timeout=LONG)
    ida.settle()

    # The shared link shows the same trace.
    share.click()
    link = page.get_by_test_id("stPopoverBody").locator("code").text_content() or ""
    assert ida.trace in link
    other = context.new_page()
    other.goto(link)
    expect(other.get_by_label("Question", exact=True)).to_have_value(question)
    steps = json.loads(home.run("traces", "show", ida.trace, "--json"))["steps"]
    # A link opens the first page of a long trace.
    expect(other.locator("li.step")).to_have_count(min(len(steps), STEPS_PER_PAGE))
    other.close()
    page.keyboard.press("Escape")

    save(ida, "a new project", "Saved into Kept.")
    save(ida, "Kept", "Kept has this question already.")
    (stored,) = json.loads(home.run("questions", "list", "--project", "Kept", "--json"))
    assert stored["text"] == question
    assert [answer["text"] for answer in stored["answers"]] == ["Nobody"]

    # Without a model the button is disabled, and the page says how to set one up.
    page.get_by_role("radiogroup").get_by_text("Language model", exact=True).click()
    expect(page.get_by_text("No model is set up. Add one on the Settings page")).to_be_visible()
    expect(page.locator(".st-key-ask button")).to_be_disabled()


def slowly(request: Request) -> Says:
    """A slow streamed thought, then a call of the oracle."""
    if not request.tools:
        return Says("Answer: nowhere")
    if request.body["messages"][-1]["role"] == "user":
        return Says("I think aloud. " * 20, calls=[("oracle", {"question": "Where?"})], pause=0.05)
    return Says("Nobody knows.\nFinal Answer: nowhere")


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    """A server with a streaming model, and an external tool that hangs."""
    showhow = Showhow(tmp_path_factory.mktemp("oracle"))
    (showhow.home / "tools.toml").write_text(TOOLS, encoding="utf-8")
    (showhow.home / "slow_oracle.py").write_text(ORACLE, encoding="utf-8")
    showhow.run("world", "import", "harbour", "--articles", str(HARBOUR))
    showhow.run("db", "upgrade")
    store = Database(f"sqlite:///{showhow.home / 'showhow.db'}")
    with store.begin() as session:
        projects.create_project(session, "Asked of harbour", "harbour", tools=["oracle"])
    store.close()
    with ModelServer(slowly) as server:
        model = {"SHOWHOW_MODEL": "openai:scripted", "SHOWHOW_MODEL_BASE_URL": server.url, "OPENAI_API_KEY": "none"}
        showhow.environment |= model
        showhow.start()
        yield showhow
        showhow.stop()


def check_history(page: Page) -> None:
    """The history is one's own; everybody's has their names."""
    page.get_by_role("button", name="History").click()
    history = page.locator(".st-key-list_asks")
    expect(history.get_by_role("button")).to_have_count(1)
    page.get_by_test_id("stPopoverBody").get_by_text("Everybody's").click()
    expect(history.get_by_role("button")).to_have_count(3)
    expect(history).to_contain_text("ben")


def test_two_people_watch_a_run_and_stop_it_while_its_tool_hangs(page: Page, context: BrowserContext, oracle: Showhow):
    ida = Asker(page, oracle.url, "ida")
    ida.open()
    expect(page.get_by_role("combobox", name="Model")).to_have_value("openai:scripted")
    ida.choose("World", "harbour")
    ida.ask("Where is it?")
    expect(page.locator(".saying")).to_contain_text("I think aloud.", timeout=LONG)
    expect(ida.steps.first).to_contain_text("The tool is running", timeout=LONG)

    # Another person opens the link, sees the same run, and asks another question.
    ben = Asker(context.new_page(), oracle.url, "ben")
    ben.open(trace=ida.trace)
    expect(ben.page.locator(".st-key-at_work")).to_be_visible()
    expect(ben.steps.first).to_contain_text("I think aloud.")
    ben.ask("And where is that?")
    expect(ben.steps.first).to_contain_text("The tool is running", timeout=LONG)

    began = time.monotonic()
    page.keyboard.press("Alt+s")
    expect(page.get_by_text("It was stopped after 1 step.")).to_be_visible()
    assert time.monotonic() - began < 10
    expect(ben.page.locator(".st-key-at_work")).to_be_visible()
    ben.page.keyboard.press("Alt+s")
    ben.wait_for_ending("Stopped")

    # Ask again starts a new run.
    before = ben.trace
    ben.page.keyboard.press("Alt+a")
    expect(ben.page.locator(".st-key-at_work")).to_be_visible()
    assert ben.trace != before
    ben.page.keyboard.press("Alt+s")
    ben.wait_for_ending("Stopped")

    # A killed run is shown as interrupted and can be continued.
    ida.settle()
    page.get_by_role("button", name="Continue").click()
    expect(page.locator(".st-key-at_work")).to_be_visible()
    killed = ida.trace
    oracle.stop(signal.SIGKILL)
    oracle.start()
    assert "whose process was killed; continue it on the Ask page." in (oracle.home / "server.log").read_text()
    ida = Asker(page, oracle.url, "ida")
    ida.open(trace=killed)
    ida.wait_for_ending("Interrupted")
    expect(ida.steps).to_have_count(1)
    expect(page.get_by_role("button", name="Continue")).to_be_visible()
    check_history(page)


def test_a_stopped_run_continues_to_its_end(page: Page, oracle: Showhow):
    ida = Asker(page, oracle.url, "ida")
    ida.open()
    ida.choose("World", "harbour")
    ida.ask("Where was it?")
    expect(ida.steps.first).to_contain_text("The tool is running", timeout=LONG)
    page.keyboard.press("Alt+s")
    ida.wait_for_ending("Stopped")
    stopped = ida.trace
    (oracle.home / "awake").touch()
    page.get_by_role("button", name="Continue").click()
    expect(ida.answer).to_have_text("nowhere", timeout=LONG)
    expect(ida.steps).to_have_count(1)
    expect(ida.steps.first).to_contain_text("at last")
    assert ida.trace == stopped
    page.reload()
    expect(ida.answer).to_have_text("nowhere", timeout=LONG)
    expect(page.get_by_text("Answered by HumanIQ")).to_be_visible()
    # Each request is shown with the version of its prompt.
    page.get_by_text("Prompt", exact=True).click()
    expect(page.get_by_text("as they were sent to")).to_contain_text("Prompt version")
