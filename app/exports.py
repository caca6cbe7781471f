"""Traces on their way out of the store, with the tools that there are here."""

from collections.abc import Iterable
from functools import partial
from typing import Any
from uuid import UUID

from app.registry import registry
from db.database import Missing
from db.reading import open_trace
from db.record import TraceRecord
from fewshot_library.formats.export import Export
from tools.tool import Tool


def export_of(session: Any, records: Iterable[TraceRecord]) -> Export:
    """These traces of the store, ready for any format."""
    return Export(
        records,
        tools={name: _definition(tool) for name, tool in registry().all().items()},
        offered=tuple(tool.name for tool in registry().offered(None)),
        find=partial(_found, session),
    )


def _definition(tool: Tool) -> dict[str, Any]:
    """The tool as chat models take it."""
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": tool.schema},
    }


def _found(session: Any, key: UUID) -> TraceRecord | None:
    try:
        return open_trace(session, key)
    except Missing:
        return None
