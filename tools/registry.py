"""Every tool by its name."""

from tools.generate_query import generate_query
from tools.get_label import get_label
from tools.get_wikidata_id import get_wikidata_id
from tools.read import read
from tools.run_query import run_query
from tools.tool import Tool, ToolError
from tools.wikisearch import wikisearch

TOOLS: dict[str, Tool] = {
    tool.name: tool
    for tool in (
        Tool("wikisearch", "Search", wikisearch),
        Tool("read", "Read", read),
        Tool("getWikiDataID", "Id", get_wikidata_id),
        Tool("generateQuery", "Write query", generate_query),
        Tool("runQuery", "Run query", run_query),
        Tool("getLabel", "Label", get_label),
    )
}


def tool(name: str) -> Tool:
    """The tool of that name; a ToolError that lists the known ones when there is none."""
    if name not in TOOLS:
        raise ToolError(f"There is no tool {name!r}; there are {', '.join(TOOLS)}.")
    return TOOLS[name]
