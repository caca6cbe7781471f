"""The traces of an export, their tool definitions and parent traces, and the parts that a format drops."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
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
    """The traces to write, the tools offered for them, and access to the traces they were forked from."""

    records: Iterable[TraceRecord]
    tools: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    """Tool definitions for chat models: {"type": "function", "function": {name, description, parameters}}."""
    offered_tools: Sequence[str] = ()
    """The tools of a project that names none."""
    find_trace: Callable[[UUID], TraceRecord | None] = _no_trace
    """Returns the trace with this id, or None."""

    def tool_definitions(self, record: TraceRecord) -> list[dict[str, Any]]:
        """The definitions of the tools offered for the trace; unknown tools get one inferred from their calls."""
        # An imported trace has its own definitions.
        imported = record.trace.configuration.get("tools")
        own = {name: tool for tool in imported if (name := _tool_name(tool))} if isinstance(imported, list) else {}
        names = list(own) if isinstance(imported, list) else list(record.project.tools or self.offered_tools)
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
    """The JSON schema of a value, inferred from this one example."""
    schema: dict[str, Any] = {"type": JSON_TYPES[type(value)]} if type(value) in JSON_TYPES else {}
    return schema | {"items": _infer_schema(value[0])} if isinstance(value, list) and value else schema


PROJECT_FIELDS = ("world", "guidelines", "tools")
QUESTION_FIELDS = ("source_id", "dataset", "split", "kind", "gold_answers", "decomposition", "details")
TRACE_FIELDS = (
    *("answer_text", "answer_graph", "answer_model", "final_answer", "final_thought"),
    *("wall_seconds", "active_seconds", "parent_id", "cost", "run_id", "submitted_at"),
)
STEP_FIELDS = (
    "thought",
    "observation",
    "origins",
    "data",
    "error",
    "error_kind",
    "node",
    "skill",
    "rating",
    "latency",
    "wall_seconds",
    "active_seconds",
)


def lost_fields(record: TraceRecord, stored: Collection[str]) -> Iterator[str]:
    """Describe each non-empty field that is not among the `stored` ones, such as "trace.final_thought"."""
    for names, record_part, part_name in (
        (PROJECT_FIELDS, record.project, "project"),
        (QUESTION_FIELDS, record.question, "question"),
        (TRACE_FIELDS, record.trace, "trace"),
        *((STEP_FIELDS, step, "step") for step in record.steps),
    ):
        for name in names:
            if getattr(record_part, name) not in (None, "", {}, []) and f"{part_name}.{name}" not in stored:
                yield f"a {part_name}'s {name}"
    yield from _lost_required_fields(record, stored)
    yield from ["an undone step"] * len(record.removed)
    yield from ["an edit"] * len(record.edits)
    yield from ["a judgement"] * len(record.judgements)


def _lost_required_fields(record: TraceRecord, stored: Collection[str]) -> Iterator[str]:
    """The fields that every trace has, unless they are stored."""
    if "project.name" not in stored:
        yield "the project's name"
    if record.author is not None and "trace.author" not in stored:
        yield "a trace's author"
    for name in ("id", "reasoner", "status", "started_at"):
        if f"trace.{name}" not in stored:
            yield f"a trace's {name}"
    if "trace.configuration" not in stored:
        # The tool definitions of an imported trace are written among the tools.
        yield from (
            f"a trace's configuration: {name}" for name in sorted(record.trace.configuration.keys() - {"tools"})
        )
    for step in record.steps:
        if "step.started_at" not in stored:
            yield "a step's started_at"
        if step.parent_id is not None and "step.parent_id" not in stored:
            yield "a step's parent_id"
        if step.tool is None and step.arguments and "step.input" not in stored:
            yield "the arguments of a step without a tool"
