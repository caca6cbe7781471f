"""Which tools ask which kind of source, for agents that may ask only one kind."""

from collections.abc import Mapping
from dataclasses import replace

from reasoners.reasoner import ReasonerError, Task

TOOLS: Mapping[str, tuple[str, ...]] = {
    "text": ("wikisearch", "read", "websearch"),
    # The paper's structured pipeline has no way from a name to an id but its query writer; ours asks the graph.
    "graph": ("getWikiDataID", "generateQuery", "runQuery", "getLabel"),
}


def source_of(tool: str) -> str | None:
    """The kind of source that the tool asks; None for other people's tools."""
    return next((source for source, tools in TOOLS.items() if tool in tools), None)


def limited(task: Task, sources: str) -> Task:
    """The task with the tools that ask these sources only; all of them, other people's too, for both."""
    if sources == "both":
        return task
    tools = [tool for tool in task.tools if tool.name in TOOLS[sources]]
    if not tools:
        raise ReasonerError(f"None of the tools that are offered here asks the {sources}; choose other sources.")
    return replace(task, tools=tools)
