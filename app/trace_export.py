"""Builds the export of stored traces, with the definitions of the installed tools, and writes one trace as text."""

import json
from collections.abc import Iterable
from functools import partial
from typing import Any
from uuid import UUID

from db.database import RowNotFound
from db.trace_record import TraceRecord
from db.traces import load_trace
from fewshot_library.formats.format import TraceExport
from fewshot_library.formats.showhow import record_to_json
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


def format_trace_json(record: TraceRecord) -> str:
    """The trace as one JSON object, which `showhow traces import` reads."""
    return json.dumps(record_to_json(record), ensure_ascii=False, indent=2)


def format_trace_markdown(record: TraceRecord) -> str:
    """The trace as Markdown for people: question, steps with their observations, answer."""
    parts = [f"# {record.question.text}"]
    for step in record.steps:
        arguments = ", ".join(
            f"{name}={json.dumps(value, ensure_ascii=False)}" for name, value in step.arguments.items()
        )
        action = f"`{step.tool}({arguments})`" if step.tool else ""
        observation = step.error or step.observation or ""
        quoted = "\n".join(f"> {line}" for line in observation.splitlines())
        parts += [f"## Step {step.position}", *filter(None, (step.thought, action, quoted))]
    if record.trace.final_answer:
        parts += ["## Answer", record.trace.final_answer]
    return "\n\n".join(parts) + "\n"
