"""The Ask page: asked without a model, refused, mended, approved, frozen and asked again; watched, stopped, gone on."""

import json
import re
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from db import projects
from db.database import Database
from tests.browser.asker import LONG, Asker
from tests.browser.librarian import Librarian
from tests.browser.server import Showhow
from tests.browser.settled import settle
from tests.servers.model import ModelServer, Request, Says
from worlds.open import open_world

pytestmark = pytest.mark.xdist_group("browser")
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
    \"""Ask an oracle that takes its time.\"""
    while not Path(__file__).with_name("awake").exists():
        time.sleep(0.1)
    return "at last"
"""
HARBOUR = Path(__file__).parents[1] / "tools" / "harbour.jsonl"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    """A server as it is for whoever starts it first, without a model."""
    showhow = Showhow(tmp_path_factory.mktemp("ask"))
    showhow.start()
    yield showhow
    showhow.stop()


def residents(home: Showhow) -> list[tuple[str, str]]:
    """People whose articles say in the same words where they live."""
    text = open_world(home.home / "worlds", "default").text
    assert text is not None
    found: dict[str, str] = {}
    for hit in text.search("lives in", 60):
        for sentence in text.article(hit.title).sentences:
            said = LIVES.match(sentence)
            if said and said["who"] == hit.title:
                found[hit.title] = said["where"]
    return list(found.items())


def is_refused(ida: Asker, question: str) -> str:
    """Ask what no demonstration shows; gives the trace, which a reload shows again."""
    page = ida.page
    ida.look()
    expect(page.get_by_text("No model is set up. Replay runs the actions")).to_be_visible()
    ida.ask(question)
    ida.ended("Refused")
    expect(page.get_by_text("I can't follow any demonstration here")).to_be_visible()
    refused = ida.trace
    ida.look(trace=refused)
    ida.ended("Refused")
    expect(page.get_by_label("Question", exact=True)).to_have_value(question)
    return refused


def mend(ida: Asker, who: str, where: str) -> str:
    """Keep the step that finds who is asked about, read the article and answer by it; gives the mended trace."""
    page, refused = ida.page, ida.trace
    form = page.locator(".st-key-composer")
    ida.steps.nth(1).get_by_role("button", name="Fix this").click()
    form.wait_for()
    page.wait_for_load_state("networkidle")
    ida.settle()
    assert refused not in page.url
    expect(page.locator("li.step")).to_have_count(1)
    page.keyboard.press("Alt+2")
    ida.settle()
    question = f"Where does {who} live?"
    for label, text in {"Thought": f"{question} The article may tell.", "Title": who, "Question": question}.items():
        form.get_by_label(label, exact=True).fill(text)
    page.keyboard.press("Control+Enter")
    expect(page.locator("li.step").last).to_contain_text(f"{who} lives in {where}.")
    ida.settle()
    page.keyboard.press("Control+Shift+Enter")
    ida.settle()
    page.get_by_label("Final answer").fill(where)
    mended = ida.trace
    page.keyboard.press("Control+Enter")
    page.wait_for_function("mended => !location.search.includes(mended)", arg=mended)
    return mended


def approve_and_freeze(page: Page, home: Showhow, trace: str) -> None:
    """A reviewer makes the trace a demonstration and freezes the library's next version with it."""
    page.goto(f"{home.url}/review?you=grace&project={PROJECT.replace(' ', '+')}&trace={trace}")
    expect(page.get_by_text("forked at step")).to_be_visible()
    settle(page)
    page.keyboard.press("Alt+A")
    expect(page.get_by_text("Approved: it is a demonstration now.")).to_be_visible()
    grace = Librarian(page, home.url, "grace")
    grace.look("default")
    grace.press("Alt+l")
    grace.dialog.get_by_role("button", name="Freeze").last.click()
    expect(page.locator("h1")).to_have_text("default, version 2", timeout=LONG)


def test_what_no_demonstration_shows_is_refused_mended_approved_frozen_and_followed(page: Page, home: Showhow):
    (first, town), (second, other_town), *_ = residents(home)
    ida = Asker(page, home.url, "ida")
    is_refused(ida, f"Where does {first} live?")
    approve_and_freeze(page, home, mend(ida, first, town))

    ida.look()
    expect(page.get_by_label("Library")).to_have_value("default:2")
    ida.ask(f"Where does {second} live?")
    expect(ida.answer).to_have_text(other_town, timeout=LONG)
    ida.settle()
    expect(page.get_by_role("button", name="step").first).to_be_visible()
    page.get_by_text("Demonstrations", exact=True).click()
    followed = page.locator("[class*=st-key-pick_]").filter(has_text="This one was followed.")
    expect(followed).to_contain_text(f"Where does {first} live?", timeout=LONG)
    expect(followed).to_contain_text(f"{first} → {second}")
    expect(followed.locator("table.reasons")).to_contain_text("Relevance")


def save(ida: Asker, project: str, told: str) -> None:
    """Keep the question in a project, a new one called Kept or that one, and wait for what the page says of it."""
    page, dialog = ida.page, ida.page.get_by_role("dialog")
    page.get_by_role("button", name="Save as question").click()
    dialog.wait_for()
    # What the dialog showed the last time goes when it is drawn to its end.
    ida.settle()
    dialog.get_by_label("Into the project").click()
    page.get_by_role("option", name=project).click()
    ida.settle()
    if project != "Kept":
        dialog.get_by_role("textbox", name="Its name").fill("Kept")
    dialog.get_by_role("textbox", name="Gold answer").fill("Nobody")
    page.keyboard.press("Control+Enter")
    expect(dialog.get_by_text(told)).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    ida.settle()


def test_an_example_is_asked_shared_and_saved_as_a_question_once(page: Page, context: BrowserContext, home: Showhow):
    ida = Asker(page, home.url, "ida")
    ida.look()
    page.locator(".st-key-examples_to_ask").get_by_role("button").last.click()
    ida.settle()
    question = page.get_by_label("Question", exact=True).input_value()
    known = json.loads(home.run("world", "questions", "default", "--limit", "1000", "--json"))
    assert question in [each["text"] for each in known]
    ida.ask(question)
    share = page.get_by_role("button", name="Share")
    expect(share).to_be_visible(timeout=LONG)
    ida.settle()

    # Whoever follows the link sees the same trace.
    share.click()
    link = page.get_by_test_id("stPopoverBody").locator("code").text_content() or ""
    assert ida.trace in link
    other = context.new_page()
    other.goto(link)
    expect(other.get_by_label("Question", exact=True)).to_have_value(question)
    expect(other.locator("li.step")).to_have_count(ida.steps.count())
    other.close()
    page.keyboard.press("Escape")

    save(ida, "a new project", "Saved into Kept.")
    save(ida, "Kept", "Kept has this question already.")
    (kept,) = json.loads(home.run("questions", "list", "--project", "Kept", "--json"))
    assert kept["text"] == question
    assert [answer["text"] for answer in kept["answers"]] == ["Nobody"]

    # Without a model none can be followed, and what to do about it stands beside the button.
    page.get_by_text("Language model").click()
    expect(page.get_by_text("No model is set up. Set SHOWHOW_MODEL")).to_be_visible()
    expect(page.locator(".st-key-ask button")).to_be_disabled()


def slowly(request: Request) -> Says:
    """Thinks aloud, then asks the oracle."""
    if not request.tools:
        return Says("Answer: nowhere")
    if request.body["messages"][-1]["role"] == "user":
        return Says("I think aloud. " * 20, calls=[("oracle", {"question": "Where?"})], pause=0.05)
    return Says("Nobody knows.\nFinal Answer: nowhere")


@pytest.fixture(scope="module")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    """A server with a model that streams, and somebody else's tool that hangs."""
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


def test_a_run_is_watched_by_two_and_stopped_at_once_while_its_tool_hangs(
    page: Page, context: BrowserContext, oracle: Showhow
):
    ida = Asker(page, oracle.url, "ida")
    ida.look()
    expect(page.get_by_text("Model: openai:scripted")).to_be_visible()
    ida.choose("World", "harbour")
    ida.ask("Where is it?")
    expect(page.locator(".saying")).to_contain_text("I think aloud.", timeout=LONG)
    expect(ida.steps.first).to_contain_text("The tool is running", timeout=LONG)

    # Whoever opens the link meanwhile sees the same, and may ask something else.
    ben = Asker(context.new_page(), oracle.url, "ben")
    ben.look(trace=ida.trace)
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
    ben.ended("Stopped")

    # The same is asked again as a run of its own.
    before = ben.trace
    ben.page.keyboard.press("Alt+a")
    expect(ben.page.locator(".st-key-at_work")).to_be_visible()
    assert ben.trace != before
    ben.page.keyboard.press("Alt+s")
    ben.ended("Stopped")

    # What was killed is known to be interrupted, and goes on with the step that was not finished.
    ida.settle()
    page.get_by_role("button", name="Continue").click()
    expect(page.locator(".st-key-at_work")).to_be_visible()
    killed = ida.trace
    oracle.stop(signal.SIGKILL)
    oracle.start()
    ida = Asker(page, oracle.url, "ida")
    ida.look(trace=killed)
    ida.ended("Interrupted")
    expect(ida.steps).to_have_count(1)
    expect(page.get_by_role("button", name="Continue")).to_be_visible()
    page.get_by_role("button", name="History").click()
    expect(page.locator(".st-key-list_asks").get_by_role("button")).to_have_count(3)


def test_a_stopped_run_goes_on_to_its_end_once_its_tool_answers(page: Page, oracle: Showhow):
    ida = Asker(page, oracle.url, "ida")
    ida.look()
    ida.choose("World", "harbour")
    ida.ask("Where was it?")
    expect(ida.steps.first).to_contain_text("The tool is running", timeout=LONG)
    page.keyboard.press("Alt+s")
    ida.ended("Stopped")
    stopped = ida.trace
    (oracle.home / "awake").touch()
    page.get_by_role("button", name="Continue").click()
    expect(ida.answer).to_have_text("nowhere", timeout=LONG)
    expect(ida.steps).to_have_count(1)
    expect(ida.steps.first).to_contain_text("at last")
    assert ida.trace == stopped
    page.reload()
    expect(ida.answer).to_have_text("nowhere", timeout=LONG)
    expect(page.get_by_text("Answered by humaniq")).to_be_visible()
