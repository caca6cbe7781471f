"""The tool wikisearch."""

from showhow.tools.registry import get_tool
from showhow.tools.tool import ToolContext


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
