"""`showhow tools ...`: which tools there are, and what they are worth.

`showhow tools list` and `check`: the tools that are here, ours and those of others, and what keeps one away.
"""

import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from datetime import UTC, datetime
from typing import Annotated, Any

import typer

from app.cli.output import CommandError, emit
from app.services import services
from db.libraries import MODELS, PEOPLE
from db.tool_report import RatedStep, ToolCallFilter, ToolReport, ToolStatistics
from evaluation.number_format import format_count, format_seconds
from evaluation.tool_quality import compute_tool_report, format_model_usage
from evaluation.tool_quality import tool_report_to_json as json_of
from tools.registry import ToolProviderStatus
from tools.tool import Tool

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def list_(*, as_json: AsJson = False) -> None:
    """Every tool that is known, where it comes from, and what is not available."""
    states = _load_states()
    lines = [line for state in states for line in _format_source(state)]
    emit([_source_value(state) for state in states], "\n".join(lines), as_json=as_json)


def check(*, as_json: AsJson = False) -> None:
    """Load every function and start every server of the file of tools; exit status 1 where something does not work."""
    states = _load_states()
    problems = [state for state in states if state.problem]
    lines = [f"{_source_name(state)}: {_format_status(state)}" for state in states]
    if len(states) == 1:
        lines.append(f"{services().tools_path} declares no other tools.")
    emit([_source_value(state) for state in states], "\n".join(lines), as_json=as_json)
    services().tool_registry().close()
    if problems:
        raise CommandError(f"{len(problems)} of {len(states)} places of tools do not work as they should; see above")


def _load_states() -> list[ToolProviderStatus]:
    """All places of tools; what modules of others print while they are loaded is no part of the answer."""
    with redirect_stdout(sys.stderr):
        return services().tool_registry().provider_statuses()


def _format_source(state: ToolProviderStatus) -> Iterator[str]:
    yield f"{_source_name(state)} ({state.origin})"
    for tool in state.tools:
        takes = ", ".join(f"{p.name}: {p.kind}{'' if p.required else '?'}" for p in tool.parameters)
        first = tool.description.split("\n", maxsplit=1)[0]
        yield f"    {tool.name}({takes})  {first}"
    if state.problem:
        yield f"    {state.problem}"


def _source_name(state: ToolProviderStatus) -> str:
    return "Showhow's own" if state.kind == "ours" else f"{state.kind} {state.name}"


def _format_status(state: ToolProviderStatus) -> str:
    works = f"works, {len(state.tools)} {'tool' if len(state.tools) == 1 else 'tools'}" if state.tools else ""
    return "; ".join(filter(None, (works, state.problem)))


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


app = typer.Typer(no_args_is_help=True, help="Which tools there are, and what they are worth.")
app.command("list")(list_)
app.command()(check)
DateOption = Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"], help="In UTC.")]
_MAX_LISTED = 10
_MAX_QUESTION_LENGTH = 60


@app.command()
def report(
    project: Annotated[str | None, typer.Option(help="Only calls for this project's questions.")] = None,
    tool: Annotated[str | None, typer.Option(help="Only this tool, be it known here or gone.")] = None,
    by: Annotated[str | None, typer.Option(help=f"Only calls by {PEOPLE} or {MODELS}.")] = None,
    since: DateOption = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Tell how often each tool was called, failed, how long it took, how it was rated, and what was rated worst."""
    if by not in (None, PEOPLE, MODELS):
        raise CommandError(f"calls are by {PEOPLE} or by {MODELS}, not by {by!r}")
    scope = ToolCallFilter(project=project, tool=tool, by=by, since=since.replace(tzinfo=UTC) if since else None)
    found = compute_tool_report(services(), scope)
    emit(json_of(found, scope), "\n".join(_format_report(found)), as_json=as_json)


def _format_report(found: ToolReport) -> Iterator[str]:
    if not found.tools:
        yield "No call of a tool fits; what people and models run is counted here as soon as it is recorded."
        return
    for each in found.tools:
        yield from _format_tool(each)
    low = [rated for rated in found.worst if rated.rating < 5][:_MAX_LISTED]
    if low:
        yield "Rated worst:"
    yield from map(_format_rating, low)


def _format_tool(of: ToolStatistics) -> Iterator[str]:
    apart = [f"{of.interrupted:,} never finished"] * bool(of.interrupted) + [f"{of.undone:,} undone"] * bool(of.undone)
    yield ", ".join([f"{of.tool}: {format_count(of.calls, 'call')}", *apart])
    if of.failures:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in of.failures.items())
        yield f"    {of.failed:,} failed: {kinds}"
    if of.latency:
        times = [format_seconds(each) for each in (of.latency.p50, of.latency.p95, of.latency.longest)]
        yield "    half within {}, 95 % within {}, at most {}".format(*times)
    if of.ratings:
        spread = f" ± {of.ratings.spread:.2f}" if of.ratings.spread is not None else ""
        yield f"    mean rating {of.ratings.mean:.2f}{spread} of {format_count(of.ratings.count, 'rating')}"
    if use := of.usage:
        yield f"    its model: {format_count(use.calls, 'call')}, {', '.join(format_model_usage(use))}"


def _format_rating(one: RatedStep) -> str:
    return f"    {one.rating} of 5  {one.tool}  {_truncate(one.question)}  (trace {one.trace_id}, step {one.position})"


def _truncate(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_QUESTION_LENGTH else f"{line[:_MAX_QUESTION_LENGTH]}…"
