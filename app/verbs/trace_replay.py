"""`showhow traces replay`: do approved traces still hold in the world as it is now?"""

from collections.abc import Iterator, Sequence
from typing import Annotated, Any
from uuid import UUID

import typer

from app.drifts import demonstrations_of, keep_drift, make_drift
from app.reports import Report
from app.verbs.output import CommandFailed, emit, progress
from db.libraries import Wanted

LONGEST = 300
"""Characters of an observation that people are shown; programs get all."""


def replay(
    traces: Annotated[list[str] | None, typer.Argument(help="Ids of traces; without any, all approved ones.")] = None,
    *,
    library: Annotated[str | None, typer.Option(help="The traces of a version, NAME or NAME:NUMBER.")] = None,
    project: Annotated[str | None, typer.Option(help="Only traces of this project.")] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Exit status 1 when a trace can't be followed.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Run the actions of traces again in the world as it is now, and list where observations differ."""
    ids = [_id(each) for each in traces or ()] or demonstrations_of(library, Wanted(project=project))
    if not ids:
        raise CommandFailed("there is no approved trace to run again; approve some on the Review page")
    report = make_drift(ids, lambda done, of: progress(f"{done:,} of {of:,} traces"))
    if not traces and project is None:
        keep_drift(library, report)
    emit(report, "\n".join(_told(report)), as_json=as_json)
    if strict and report["broken"]:
        raise CommandFailed(
            f"{report['broken']:,} of {report['traces']:,} traces can no longer be followed; fork each at the first "
            "step that breaks and record the rest anew, or leave it out of the next version"
        )


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as wrong:
        raise CommandFailed(f"{text!r} is no id of a trace; `showhow traces list` has them") from wrong


def _told(report: Report) -> Iterator[str]:
    for each in report["changed"]:
        yield f"{each['state']}  {each['trace']}  {each['question']}"
        yield from _steps(each["steps"])
    yield (
        f"{report['traces']:,} traces run again: {report['same']:,} the same, {report['differs']:,} differ, "
        f"{report['broken']:,} broken"
    )


def _steps(steps: Sequence[dict[str, Any]]) -> Iterator[str]:
    for step in steps:
        given = ", ".join(f"{name}: {value}" for name, value in step["arguments"].items())
        yield f"   step {step['position']}  {step['tool']}  {given}" + (f"  ({step['why']})" if step["why"] else "")
        yield f"     then  {_short(step['before'])}"
        yield f"     now   {_short(step['now'])}"


def _short(text: str) -> str:
    line = " / ".join(text.splitlines())
    return line if len(line) <= LONGEST else f"{line[:LONGEST]} ... {len(line) - LONGEST:,} more characters"
