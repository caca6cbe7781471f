"""Bounds of what an MCP server sends: rate, size and parts, checked before anything else looks at a message.

A server has an event loop and a thread of its own, but all threads share the interpreter: what one server's messages
cost is time of all.
"""

import time
from typing import Any

from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCResponse

from tools.arguments import ToolError
from worlds.source import ErrorKind

MAX_MESSAGE_BYTES = 8_000_000
"""Maximum size of one message."""
MAX_MESSAGES_PER_SECOND = 5_000
MAX_BYTES_PER_SECOND = 4 * MAX_MESSAGE_BYTES
MAX_RESULT_PARTS = 2_000
"""Maximum number of content blocks of a result, and of tools of a server."""
MAX_VALUES = 200_000
"""Maximum number of values in the JSON of one message."""


class MessageBounds:
    """Counts what one session received; each method raises a ToolError that ends the session."""

    def __init__(self) -> None:
        self._second = 0
        self._messages = self._bytes = self._tools = 0

    def count(self, size: int = 0) -> None:
        """Count one message, or one line that is none, of this many bytes."""
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._messages, self._bytes = second, 0, 0
        self._messages += 1
        self._bytes += size
        if self._messages > MAX_MESSAGES_PER_SECOND:
            raise _too_much(f"{MAX_MESSAGES_PER_SECOND:,} messages within a second")
        if self._bytes > MAX_BYTES_PER_SECOND:
            raise _too_much(f"{MAX_BYTES_PER_SECOND:,} bytes within a second")

    def check(self, message: SessionMessage) -> None:
        """Check the parts of a message, and drop the schemas of results, whose patterns would run in this process."""
        root = message.message.root
        if not isinstance(root, JSONRPCResponse):
            return
        if _has_more_values(root.result, MAX_VALUES):
            raise _too_much(f"{MAX_VALUES:,} values at once")
        if len(_list_in(root.result, "content")) > MAX_RESULT_PARTS:
            raise _too_much(f"{MAX_RESULT_PARTS:,} parts at once")
        tools = _list_in(root.result, "tools")
        self._tools += len(tools)
        if self._tools > MAX_RESULT_PARTS:
            raise _too_much(f"{MAX_RESULT_PARTS:,} tools")
        for tool in tools:
            if isinstance(tool, dict):
                tool.pop("outputSchema", None)


def _too_much(what: str) -> ToolError:
    return ToolError(f"it sent more than {what}; request less", ErrorKind.UNAVAILABLE)


def _list_in(result: dict[str, Any], name: str) -> list[Any]:
    value = result.get(name)
    return value if isinstance(value, list) else []


def _has_more_values(value: Any, limit: int) -> bool:
    unvisited = [value]
    while unvisited:
        value = unvisited.pop()
        if isinstance(value, dict | list):
            limit -= len(value)
            unvisited += value.values() if isinstance(value, dict) else value
            if limit < 0:
                return True
    return False
