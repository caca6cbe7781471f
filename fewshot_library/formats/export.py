"""Traces on their way out, with what a format may ask about them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from db.models import Step
from db.trace_record import TraceRecord

JSON_TYPES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array", dict: "object"}


def _no_trace(_: UUID) -> TraceRecord | None:
    return None


@dataclass(frozen=True, slots=True)
class TraceExport:
    """The traces to write, the tools that were offered for them, and the door to the traces they were forked from."""

    records: Iterable[TraceRecord]
    tools: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    """Each tool as chat models take it: {"type": "function", "function": {name, description, parameters}}."""
    offered_tools: Sequence[str] = ()
    """The tools that are there where a project names none."""
    find_trace: Callable[[UUID], TraceRecord | None] = _no_trace
    """The trace with this key, if the store has it."""

    def tool_definitions(self, record: TraceRecord) -> list[dict[str, Any]]:
        """The tools that the trace's author could use; one that is not known here is described by its calls."""
        # A trace from elsewhere brought its own definitions along.
        brought = record.trace.configuration.get("tools")
        own = {name: tool for tool in brought if (name := _tool_name(tool))} if isinstance(brought, list) else {}
        names = list(own) if isinstance(brought, list) else list(record.project.tools or self.offered_tools)
        used = [step.tool for step in record.steps if step.tool is not None]
        definitions = {**self.tools, **own}
        return [
            definitions.get(name) or _infer_definition(name, record.steps) for name in dict.fromkeys([*names, *used])
        ]


def _tool_name(tool: Any) -> str | None:
    match tool:
        case {"function": {"name": str(name)}}:
            return name
    return None


def _infer_definition(name: str, steps: Iterable[Step]) -> dict[str, Any]:
    properties: dict[str, Any] = {}
    for step in steps:
        if step.tool == name:
            properties |= {argument: _infer_schema(value) for argument, value in step.arguments.items()}
    return {
        "type": "function",
        "function": {"name": name, "parameters": {"type": "object", "properties": properties}},
    }


def _infer_schema(value: Any) -> dict[str, Any]:
    """The JSON schema of a value, as far as one example tells it."""
    schema: dict[str, Any] = {"type": JSON_TYPES[type(value)]} if type(value) in JSON_TYPES else {}
    return schema | {"items": _infer_schema(value[0])} if isinstance(value, list) and value else schema
