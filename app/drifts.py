"""Which demonstrations still hold: their actions run again in the world as it is now, and the report kept."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from app.registry import registry
from app.reports import Report, keep_report, kept_report
from app.resources import database, settings, tool_context
from db.libraries import Wanted, fitting_ids, version
from db.reading import open_trace
from reasoners.drift import StepDrift, TraceDrift, run_again
from worlds.folder import WorldError
from worlds.source import SourceError

_WORST_FIRST = ("broken", "differs")


def demonstrations_of(library: str | None, wanted: Wanted) -> list[UUID]:
    """The traces of the version that NAME or NAME:NUMBER names, or all approved ones, that fit."""
    with database().read() as session:
        return fitting_ids(session, wanted, version(session, library).id if library is not None else None)


def make_drift(ids: Sequence[UUID], done: Callable[[int, int], None]) -> Report:
    """Run every trace again; `done` hears how many of how many are done."""
    found: list[TraceDrift] = []
    for place, trace_id in enumerate(ids, 1):
        found.append(_of(trace_id))
        done(place, len(ids))
    counts = {state: sum(each.state == state for each in found) for state in ("same", "differs", "broken")}
    changed = [each.to_json() for state in _WORST_FIRST for each in found if each.state == state]
    return {"at": datetime.now(UTC).isoformat(timespec="seconds"), "traces": len(found), **counts, "changed": changed}


def _of(trace_id: UUID) -> TraceDrift:
    with database().read() as session:
        record = open_trace(session, trace_id)
    try:
        context = tool_context(record.project.world)
    except (WorldError, SourceError) as gone:
        # Nothing can be run there: each step has broken for the same reason.
        steps = [
            StepDrift(s.position, s.tool, s.arguments, "broken", s.error or s.observation or "", "", str(gone))
            for s in record.steps
            if s.tool is not None
        ]
        return TraceDrift(str(trace_id), record.question.text, record.project.world, tuple(steps))
    return run_again(record, context, registry().find)


def kept_drift(library: str | None) -> Report | None:
    """The last report about the version, or about all approved traces; None when there is none."""
    return kept_report(_file(library))


def keep_drift(library: str | None, report: Report) -> None:
    """Keep the report until there is a newer one."""
    keep_report(_file(library), report)


def _file(library: str | None) -> Path:
    if library is None:
        return settings().home / "drift.json"
    with database().read() as session:
        found = version(session, library)
    return settings().home / "libraries" / found.name / f"{found.number}-drift.json"
