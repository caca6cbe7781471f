"""Verify and repair in the browser: a person repairs one failure of an agent, which then answers the others."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from playwright.sync_api import Page, expect

from showhow.app.cli.setup import DEFAULT_PROJECT, DEMONSTRATION_COUNT
from showhow.settings import DEFAULT_LIBRARY
from tests.browser.librarian import Librarian
from tests.browser.server import SHOWHOW, Showhow
from tests.servers.model import ModelServer, Request
from tests.servers.postgresql import PostgresqlServer
from tests.servers.pupil import number_in, pupil

pytestmark = pytest.mark.long

HARBOUR = Path(__file__).parents[1] / "tools"
PROJECT = "Harbour"
PATIENT, MANY = "Patience", 16
"""A project whose questions are answered slowly, and their number; they are numbered from 100."""
WRONG = frozenset({1, 2, 5, 9})
"""Numbers of the questions that are answered wrongly: all three of kind 1, one of kind 2."""


def model(request: Request) -> object:
    return pupil(request, wrong=WRONG, taught_by=1, latency=0.25 if number_in(request) >= 100 else 0.0)


def settings_of(server: ModelServer) -> dict[str, str]:
    return {
        "SHOWHOW_MODEL": "openai:scripted",
        "SHOWHOW_MODEL_BASE_URL": server.url,
        "OPENAI_API_KEY": "none",
    }


def import_questions(showhow: Showhow, projects: dict[str, range]) -> None:
    """Import the harbour, and the questions with these numbers of each project."""
    articles, graph = str(HARBOUR / "harbour.jsonl"), str(HARBOUR / "harbour.ttl")
    showhow.run("world", "import", "harbour", "--articles", articles, "--graph", graph)
    for project, numbers in projects.items():
        rows = [
            {"question": f"Who is number {number}?", "answer": f"Answer {number}", "kind": f"kind {number % 4}"}
            for number in numbers
        ]
        file = showhow.home / "questions.jsonl"
        file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        showhow.run("questions", "import", str(file), "--project", project, "--world", "harbour")


def move_to(showhow: Showhow, database: str) -> None:
    """Use another database, with the library of the prepared home, whose demonstrations a server would make anew."""
    file = str(showhow.home / "demonstrations.jsonl")
    showhow.run("traces", "export", file, "--status", "approved")
    showhow.environment["SHOWHOW_DATABASE_URL"] = database
    showhow.run("traces", "import", file)
    showhow.run("library", "freeze", DEFAULT_LIBRARY, "--project", DEFAULT_PROJECT, "--by", "models")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    """A server with a model that learns from demonstrations, and twelve questions with gold answers."""
    with ModelServer(model) as server:
        showhow = Showhow(tmp_path_factory.mktemp("verify"))
        showhow.environment |= settings_of(server)
        import_questions(showhow, {PROJECT: range(12), PATIENT: range(100, 100 + MANY)})
        showhow.start()
        yield showhow
        showhow.stop()


class Verifier(Librarian):
    """A person with a browser on the Verify, Annotate and Review pages."""

    def visit(self, path: str, waits_for: str, project: str = PROJECT) -> None:
        """Open a page of the project."""
        self.page.goto(f"{self._url}/{path}?you={self._name}&project={project}")
        self.page.locator(waits_for).first.wait_for()
        self.page.wait_for_load_state("networkidle")
        self.settle()

    def failures(self) -> list[list[str]]:
        """The rows of the table of answers, which lists the failures first, without their boxes."""
        return [row[1:] for row in self.rows("Answers of this verification")]

    def repairs(self) -> list[str]:
        """Open the list of repairs on the Annotate page; the questions in it."""
        self.visit("", ".st-key-masthead")
        self.press("Alt+e")
        self.dialog.get_by_role("button", name="Take").first.wait_for()
        questions = self.dialog.get_by_text(re.compile(r"^Who is number \d+\?")).all_inner_texts()
        return [text.partition("\n")[0].strip() for text in questions]


def run_verification(vera: Verifier) -> list[list[str]]:
    """Verify all questions; returns the rows of the failures."""
    vera.visit("verify", ".st-key-masthead")
    expect(vera.page.get_by_text("Start with Verify (Alt+V)")).to_be_visible()
    vera.press("Alt+v")
    expect(vera.dialog).to_contain_text("12 questions of this project have a gold answer")
    vera.dialog.get_by_role("button", name="Verify").click()
    sizes = vera.page.locator(".st-key-verification_sizes")
    sizes.filter(has_text=re.compile(r"right\s*8\s*wrong\s*4")).first.wait_for(timeout=120_000)
    vera.settle()
    expect(sizes).to_contain_text(re.compile(r"questions\s*12\s*right\s*8\s*wrong\s*4"))
    return vera.failures()


def repair_failure(vera: Verifier) -> None:
    """Fork after the agent's step and submit the right answer."""
    page, form = vera.page, vera.page.locator(".st-key-composer")
    page.get_by_role("button", name="Fork").first.click()
    page.locator(".st-key-acts").wait_for()
    vera.settle()
    expect(page.locator("li.step")).to_have_count(1)
    expect(form).to_contain_text("Gold answer: Answer 1")
    vera.press("Control+Shift+Enter")
    form.get_by_label("Final answer", exact=True).fill("Answer 1")
    vera.press("Control+Enter")
    expect(page.locator("h1")).not_to_have_text("Who is number 1?")


def test_a_repaired_failure_becomes_a_demonstration_that_corrects_the_others(page: Page, home: Showhow):
    vera = Verifier(page, home.url, "vera")
    failed = run_verification(vera)
    # A kind with three failures has a higher benefit than one with a single failure.
    assert [row[2] for row in failed] == ["kind 1", "kind 1", "kind 2", "kind 1"]
    assert failed[0][1:5] == ["Who is number 1?", "kind 1", "Answer 1", "Nobody 1"]

    # The first one leads the annotators' list of repairs; it opens with the agent's trace beside the gold answer.
    assert vera.repairs()[0] == "Who is number 1?"
    vera.dialog.get_by_role("button", name="Take").first.click()
    expect(page.locator("h1")).to_have_text("Who is number 1?")
    page.locator("li.step").wait_for()
    vera.settle()
    form = page.locator(".st-key-composer")
    expect(form).to_contain_text("An answer to repair")
    expect(form).to_contain_text(re.compile(r"Gold answer: Answer 1\s*HumanIQ said Nobody 1"))
    # Looking holds nothing; the fork of a failure does, so that another person gets the next one.
    walt = Verifier(page.context.new_page(), home.url, "walt")
    assert walt.repairs()[0] == "Who is number 1?"
    repair_failure(vera)
    assert "Who is number 1?" not in walt.repairs()
    walt.page.close()

    vera.visit("review", "h2.question")
    expect(page.locator("h2.question")).to_have_text("Who is number 1?")
    vera.press("Alt+a")

    vera.visit("verify", ".st-key-verification_sizes")
    assert "repaired by vera, approved" in [row[6] for row in vera.failures()]
    vera.click("Freeze 1 repair and ask the failures again")
    page.get_by_text("3 are now right").wait_for(timeout=120_000)
    vera.settle()
    expect(page.locator("h2.world")).to_have_text(
        "HumanIQ with default:2, default (openai:scripted), the failures again"
    )
    before_after = vera.rows("Before and after, by kind")
    assert [(row[0], row[1], row[4]) for row in before_after] == [("kind 1", "3", "2"), ("kind 2", "1", "1")]
    # The repair of a question is no demonstration for the question itself.
    assert [row[1] for row in vera.failures()] == ["Who is number 1?"]
    library = json.loads(home.run("library", "show", "default:2", "--json"))
    assert len(library["demonstrations"]) == DEMONSTRATION_COUNT + 1


def test_a_verification_is_watched_paused_stopped_and_continued(page: Page, home: Showhow):
    home.appoint("pat")
    pat = Verifier(page, home.url, "pat")
    pat.visit("verify", ".st-key-masthead", PATIENT)
    pat.press("Alt+v")
    pat.dialog.get_by_role("button", name="Verify").click()
    # The numbers of right and remaining questions are refreshed without a reload.
    # During a redraw the page may also show the previous elements.
    sizes = page.locator(".st-key-verification_sizes")
    sizes.filter(has_text=re.compile(r"left\s*\d+\s*right\s*[1-9]")).first.wait_for(timeout=120_000)
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("Paused: questions at work are finished")).to_be_visible()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()
    page.get_by_role("button", name="Stop").first.click()
    page.get_by_role("button", name="questions left").first.wait_for(timeout=60_000)
    pat.settle()
    expect(page.get_by_text("was stopped; it can be continued.")).to_be_visible()
    # The same verification continues, and answered questions are not asked again.
    page.get_by_role("button", name="questions left").click()
    done = re.compile(rf"questions\s*{MANY}\s*right\s*{MANY}\s*wrong\s*0")
    sizes.filter(has_text=done).first.wait_for(timeout=120_000)
    page.get_by_text("Every question was answered correctly.").first.wait_for()
    assert len(json.loads(home.run("verify", "--project", PATIENT, "--list", "--json"))) == 1


def test_a_verification_of_workers_is_watched_and_paused(
    page: Page, tmp_path: Path, postgresql_server: PostgresqlServer
):
    with ModelServer(model) as server:
        showhow = Showhow(tmp_path / "home")
        showhow.environment |= settings_of(server)
        move_to(showhow, postgresql_server.create_database(f"v{uuid4().hex}"))
        import_questions(showhow, {PATIENT: range(100, 100 + MANY)})
        showhow.start()
        worker = subprocess.Popen(
            [SHOWHOW, "worker", "--at-once", "2"], env=showhow.environment, stderr=subprocess.DEVNULL
        )
        try:
            pat = Verifier(page, showhow.url, "pat")
            pat.visit("verify", ".st-key-masthead", PATIENT)
            pat.press("Alt+v")
            pat.dialog.get_by_text("By workers").click()
            pat.dialog.get_by_role("button", name="Verify").click()
            expect(page.get_by_text(re.compile(r"Questions at work by worker: \S+ \(2\)")).first).to_be_visible(
                timeout=120_000
            )
            page.get_by_role("button", name="Pause").click()
            expect(page.get_by_text("Shared with workers, and none has a question now").first).to_be_visible(
                timeout=60_000
            )
            page.get_by_role("button", name="Resume").click()
            page.get_by_text("Every question was answered correctly.").first.wait_for(timeout=120_000)
        finally:
            worker.terminate()
            worker.wait(60)
            showhow.stop()
        assert worker.returncode == 0
