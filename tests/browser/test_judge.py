"""The Judge page: a judge works by keys, and nothing that the browser receives says where an answer comes from."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, Request, WebSocket, expect

from tests.browser.server import Showhow
from tests.browser.settled import settle, visit

pytestmark = pytest.mark.long

SYSTEMS = ("Zebrafish-9", "Okapi-7")
FILES = ("aardwolf.jsonl", "pangolin.jsonl")
PROJECT = "Quays"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    """A server with an open study of two systems, whose answers name them."""
    showhow = Showhow(tmp_path_factory.mktemp("judge"))
    questions = [f"Who built quay {number}?" for number in range(1, 7)]
    (showhow.home / "questions.jsonl").write_text(
        "\n".join(json.dumps({"question": question, "answer": "Ada"}) for question in questions), encoding="utf-8"
    )
    importing = ("questions", "import", str(showhow.home / "questions.jsonl"), "--world", "default")
    showhow.run(*importing, "--project", PROJECT)
    choices = []
    for system, file in zip(SYSTEMS, FILES, strict=True):
        rows = [{"question": question, "answer": f"{system} <b>says</b>: Ada Reed."} for question in questions]
        (showhow.home / file).write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        choices += ["--system", f"{system}={showhow.home / file}"]
    showhow.run("studies", "make", "Better", "--project", PROJECT, *choices)
    showhow.appoint("ada", "ben")
    showhow.run("studies", "open", "Better")
    showhow.start()
    yield showhow
    showhow.stop()


class Received:
    """All that a page received: bodies of responses, and frames of the WebSocket."""

    def __init__(self, page: Page) -> None:
        self.contents: list[bytes] = []
        self.frames = 0
        page.on("requestfinished", self._keep_response)
        page.on("websocket", self._listen)

    def _keep_response(self, request: Request) -> None:
        response = request.response()
        if response is not None and response.status == 200 and not request.url.endswith((".js", ".css", ".woff2")):
            self.contents.append(response.body())

    def _listen(self, socket: WebSocket) -> None:
        socket.on("framereceived", self._keep_frame)

    def _keep_frame(self, payload: Any) -> None:
        self.frames += 1
        self.contents.append(payload if isinstance(payload, bytes) else payload.encode())

    def names(self, words: tuple[str, ...]) -> list[str]:
        """Those of the words that occur somewhere, however they are written."""
        everything = b"\n".join(self.contents).lower()
        return [word for word in words if word.lower().encode() in everything]


def press(page: Page, *keys: str) -> None:
    for key in keys:
        page.keyboard.press(key)
        settle(page)


def test_a_judge_works_by_keys_and_the_browser_is_not_told_which_system_answered(page: Page, home: Showhow):
    received = Received(page)
    visit(page, home, f"/judge?project={PROJECT}")
    page.get_by_role("button", name="Start judging").click()
    settle(page)
    answers = page.locator("div.judged")
    expect(answers.nth(0)).to_have_text("▮ <b>says</b>: Ada Reed.")
    expect(answers.nth(1)).to_contain_text("rated alone")
    expect(page.get_by_role("button", name="3 cannot judge")).to_be_disabled()
    expect(page.get_by_text("can be chosen in 4:")).to_be_visible()
    press(page, "2")
    link = page.get_by_label("Link of a page that shows it")
    link.fill("example.org")
    link.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("The evidence is a link")
    link.fill("https://example.org/quays")
    link.press("Enter")
    expect(page.get_by_text("How informative is the left answer?")).to_be_visible()
    page.locator("h2.question").click()
    press(page, "3", "4")
    expect(answers.nth(0)).to_contain_text("rated alone")
    expect(answers.nth(1)).to_have_text("▮ <b>says</b>: Ada Reed.")
    press(page, "1", "2", "3")
    expect(page.get_by_text("Which answer is better?")).to_be_visible()
    widths = [box["width"] for box in (answers.nth(0).bounding_box(), answers.nth(1).bounding_box()) if box]
    assert widths[0] == widths[1]
    # Everything is stored: another window goes on where this one is.
    page.reload()
    settle(page)
    expect(page.get_by_text("Which answer is better?")).to_be_visible()
    press(page, "ArrowDown")
    expect(page.get_by_text("1 by you")).to_be_visible()
    expect(page.get_by_text("Is the left answer true?")).to_be_visible()
    press(page, "Alt+z")
    expect(page.get_by_text("0 by you")).to_be_visible()
    expect(page.get_by_text("Which answer is better?")).to_be_visible()
    press(page, "ArrowLeft", "1", "1", "1", "1", "1", "1", "ArrowRight")
    expect(page.get_by_text("2 by you")).to_be_visible()
    assert received.frames > 10
    assert received.names(("Ada Reed", "Who built quay")) == ["Ada Reed", "Who built quay"]
    assert received.names((*SYSTEMS, *FILES, "aardwolf", "pangolin", "wall_seconds")) == []


def test_the_page_is_in_the_navigation_only_where_a_study_is_open(page: Page, home: Showhow):
    visit(page, home, f"/?project={PROJECT}")
    expect(page.get_by_role("link", name="Judge")).to_be_visible()
    visit(page, home, "/?project=Fictional people")
    expect(page.get_by_role("link", name="Annotate")).to_be_visible()
    expect(page.get_by_role("link", name="Judge")).to_have_count(0)
    visit(page, home, "/judge?project=Fictional people")
    expect(page.get_by_text("No study of this project is open")).to_be_visible()
