"""The Tools page: the quality of each tool in use, and the tools that a project offers."""

from collections.abc import Sequence
from datetime import UTC, date, datetime, time
from itertools import pairwise
from json import dumps

import streamlit as st

from app.services import services as process_services
from app.widgets.chart import show_bar_chart
from app.widgets.page_layout import choose_view, show_keys_button
from app.widgets.person import current_user, show_user_menu
from app.widgets.plain_text import escape_markdown
from app.widgets.queue import choose_project, current_project
from app.widgets.table import TableCell, show_table
from app.widgets.tool_choice import choose_tools
from db.libraries import MODELS, PEOPLE
from db.models import User
from db.projects import list_projects
from db.tool_report import LATENCY_BUCKET_BOUNDS, RatedStep, ToolCallFilter, ToolReport, ToolStatistics
from evaluation.number_format import format_count, format_money, format_seconds
from evaluation.tool_quality import format_model_usage, get_cached_tool_report, tool_report_to_csv, tool_report_to_json
from runs.services import Services

TOOL_COLUMNS = (
    "tool",
    "calls",
    "failed",
    "median",
    "95th pct.",
    "longest",
    "mean rating",
    "ratings",
    "model time",
)
_MAX_TEXT_LENGTH = 90


def latency_class_names() -> list[str]:
    """The labels of the latency buckets."""
    bounds = [f"{bound:g} s" for bound in LATENCY_BUCKET_BOUNDS]
    between = [f"{lower} – {upper}" for lower, upper in pairwise(bounds)]
    return [f"under {bounds[0]}", *between, f"{bounds[-1]} and more"]


def show_tool_table(tools: Sequence[ToolStatistics]) -> None:
    """Draw the table; a click on the name of a tool opens its charts."""
    show_table(TOOL_COLUMNS, [_tool_row(tool) for tool in tools], key="tools", label="Tool quality", go=select_tool)


def select_tool(name: str) -> None:
    """Select the tool in the URL."""
    st.session_state["tool"] = name


def _tool_row(of: ToolStatistics) -> list[TableCell | None]:
    apart = [f"{of.interrupted:,} never finished"] * bool(of.interrupted) + [f"{of.undone:,} undone"] * bool(of.undone)
    return [
        TableCell(of.tool, go=of.tool),
        TableCell(f"{of.calls:,}", number=True, hint=", ".join(apart)),
        _failure_cell(of),
        *_latency_cells(of),
        *_rating_cells(of),
        _usage_cell(of),
    ]


def _failure_cell(of: ToolStatistics) -> TableCell:
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in of.failures.items())
    share = f"{of.failed:,} ({of.failed / of.calls:.1%})" if of.failed else "0"
    return TableCell(share, number=True, bars=tuple(of.failures.values()), hint=kinds)


def _latency_cells(of: ToolStatistics) -> list[TableCell | None]:
    if of.latency is None:
        return [None, None, None]
    hint = ", ".join(
        f"{name}: {count:,}" for name, count in zip(latency_class_names(), of.latency.classes, strict=True) if count
    )
    return [
        TableCell(format_seconds(of.latency.p50), number=True, bars=of.latency.classes, hint=hint),
        TableCell(format_seconds(of.latency.p95), number=True),
        TableCell(format_seconds(of.latency.longest), number=True),
    ]


def _rating_cells(of: ToolStatistics) -> list[TableCell | None]:
    if of.ratings is None:
        return [None, None]
    spread = f" ± {of.ratings.spread:.2f}" if of.ratings.spread is not None else ""
    hint = ", ".join(f"{star} of 5: {count:,}" for star, count in of.ratings.stars.items())
    return [
        TableCell(f"{of.ratings.mean:.2f}{spread}", number=True),
        TableCell(f"{of.ratings.count:,}", number=True, bars=tuple(of.ratings.stars.values()), hint=hint),
    ]


def _usage_cell(of: ToolStatistics) -> TableCell | None:
    if of.usage is None:
        return None
    known = "at least " if of.usage.unpriced and of.usage.cost is not None else ""
    return TableCell(
        f"{format_count(of.usage.calls, 'call')}, {known}{format_money(of.usage.cost)}",
        hint="; ".join(format_model_usage(of.usage)),
    )


def show_tool_charts(of: ToolStatistics) -> None:
    """Draw the failures, latencies and ratings of one tool."""
    st.subheader(escape_markdown(of.tool), anchor=False)
    st.caption(escape_markdown(_describe_tool(of)))
    with st.container(horizontal=True, gap="medium", key="charts"):
        if of.failures:
            show_bar_chart("Failures", "kind", of.failures, key="failures", of="calls")
        if of.latency:
            times = dict(zip(latency_class_names(), of.latency.classes, strict=True))
            show_bar_chart("Latency", "time", times, key="latency", of="calls")
        if of.ratings:
            stars = {f"{star} of 5": count for star, count in of.ratings.stars.items()}
            show_bar_chart("Ratings", "stars", stars, key="stars", of="observations")


def _describe_tool(of: ToolStatistics) -> str:
    parts = [format_count(of.calls, "call")]
    parts += [f"{of.interrupted:,} interrupted, without a latency"] if of.interrupted else []
    parts += [f"{of.undone:,} more were undone and are not counted"] if of.undone else []
    parts += [f"model use {', '.join(format_model_usage(of.usage))}"] if of.usage else []
    return "; ".join(parts)


def show_worst_rated(worst: Sequence[RatedStep]) -> None:
    """Draw the lowest ratings first; a click opens the trace at its step."""
    low = {f"{call.trace_id}:{call.position}": call for call in worst if call.rating < 5}
    if not low:
        st.caption(
            "Every rated observation has five stars."
            if worst
            else "No observation is rated yet: the stars under each step do that, on the Annotate and the Ask page."
        )
        return

    def open_step(which: str) -> None:
        st.session_state["open_step"] = low[which]

    rows = [
        [
            TableCell("★" * call.rating + "☆" * (5 - call.rating)),
            TableCell(call.tool),
            TableCell(_truncate(call.question), go=which),
            TableCell(_truncate(call.thought)),
            TableCell(f"{call.position}", number=True),
            TableCell(f"{call.started_at:%Y-%m-%d %H:%M}"),
        ]
        for which, call in low.items()
    ]
    columns = ("rating", "tool", "question", "thought", "step", "when (UTC)")
    show_table(columns, rows, key="worst", label="Observations rated worst", go=open_step)


def _truncate(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_TEXT_LENGTH else f"{line[: _MAX_TEXT_LENGTH - 1]}…"


KEYS = {"Alt+1, Alt+2": "Choose the view", "?": "This sheet"}
VIEWS = {"worth": "Tool quality", "offered": "Available tools"}
EMPTY_MESSAGE = (
    "No tool has been called yet. As soon as a step is recorded on the Annotate page, or a model answers a question, "
    "its tool appears here: how often it was called and failed, how long it took, and how its observations were rated."
)


def show_header(person: User) -> None:
    """Draw the top of the page."""
    with st.container(key="masthead"), st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.caption("Rate observations while you annotate: the worst ones show what to improve.")
        st.space("stretch")
        show_keys_button(KEYS)
        show_user_menu(person)


def show_scope_filters(services: Services) -> ToolCallFilter:
    """Draw a row of filters, whose values are in the URL."""
    with services.database.read() as session:
        names = [project.name for project in list_projects(session)]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="filters"):
        project = _show_filter("Project", "of_project", names, 260)
        by = _show_filter("By", "by", [PEOPLE, MODELS], 150)
        since: date | None = st.date_input("Since (UTC)", value=None, key="since", width=160, bind="query-params")
    day = datetime.combine(since, time(), UTC) if since else None
    return ToolCallFilter(project=project, by=by, since=day)


def _show_filter(label: str, name: str, options: list[str], width: int) -> str | None:
    return st.selectbox(label, options, index=None, key=name, placeholder="all", width=width, bind="query-params")


def show_report(services: Services, scope: ToolCallFilter) -> None:
    """Draw the table, the charts of the selected tool, and the worst-rated observations."""
    with st.spinner("Counting …"):
        report = get_cached_tool_report(services, scope)
    if not report.tools:
        is_unfiltered = scope == ToolCallFilter()
        st.info(EMPTY_MESSAGE if is_unfiltered else "No matches. Try fewer filters.")
        return
    show_tool_table(report.tools)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        name = _show_filter("One tool in detail", "tool", [tool.tool for tool in report.tools], 260)
        _show_downloads(report, scope)
    chosen = next((tool for tool in report.tools if tool.tool == name), None)
    if chosen is not None:
        show_tool_charts(chosen)
        report = get_cached_tool_report(
            services, ToolCallFilter(project=scope.project, by=scope.by, since=scope.since, tool=name)
        )
    st.subheader("Rated worst", anchor=False)
    show_worst_rated(report.worst)


def _show_downloads(report: ToolReport, scope: ToolCallFilter) -> None:
    document = dumps(tool_report_to_json(report, scope), ensure_ascii=False, indent=1)
    st.download_button("All as CSV", tool_report_to_csv(report), "tools.csv", "text/csv", key="csv", type="tertiary")
    st.download_button("All as JSON", document, "tools.json", "application/json", key="json", type="tertiary")


def show_offered_tools(services: Services) -> None:
    """Choose the tools that the project offers."""
    project = current_project(services.database)
    if project is None:
        st.info("There is no project yet; `showhow setup` prepares one.")
        return
    choose_project(services.database)
    if notice := st.session_state.pop("notice", None):
        st.error(notice)
    st.caption(f"The tools that people and models can use for the questions of {escape_markdown(project.name)}.")
    choose_tools(services, project)


services = process_services()
person = current_user(services.database)
show_header(person)
if choose_view("Tools", VIEWS) == "offered":
    show_offered_tools(services)
else:
    show_report(services, show_scope_filters(services))
if (rated := st.session_state.pop("open_step", None)) is not None:
    st.session_state.pop("step_in_focus", None)
    place = {"project": rated.project, "trace": str(rated.trace_id), "step": str(rated.position)}
    st.switch_page("annotate/page.py", query_params={"you": person.name, **place})
