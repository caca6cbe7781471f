"""Runs: told apart, their answers paged and filtered, at work in a shell, compared where all was refused."""

import json
import re
import subprocess
from collections.abc import Iterator
from threading import Event

import pytest
from playwright.sync_api import Page, expect

from tests.browser.asker import Asker
from tests.browser.librarian import Librarian
from tests.browser.server import SHOWHOW, Showhow
from tests.servers.model import ModelServer, Reply, Request, Says

pytestmark = pytest.mark.long

PEOPLE, REFUSED, HELD = "Fictional people", "Riddles", "Held"
ASKED = 70
released = Event()


def reply(_request: Request) -> Reply:
    """Answer once the test has seen the run at work."""
    released.wait(120)
    return Says("Answer: blue")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    """Runs of replay over people, and two over questions that no demonstration fits."""
    with ModelServer(reply) as model:
        showhow = Showhow(tmp_path_factory.mktemp("runs"))
        showhow.environment |= {
            "SHOWHOW_MODEL": "openai:held",
            "SHOWHOW_MODEL_BASE_URL": model.url,
            "OPENAI_API_KEY": "none",
        }
        riddles = [{"question": f"Which colour has the wind number {place}?", "answer": "blue"} for place in range(3)]
        file = showhow.home / "riddles.jsonl"
        file.write_text("\n".join(map(json.dumps, riddles)), encoding="utf-8")
        for project in (REFUSED, HELD):
            showhow.run("questions", "import", str(file), "--project", project, "--world", "default")
        for limit in (ASKED, 5):
            showhow.run("verify", "--project", PEOPLE, "--reasoner", "replay", "--limit", str(limit))
        for _ in range(2):
            showhow.run("verify", "--project", REFUSED, "--reasoner", "replay")
        showhow.appoint("ada")
        showhow.start()
        yield showhow
        released.set()
        showhow.stop()


def visit(page: Page, home: Showhow, path: str, project: str) -> Librarian:
    ada = Librarian(page, home.url, "ada")
    page.goto(f"{home.url}/{path}?you=ada&project={project}")
    page.locator(".st-key-masthead").wait_for()
    page.wait_for_load_state("networkidle")
    ada.settle()
    return ada


def test_all_answers_of_a_run_are_paged_searched_and_filtered(page: Page, home: Showhow):
    ada = visit(page, home, "verify", PEOPLE)
    rows = page.locator(".st-key-list [data-testid=stCaptionContainer]")
    # Runs of one name differ in size, date and score.
    expect(rows.first).to_have_text(re.compile(r".+: \d of 5 right, F1 \d\.\d\d"))
    expect(rows.last).to_have_text(re.compile(rf".+: \d+ of {ASKED} right, F1 \d\.\d\d"))
    page.locator(".st-key-list button").last.click()
    ada.settle()
    table = "Answers of this verification"
    failures = int(re.search(r"\((\d+)\)", page.get_by_label("Answers", exact=True).input_value())[1])  # type: ignore[index]
    ada.choose_option("Answers", "All")
    # Each row begins with a box and its mark.
    first = ada.rows(table)
    assert len(first) == 50
    expect(page.get_by_text(f"1–50 of {ASKED} answers")).to_be_visible()
    page.get_by_role("button", name="Next", exact=True).click()
    expect(page.get_by_text(f"51–{ASKED} of {ASKED} answers")).to_be_visible()
    ada.settle()
    rest = ada.rows(table)
    assert len({row[2] for row in [*first, *rest]}) == ASKED
    ada.choose_option("Answers", "Right")
    right = ada.rows(table)
    assert len(right) == min(50, ASKED - failures) > 0
    assert {row[6] for row in right} == {"1.00"}
    word = right[0][2].split()[-1].rstrip("?")
    page.get_by_label("Search", exact=True).fill(word)
    page.keyboard.press("Enter")
    ada.settle()
    assert {word.casefold() in " ".join(row).casefold() for row in ada.rows(table)} == {True}
    page.get_by_role("region", name=table).get_by_role("button").first.click()
    page.wait_for_url(re.compile(r"/(\?|annotate).*trace="))


def test_finished_runs_in_which_all_was_refused_compare(page: Page, home: Showhow):
    visit(page, home, "compare", REFUSED)
    notes = page.get_by_text("answered no question: 3 were refused and 0 failed, so its score is 0.")
    expect(notes).to_have_count(2)
    expect(page.get_by_role("region", name="Differences from the baseline")).to_contain_text("+0.000")
    chosen = page.locator(".st-key-compare_choice")
    expect(chosen).to_contain_text(re.compile(r"replay, default:1 · 3 questions · .+ · F1 0\.00"))


def test_the_fields_stay_in_their_places_when_a_language_model_is_chosen(page: Page, home: Showhow):
    ada = Asker(page, home.url, "ada")
    ada.open()
    fields = [
        page.get_by_label("Question", exact=True),
        page.get_by_label("World", exact=True),
        page.get_by_label("Library", exact=True),
        page.get_by_role("radio", name="Language model"),
        page.get_by_role("button", name="Options"),
        page.locator(".st-key-ask button"),
    ]
    for width in (1440, 1024, 390):
        page.set_viewport_size({"width": width, "height": 900})
        places = []
        for mode in ("Replay (no model)", "Language model"):
            page.get_by_role("radio", name=mode).click()
            ada.settle()
            places.append([field.bounding_box() for field in fields])
        assert places[0] == places[1], width


def test_the_chosen_demonstrations_are_copied_as_a_prompt(page: Page, home: Showhow):
    ada = Librarian(page, home.url, "ada")
    ada.open("default:1", view="choose")
    question = "What is the hobby of the mother of Ada Reed?"
    picks = ada.select_for(question).count()
    page.get_by_role("button", name="Copy as a prompt").click()
    text = page.get_by_test_id("stPopoverBody").get_by_test_id("stCode").first
    expect(text).to_contain_text(f"Question: {question}")
    written = text.inner_text()
    assert written.count("Final Answer:") >= picks
    page.get_by_role("tab", name="Messages").click()
    messages = json.loads(page.get_by_test_id("stPopoverBody").get_by_test_id("stCode").last.inner_text())
    assert [message["role"] for message in messages][:2] == ["system", "user"]
    assert messages[-1] == {"role": "user", "content": question}
    assert written.startswith(messages[0]["content"].split("\n")[0])
    calls = [call["id"] for message in messages for call in message.get("tool_calls", ())]
    assert len(calls) == len(set(calls)) > picks
    assert calls == [message["tool_call_id"] for message in messages if message["role"] == "tool"]


def test_a_run_that_a_shell_works_on_is_shown_as_at_work(page: Page, home: Showhow):
    words = ["verify", "--project", HELD, "--reasoner", "direct", "--at-once", "1"]
    verb = subprocess.Popen([SHOWHOW, *words], env=home.environment, stderr=subprocess.DEVNULL)
    try:
        note = page.get_by_text("Another process works on it, now on 1 question.").first
        for _ in range(60):
            visit(page, home, "verify", HELD)
            if note.count():
                break
        expect(note).to_be_visible()
        expect(page.get_by_role("button", name="questions left")).to_have_count(0)
        released.set()
        expect(note).to_have_count(0, timeout=120_000)
        expect(page.get_by_text("1–3 of 3 answers").first).to_be_visible(timeout=60_000)
    finally:
        released.set()
        verb.wait(60)
