"""What tools are worth, as people and programs take it along."""

import csv
import io
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from app.resources import database
from app.spent import counted, money, tokens
from db.database import Missing
from db.projects import project_by_name
from db.tool_calls import Scope
from db.tool_report import BOUNDS, ModelUse, ToolReport, ToolWorth, tool_report
from tools.failures import KINDS, kind_of

COLUMNS = (
    *("tool", "calls", "interrupted", "undone", "failed", *KINDS),
    *("timed", "p50_seconds", "p95_seconds", "longest_seconds"),
    *("ratings", "mean_rating", "spread", *(f"{star}_stars" for star in range(1, 6))),
    *(
        "model_calls",
        "input_tokens",
        "output_tokens",
        "steps_of_unknown_tokens",
        "model_seconds",
        "cost_dollars",
        "steps_of_unknown_cost",
    ),
)

_AS_LONG = 20
"""A report is shown for so many times as long as it took to make."""
_KEPT = 64


@dataclass(frozen=True, slots=True)
class _Made:
    report: ToolReport
    made: float
    took: float


_recent: dict[Scope, _Made] = {}


def report_of(scope: Scope) -> ToolReport:
    """The report; Missing when there is no such project."""
    with database().read() as session:
        if scope.project is not None and project_by_name(session, scope.project) is None:
            raise Missing(f"there is no project {scope.project!r}; `showhow questions import` makes one")
        return tool_report(session, scope, kind_of)


def recent_report(scope: Scope) -> ToolReport:
    """The report, made anew unless it was a moment ago; what took long to count may be older."""
    known = _recent.get(scope)
    now = time.monotonic()
    if known is not None and now - known.made < known.took * _AS_LONG:
        return known.report
    if len(_recent) >= _KEPT:
        _recent.clear()
    report = report_of(scope)
    _recent[scope] = _Made(report, now, time.monotonic() - now)
    return report


def as_json(report: ToolReport, scope: Scope) -> dict[str, Any]:
    """The report with what it is about, as JSON values; what is not known is null."""
    asked = {name: value.isoformat() if isinstance(value, datetime) else value for name, value in asdict(scope).items()}
    worst = [
        asdict(rated) | {"trace_id": str(rated.trace_id), "started_at": rated.started_at.isoformat()}
        for rated in report.worst
    ]
    return {
        "scope": asked,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "latency_bounds_seconds": BOUNDS,
        "tools": [asdict(each) | {"failed": each.failed} for each in report.tools],
        "worst": worst,
    }


def as_csv(report: ToolReport) -> str:
    """One line a tool, with COLUMNS; a cell of what is not known is empty."""
    sheet = io.StringIO()
    lines = csv.writer(sheet, lineterminator="\n")
    lines.writerow(COLUMNS)
    lines.writerows(map(_line, report.tools))
    return sheet.getvalue()


def _line(of: ToolWorth) -> list[object]:
    lasted, stars = of.latency, of.ratings
    use = of.usage or ModelUse(0, None, None, 0, None, None, 0)
    return [
        *(of.tool, of.calls, of.interrupted, of.undone, of.failed, *(of.failures.get(kind, 0) for kind in KINDS)),
        *((lasted.timed, lasted.p50, lasted.p95, lasted.longest) if lasted else (0, None, None, None)),
        *((stars.count, stars.mean, stars.spread, *stars.stars.values()) if stars else (0, None, None, *[0] * 5)),
        *(use.calls, use.input_tokens, use.output_tokens, use.untold, use.seconds, use.cost, use.unpriced),
    ]


def use_told(use: ModelUse) -> list[str]:
    """Its tokens and its cost, each with how many steps are not in it."""
    told = [(tokens(use.input_tokens, use.output_tokens), use.untold), (money(use.cost), use.unpriced)]
    return [
        f"{what} (without {counted(rest, 'step')} of which it is unknown)" if rest and "unknown" not in what else what
        for what, rest in told
    ]
