"""Converts tools to LangChain tools."""

from collections.abc import Iterable
from typing import Any

from langchain_core.tools import StructuredTool

from tools.tool import Tool, ToolContext


def to_langchain_tools(tools: Iterable[Tool], context: ToolContext) -> list[StructuredTool]:
    """Bind tools to a context: the content is the text or the error, the artifact the data or {"error": ...}."""
    return [_to_langchain_tool(tool, context) for tool in tools]


def _to_langchain_tool(tool: Tool, context: ToolContext) -> StructuredTool:
    def call(**arguments: Any) -> tuple[str, dict[str, Any]]:
        outcome = tool.call(context, arguments)
        if outcome.observation is None:
            return str(outcome.error), {"error": outcome.error}
        return outcome.observation.text, outcome.observation.data

    # With a JSON schema LangChain does not validate, so Tool.call reports wrong arguments as everywhere.
    return StructuredTool.from_function(
        func=call,
        name=tool.name,
        description=tool.description,
        args_schema=tool.schema,
        response_format="content_and_artifact",
        infer_schema=False,
    )
