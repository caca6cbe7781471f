"""The index of web pages: search, and fetch by address."""

from contextlib import closing
from pathlib import Path

import pytest

from showhow.worlds.embedded.text import EmbeddedWeb, WebWriter
from showhow.worlds.source import NotFound, WebPage

PAGES = (
    WebPage("https://quay.example/news/1", "Harbour news", ("Ada Reed mended the crane.", "It rained."), "1999-05-02"),
    WebPage("https://quay.example/news/2", "Harbour news", ("Otto Reed sold his boat.",)),
    WebPage(
        "https://isle.example/people", "People of the isle", ("Ada Reed works as a glazier.", "So does nobody else.")
    ),
)


@pytest.fixture
def web(tmp_path: Path) -> EmbeddedWeb:
    with closing(WebWriter(tmp_path / "web")) as writer:
        for page in PAGES:
            writer.add(page)
    return EmbeddedWeb(tmp_path / "web")


def test_pages_with_equal_titles_are_fetched_by_their_addresses(web: EmbeddedWeb):
    assert len(web) == len(PAGES)
    assert [web.fetch(page.address) for page in PAGES] == list(PAGES)


def test_a_search_gives_addresses_that_can_be_fetched(web: EmbeddedWeb):
    first, *others = web.search("Who is the glazier Ada Reed?", 3)
    assert (first.address, first.title, first.snippet) == (
        "https://isle.example/people",
        "People of the isle",
        "Ada Reed works as a glazier.",
    )
    assert {hit.address for hit in others} == {PAGES[0].address, PAGES[1].address}
    assert web.search("zeppelin", 3) == []


def test_a_hit_has_the_date_of_its_page_if_known(web: EmbeddedWeb):
    dates = {hit.address: hit.date for hit in web.search("Ada Reed", 3)}
    assert (dates[PAGES[0].address], dates[PAGES[2].address]) == ("1999-05-02", None)


def test_an_unknown_address_is_an_error(web: EmbeddedWeb):
    with pytest.raises(NotFound, match=r"no page at 'https://quay\.example/news/3'"):
        web.fetch("https://quay.example/news/3")
