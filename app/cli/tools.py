"""`showhow tools list | check | report`: lists and checks built-in and external tools, and reports their quality."""

import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from showhow.app.cli.output import AsJson, CommandError, emit
from showhow.app.services import current_services
from showhow.db.review.tool_report import RatedStep, ToolCallFilter, ToolReport, ToolStatistics
from showhow.db.traces.libraries import MODELS, PEOPLE
from showhow.evaluation.comparison.tool_quality import compute_tool_report, format_model_usage, tool_report_to_json
from showhow.evaluation.value_format import format_count, format_seconds
from showhow.tools.registry import ToolProviderStatus, ToolRegistry
from showhow.tools.tool import Tool


def list_(*, as_json: AsJson = False) -> None:
    """List every tool, where it comes from, and which tools are not available."""
    states = _load_states(current_services().tool_registry())
    lines = [line for state in states for line in _format_source(state)]
    emit([_source_value(state) for state in states], "\n".join(lines), as_json=as_json)


def check(*, as_json: AsJson = False) -> None:
    """Load every function and start every server of tools.toml; exit status 1 if one does not work."""
    services = current_services()
    registry = services.tool_registry()
    states = _load_states(registry)
    failing_states = [state for state in states if state.problem]
    lines = [f"{_source_name(state)}: {_format_status(state)}" for state in states]
    if all(state.is_installed for state in states):
        lines.append(f"{services.tools_path} declares no external tools.")
    lines += registry.confinement_notes()
    emit([_source_value(state) for state in states], "\n".join(lines), as_json=as_json)
    registry.close()
    if failing_states:
        raise CommandError(f"{len(failing_states)} of {len(states)} tool providers do not work; see above")


def _load_states(registry: ToolRegistry) -> list[ToolProviderStatus]:
    """Load the status of all providers; output of their modules goes to stderr."""
    with redirect_stdout(sys.stderr):
        return registry.provider_statuses()


def _format_source(state: ToolProviderStatus) -> Iterator[str]:
    yield f"{_source_name(state)} ({state.origin})"
    for tool in state.tools:
        takes = ", ".join(f"{p.name}: {p.kind}{'' if p.required else '?'}" for p in tool.parameters)
        first_line = tool.description.split("\n", maxsplit=1)[0]
        yield f"    {tool.name}({takes})  {first_line}"
    if state.problem:
        yield f"    {state.problem}"


def _source_name(state: ToolProviderStatus) -> str:
    return "Built-in tools" if state.kind == "ours" else f"{state.kind} {state.name}"


def _format_status(state: ToolProviderStatus) -> str:
    summary = f"works, {len(state.tools)} {'tool' if len(state.tools) == 1 else 'tools'}" if state.tools else ""
    return "; ".join(filter(None, (summary, state.problem)))


def _source_value(state: ToolProviderStatus) -> dict[str, Any]:
    tools = [_tool_value(tool) for tool in state.tools]
    return {"kind": state.kind, "name": state.name, "place": state.origin, "tools": tools, "problem": state.problem}


def _tool_value(tool: Tool) -> dict[str, Any]:
    limits = {"seconds": tool.limits.seconds, "characters": tool.limits.characters} if tool.limits else None
    return {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "schema": tool.schema,
        "limits": limits,
    }


app = typer.Typer(no_args_is_help=True, help="List and check the tools, and report their quality.")
app.command("list")(list_)
app.command()(check)
DateOption = Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"], help="In UTC.")]
_MAX_LISTED = 10
_MAX_QUESTION_LENGTH = 60


@app.command()
def report(
    project: Annotated[str | None, typer.Option(help="Only calls for this project's questions.")] = None,
    tool: Annotated[str | None, typer.Option(help="Only this tool; it may be removed already.")] = None,
    by: Annotated[str | None, typer.Option(help=f"Only calls by {PEOPLE} or {MODELS}.")] = None,
    since: DateOption = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Report how often each tool was called and failed, its latency, its ratings, and the worst-rated observations."""
    if by not in (None, PEOPLE, MODELS):
        raise CommandError(f"calls are by {PEOPLE} or by {MODELS}, not by {by!r}")
    scope = ToolCallFilter(project=project, tool=tool, by=by, since=since.replace(tzinfo=UTC) if since else None)
    quality = compute_tool_report(current_services(), scope)
    emit(tool_report_to_json(quality, scope), "\n".join(_format_report(quality)), as_json=as_json)


def _format_report(quality: ToolReport) -> Iterator[str]:
    if not quality.tools:
        yield "No tool call matches; calls by people and models are counted as soon as they are recorded."
        return
    for tool in quality.tools:
        yield from _format_tool(tool)
    low_rated_steps = [step for step in quality.worst if step.rating < 5][:_MAX_LISTED]
    if low_rated_steps:
        yield "Rated worst:"
    yield from map(_format_rating, low_rated_steps)


def _format_tool(tool: ToolStatistics) -> Iterator[str]:
    extras = [f"{tool.interrupted:,} never finished"] * bool(tool.interrupted) + [f"{tool.undone:,} undone"] * bool(
        tool.undone
    )
    yield ", ".join([f"{tool.tool}: {format_count(tool.calls, 'call')}", *extras])
    if tool.failures:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in tool.failures.items())
        yield f"    {tool.failed:,} failed: {kinds}"
    if tool.latency:
        median, p95, longest = map(format_seconds, (tool.latency.p50, tool.latency.p95, tool.latency.longest))
        yield f"    median {median}, 95th pct. {p95}, at most {longest}"
    if tool.ratings:
        spread = f" ± {tool.ratings.spread:.2f}" if tool.ratings.spread is not None else ""
        yield f"    mean rating {tool.ratings.mean:.2f}{spread} of {format_count(tool.ratings.count, 'rating')}"
    if usage := tool.usage:
        yield f"    model: {format_count(usage.calls, 'call')}, {', '.join(format_model_usage(usage))}"


def _format_rating(step: RatedStep) -> str:
    location = f"trace {step.trace_id}, step {step.position}"
    return f"    {step.rating} of 5  {step.tool}  {_truncate(step.question)}  ({location})"


def _truncate(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_QUESTION_LENGTH else f"{line[:_MAX_QUESTION_LENGTH]}…"
