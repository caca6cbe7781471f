"""Tools with a language model on the Annotate page: answers, quotations and fallbacks."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.annotator import Annotator
from tests.browser.server import Showhow
from tests.servers.model import Fails, ModelServer, Reply, Request, Says

pytestmark = pytest.mark.long

TOWN = Path(__file__).parents[1] / "tools"
KEY = "sk-planted-in-the-browser-77"
GOOD = "SELECT ?answer WHERE { wd:Q1 wdt:P8 ?answer }"


def replies(request: Request) -> Reply:
    """Reply by question: a good answer, an invented one, or an error that repeats the key."""
    question = next(line for line in request.prompt.splitlines() if line.startswith("Question: "))
    if "husband" in question:
        return Says(json.dumps({"answer": "he mends nets", "quotes": ["Her husband mends nets in a shed"]}))
    if "mother" in question:
        return Says(json.dumps({"answer": "<b>bread</b>", "quotes": ["Her mother baked <i>bread</i>."]}))
    if "born" in question:
        wrong_candidate = {"sparql": GOOD.replace("P8", "P999"), "reading": "a wrong one"}
        return Says(json.dumps({"candidates": [wrong_candidate, {"sparql": GOOD, "reading": "where she was born"}]}))
    return Fails(401, f"Incorrect API key provided: {request.headers['authorization']}")


@pytest.fixture(scope="module")
def model() -> Iterator[ModelServer]:
    with ModelServer(replies) as server:
        yield server


@pytest.fixture(scope="module")
def town(model: ModelServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Showhow]:
    """A server over the small town, with a language model."""
    showhow = Showhow(tmp_path_factory.mktemp("town"))
    settings = {"SHOWHOW_MODEL": "scripted", "SHOWHOW_MODEL_BASE_URL": model.url, "SHOWHOW_MODEL_PRICE": "1/10"}
    settings["SHOWHOW_MODEL_KEY_VARIABLE"] = "OPENAI_API_KEY"
    showhow.environment |= {**settings, "OPENAI_API_KEY": KEY}
    articles, graph = str(TOWN / "harbour.jsonl"), str(TOWN / "harbour.ttl")
    showhow.run("world", "import", "harbour", "--articles", articles, "--graph", graph)
    questions = showhow.home / "questions.jsonl"
    questions.write_text(json.dumps({"question": "Where was Ada Reed born?", "answer": "Saltmouth"}), encoding="utf-8")
    showhow.run("questions", "import", str(questions), "--project", "Harbour", "--world", "harbour")
    showhow.start()
    yield showhow
    showhow.stop()


def act(ada: Annotator, key: str, **arguments: str) -> Locator:
    ada.choose(key)
    ada.wait_for_save(lambda: ada.thought.fill(f"Ask: {arguments['question']}"))
    for name, text in arguments.items():
        ada.fill_argument(name, text)
    before = ada.steps.count()
    ada.page.keyboard.press("Control+Enter")
    # The first step loads the encoder and LangChain.
    expect(ada.steps).to_have_count(before + 1, timeout=120_000)
    ada.settle()
    return ada.steps.last


def test_a_model_answer_is_shown_with_its_quotations_and_a_failure_with_the_fallback(
    page: Page, town: Showhow, model: ModelServer
):
    ada = Annotator(page, town.url, "ada", "Harbour")
    step = act(ada, "Alt+2", title="Ada Reed", question="What is the work of her husband?")
    expect(step.locator(".found.good")).to_contain_text("Every quotation is in the text.")
    expect(step.locator(".found blockquote")).to_have_text("4Her husband mends nets in a shed")
    expect(step.locator(".spent")).to_contain_text("110 tokens")

    step = act(ada, "Alt+2", title="Ada Reed", question="What did her mother do?")
    expect(step.locator(".found.poor")).to_contain_text("No quotation supports this answer.")
    expect(step.locator(".found.poor")).to_contain_text("<b>bread</b>")
    expect(step.locator(".found.poor")).to_contain_text("Quoted, but not in the text: Her mother baked <i>bread</i>.")

    step = act(ada, "Alt+2", title="Ada Reed", question="Which film did she make?")
    expect(step).to_contain_text("Ranked without the language model.")
    expect(step).to_contain_text("refuses the key (401)")
    expect(step.locator(".found")).to_have_count(0)
    expect(step.locator("mark").first).to_be_visible()

    step = act(ada, "Alt+4", question="Where was Ada Reed born?", entity_ids="Q1")
    expect(step).to_contain_text("Written by the language model and tested on the graph.")
    expect(step).to_contain_text("where she was born")
    expect(step.locator("summary")).to_contain_text("Queries of the language model that do not answer: 1")
    step = act(ada, "Alt+4", question="Who is the spouse of Ada Reed?", entity_ids="Q1")
    expect(step).to_contain_text("Written by the grammar.")

    request_count = len(model.requests)
    page.reload()
    ada.settle()
    expect(ada.steps).to_have_count(5)
    assert len(model.requests) == request_count
    assert KEY not in page.content()
    files_with_key = [path for path in town.home.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert files_with_key == []
