"""Which demonstrations still hold: their actions run again in the world as it is now, and the report kept."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

from db.libraries import DemonstrationFilter, find_version, list_matching_ids
from db.traces import load_trace
from evaluation.report_cache import Report, load_report, save_report
from reasoners.drift import StepDrift, TraceDrift, check_trace_drift
from runs.services import Services
from worlds.folder import WorldError
from worlds.source import SourceError

_STATES_BY_SEVERITY = ("broken", "differs")


def list_demonstration_ids(services: Services, library: str | None, chosen: DemonstrationFilter) -> list[UUID]:
    """The traces of the version that NAME or NAME:NUMBER names, or all approved ones, that fit."""
    with services.database.read() as session:
        return list_matching_ids(session, chosen, find_version(session, library).id if library is not None else None)


def compute_drift(services: Services, ids: Sequence[UUID], done: Callable[[int, int], None]) -> Report:
    """Run every trace again; `done` hears how many of how many are done."""
    drifts: list[TraceDrift] = []
    for place, trace_id in enumerate(ids, 1):
        drifts.append(_check_trace(services, trace_id))
        done(place, len(ids))
    counts = {state: sum(drift.state == state for drift in drifts) for state in ("same", "differs", "broken")}
    changed = [drift.to_json() for state in _STATES_BY_SEVERITY for drift in drifts if drift.state == state]
    return {"at": datetime.now(UTC).isoformat(timespec="seconds"), "traces": len(drifts), **counts, "changed": changed}


def _check_trace(services: Services, trace_id: UUID) -> TraceDrift:
    with services.database.read() as session:
        record = load_trace(session, trace_id)
    try:
        context = services.tool_context(record.project.world)
    except (WorldError, SourceError) as gone:
        # Nothing can be run there: each step has broken for the same reason.
        steps = [
            StepDrift(s.position, s.tool, s.arguments, "broken", s.error or s.observation or "", "", str(gone))
            for s in record.steps
            if s.tool is not None
        ]
        return TraceDrift(str(trace_id), record.question.text, record.project.world, tuple(steps))
    return check_trace_drift(record, context, services.tool_registry().find)


def load_drift(services: Services, library: str | None) -> Report | None:
    """The last report about the version, or about all approved traces; None when there is none."""
    return load_report(_drift_path(services, library))


def save_drift(services: Services, library: str | None, report: Report) -> None:
    """Keep the report until there is a newer one."""
    save_report(_drift_path(services, library), report)


def _drift_path(services: Services, library: str | None) -> Path:
    if library is None:
        return services.settings.home / "drift.json"
    with services.database.read() as session:
        drifts = find_version(session, library)
    return services.settings.home / "libraries" / drifts.name / f"{drifts.number}-drift.json"
