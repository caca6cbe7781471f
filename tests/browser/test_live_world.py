"""Live worlds on the pages: overview, explorer, queries, an unreachable server, and web pages also on Annotate."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.annotator import Annotator
from tests.browser.server import Showhow
from tests.browser.visitor import Visitor
from tests.servers.loopback import free_port
from tests.servers.sparql import SparqlServer
from tests.servers.web import HarbourWeb, run_web

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def web() -> Iterator[HarbourWeb]:
    with run_web() as started:
        yield started


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, oxigraph: SparqlServer, web: HarbourWeb) -> Iterator[Showhow]:
    """A server with three live worlds: of a graph, of an unreachable endpoint, and of web pages with a question."""
    showhow = Showhow(tmp_path_factory.mktemp("home"))
    showhow.environment["SHOWHOW_CONTACT"] = "tests@showhow.example"
    gone_url = f"http://127.0.0.1:{free_port()}/sparql"
    for name, url, graph in (
        ("isle", oxigraph.url, oxigraph.graph("isle")),
        ("gone", gone_url, "http://gone.example/"),
    ):
        file = showhow.home / f"{name}.toml"
        file.write_text(
            f'kind = "live"\ntitle = "The {name}"\n[graph]\nkind = "sparql"\nendpoint = "{url}"\n'
            f'default_graph = "{graph}"\n[limits]\nseconds = 5\n'
        )
        showhow.run("world", "add", name, "--file", str(file))
    (showhow.home / "harbour.toml").write_text(web.describe())
    showhow.run("world", "add", "harbour", "--file", str(showhow.home / "harbour.toml"))
    question = {"question": "When did Otto Reed sell his boat?", "answer": "2001"}
    (showhow.home / "questions.jsonl").write_text(json.dumps(question))
    questions = str(showhow.home / "questions.jsonl")
    showhow.run("questions", "import", questions, "--project", "Harbour", "--world", "harbour")
    showhow.run("project", "tools", "Harbour", "--set", "websearch,read")
    showhow.start()
    yield showhow
    showhow.stop()


def test_a_live_world_is_explored_and_queried(page: Page, home: Showhow, oxigraph: SparqlServer):
    ann = Visitor(page, home.url, "ann")
    ann.open("isle")
    host = oxigraph.url.split("/")[2]
    expect(page.get_by_text(f"queries {host}")).to_be_visible()
    expect(page.get_by_text("The isle")).to_be_visible()
    ann.open("isle", view="look")
    expect(page.get_by_text("A live world is only queried when you search")).to_be_visible()
    ann.fill("Search", "mara")
    ann.click("Mara Quill")
    expect(page.get_by_text("lighthouse keeper").first).to_be_visible()
    expect(page.get_by_text("Tom Quill").first).to_be_visible()
    ann.open("isle", view="query")
    ann.ask("SELECT ?father { wd:Q1 wdt:P22 ?father }")
    expect(page.get_by_text("Tom Quill")).to_be_visible()
    ann.ask("SELECT ?father {\n wd:Q1 wdt:P22 }")
    expect(page.get_by_text("Correct it there and run it again")).to_be_visible()


def test_an_unreachable_world_shows_an_error_and_other_worlds_work(page: Page, home: Showhow):
    ann = Visitor(page, home.url, "ann")
    ann.open("gone", view="look", entity="Q1")
    expect(page.get_by_text("could not be reached").first).to_be_visible()
    expect(page.get_by_role("button", name="isle")).to_be_visible()
    expect(page.get_by_text("Traceback")).to_have_count(0)


def test_web_pages_are_described_searched_and_opened_on_the_worlds_page(page: Page, home: Showhow, web: HarbourWeb):
    ann = Visitor(page, home.url, "ann")
    ann.open("harbour")
    expect(page.get_by_text("web search of")).to_be_visible()
    expect(page.get_by_text("public and private addresses")).to_be_visible()
    ann.open("harbour", view="look", page=web.address("/quay/1"))
    # A link may contain any address; no person typed this one.
    expect(page.get_by_text("was not returned by a search")).to_be_visible()
    ann.fill("Search", "storm")
    ann.click("Storm over the harbour")
    expect(page.get_by_text("Ada Reed saw it from the quay.")).to_be_visible()
    assert web.paths("/quay") == []


def test_a_person_searches_and_reads_web_pages_on_the_annotate_page(page: Page, home: Showhow, web: HarbourWeb):
    ada = Annotator(page, home.url, "ada", "Harbour")
    ada.show("When did Otto Reed sell")
    ada.choose("Alt+1")
    ada.wait_for_save(lambda: ada.thought.fill("I need pages about Otto."))
    ada.fill_argument("query", "Otto Reed")
    search = ada.run()
    expect(search).to_contain_text("Otto Reed sold his boat in 2001.")
    ada.choose("Alt+2")
    ada.value(search, web.address("/people/otto"))
    ada.fill_argument("question", "When did he sell his boat?")
    expect(ada.run()).to_contain_text("Ada Reed is his sister.")
    ada.choose("Alt+2")
    ada.fill_argument("title", web.address("/people/ada"))
    ada.fill_argument("question", "What does she do?")
    # No search has returned this page: the person typed its address.
    expect(ada.run()).to_contain_text("She works as a glazier in Gullhaven.")
