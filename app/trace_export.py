"""Traces on their way out of the store, with the tools that there are here."""

from collections.abc import Iterable
from functools import partial
from typing import Any
from uuid import UUID

from app.services import services
from db.database import RowNotFound
from db.trace_record import TraceRecord
from db.traces import load_trace
from fewshot_library.formats.export import TraceExport
from tools.tool import Tool


def build_export(session: Any, records: Iterable[TraceRecord]) -> TraceExport:
    """These traces of the store, ready for any format."""
    return TraceExport(
        records,
        tools={name: _tool_definition(tool) for name, tool in services().tool_registry().all_tools().items()},
        offered_tools=tuple(tool.name for tool in services().tool_registry().available_tools(None)),
        find_trace=partial(_find_trace, session),
    )


def _tool_definition(tool: Tool) -> dict[str, Any]:
    """The tool as chat models take it."""
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
    }


def _find_trace(session: Any, key: UUID) -> TraceRecord | None:
    try:
        return load_trace(session, key)
    except RowNotFound:
        return None
