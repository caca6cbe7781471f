"""The tool quality report: computed from the stored steps, cached, and formatted as JSON and CSV."""

import csv
import io
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from showhow.db.database import RowNotFound
from showhow.db.questions.projects import find_project
from showhow.db.review.tool_report import (
    LATENCY_BUCKET_BOUNDS,
    ToolCallFilter,
    ToolModelUsage,
    ToolReport,
    ToolStatistics,
    build_tool_report,
)
from showhow.evaluation.value_format import format_count, format_money, format_tokens, neutralize_cell
from showhow.runs.services import Services
from showhow.worlds.source import ErrorKind

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
"""A report is cached for this many times the seconds that it took to compute."""
_CACHE_SIZE = 64


@dataclass(frozen=True, slots=True)
class _CachedToolReport:
    report: ToolReport
    created_at: float
    seconds: float


_report_cache: dict[ToolCallFilter, _CachedToolReport] = {}


def compute_tool_report(services: Services, scope: ToolCallFilter) -> ToolReport:
    """Compute the report; RowNotFound if there is no such project."""
    with services.database.read() as session:
        if scope.project is not None and find_project(session, scope.project) is None:
            raise RowNotFound(f"there is no project {scope.project!r}; `showhow questions import` makes one")
        return build_tool_report(session, scope)


def get_cached_tool_report(services: Services, scope: ToolCallFilter) -> ToolReport:
    """Return the report from the cache, or compute it; a report that takes long to compute is cached longer."""
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
    """The report and its scope as JSON values; unknown values are null."""
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
        "notes": [
            asdict(note) | {"trace_id": str(note.trace_id), "written_at": note.written_at.isoformat()}
            for note in report.notes
        ],
    }


def tool_report_to_csv(report: ToolReport) -> str:
    """The report as CSV: a row for each tool with CSV_COLUMNS; cells of unknown values are empty."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    writer.writerows([neutralize_cell(value) for value in _csv_row(tool)] for tool in report.tools)
    return buffer.getvalue()


def _csv_row(tool: ToolStatistics) -> list[object]:
    latency, ratings = tool.latency, tool.ratings
    usage = tool.usage or ToolModelUsage(0, None, None, 0, None, None, 0)
    failures = [tool.failures.get(kind, 0) for kind in ErrorKind]
    return [
        *(tool.tool, tool.calls, tool.interrupted, tool.undone, tool.failed, *failures),
        *((latency.timed, latency.p50, latency.p95, latency.longest) if latency else (0, None, None, None)),
        *(
            (ratings.count, ratings.mean, ratings.spread, *ratings.stars.values())
            if ratings
            else (0, None, None, *[0] * 5)
        ),
        *(usage.calls, usage.input_tokens, usage.output_tokens, usage.untold),
        *(usage.seconds, usage.cost, usage.unpriced),
    ]


def format_model_usage(usage: ToolModelUsage) -> list[str]:
    """Format tokens and cost, each with the number of steps for which it is unknown."""
    tokens, cost = format_tokens(usage.input_tokens, usage.output_tokens), format_money(usage.cost)
    has_tokens = usage.input_tokens is not None and usage.output_tokens is not None
    return [
        _format_excluded(tokens, usage.untold if has_tokens else 0),
        _format_excluded(cost, usage.unpriced if usage.cost is not None else 0),
    ]


def _format_excluded(figure: str, excluded_steps: int) -> str:
    return f"{figure} (without {format_count(excluded_steps, 'step')} of unknown usage)" if excluded_steps else figure
