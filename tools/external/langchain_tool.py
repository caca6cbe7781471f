"""LangChain tools, as MCP's client and users' modules define them: their description, and their call."""

import asyncio
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool
from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from showhow.tools.arguments import ToolError
from showhow.tools.external.output import ToolOutput, read_message
from showhow.tools.external.schema import ToolDescription, check_schema
from showhow.worlds.source import ErrorKind


def describe_langchain_tool(tool: BaseTool, name: str) -> ToolDescription:
    """Read the description of a LangChain tool; ToolError if no form can be made from its arguments."""
    try:
        call_schema = tool.tool_call_schema
        schema = dict(call_schema) if isinstance(call_schema, dict) else TypeAdapter(call_schema).json_schema()
    except (PydanticUserError, TypeError) as error:
        raise ToolError(
            f"{name} has arguments without a JSON Schema: {' '.join(str(error).split())}.", ErrorKind.UNAVAILABLE
        ) from error
    return ToolDescription(description=tool.description, arguments=check_schema(schema, name))


def call_langchain_tool(tool: BaseTool, arguments: dict[str, Any]) -> ToolOutput:
    """Call the tool and wait for its result."""
    call = {"type": "tool_call", "id": "call", "name": tool.name, "args": arguments}
    is_coroutine = isinstance(tool, StructuredTool) and tool.func is None
    result = asyncio.run(tool.ainvoke(call)) if is_coroutine else tool.invoke(call)
    return read_message(result if isinstance(result, ToolMessage) else ToolMessage(str(result), tool_call_id="call"))
