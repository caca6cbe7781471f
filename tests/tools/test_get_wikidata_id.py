"""The tool getWikiDataID."""

import pytest

from showhow.tools.registry import get_tool
from showhow.tools.tool import ToolContext


@pytest.mark.parametrize("title", ["Ada Reed", "ada reed", "Captain Reed"])
def test_a_title_a_name_in_another_case_and_an_alias_find_the_entity(title: str, without_encoder: ToolContext) -> None:
    observation = get_tool("getWikiDataID").call(without_encoder, {"title": title}).observation
    assert observation is not None
    first = observation.data["entities"][0]
    assert first == {"id": "Q1", "label": "Ada Reed", "description": "ferry pilot", "title": "Ada Reed"}
    assert observation.text.splitlines()[0] == "Q1: Ada Reed (ferry pilot)"


def test_entities_of_the_same_name_are_all_offered(without_encoder: ToolContext) -> None:
    observation = get_tool("getWikiDataID").call(without_encoder, {"title": "Eli Reed"}).observation
    assert observation is not None
    assert {entity["id"] for entity in observation.data["entities"]} >= {"Q5", "Q13"}


def test_an_unknown_name_is_an_error_with_advice(without_encoder: ToolContext) -> None:
    outcome = get_tool("getWikiDataID").call(without_encoder, {"title": "Zebulon Quux"})
    assert outcome.observation is None
    assert (
        outcome.error
        == "Nothing in this world is called 'Zebulon Quux'; search for it with wikisearch and use the title found."
    )
