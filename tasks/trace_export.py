"""Exports of traces, for verbs and pages: which traces, in which format, and that no test question is trained on.

losses = write_traces(services, ExportPlan("openai", DemonstrationFilter(project="Films")), stream)
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO
from uuid import UUID

from showhow.db.audit import record_act
from showhow.db.database import RowNotFound
from showhow.db.models import Step
from showhow.db.people.users import ADMIN, REVIEWER, require_acting_role
from showhow.db.questions.answer_formats import AnswerFormat
from showhow.db.traces.libraries import DemonstrationFilter, find_version, list_candidates, list_matching_ids
from showhow.db.traces.model_calls import load_exchanges, load_skill_prompt
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.traces.traces import load_trace, load_traces
from showhow.fewshot_library.formats import find_format, find_writer, writable_formats
from showhow.fewshot_library.formats.format import ExportLosses, FormatError, ModelExchange, TraceExport
from showhow.fewshot_library.library import LeakageError
from showhow.llm.types import ToolSpec
from showhow.option_fields import group, option
from showhow.reasoners.humaniq.agent import select_tools
from showhow.reasoners.humaniq.late_fusion import PIPELINE_SOURCES
from showhow.reasoners.prompting.tool_declarations import declare_tools
from showhow.runs.services import Services
from showhow.tasks.task import TaskError, open_atomically
from showhow.tools.registry import ToolRegistry
from showhow.tools.tool import Tool

_OUTER_EDITS = ("status", "rating")
"""The edits that leave what was sent and replied as it was."""


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """Which traces are written, and how: those of a library's version, or all with these statuses, that match."""

    format_name: str = option("showhow", lambda: ", ".join(writable_formats()), flag="--format")
    conditions: DemonstrationFilter = group(DemonstrationFilter, "Which traces")
    library: str | None = option(None, "A version, NAME or NAME:NUMBER; default: all traces.")
    statuses: tuple[str, ...] | None = ("approved",)
    """None for all traces, and with a library."""
    test_split: str | None = option("test", "Keep out questions from this split.")
    """The questions of this split are refused in a format that does not say of which split each is; None for none."""
    with_test_split: bool = option(default=False, help="Write questions of the test split, too.")


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportTraces:
    """An export to a file."""

    file: Path = option(help="The file to write.", is_argument=True)
    plan: ExportPlan = group(ExportPlan, "")
    force: bool = option(default=False, help="Replace an existing file.")


def export(services: Services, request: ExportTraces) -> ExportLosses:
    """Write the traces of the plan to a file that appears when it is complete; returns what the format cannot hold."""
    try:
        with open_atomically(request.file, force=request.force) as stream:
            return write_traces(services, request.plan, stream)
    except FormatError as error:
        raise TaskError(str(error)) from error
    except LeakageError as error:
        raise TaskError(f"{error} with --with-test-split") from error


def write_traces(services: Services, plan: ExportPlan, stream: BinaryIO) -> ExportLosses:
    """Write the traces of the plan; LeakageError, before anything is written, if test questions would be trained on."""
    write = find_writer(plan.format_name)
    with services.database.read() as session:
        require_acting_role(session, REVIEWER, ADMIN)
        version_id = None if plan.library is None else find_version(session, plan.library).id
    statuses = plan.statuses if version_id is None else None
    is_kept = plan.with_test_split or find_format(plan.format_name).keeps_split
    if plan.test_split is not None and not is_kept:
        with services.database.read() as session:
            chosen = list_candidates(session, plan.conditions, statuses, version_id)
        if leaks := services.find_leaks(chosen, plan.test_split):
            consequence = f"and the format {plan.format_name} does not say which, so nothing was written"
            raise LeakageError(leaks, plan.test_split, consequence, "Choose others, or write these too")
    with services.database.read() as session:
        ids = list_matching_ids(session, plan.conditions, version_id, statuses)
        with services.database.begin() as writing:
            details = {"format": plan.format_name, "traces": len(ids)}
            record_act(writing, "exported", "traces" if version_id is None else "library", version_id or "", details)
        return write(build_export(services.tool_registry(), session, load_traces(session, ids)), stream)


def build_export(registry: ToolRegistry, session: Any, records: Iterable[TraceRecord]) -> TraceExport:
    """Build the input of a format's writer; the session must stay open while it writes."""
    return TraceExport(
        records,
        tools={name: _chat_function(tool) for name, tool in registry.all_tools().items()},
        offered_tools=tuple(tool.name for tool in registry.available_tools(None)),
        find_trace=partial(_find_trace, session),
        find_prompt=partial(load_skill_prompt, session),
        find_exchanges=partial(_find_exchanges, registry, session),
    )


def _chat_function(tool: ToolSpec) -> dict[str, Any]:
    """The tool's definition in the format of chat models."""
    return {
        "type": "function",
        "function": {"name": tool.name, "description": tool.description, "parameters": dict(tool.schema)},
    }


def _find_exchanges(registry: ToolRegistry, session: Any, record: TraceRecord) -> list[ModelExchange]:
    """What was sent for the steps and the answer of a run, unless it was edited since; prompts do not store tools."""
    if record.run is None or record.removed or any(edit.action not in _OUTER_EDITS for edit in record.edits):
        return []
    offered = [tool for name in record.run.spec.tools or () if (tool := registry.find(name)) is not None]
    steps = {step.id: step for step in record.steps}
    exchanges = []
    for sent in load_exchanges(session, record.trace.id):
        is_chat = any("tool_calls" in message for message in sent.prompt) or bool(sent.reply["calls"])
        tools = _declare_tools(offered, record, steps.get(sent.step_id or record.trace.id)) if is_chat else []
        exchanges.append(ModelExchange(sent.prompt, sent.reply, tools))
    return exchanges


def _declare_tools(offered: Sequence[Tool], record: TraceRecord, step: Step | None) -> list[dict[str, Any]]:
    """The tools of a step as they are declared to the model: of the sources of its node, or of the run."""
    node = (step.node or "").partition(" ")[0] if step is not None else ""
    options = record.spec.options
    sources = node if node in PIPELINE_SOURCES else str(options.get("sources", "both"))
    answer_format = AnswerFormat.from_json(record.project.answer_format)
    return list(map(_chat_function, declare_tools(select_tools(offered, sources), sources, answer_format)))


def _find_trace(session: Any, trace_id: UUID) -> TraceRecord | None:
    try:
        return load_trace(session, trace_id)
    except RowNotFound:
        return None
