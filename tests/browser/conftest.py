"""Fixtures: a real server and a real browser."""

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Playwright, sync_playwright

from tests.browser.server import Showhow
from tests.browser.settled import CONFIRM_NAME
from tests.system_packages import BROWSERS

# Without most of these a headless Chromium requests Google's hosts, which time out in a closed network. The last one:
# pages of tests live for seconds, in which optimized code takes longer to compile than it saves.
FLAGS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --js-flags=--no-opt,--no-maglev"
).split()
HOSTILE = [
    {"title": '<img src=x onerror="document.title=1">', "text": "A title with <b>mark-up</b> & **stars** in it. 😀"},
    {
        "title": "Quote\"d 'n' $x^2$ `code` [link](http://127.0.0.1:9/)",
        "text": "An article about nothing but its title.",
    },
]


def launch(playwright: Playwright, flags: Sequence[str] = FLAGS) -> Browser:
    """Start the Chromium of the machine; its build without windows needs half of the time for a page."""
    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    assert program, f"the browser tests need Chromium: apt-get install {BROWSERS[0]}"
    return playwright.chromium.launch(executable_path=program, args=list(flags))


@pytest.fixture(scope="session")
def playwright() -> Iterator[Playwright]:
    with sync_playwright() as started:
        yield started


@pytest.fixture(scope="session")
def browser(playwright: Playwright) -> Iterator[Browser]:
    started = launch(playwright, [*FLAGS, "--process-per-site"])
    yield started
    started.close()


def open_context(browser: Browser) -> BrowserContext:
    """Open a browser context that confirms the names in links."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.add_init_script(CONFIRM_NAME)
    return context


@pytest.fixture(scope="session")
def kept_context(browser: Browser) -> Iterator[BrowserContext]:
    """A browser context with an empty page that keeps its process for the pages of all tests: a page starts sooner."""
    opened = open_context(browser)
    empty = opened.new_page()
    empty.route("**/*", lambda route: route.fulfill(body=""))
    empty.goto("http://127.0.0.1/")
    yield opened
    opened.close()


@pytest.fixture
def context(kept_context: BrowserContext) -> Iterator[BrowserContext]:
    """A browser context that knows nothing of former tests."""
    yield kept_context
    for page in kept_context.pages[1:]:
        if page.url.startswith("http"):
            page.evaluate("localStorage.clear(); sessionStorage.clear()")
        page.close()
    kept_context.clear_cookies()


@pytest.fixture
def page(context: BrowserContext) -> Page:
    return context.new_page()


@pytest.fixture(scope="session")
def real(tmp_path_factory: pytest.TempPathFactory, shared_data: Path) -> Iterator[Showhow]:
    """A server with the 2Wiki world, whose facts are split between text and graph, and its 300 questions."""
    showhow = Showhow(tmp_path_factory.mktemp("real"))
    showhow.environment["SHOWHOW_IMPORT_FOLDER"] = str(showhow.home / "offered")
    source = shared_data / "world_2wiki"
    articles, graph = str(source / "paragraphs.jsonl"), str(source / "kg_half.ttl")
    showhow.run("world", "import", "real", "--articles", articles, "--where", "side=text", "--graph", graph)
    showhow.run("questions", "import", str(source / "questions_300.json"), "--project", "2Wiki", "--world", "real")
    hostile = showhow.home / "hostile.jsonl"
    hostile.write_text("\n".join(json.dumps(article) for article in HOSTILE), encoding="utf-8")
    showhow.run("world", "import", "hostile", "--articles", str(hostile))
    questions = showhow.home / "hostile_questions.jsonl"
    lines = [{"question": f"What is **{article['title']}**?", "answer": "<i>nothing</i>"} for article in HOSTILE]
    questions.write_text("\n".join(json.dumps(line) for line in lines), encoding="utf-8")
    showhow.run("questions", "import", str(questions), "--project", "Hostile", "--world", "hostile")
    showhow.appoint("grace", "joe", *("ann", "bea", "cleo", "dee", "eva", "fay", "gil"))
    showhow.start()
    yield showhow
    showhow.stop()
