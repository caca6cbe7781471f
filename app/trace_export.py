"""Builds the export of stored traces, with the definitions of the installed tools."""

from collections.abc import Iterable
from functools import partial
from typing import Any
from uuid import UUID

from db.database import RowNotFound
from db.trace_record import TraceRecord
from db.traces import load_trace
from fewshot_library.formats.format import TraceExport
from tools.registry import ToolRegistry
from tools.tool import Tool


def build_export(registry: ToolRegistry, session: Any, records: Iterable[TraceRecord]) -> TraceExport:
    """Build the input of a format's writer; the session must stay open while it writes."""
    return TraceExport(
        records,
        tools={name: _chat_function(tool) for name, tool in registry.all_tools().items()},
        offered_tools=tuple(tool.name for tool in registry.available_tools(None)),
        find_trace=partial(_find_trace, session),
    )


def _chat_function(tool: Tool) -> dict[str, Any]:
    """The tool's definition in the format of chat models."""
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
    }


def _find_trace(session: Any, trace_id: UUID) -> TraceRecord | None:
    try:
        return load_trace(session, trace_id)
    except RowNotFound:
        return None
