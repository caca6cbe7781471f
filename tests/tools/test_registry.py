"""The registry of tools."""

import subprocess
import sys
from dataclasses import replace

import pytest

from showhow.tools.arguments import ToolError
from showhow.tools.registry import (
    BUILT_IN_TOOLS,
    ToolRegistry,
    argument_label,
    available_tools,
    get_tool,
    name_tools_by_title,
    tool_title,
)
from showhow.worlds.source import World

SIX = ["wikisearch", "read", "getWikiDataID", "generateQuery", "runQuery", "getLabel"]
GRAPH_STEPS = ["getRelationsAsHead", "getRelationsAsTail", "getTailEntities", "getHeadEntities"]


def test_the_built_in_tools_have_their_published_names_and_labels_in_order() -> None:
    assert list(BUILT_IN_TOOLS) == [*SIX, "websearch", *GRAPH_STEPS]
    titles = ["Search", "Read", "Find id", "Write query", "Run query", "Label", "Web"]
    titles += ["Relations from", "Relations to", "Follow", "Follow back"]
    assert [one.title for one in BUILT_IN_TOOLS.values()] == titles


def test_pages_call_tools_and_their_arguments_by_the_words_of_their_forms() -> None:
    assert [tool_title(name) for name in ("generateQuery", "find_plan", "getWeather")] == [
        "Write query",
        "Find plan",
        "GetWeather",
    ]
    labels = {tool.name: [parameter.label for parameter in tool.parameters] for tool in BUILT_IN_TOOLS.values()}
    assert labels["wikisearch"] == labels["websearch"] == ["Search for"]
    assert labels["generateQuery"] == ["Question", "Entities"]
    assert [argument_label("runQuery", name) for name in ("sparql", "gone")] == ["SPARQL query", "Gone"]
    # A tool of others may mean something else by the same name.
    assert argument_label("ask_database", "query") == "Query"


def test_descriptions_on_pages_have_the_titles_of_tools() -> None:
    text = "ids from getWikiDataID; runQuery reads them, `read` takes what you read, and wikisearches find nothing."
    assert name_tools_by_title(text) == (
        "ids from Find id; Run query reads them, Read takes what you read, and wikisearches find nothing."
    )
    for tool in BUILT_IN_TOOLS.values():
        for words in (tool.description, *(parameter.hint for parameter in tool.parameters)):
            assert not {name for name in BUILT_IN_TOOLS if name != "read" and name in name_tools_by_title(words)}


def test_web_tools_are_offered_only_in_worlds_with_web_pages(harbour: World, webbed: World) -> None:
    assert [one.name for one in available_tools(webbed)] == list(BUILT_IN_TOOLS)
    assert [one.name for one in available_tools(harbour)] == [*SIX, *GRAPH_STEPS]
    assert [one.name for one in available_tools(webbed, ["websearch", "getLabel", "gone"])] == ["websearch", "getLabel"]
    assert [one.name for one in available_tools(harbour, ["websearch", "getLabel"])] == ["getLabel"]


def test_graph_steps_are_offered_only_in_worlds_with_a_graph(harbour: World) -> None:
    texts = replace(harbour, graph=None)
    assert [one.name for one in available_tools(texts)] == [one.name for one in available_tools(None)] == SIX
    with pytest.raises(ToolError, match="getHeadEntities needs a world with a graph"):
        ToolRegistry().offered_tools(texts, ["getHeadEntities"])


@pytest.mark.parametrize("name", list(BUILT_IN_TOOLS))
def test_every_tool_and_every_parameter_has_a_description(name: str) -> None:
    one = get_tool(name)
    assert one.description
    assert all(parameter.hint for parameter in one.parameters)
    properties = one.schema["properties"]
    assert {p.name: p.hint for p in one.parameters} == {key: value["description"] for key, value in properties.items()}


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(ToolError, match="no tool 'search'; there are wikisearch, read, getWikiDataID"):
        get_tool("search")


def test_loading_the_tools_loads_no_model_and_no_langchain() -> None:
    heavy = "{'torch', 'sentence_transformers', 'transformers', 'langchain', 'langchain_core', 'pandas', 'sqlalchemy'}"
    subprocess.run(
        [sys.executable, "-c", f"import sys, showhow.tools.registry; assert not {heavy} & set(sys.modules)"], check=True
    )


def test_a_project_without_a_choice_offers_the_built_in_tools_and_a_chosen_tool_that_is_gone_is_left_out() -> None:
    registry = ToolRegistry()
    assert [tool.name for tool in registry.offered_tools(None, [])] == SIX
    assert [tool.name for tool in registry.offered_tools(None, ["gone", "read"])] == ["read"]


def test_a_project_whose_tools_are_all_gone_offers_none_and_the_error_names_each() -> None:
    with pytest.raises(ToolError) as raised:
        ToolRegistry().offered_tools(None, ["gone", "websearch", "lost"])
    message = str(raised.value)
    assert message.startswith("None of the tools that this project offers is available. There is no tool 'gone'; ")
    assert "websearch needs a world with web pages." in message
    assert "There is no tool 'lost'; " in message
    assert message.endswith("Make them available again, or choose other tools for the project.")
    assert raised.value.kind == "unavailable"
