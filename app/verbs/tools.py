"""`showhow tools ...`: which tools there are, and what they are worth."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Annotated

import typer

from app.spent import counted, seconds
from app.tool_reports import as_json as json_of
from app.tool_reports import report_of, use_told
from app.verbs.output import CommandFailed, emit
from app.verbs.tools_here import check, list_
from db.libraries import MODELS, PEOPLE
from db.tool_calls import Scope
from db.tool_report import Rated, ToolReport, ToolWorth

app = typer.Typer(no_args_is_help=True, help="Which tools there are, and what they are worth.")
app.command("list")(list_)
app.command()(check)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Day = Annotated[datetime | None, typer.Option(formats=["%Y-%m-%d", "%Y-%m-%dT%H:%M:%S"], help="In UTC.")]
_LISTED = 10
_LONGEST = 60


@app.command()
def report(
    project: Annotated[str | None, typer.Option(help="Only calls for this project's questions.")] = None,
    tool: Annotated[str | None, typer.Option(help="Only this tool, be it known here or gone.")] = None,
    by: Annotated[str | None, typer.Option(help=f"Only calls by {PEOPLE} or {MODELS}.")] = None,
    since: Day = None,
    *,
    as_json: AsJson = False,
) -> None:
    """Tell how often each tool was called, failed, how long it took, how it was rated, and what was rated worst."""
    if by not in (None, PEOPLE, MODELS):
        raise CommandFailed(f"calls are by {PEOPLE} or by {MODELS}, not by {by!r}")
    scope = Scope(project=project, tool=tool, by=by, since=since.replace(tzinfo=UTC) if since else None)
    found = report_of(scope)
    emit(json_of(found, scope), "\n".join(_told(found)), as_json=as_json)


def _told(found: ToolReport) -> Iterator[str]:
    if not found.tools:
        yield "No call of a tool fits; what people and models run is counted here as soon as it is recorded."
        return
    for each in found.tools:
        yield from _tool(each)
    low = [rated for rated in found.worst if rated.rating < 5][:_LISTED]
    if low:
        yield "Rated worst:"
    yield from map(_rated, low)


def _tool(of: ToolWorth) -> Iterator[str]:
    apart = [f"{of.interrupted:,} never finished"] * bool(of.interrupted) + [f"{of.undone:,} undone"] * bool(of.undone)
    yield ", ".join([f"{of.tool}: {counted(of.calls, 'call')}", *apart])
    if of.failures:
        kinds = ", ".join(f"{count:,} {kind}" for kind, count in of.failures.items())
        yield f"    {of.failed:,} failed: {kinds}"
    if of.latency:
        times = [seconds(each) for each in (of.latency.p50, of.latency.p95, of.latency.longest)]
        yield "    half within {}, 95 % within {}, at most {}".format(*times)
    if of.ratings:
        spread = f" ± {of.ratings.spread:.2f}" if of.ratings.spread is not None else ""
        yield f"    mean rating {of.ratings.mean:.2f}{spread} of {counted(of.ratings.count, 'rating')}"
    if use := of.usage:
        yield f"    its model: {counted(use.calls, 'call')}, {', '.join(use_told(use))}"


def _rated(one: Rated) -> str:
    return f"    {one.rating} of 5  {one.tool}  {_short(one.question)}  (trace {one.trace_id}, step {one.position})"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"
