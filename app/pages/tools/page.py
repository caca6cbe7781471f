"""The Tools page: the quality of each tool in use, and the tools that a project offers."""

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime, time
from itertools import pairwise
from json import dumps

import streamlit as st

from showhow.app.widgets.choices import choose_tools
from showhow.app.widgets.page_layout import (
    browser_zone,
    choose_view,
    escape_markdown,
    format_sentence,
    format_when,
    show_head,
)
from showhow.app.widgets.person import acting_services
from showhow.app.widgets.queue import current_project
from showhow.app.widgets.step_notes import STEP_NOTE_LABELS
from showhow.app.widgets.table import TableCell, show_bar_chart, show_table
from showhow.db.questions.projects import list_projects
from showhow.db.review.tool_report import (
    LATENCY_BUCKET_BOUNDS,
    NotedStep,
    RatedStep,
    ToolCallFilter,
    ToolReport,
    ToolStatistics,
)
from showhow.db.traces.libraries import MODELS, PEOPLE
from showhow.evaluation.comparison.tool_quality import (
    format_model_usage,
    get_cached_tool_report,
    tool_report_to_csv,
    tool_report_to_json,
)
from showhow.evaluation.value_format import format_count, format_money, format_seconds
from showhow.runs.services import Services
from showhow.tools.registry import tool_title

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
    middle_labels = [f"{lower} – {upper}" for lower, upper in pairwise(bounds)]
    return [f"under {bounds[0]}", *middle_labels, f"{bounds[-1]} and more"]


def show_tool_table(tools: Sequence[ToolStatistics]) -> None:
    """Draw the table; a click on the name of a tool opens its charts."""
    show_table(
        TOOL_COLUMNS, [_tool_row(tool) for tool in tools], key="tool_quality", label="Tool quality", go=select_tool
    )


def select_tool(name: str) -> None:
    """Select the tool in the URL."""
    st.session_state["tool"] = name


def _tool_row(tool: ToolStatistics) -> list[TableCell | None]:
    uncounted = [f"{tool.interrupted:,} never finished"] * bool(tool.interrupted) + [f"{tool.undone:,} undone"] * bool(
        tool.undone
    )
    return [
        TableCell(tool_title(tool.tool), go=tool.tool, hint=tool.tool),
        TableCell(f"{tool.calls:,}", number=True, hint=", ".join(uncounted)),
        _failure_cell(tool),
        *_latency_cells(tool),
        *_rating_cells(tool),
        _usage_cell(tool),
    ]


def _failure_cell(tool: ToolStatistics) -> TableCell:
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in tool.failures.items())
    share = f"{tool.failed:,} ({tool.failed / tool.calls:.1%})" if tool.failed else "0"
    # One kind of failure alone would be one full bar.
    bars = tuple(tool.failures.values()) if len(tool.failures) > 1 else ()
    return TableCell(share, number=True, bars=bars, hint=kinds)


def _latency_cells(tool: ToolStatistics) -> list[TableCell | None]:
    if tool.latency is None:
        return [None, None, None]
    hint = ", ".join(
        f"{name}: {count:,}" for name, count in zip(latency_class_names(), tool.latency.classes, strict=True) if count
    )
    return [
        TableCell(format_seconds(tool.latency.p50), number=True, bars=tool.latency.classes, hint=hint),
        TableCell(format_seconds(tool.latency.p95), number=True),
        TableCell(format_seconds(tool.latency.longest), number=True),
    ]


def _rating_cells(tool: ToolStatistics) -> list[TableCell | None]:
    if tool.ratings is None:
        return [None, None]
    spread = f" ± {tool.ratings.spread:.2f}" if tool.ratings.spread is not None else ""
    hint = ", ".join(f"{star} of 5: {count:,}" for star, count in tool.ratings.stars.items())
    return [
        TableCell(f"{tool.ratings.mean:.2f}{spread}", number=True),
        TableCell(f"{tool.ratings.count:,}", number=True, bars=tuple(tool.ratings.stars.values()), hint=hint),
    ]


def _usage_cell(tool: ToolStatistics) -> TableCell | None:
    if tool.usage is None:
        return None
    prefix = "at least " if tool.usage.unpriced and tool.usage.cost is not None else ""
    return TableCell(
        f"{format_count(tool.usage.calls, 'call')}, {prefix}{format_money(tool.usage.cost)}",
        hint="; ".join(format_model_usage(tool.usage)),
    )


def show_tool_charts(tool: ToolStatistics) -> None:
    """Draw the failures, latencies and ratings of one tool."""
    st.header(escape_markdown(tool_title(tool.tool)), anchor=False)
    st.caption(escape_markdown(f"{tool.tool}: {_describe_tool(tool)}"))
    with st.container(horizontal=True, gap="medium", key="charts"):
        if tool.failures:
            show_bar_chart("Failures", "kind", tool.failures, key="failures", counted="calls")
        if tool.latency:
            times = dict(zip(latency_class_names(), tool.latency.classes, strict=True))
            show_bar_chart("Latency", "time", times, key="latency", counted="calls")
        if tool.ratings:
            stars = {f"{star} of 5": count for star, count in tool.ratings.stars.items()}
            show_bar_chart("Ratings", "stars", stars, key="stars", counted="observations")


def _describe_tool(tool: ToolStatistics) -> str:
    parts = [format_count(tool.calls, "call")]
    parts += [f"{tool.interrupted:,} interrupted, without a latency"] if tool.interrupted else []
    parts += [f"{tool.undone:,} more were undone and are not counted"] if tool.undone else []
    parts += [f"model use {', '.join(format_model_usage(tool.usage))}"] if tool.usage else []
    return "; ".join(parts)


def show_worst_rated(worst: Sequence[RatedStep]) -> None:
    """Draw the lowest ratings first; a click opens the trace at its step."""
    low_rated = {f"{step.trace_id}:{step.position}": step for step in worst if step.rating < 5}
    if not low_rated:
        st.caption(
            "Every rated observation has five stars."
            if worst
            else "No observation is rated yet. Rate them with the stars under each step, on the Annotate or Ask page."
        )
        return

    def open_step(step_key: str) -> None:
        st.session_state["open_step"] = low_rated[step_key]

    rows = [
        [
            TableCell("★" * step.rating + "☆" * (5 - step.rating)),
            _tool_cell(step.tool),
            TableCell(_truncate(step.question), go=step_key),
            TableCell(_truncate(step.thought)),
            TableCell(f"{step.position}", number=True),
            TableCell(format_when(step.started_at)),
        ]
        for step_key, step in low_rated.items()
    ]
    columns = ("rating", "tool", "question", "thought", "step", "when")
    show_table(columns, rows, key="worst", label="Observations with the lowest ratings", go=open_step)


def show_noted_steps(notes: Sequence[NotedStep], *, is_filtered: bool) -> None:
    """Draw what people found that tools lack; a click opens the trace at its step."""
    if not notes:
        st.caption(
            "No note matches the filters."
            if is_filtered
            else "Nobody has noted anything yet. Press Note under a step and say what its tool lacks."
        )
        return

    def open_step(index: str) -> None:
        st.session_state["open_step"] = notes[int(index)]

    rows = [
        [
            _tool_cell(note.tool),
            TableCell(STEP_NOTE_LABELS.get(note.kind, note.kind)),
            TableCell(_truncate(note.note)),
            TableCell(_truncate(note.question), go=str(index)),
            TableCell(f"{note.position}", number=True),
            TableCell(note.author or ""),
            TableCell(format_when(note.written_at)),
        ]
        for index, note in enumerate(notes)
    ]
    counts = Counter((_tool_cell(note.tool).text, STEP_NOTE_LABELS.get(note.kind, note.kind)) for note in notes)
    st.caption(" · ".join(f"{tool}: {kind.lower()} {count:,}×" for (tool, kind), count in counts.items()))
    columns = ("tool", "what", "note", "question", "step", "by", "when")
    show_table(columns, rows, key="notes", label="What the tools lack", go=open_step)


def _tool_cell(name: str | None) -> TableCell:
    return TableCell(tool_title(name), hint=name) if name else TableCell("no tool")


def _truncate(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _MAX_TEXT_LENGTH else f"{line[: _MAX_TEXT_LENGTH - 1]}…"


VIEWS = {"worth": "Tool quality", "offered": "Available tools"}
EMPTY_MESSAGE = (
    "No tool has been called yet. Tools appear here once a person or a model has called them, with the number of calls "
    "and failures, the latency, and the ratings of their observations."
)


def show_scope_filters(services: Services) -> ToolCallFilter:
    """Draw a row of filters, whose values are in the URL."""
    with services.database.read() as session:
        names = [project.name for project in list_projects(session)]
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="filters"):
        project = _show_filter("Project", "of_project", names, 260)
        by = _show_filter("By", "by", [PEOPLE, MODELS], 150)
        since: date | None = st.date_input("Since", value=None, key="since", width=160, bind="query-params")
    day = datetime.combine(since, time(), browser_zone()).astimezone(UTC) if since else None
    return ToolCallFilter(project=project, by=by, since=day)


def _show_filter(
    label: str, name: str, options: list[str], width: int, format_func: Callable[[str], str] = str
) -> str | None:
    return st.selectbox(
        label,
        options,
        index=None,
        key=name,
        placeholder="all",
        format_func=format_func,
        width=width,
        bind="query-params",
    )


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
        name = _show_filter("One tool in detail", "tool", [tool.tool for tool in report.tools], 260, tool_title)
        _show_downloads(report, scope)
    chosen_tool = next((tool for tool in report.tools if tool.tool == name), None)
    if chosen_tool is not None:
        show_tool_charts(chosen_tool)
        report = get_cached_tool_report(
            services, ToolCallFilter(project=scope.project, by=scope.by, since=scope.since, tool=name)
        )
    st.header("What the tools lack", anchor=False)
    show_noted_steps(report.notes, is_filtered=name is not None or scope != ToolCallFilter())
    st.header("Lowest ratings", anchor=False)
    show_worst_rated(report.worst)


def _show_downloads(report: ToolReport, scope: ToolCallFilter) -> None:
    document = dumps(tool_report_to_json(report, scope), ensure_ascii=False, indent=1)
    st.download_button(
        "All as CSV", tool_report_to_csv(report), "tools.csv", "text/csv", key="csv", type="tertiary", on_click="ignore"
    )
    st.download_button(
        "All as JSON", document, "tools.json", "application/json", key="json", type="tertiary", on_click="ignore"
    )


def show_offered_tools(services: Services) -> None:
    """Draw the choice of the tools that the project offers."""
    project = current_project(services.database)
    if project is None:
        st.info("There is no project yet. `showhow setup` makes one.")
        return
    if notice := st.session_state.pop("notice", None):
        st.error(format_sentence(notice))
    st.caption(f"The tools that people and models can use for the questions of {escape_markdown(project.name)}.")
    choose_tools(services, project)
    note, *gaps = services.tool_registry().confinement_notes() or [""]
    st.caption(escape_markdown(note))
    for gap in gaps:
        st.warning(escape_markdown(gap), icon=":material/lock_open:")


services, person = acting_services()
show_head("Tools", "Rate observations while you annotate: the lowest ratings show which tools to improve.")
if choose_view(VIEWS) == "offered":
    show_offered_tools(services)
else:
    show_report(services, show_scope_filters(services))
if (rated := st.session_state.pop("open_step", None)) is not None:
    st.session_state.pop("step_in_focus", None)
    query_params = {"project": rated.project, "trace": str(rated.trace_id), "step": str(rated.position)}
    st.switch_page("annotate/page.py", query_params={"you": person.name, **query_params})
