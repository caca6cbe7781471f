"""A live world on the Worlds page: overview, explorer, queries, and an unreachable server."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.server import Showhow
from tests.browser.visitor import Visitor
from tests.servers.sparql import SparqlServer, free_port


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, oxigraph: SparqlServer) -> Iterator[Showhow]:
    """A server with two live worlds, one of which has an unreachable endpoint."""
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
