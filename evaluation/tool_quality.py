"""What tools are worth, as people and programs take it along."""

import csv
import io
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from db.database import RowNotFound
from db.projects import find_project
from db.tool_report import (
    LATENCY_BUCKET_BOUNDS,
    ToolCallFilter,
    ToolModelUsage,
    ToolReport,
    ToolStatistics,
    build_tool_report,
)
from evaluation.number_format import format_count, format_money, format_tokens
from runs.services import Services
from worlds.source import ErrorKind

CSV_COLUMNS = (
    *("tool", "calls", "interrupted", "undone", "failed", *map(str, ErrorKind)),
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

_CACHE_LIFETIME_FACTOR = 20
"""A report is shown for so many times as long as it took to make."""
_CACHE_SIZE = 64


@dataclass(frozen=True, slots=True)
class _CachedToolReport:
    report: ToolReport
    created_at: float
    seconds: float


_report_cache: dict[ToolCallFilter, _CachedToolReport] = {}


def compute_tool_report(services: Services, scope: ToolCallFilter) -> ToolReport:
    """The report; Missing when there is no such project."""
    with services.database.read() as session:
        if scope.project is not None and find_project(session, scope.project) is None:
            raise RowNotFound(f"there is no project {scope.project!r}; `showhow questions import` makes one")
        return build_tool_report(session, scope)


def get_cached_tool_report(services: Services, scope: ToolCallFilter) -> ToolReport:
    """The report, made anew unless it was a moment ago; what took long to count may be older."""
    cached = _report_cache.get(scope)
    now = time.monotonic()
    if cached is not None and now - cached.created_at < cached.seconds * _CACHE_LIFETIME_FACTOR:
        return cached.report
    if len(_report_cache) >= _CACHE_SIZE:
        _report_cache.clear()
    report = compute_tool_report(services, scope)
    _report_cache[scope] = _CachedToolReport(report, now, time.monotonic() - now)
    return report


def tool_report_to_json(report: ToolReport, scope: ToolCallFilter) -> dict[str, Any]:
    """The report with what it is about, as JSON values; what is not known is null."""
    filters = {
        name: value.isoformat() if isinstance(value, datetime) else value for name, value in asdict(scope).items()
    }
    worst = [
        asdict(rated) | {"trace_id": str(rated.trace_id), "started_at": rated.started_at.isoformat()}
        for rated in report.worst
    ]
    return {
        "scope": filters,
        "made": datetime.now(UTC).isoformat(timespec="seconds"),
        "latency_bounds_seconds": LATENCY_BUCKET_BOUNDS,
        "tools": [asdict(tool) | {"failed": tool.failed} for tool in report.tools],
        "worst": worst,
    }


def tool_report_to_csv(report: ToolReport) -> str:
    """One line a tool, with COLUMNS; a cell of what is not known is empty."""
    sheet = io.StringIO()
    lines = csv.writer(sheet, lineterminator="\n")
    lines.writerow(CSV_COLUMNS)
    lines.writerows(map(_csv_row, report.tools))
    return sheet.getvalue()


def _csv_row(of: ToolStatistics) -> list[object]:
    lasted, stars = of.latency, of.ratings
    use = of.usage or ToolModelUsage(0, None, None, 0, None, None, 0)
    return [
        *(of.tool, of.calls, of.interrupted, of.undone, of.failed, *(of.failures.get(kind, 0) for kind in ErrorKind)),
        *((lasted.timed, lasted.p50, lasted.p95, lasted.longest) if lasted else (0, None, None, None)),
        *((stars.count, stars.mean, stars.spread, *stars.stars.values()) if stars else (0, None, None, *[0] * 5)),
        *(use.calls, use.input_tokens, use.output_tokens, use.untold, use.seconds, use.cost, use.unpriced),
    ]


def format_model_usage(use: ToolModelUsage) -> list[str]:
    """Its tokens and its cost, each with how many steps are not in it."""
    parts = [(format_tokens(use.input_tokens, use.output_tokens), use.untold), (format_money(use.cost), use.unpriced)]
    return [
        f"{what} (without {format_count(rest, 'step')} of which it is unknown)"
        if rest and "unknown" not in what
        else what
        for what, rest in parts
    ]
