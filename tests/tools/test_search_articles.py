"""The tool wikisearch."""

import pytest

from showhow.tools.registry import get_tool
from showhow.tools.tool import ToolContext
from showhow.worlds.build import WorldContents, build_world
from showhow.worlds.open import open_world
from showhow.worlds.source import Article
from tests.oracles.test_gold_traces import some_meaning


def test_a_name_finds_its_article_first(without_encoder: ToolContext) -> None:
    observation = get_tool("wikisearch").call(without_encoder, {"query": "ada reed"}).observation
    assert observation is not None
    assert observation.data["hits"][0]["title"] == "Ada Reed"
    assert observation.data["hits"][0]["entity"] == "Q1"
    assert set(observation.data["hits"][0]) == {"title", "snippet", "entity", "relaxed"}
    assert observation.text.splitlines()[0].startswith("1. Ada Reed: ")


def test_a_question_finds_the_right_article_with_relaxed_hits(without_encoder: ToolContext) -> None:
    observation = (
        get_tool("wikisearch").call(without_encoder, {"query": "At what hour does the night ferry sail?"}).observation
    )
    assert observation is not None
    assert observation.data["hits"][0]["title"] == "Night ferry"


def test_no_hits_are_an_observation_with_advice(without_encoder: ToolContext) -> None:
    outcome = get_tool("wikisearch").call(without_encoder, {"query": "zzyzx"})
    assert outcome.error is None
    assert outcome.observation is not None
    assert outcome.observation.data == {"hits": []}
    assert "No article matches" in outcome.observation.text


def test_punctuation_and_emoji_in_a_query_are_only_words(without_encoder: ToolContext) -> None:
    for query in ('"Ada" AND (Reed', "title:[a TO", "\\", "🙂 Gullhaven", "a" * 5000):
        assert get_tool("wikisearch").call(without_encoder, {"query": query}).error is None


def test_more_hits_are_returned_on_demand_within_the_limit(without_encoder: ToolContext) -> None:
    search = get_tool("wikisearch")
    (one,) = search.call(without_encoder, {"query": "ferry", "limit": 1}).observation.data["hits"]  # type: ignore[union-attr]
    default = search.call(without_encoder, {"query": "ferry"}).observation
    assert default is not None
    assert default.data["hits"][0] == one
    for limit in (0, 51):
        assert "it is a number from 1 to 50" in str(search.call(without_encoder, {"query": "x", "limit": limit}).error)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ToolContext:
    """A world of 130 articles of three paragraphs; one of them tells what a keeper reads."""
    articles = [
        Article(
            f"Lighthouse {number}",
            (
                f"Lighthouse {number} stands on a cape.",
                "Its lamp burns oil.",
                f"The keeper of the lighthouse has {number} cats.",
                "The keeper reads novels about pirates." if number == 77 else "The keeper seldom reads.",
                *["The stairs are steep and the paint comes off in the salty wind of every winter."] * 30,
            ),
            paragraphs=(0, 2, 4),
        )
        for number in range(130)
    ]
    worlds = tmp_path_factory.mktemp("worlds")
    build_world(worlds, "library", WorldContents(articles))
    return ToolContext(open_world(worlds, "library"), some_meaning)


def test_of_the_best_articles_the_best_paragraphs_are_returned(library: ToolContext) -> None:
    search = get_tool("wikisearch")
    arguments = {"query": "Which novels does the lighthouse keeper read?", "limit": 10, "screened": 100}
    observation = search.call(library, arguments).observation
    assert observation is not None
    hits = observation.data["hits"]
    assert len(hits) == 10
    assert observation.data["screened"] == 100
    assert hits[0] == {
        "title": "Lighthouse 77",
        "snippet": "The keeper of the lighthouse has 77 cats. The keeper reads novels about pirates.",
        "entity": None,
        "relaxed": False,
        "place": 2,
    }
    # A long paragraph is parted at the ends of sentences.
    assert observation.data["paragraphs"] == 100 * 7
    assert observation.text.endswith("The best of 700 paragraphs of 100 articles.")
    few = search.call(library, {**arguments, "screened": 3}).observation
    assert few is not None
    assert {hit["title"] for hit in few.data["hits"]} <= {f"Lighthouse {number}" for number in range(130)}
    assert (few.data["screened"], few.data["paragraphs"]) == (3, 21)


def test_paragraphs_of_nothing_are_an_observation_and_more_articles_than_allowed_an_error(library: ToolContext) -> None:
    search = get_tool("wikisearch")
    nothing = search.call(library, {"query": "zzyzx", "screened": 5}).observation
    assert nothing is not None
    assert nothing.data == {"hits": [], "screened": 0, "paragraphs": 0}
    for screened in (0, 101):
        error = search.call(library, {"query": "keeper", "screened": screened}).error
        assert "it is a number from 1 to 100" in str(error)
