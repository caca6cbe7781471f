"""The pages in a real browser, and the start of the program.

A person opens the pages of a server that has just started, runs `read`, and records a trace of five steps: the time
until a page or a step is drawn, and the clicks and keys that the trace takes besides its thoughts.
"""

import getpass
import json
import os
import re
import resource
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
from playwright.sync_api import Browser, Locator, Page, sync_playwright
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

from showhow.benchmarks.servers import SHOWHOW_COMMAND, AppServer, run_app_server, server_environment
from showhow.db.database import Database
from showhow.db.people import users
from showhow.tools.registry import BUILT_IN_TOOLS
from tests.browser.conftest import FLAGS, launch, open_context
from tests.browser.session import open_session

PROJECT_NAME = "Fictional people"
TRACE_PROJECT = "Five steps"
RUN_COUNT = 5
SESSION_COUNT = 20
STEP_COUNT = 5
PERSON = getpass.getuser()
"""The machine's account, whom no page asks to confirm who it is."""
TIMEOUT = 60_000
REACTION_MS = 5_000
"""How long a person waits for the focus to go where the key leads."""
# Code that a person's browser optimizes is optimized here too.
BROWSER_FLAGS = [flag for flag in FLAGS if not flag.startswith("--js-flags")]
WATCH = """
(() => {
  const watched = window.__watched = { keys: 0, clicks: 0, started: 0, loaded: 0 };
  const isThought = (field) => /thought/i.test(field?.getAttribute?.("aria-label") ?? "");
  const isText = (event) => !event.ctrlKey && !event.altKey && event.key.length === 1;
  addEventListener("keydown", (event) => {
    if (event.ctrlKey && event.key === "Enter") watched.started = performance.now();
    if (!(isThought(event.composedPath()[0]) && isText(event))) watched.keys += 1;
  }, true);
  addEventListener("pointerdown", () => { watched.clicks += 1; watched.started = performance.now(); }, true);
  const findAll = (root, selector) => [...root.querySelectorAll(selector), ...[...root.querySelectorAll("*")]
    .filter((node) => node.shadowRoot).flatMap((node) => findAll(node.shadowRoot, selector))];
  const isFinished = (step) => /^(?!Running)/.test(step.querySelector(".observation")?.textContent ?? "Running");
  const app = "[data-testid=stApp][data-test-script-state=notRunning]";
  const isAtRest = () => !!document.querySelector(app);
  const isDrawn = () => isAtRest() && !!document.querySelector("[data-testid=stMainBlockContainer] button");
  const afterPaint = (test, done) => requestAnimationFrame(() => {
    if (test()) setTimeout(() => done(performance.now()), 0); else afterPaint(test, done);
  });
  afterPaint(isDrawn, (moment) => { watched.loaded = moment; });
  // Milliseconds from the last key or click until what it asked for is on the screen.
  const timed = (test) => new Promise((done, fail) => {
    afterPaint(() => watched.started > 0 && test(), (moment) => done(moment - watched.started));
    setTimeout(() => fail(new Error("what was asked for was not drawn")), 60000);
  });
  window.__timeStep = (count) => timed(() => findAll(document, "li.step").filter(isFinished).length >= count);
  // A short run can be over before the page is drawn as running, so its title tells that it has begun.
  let frames = 0;
  window.__timePage = (title) => timed(() => {
    frames = document.title.startsWith(title) && isDrawn() ? frames + 1 : 0;
    return frames > 1;
  });
})();
"""
Gold = dict[str, Any]


def run_benchmark(home: Path, data: Path | None) -> Iterator[dict[str, Any]]:
    """Start-up, pages, steps and memory; medians of RUN_COUNT runs where several are made."""
    yield from _measure_start(home)
    yield _measure_import(home, data)
    _appoint(home)
    gold = _choose_question(home)
    with sync_playwright() as playwright:
        browser = launch(playwright, BROWSER_FLAGS)
        try:
            yield from _measure_pages(browser, home)
            with run_app_server(home) as server:
                yield from _measure_trace(browser, server, gold)
        finally:
            browser.close()
    with run_app_server(home) as server:
        yield _measure_sessions(server)


def _result(name: str, size: str, value: float, unit: str, note: str = "") -> dict[str, Any]:
    note = note or f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores"
    return {"name": name, "size": size, "value": value, "unit": unit, "note": note}


def _measure_start(home: Path) -> Iterator[dict[str, Any]]:
    def median_seconds(measure: Callable[[], float]) -> float:
        return round(float(statistics.median(measure() for _ in range(RUN_COUNT))), 2)

    yield _result("startup_help", "showhow --help", median_seconds(lambda: _time_command(home, "--help")), "s")
    _time_command(home, "setup")
    first_page = median_seconds(lambda: _time_start(home))
    yield _result("startup_first_page", "until the Annotate page is drawn", first_page, "s")


def _time_command(home: Path, *words: str) -> float:
    started = time.perf_counter()
    subprocess.run([SHOWHOW_COMMAND, *words], env=server_environment(home), check=True, capture_output=True)  # noqa: S603 - our own
    return time.perf_counter() - started


def _time_start(home: Path) -> float:
    started = time.perf_counter()
    with run_app_server(home) as server, open_session(server.url, "", {"you": "first"}):
        return time.perf_counter() - started


def _measure_import(home: Path, data: Path | None) -> dict[str, Any]:
    if data is None:
        return {"name": "import_world", "note": "not measured: the test data are missing"}
    source = data / "world_2wiki"
    files = ["--articles", str(source / "paragraphs.jsonl"), "--graph", str(source / "kg_full.ttl")]
    command = [str(SHOWHOW_COMMAND), "world", "import", "real", *files, "--json"]
    started = time.perf_counter()
    process = subprocess.run(command, env=server_environment(home), check=True, capture_output=True)  # noqa: S603 - our own
    seconds = round(time.perf_counter() - started, 2)
    metadata = json.loads(process.stdout)
    size = f"{metadata['articles']:,} paragraphs and {metadata['triples']:,} triples"
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024
    return {**_result("import_world", size, seconds, "s"), "peak_mb": peak}


def _appoint(home: Path) -> None:
    """Store a person who sees every page."""
    database = Database(f"sqlite:///{home / 'showhow.db'}")
    with database.begin() as session:
        users.register_user(session, PERSON)
        users.set_roles(session, PERSON, users.ROLES)
    database.close()


def _choose_question(home: Path) -> Gold:
    """A question who of two people was born first or last, whose gold trace of five steps uses article and graph."""
    file = home / "gold.jsonl"
    _time_command(home, "world", "traces", "default", "--to", str(file))
    for line in file.read_text(encoding="utf-8").splitlines():
        gold: Gold = json.loads(line)
        tools = [step["tool"] for step in gold["steps"]]
        pattern = r"Who was born (earlier|later), [A-Z]\w+ [A-Z]\w+ or [A-Z]\w+ [A-Z]\w+\?"
        if sorted(tools) == sorted(_FIVE_TOOLS) and re.fullmatch(pattern, gold["question"]["text"]):
            _import_question(home, gold["question"])
            return gold
    raise RuntimeError("no gold trace of the default world has these five steps")


def _import_question(home: Path, question: dict[str, Any]) -> None:
    file = home / "question.jsonl"
    record = {"question": question["text"], "answers": [answer["text"] for answer in question["gold_answers"]]}
    file.write_text(json.dumps(record), encoding="utf-8")
    _time_command(home, "questions", "import", str(file), "--project", TRACE_PROJECT, "--world", "default")


_FIVE_TOOLS = ("wikisearch", "generateQuery", "runQuery", "wikisearch", "read")


def _open_page(browser: Browser, url: str, path: str, **parameters: str) -> tuple[Page, float]:
    """Open the page in a browser that has loaded nothing before; returns the milliseconds until it was drawn."""
    page = open_context(browser).new_page()
    page.set_default_timeout(TIMEOUT)
    page.add_init_script(WATCH)
    query = "&".join(f"{name}={quote(value)}" for name, value in {"you": PERSON, **parameters}.items())
    page.goto(f"{url}/{path}?{query}")
    return page, _time_load(page)


def _time_load(page: Page) -> float:
    page.wait_for_function("() => window.__watched?.loaded > 0")
    return float(page.evaluate("window.__watched.loaded"))


def _measure_pages(browser: Browser, home: Path) -> Iterator[dict[str, Any]]:
    cold: list[float] = []
    for _ in range(RUN_COUNT):
        with run_app_server(home) as server:
            page, milliseconds = _open_page(browser, server.url, "", project=PROJECT_NAME)
            cold.append(milliseconds)
            page.context.close()
    yield _result("page_cold", "Annotate, first of a new server and browser", round(statistics.median(cold)), "ms")
    with run_app_server(home) as server:
        page, _ = _open_page(browser, server.url, "", project=PROJECT_NAME)
        links = {link.inner_text().strip(): link for link in page.get_by_test_id("stTopNavLink").all()}
        seconds: dict[str, list[float]] = {}
        for run in range(RUN_COUNT + 1):
            for name in [*links][1:] + [*links][:1]:
                milliseconds = _click_link(page, name)
                if run:  # the first visit imports the page's modules
                    seconds.setdefault(name, []).append(milliseconds)
        medians = {name: statistics.median(values) for name, values in seconds.items()}
        slowest = max(medians, key=lambda name: medians[name])
        note = ", ".join(f"{name} {value:.0f}" for name, value in medians.items())
        yield _result(
            "page_warm",
            f"a click on its link, {len(medians)} pages",
            round(statistics.median(medians.values())),
            "ms",
            note,
        )
        yield _result("page_warm_slowest", slowest, round(medians[slowest]), "ms")
        page.context.close()


def _click_link(page: Page, name: str) -> float:
    page.evaluate("window.__watched.started = 0")
    timing = page.evaluate_handle("(title) => ({ done: window.__timePage(title) })", name)
    page.get_by_test_id("stTopNavLink").filter(has_text=re.compile(f"{name}$")).click()
    return float(page.evaluate("(timing) => timing.done", timing))


class _Writer:
    """A person who records by keyboard, and clicks values that earlier observations show."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.count = 0

    def run(self, thought: str, tool: str, arguments: dict[str, Any]) -> float:
        """Compose and run a step; returns the milliseconds from Ctrl+Enter until its observation is drawn."""
        self._focus(self.page.get_by_label("Thought", exact=True), "Alt+T")
        self.page.keyboard.type(thought)
        # The key of the tool also leads to its first empty field.
        self.page.keyboard.press(f"Alt+{list(BUILT_IN_TOOLS).index(tool) + 1}")
        self.page.wait_for_function(_IS_AT_REST)
        with suppress(PlaywrightTimeoutError):
            self.page.wait_for_function(_EMPTY_FIELD_HAS_FOCUS, timeout=REACTION_MS)
        for name, value in arguments.items():
            # The form's first field stands before the empty one.
            self._fill(self._field(f"_arg_{tool}_{name}"), value, "Shift+Tab")
        self.count += 1
        self.page.evaluate("window.__watched.started = 0")
        timing = self.page.evaluate_handle("(count) => ({ done: window.__timeStep(count) })", self.count)
        self.page.keyboard.press("Control+Enter")
        milliseconds = float(self.page.evaluate("(timing) => timing.done", timing))
        self.page.wait_for_function(_IS_AT_REST)
        return milliseconds

    def submit(self, answer: str) -> None:
        """Write the final answer and submit the trace."""
        self.page.keyboard.press("Control+Shift+Enter")
        self.page.get_by_label("Final answer", exact=True).wait_for()
        self._fill(self._field("_final_answer"), answer, "Tab", "Tab")
        thought = self.page.get_by_label("Final thought", exact=True)
        self._focus(thought, "Tab")
        self.page.keyboard.type("So it is.")
        self.page.keyboard.press("Control+Enter")
        self.page.get_by_text("Submitted for review.").wait_for()

    def read_counts(self) -> tuple[int, int]:
        """The clicks and keys so far."""
        counts = self.page.evaluate("[window.__watched.clicks, window.__watched.keys]")
        return counts[0], counts[1]

    def _field(self, key: str) -> Locator:
        """The field of the form whose key ends so."""
        return self.page.locator(f".st-key-composer [class*='{key}']").locator("input, textarea")

    def _fill(self, field: Locator, value: Any, *keys: str) -> None:
        """Leave a value that the form has; click one that an observation shows; type any other."""
        text = ", ".join(value) if isinstance(value, list) else value
        if field.input_value() == text:
            return
        shown = self.page.locator("li.step").get_by_role("button", name=text, exact=True)
        if self.count and shown.count():
            shown.last.click()
            self.page.wait_for_function(_IS_AT_REST)
            if field.input_value() == text:
                return
        self._focus(field, *keys)
        if field.input_value():
            self.page.keyboard.press("Control+A")
        self.page.keyboard.type(text)

    def _focus(self, field: Locator, *keys: str) -> None:
        """Put the focus into the field: by these keys, which lead there if it is near, or by a click."""
        for key in keys:
            if field.evaluate(_HAS_FOCUS):
                return
            self.page.keyboard.press(key)
            self.page.wait_for_timeout(20)
        if not field.evaluate(_HAS_FOCUS):
            field.click()


_IS_AT_REST = "() => document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'"
_EMPTY_FIELD_HAS_FOCUS = """() => {
  const fields = [...document.querySelectorAll(".st-key-form :is(textarea, input[type=text])")];
  const empty = fields.find((field) => !field.value && field.offsetParent);
  return !empty || empty === document.activeElement;
}"""
_HAS_FOCUS = "(field) => field === document.activeElement"


def _measure_trace(browser: Browser, server: AppServer, gold: Gold) -> Iterator[dict[str, Any]]:
    page, _ = _open_page(browser, server.url, "", project=PROJECT_NAME, you="bea")
    reader = _Writer(page)
    page.get_by_label("Thought", exact=True).wait_for()
    title = gold["steps"][-1]["arguments"]["title"]
    first_read = reader.run("What does the article say?", "read", {"title": title})
    yield _result("first_read", "the first step of a new server", round(first_read), "ms")
    page.context.close()

    page, _ = _open_page(browser, server.url, "", project=TRACE_PROJECT)
    page.get_by_label("Thought", exact=True).wait_for()
    page.wait_for_load_state("networkidle")  # the components that listen for keys are loaded
    page.wait_for_function(_IS_AT_REST)
    page.evaluate("Object.assign(window.__watched, { keys: 0, clicks: 0 })")
    writer = _Writer(page)
    seconds = []
    for step in gold["steps"]:
        arguments = dict(step["arguments"])
        if step["tool"] == "read":
            del arguments["question"]  # the form has the whole question, which finds the sentence as well
        seconds.append(writer.run(step["thought"], step["tool"], arguments))
    writer.submit(gold["trace"]["final_answer"])
    clicks, keys = writer.read_counts()
    page.context.close()
    question = gold["question"]["text"]
    yield _result("run_to_drawn", f"the median of {STEP_COUNT} steps", round(statistics.median(seconds)), "ms")
    yield _result("run_to_drawn_slowest", f"the slowest of {STEP_COUNT} steps", round(max(seconds)), "ms")
    yield _result("trace_clicks", f"{STEP_COUNT} steps and the answer", clicks, "clicks", question)
    yield _result("trace_keys", f"{STEP_COUNT} steps and the answer, besides thoughts", keys, "keys", question)


def _measure_sessions(server: AppServer) -> dict[str, Any]:
    """Memory that a further open session of the Annotate page takes."""
    process = psutil.Process(server.process_id)

    def open_sessions(stack: ExitStack, numbers: range) -> int:
        for number in numbers:
            query = {"you": f"visitor {number}", "project": PROJECT_NAME}
            stack.enter_context(open_session(server.url, "", query))
        return int(process.memory_info().rss)

    with ExitStack() as stack:
        before = open_sessions(stack, range(SESSION_COUNT))
        after = open_sessions(stack, range(SESSION_COUNT, 2 * SESSION_COUNT))
    size = f"sessions {SESSION_COUNT + 1} to {2 * SESSION_COUNT}, Annotate"
    megabytes = round((after - before) / SESSION_COUNT / 2**20, 2)
    return {**_result("memory_session", size, megabytes, "MB"), "peak_mb": round(server.peak_mb())}
