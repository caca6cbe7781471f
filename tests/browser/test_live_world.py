"""A live world on the Worlds page: what it is, looked at and asked, and when its server is gone."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from tests.browser.server import Showhow
from tests.browser.visitor import Visitor
from tests.servers.sparql import SparqlServer, free_port

pytestmark = pytest.mark.xdist_group("live")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory, oxigraph: SparqlServer) -> Iterator[Showhow]:
    """A server with a live world, and one whose endpoint is gone."""
    showhow = Showhow(tmp_path_factory.mktemp("home"))
    showhow.environment["SHOWHOW_CONTACT"] = "tests@showhow.example"
    gone = f"http://127.0.0.1:{free_port()}/sparql"
    for name, url, more in (("isle", oxigraph.url, oxigraph.graph("isle")), ("gone", gone, "http://gone.example/")):
        file = showhow.home / f"{name}.toml"
        file.write_text(
            f'kind = "live"\ntitle = "The {name}"\n[graph]\nkind = "sparql"\nendpoint = "{url}"\n'
            f'default_graph = "{more}"\n[limits]\nseconds = 5\n'
        )
        showhow.run("world", "add", name, "--file", str(file))
    showhow.start()
    yield showhow
    showhow.stop()


def test_a_live_world_is_shown_looked_at_and_asked(page: Page, home: Showhow, oxigraph: SparqlServer):
    ann = Visitor(page, home.url, "ann")
    ann.look("isle")
    host = oxigraph.url.split("/")[2]
    expect(page.get_by_text(f"queries {host}")).to_be_visible()
    expect(page.get_by_text("The isle")).to_be_visible()
    ann.look("isle", view="look")
    expect(page.get_by_text("A live world is only queried when you search")).to_be_visible()
    ann.fill("Search", "mara")
    ann.click("Mara Quill")
    expect(page.get_by_text("lighthouse keeper").first).to_be_visible()
    expect(page.get_by_text("Tom Quill").first).to_be_visible()
    ann.look("isle", view="query")
    ann.ask("SELECT ?father { wd:Q1 wdt:P22 ?father }")
    expect(page.get_by_text("Tom Quill")).to_be_visible()
    ann.ask("SELECT ?father {\n wd:Q1 wdt:P22 }")
    expect(page.get_by_text("Mend it there and run it again")).to_be_visible()


def test_a_server_that_is_gone_is_told_in_its_place_and_the_others_stay(page: Page, home: Showhow):
    ann = Visitor(page, home.url, "ann")
    ann.look("gone", view="look", entity="Q1")
    expect(page.get_by_text("could not be reached").first).to_be_visible()
    expect(page.get_by_role("button", name="isle")).to_be_visible()
    expect(page.get_by_text("Traceback")).to_have_count(0)
