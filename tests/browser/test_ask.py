"""The Ask page: asked without a model, refused, mended, approved, frozen and asked again; watched and stopped."""

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.asker import LONG, Asker
from tests.browser.librarian import Librarian
from tests.browser.server import Showhow
from tests.servers.model import ModelServer, Request, Says
from worlds.open import open_world

pytestmark = pytest.mark.xdist_group("browser")
LIVES = re.compile(r"^(?P<who>.+) lives in (?P<where>\w+)\.$")
PROJECT = "Asked of default"
SLOW_TOOL = """
[function.oracle]
function = "slow_oracle:ask"
"""


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


def test_what_no_demonstration_shows_is_refused_mended_approved_frozen_and_followed(page: Page, home: Showhow):
    (first, town), (second, other_town), *_ = residents(home)
    ida = Asker(page, home.url, "ida")
    ida.look()
    expect(page.get_by_text("No model is set up, so a demonstration is followed")).to_be_visible()
    ida.ask(f"Where does {first} live?")
    ida.ended("Refused")
    expect(page.get_by_text("I can't follow any demonstration here")).to_be_visible()
    refused = ida.trace
    read = ida.steps.filter(has_text="read").first
    expect(read).to_contain_text(f"{first} lives in {town}.")
    after = ida.steps.nth(int(read.locator(".number").text_content() or "0"))

    # A reload and a link show the same.
    ida.look(trace=refused)
    ida.ended("Refused")
    expect(page.get_by_label("Question", exact=True)).to_have_value(f"Where does {first} live?")

    after.get_by_role("button", name="Fix this").click()
    page.wait_for_selector(".st-key-composer")
    page.wait_for_load_state("networkidle")
    ida.settle()
    assert refused not in page.url
    expect(page.locator("li.step").last).to_contain_text(f"{first} lives in {town}.")
    page.keyboard.press("Control+Shift+Enter")
    ida.settle()
    page.get_by_label("Final answer").fill(town)
    mended = ida.trace
    page.keyboard.press("Control+Enter")
    page.wait_for_function("mended => !location.search.includes(mended)", arg=mended)

    page.goto(f"{home.url}/review?you=grace&project={PROJECT.replace(' ', '+')}&trace={mended}")
    expect(page.get_by_text("forked at step")).to_be_visible()
    ida.settle()
    page.keyboard.press("Alt+A")
    expect(page.get_by_text("Approved: it is a demonstration now.")).to_be_visible()

    grace = Librarian(page, home.url, "grace")
    grace.look("default")
    grace.press("Alt+l")
    grace.dialog.get_by_role("button", name="Freeze").last.click()
    expect(page.locator("h1")).to_have_text("default, version 2", timeout=LONG)

    ida.look()
    expect(page.get_by_label("Library")).to_have_value("default:2")
    ida.ask(f"Where does {second} live?")
    expect(ida.answer).to_have_text(other_town, timeout=LONG)
    ida.settle()
    expect(page.get_by_role("button", name="step").first).to_be_visible()
    page.get_by_text("Demonstrations", exact=True).click()
    expect(page.get_by_text("This one was followed.")).to_be_visible(timeout=LONG)
    followed = page.locator("[class*=st-key-pick_]").filter(has_text="This one was followed.")
    expect(followed).to_contain_text(f"Where does {first} live?")
    expect(followed).to_contain_text(f"{first} → {second}")
    expect(followed.locator("table.reasons")).to_contain_text("Relevance")
