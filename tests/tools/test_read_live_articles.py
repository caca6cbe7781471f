"""Observations of tools on a live wiki's articles."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from showhow.tools.registry import get_tool
from showhow.tools.tool import ToolContext
from showhow.worlds.live.http.client import RecordingHttpClient
from showhow.worlds.live.http.request import Access, RequestPolicy, get_host
from showhow.worlds.live.http.response_cache import RESPONSE_CACHE_FILE, ResponseCache
from showhow.worlds.live.wiki.mediawiki import MediaWikiText
from showhow.worlds.live.world import add_live_world
from showhow.worlds.open import open_world
from showhow.worlds.source import World
from tests.fixtures.harbour import no_meaning
from tests.servers.live_world import description
from tests.servers.mediawiki import MediaWiki
from tests.servers.sparql import SparqlServer


@pytest.fixture(scope="module")
def wiki(mediawiki: MediaWiki, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolContext]:
    response_cache = ResponseCache(tmp_path_factory.mktemp("live") / RESPONSE_CACHE_FILE)
    policy = RequestPolicy(frozenset({get_host(mediawiki.api)}), max_per_minute=1_000_000, timeout_seconds=120.0)
    text = MediaWikiText(mediawiki.api, "en", RecordingHttpClient(policy, response_cache, Access("ada@example.org")))
    yield ToolContext(World("wiki", text=text), no_meaning)
    response_cache.close()


def test_an_ambiguous_title_is_an_observation_with_choices(wiki: ToolContext):
    outcome = get_tool("read").call(wiki, {"title": "Mercury", "question": "Which one is a metal?"})
    assert outcome.error is None
    assert outcome.observation is not None
    assert "2. Mercury (element): a metal that is liquid at room temperature" in outcome.observation.text
    assert [hit["entity"] for hit in outcome.observation.data["hits"]] == ["Q308", "Q925", "Q1150", "Q9001"]
    assert "sentences" not in outcome.observation.data


def test_an_ambiguous_title_offers_the_ids_of_its_meanings(
    mediawiki: MediaWiki, oxigraph: SparqlServer, tmp_path: Path
):
    add_live_world(tmp_path, "w", description(mediawiki.api, oxigraph.url, oxigraph.graph("isle")), "w.toml")
    context = ToolContext(open_world(tmp_path, "w", Access("ada@example.org")), no_meaning)
    observation = get_tool("getWikiDataID").call(context, {"title": "Mercury"}).observation
    assert observation is not None
    assert [one["id"] for one in observation.data["entities"]] == ["Q308", "Q925", "Q1150", "Q9001"]
    assert "Q925: Mercury (element) (a metal that is liquid at room temperature)" in observation.text.splitlines()


def test_a_redirect_is_shown_and_the_row_of_an_infobox_answers(wiki: ToolContext):
    question = "Which coach had the Rovers in season 1999?"
    observation = get_tool("read").call(wiki, {"title": "North Bridge", "question": question}).observation
    assert observation is not None
    assert observation.text.startswith("Northbridge (redirected from North Bridge):")
    assert "Season: 1999; Coach: Fay Lund; League Place: 3rd; League Points: 70" in observation.text
    assert observation.data["redirected"] == "North Bridge"


def test_paragraphs_of_a_live_wiki_are_ranked(wiki: ToolContext):
    arguments = {"query": "When was North Bridge opened?", "limit": 3, "screened": 4}
    observation = get_tool("wikisearch").call(wiki, arguments).observation
    assert observation is not None
    assert 1 <= len(observation.data["hits"]) <= 3
    assert 1 <= observation.data["screened"] <= 4


def test_several_candidates_have_descriptions(wiki: ToolContext):
    observation = get_tool("wikisearch").call(wiki, {"query": "mercury"}).observation
    assert observation is not None
    assert observation.text.splitlines()[0].startswith("1. Mercury (several meanings of this title): ")
    assert len(observation.data["hits"]) == 4


def test_a_failing_wiki_is_an_error_and_not_an_empty_result(wiki: ToolContext, tmp_path: Path):
    response_cache = ResponseCache(tmp_path / RESPONSE_CACHE_FILE)
    gone = "http://127.0.0.1:9"
    http_client = RecordingHttpClient(
        RequestPolicy(frozenset({get_host(gone)}), timeout_seconds=1.0), response_cache, Access("ada@example.org")
    )
    nowhere = ToolContext(World("gone", text=MediaWikiText(f"{gone}/w/api.php", "en", http_client)), no_meaning)
    for name, arguments in (("wikisearch", {"query": "Ada"}), ("read", {"title": "Ada", "question": "who?"})):
        outcome = get_tool(name).call(nowhere, arguments)
        assert outcome.observation is None
        assert "127.0.0.1:9 could not be reached" in (outcome.error or "")
    response_cache.close()
