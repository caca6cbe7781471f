"""A tool is a function: its signature gives the schema, the defaults and what its parameters accept."""

from typing import Annotated

import numpy as np
import pytest

from showhow.tools.arguments import SPLIT_IDS_VALIDATOR, Accepts, ToolError
from showhow.tools.external.config import ExternalToolsConfig, FunctionConfig
from showhow.tools.registry import BUILT_IN_TOOLS, ToolRegistry
from showhow.tools.tool import Observation, SourceKind, Tool, ToolContext
from showhow.worlds.source import World

CONTEXT = ToolContext(World("empty"), lambda texts: np.zeros((len(texts), 1), np.float32))


def list_files(
    context: ToolContext,
    folder: Annotated[str, "the folder to list", Accepts("title")],
    names: Annotated[list[str] | None, "only files of these names"] = None,
    limit: Annotated[int, "how many files at most"] = 5,
) -> Observation:
    """List the files of a folder."""
    return Observation(f"{folder}: {names}, {limit}", {})


def label_entities(
    context: ToolContext,
    ids: Annotated[list[str], "ids such as Q42", SPLIT_IDS_VALIDATOR, Accepts("entity")],
) -> Observation:
    """Label entities."""
    return Observation(", ".join(ids), {})


FILES = Tool.from_function("listFiles", "Files", list_files, SourceKind.TEXT, next_tool="read")


def test_defaults_of_parameters_are_in_the_schema_in_the_parameters_and_in_a_call() -> None:
    folder, names, limit = FILES.parameters
    assert (folder.required, names.required, limit.required) == (True, False, False)
    assert (folder.default, names.default, limit.default) == (None, None, 5)
    assert FILES.schema["required"] == ["folder"]
    assert FILES.schema["properties"]["limit"]["default"] == 5
    result = FILES.call(CONTEXT, {"folder": "docs"})
    assert result.observation == Observation("docs: None, 5", {})
    result = FILES.call(CONTEXT, {"folder": "docs", "limit": "7"})
    assert result.observation == Observation("docs: None, 7", {})


def test_only_a_list_that_accepts_entities_holds_entity_ids() -> None:
    names = FILES.parameters[1]
    assert (names.kind, names.item_kind) == ("list", "text")
    assert names.parse("New York\nLos Angeles") == ["New York", "Los Angeles"]
    (ids,) = Tool.from_function("label", "Label", label_entities, SourceKind.GRAPH).parameters
    assert (ids.item_kind, ids.accepts) == ("id", ("entity",))
    assert ids.parse("Q1, Q2 Q3") == ["Q1", "Q2", "Q3"]


def test_parameters_carry_the_kinds_of_values_that_they_accept() -> None:
    accepted = {(tool.name, p.name): p.accepts for tool in BUILT_IN_TOOLS.values() for p in tool.parameters}
    assert accepted == {
        ("wikisearch", "query"): ("title",),
        ("read", "title"): ("title", "address"),
        ("read", "question"): (),
        ("getWikiDataID", "title"): ("title",),
        ("generateQuery", "question"): (),
        ("generateQuery", "entity_ids"): ("entity",),
        ("runQuery", "sparql"): ("query", "entity", "relation"),
        ("getLabel", "ids"): ("entity", "relation"),
        ("websearch", "query"): ("title",),
        ("getRelationsAsHead", "entity"): ("entity",),
        ("getRelationsAsTail", "entity"): ("entity",),
        ("getTailEntities", "entity"): ("entity",),
        ("getTailEntities", "relation"): ("relation",),
        ("getTailEntities", "limit"): None,
        ("getHeadEntities", "relation"): ("relation",),
        ("getHeadEntities", "entity"): ("entity",),
        ("getHeadEntities", "limit"): None,
    }
    assert [p.accepts for p in FILES.parameters] == [("title",), None, None]


def test_an_added_tool_is_offered_found_and_listed_like_the_others() -> None:
    registry = ToolRegistry(built_in={**BUILT_IN_TOOLS, FILES.name: FILES})
    assert FILES in registry.available_tools(None)
    assert registry.offered_tools(None, ["listFiles"]) == [FILES]
    assert registry.get_tool("listFiles") is FILES
    assert registry.problem("listFiles") is None
    assert registry.all_tools()["listFiles"] is FILES
    assert FILES in registry.provider_statuses()[0].tools
    with pytest.raises(ToolError, match=r"there are wikisearch, .*, getHeadEntities, listFiles"):
        registry.get_tool("gone")


def test_a_function_with_the_name_of_an_added_tool_is_refused() -> None:
    config = ExternalToolsConfig(functions={"listFiles": FunctionConfig(place="mine:files")})
    registry = ToolRegistry(config, built_in={**BUILT_IN_TOOLS, FILES.name: FILES})
    assert registry.find("listFiles") is FILES
    assert "has the name of a built-in tool" in registry.config.errors["listFiles"]
