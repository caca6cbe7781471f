"""Bounds of what an MCP server sends: rate, size and parts, checked before anything else looks at a message.

A server has an event loop and a thread of its own, but all threads share the interpreter: what one server's messages
cost is time of all.
"""

import time
from typing import Any

from mcp.shared.message import SessionMessage
from mcp.types import JSONRPCMessage, JSONRPCResponse
from pydantic_core import from_json

from showhow.tools.arguments import ToolError
from showhow.worlds.source import ErrorKind

MAX_MESSAGE_BYTES = 8_000_000
"""Maximum size of one message."""
MAX_MARKS = 1_000_000
"""Maximum number of commas and opening brackets of one message, which bounds the time to parse it."""
MAX_LINES_PER_SECOND = 5_000
MAX_MESSAGES_PER_SECOND = 500
MAX_BYTES_PER_SECOND = 4 * MAX_MESSAGE_BYTES
MAX_RESULT_PARTS = 2_000
"""Maximum number of content blocks of a result, and of tools of a server."""
MAX_VALUES = 200_000
"""Maximum number of values in the JSON of one message."""


class MessageBounds:
    """Counts what one session received; each method raises a ToolError that ends the session."""

    def __init__(self) -> None:
        self._second = 0
        self._lines = self._messages = self._bytes = self._tools = 0

    def parse(self, line: bytes) -> SessionMessage | None:
        """The message in a line; None if it is none."""
        self._begin_second()
        self._lines += 1
        self._bytes += len(line)
        if self._lines > MAX_LINES_PER_SECOND:
            raise _too_much(f"{MAX_LINES_PER_SECOND:,} lines within a second")
        if self._bytes > MAX_BYTES_PER_SECOND:
            raise _too_much(f"{MAX_BYTES_PER_SECOND:,} bytes within a second")
        if count_marks(line) > MAX_MARKS:
            raise too_many_marks()
        try:
            # In two steps, since validating JSON for each kind of message takes ten times as long.
            return SessionMessage(JSONRPCMessage.model_validate(from_json(line)))
        except ValueError:
            return None

    def _begin_second(self) -> None:
        second = int(time.monotonic())
        if second != self._second:
            self._second, self._lines, self._messages, self._bytes = second, 0, 0, 0

    def check(self, message: SessionMessage) -> None:
        """Count a message, check its parts, and drop schemas of results, whose patterns would run in this process."""
        self._begin_second()
        self._messages += 1
        if self._messages > MAX_MESSAGES_PER_SECOND:
            raise _too_much(f"{MAX_MESSAGES_PER_SECOND:,} messages within a second")
        root = message.message.root
        if not isinstance(root, JSONRPCResponse):
            return
        if len(_list_in(root.result, "content")) > MAX_RESULT_PARTS:
            raise _too_much(f"{MAX_RESULT_PARTS:,} parts at once")
        if _has_more_values(root.result, MAX_VALUES):
            raise _too_much(f"{MAX_VALUES:,} values at once")
        tools = _list_in(root.result, "tools")
        self._tools += len(tools)
        if self._tools > MAX_RESULT_PARTS:
            raise _too_much(f"{MAX_RESULT_PARTS:,} tools")
        for tool in tools:
            if isinstance(tool, dict):
                tool.pop("outputSchema", None)


def count_marks(text: bytes) -> int:
    """The commas and opening brackets of a part of JSON, which are at least as many as its values."""
    return text.count(b",") + text.count(b"[") + text.count(b"{")


def too_many_marks() -> ToolError:
    """The error for a message with more than MAX_MARKS."""
    return _too_much(f"{MAX_MARKS:,} values at once")


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
