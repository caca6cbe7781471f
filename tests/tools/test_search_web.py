"""The tool websearch, and reading the pages of its results."""

from showhow.tools.registry import get_tool
from showhow.tools.tool import ToolContext
from showhow.worlds.source import World
from tests.fixtures.harbour import PAGES, must_not_encode


def test_a_page_is_found_with_its_address_and_read_by_it(webbed: World) -> None:
    context = ToolContext(webbed, must_not_encode)
    observation = get_tool("websearch").call(context, {"query": "Ada Reed kites"}).observation
    assert observation is not None
    first = observation.data["pages"][0]
    assert set(first) == {"title", "address", "date", "snippet", "relaxed"}
    assert observation.text.splitlines()[0] == f"1. All about Ada Reed <{first['address']}>: {first['snippet']}"
    page = get_tool("read").call(context, {"title": first["address"], "question": "Since when?"}).observation
    assert page is not None
    assert (page.data["title"], page.data["address"], page.data["entity"]) == (PAGES[1].title, PAGES[1].address, None)
    assert page.data["sentences"] == list(PAGES[1].sentences)
    assert page.text == "All about Ada Reed:\n[1] Ada Reed has flown kites since 1990.\n[2] She wins."


def test_the_date_of_a_page_is_in_the_hits_and_in_the_page(webbed: World) -> None:
    context = ToolContext(webbed, must_not_encode)
    observation = get_tool("websearch").call(context, {"query": "storm barges"}).observation
    assert observation is not None
    assert observation.data["pages"][0]["date"] == "2003-11-09"
    assert observation.text.startswith("1. Storm over the harbour (2003-11-09) <https://")
    arguments = {"title": PAGES[0].address, "question": "What sank?"}
    read = get_tool("read").call(context, arguments).observation
    assert read is not None
    assert read.data["date"] == "2003-11-09"
    assert read.text.startswith("Storm over the harbour (2003-11-09):")


def test_articles_are_still_read_by_their_titles(webbed: World) -> None:
    article = (
        get_tool("read")
        .call(ToolContext(webbed, must_not_encode), {"title": "Gullhaven", "question": "Who?"})
        .observation
    )
    assert article is not None
    assert "address" not in article.data


def test_hits_with_only_some_of_the_words_are_marked(webbed: World) -> None:
    observation = get_tool("websearch").call(
        ToolContext(webbed, must_not_encode), {"query": "What did the storm do to zeppelins?"}
    )
    assert observation.observation is not None
    assert observation.observation.text.startswith("No page has all the words; these have some of them.\n1. Storm over")


def test_no_hits_are_an_observation_with_advice(webbed: World) -> None:
    outcome = get_tool("websearch").call(ToolContext(webbed, must_not_encode), {"query": "zzyzx"})
    assert outcome.error is None
    assert outcome.observation is not None
    assert outcome.observation.data == {"pages": []}
    assert "No page matches" in outcome.observation.text


def test_web_search_and_reading_an_address_need_web_pages(without_encoder: ToolContext) -> None:
    searched = get_tool("websearch").call(without_encoder, {"query": "storm"})
    read = get_tool("read").call(
        without_encoder, {"title": "https://gullhaven.example/news/3", "question": "What sank?"}
    )
    for outcome in (searched, read):
        assert outcome.error is not None
        assert "needs web pages, and the world harbour has none" in outcome.error


def test_an_unknown_address_is_an_error(webbed: World) -> None:
    wrong = {"title": "https://gullhaven.example/news/4", "question": "What sank?"}
    outcome = get_tool("read").call(ToolContext(webbed, must_not_encode), wrong)
    assert outcome.error is not None
    assert "no page at 'https://gullhaven.example/news/4'" in outcome.error
