"""Every tool by its name."""

from collections.abc import Iterable

from tools.generate_query import generate_query
from tools.get_label import get_label
from tools.get_wikidata_id import get_wikidata_id
from tools.read import read
from tools.run_query import run_query
from tools.tool import Tool
from tools.tool_error import ToolError
from tools.websearch import websearch
from tools.wikisearch import wikisearch
from worlds.source import World

TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool.ours("wikisearch", "Search", wikisearch),
        Tool.ours("read", "Read", read),
        Tool.ours("getWikiDataID", "Id", get_wikidata_id),
        Tool.ours("generateQuery", "Write query", generate_query),
        Tool.ours("runQuery", "Run query", run_query),
        Tool.ours("getLabel", "Label", get_label),
        Tool.ours("websearch", "Web", websearch, web=True),
    )
}


def tool(name: str) -> Tool:
    """The tool of that name; a ToolError that lists the known ones when there is none."""
    if name not in TOOLS:
        raise ToolError(f"There is no tool {name!r}; there are {', '.join(TOOLS)}.")
    return TOOLS[name]


def offered(world: World | None, names: Iterable[str] = ()) -> list[Tool]:
    """The tools of these names, or all; those that search web pages only when the world is there and has some."""
    has_web = world is not None and world.web is not None
    return [TOOLS[name] for name in names or TOOLS if name in TOOLS and (has_web or not TOOLS[name].web)]
