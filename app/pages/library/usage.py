"""What would be chosen for the questions of a project: which demonstrations are used how often, and which never."""

from typing import Any
from uuid import UUID

import streamlit as st

from app.pages.library.demonstrations import open_demonstration
from app.pages.library.selection import open_selected_library
from app.widgets.chart import BAR_COLOUR, BAR_STEP
from app.widgets.job_panel import USAGE_JOB, show_verb_job, start_verb_job
from app.widgets.plain_text import escape_markdown
from app.widgets.selected_library import SelectedLibrary
from app.widgets.selection_options import SelectionOptions, ask_selection_options
from app.widgets.table import TableCell, show_table
from db.database import StoreError
from db.projects import count_questions, list_projects
from evaluation.report_cache import Report
from evaluation.selection_usage import UsageRequest, compute_usage, load_usage
from fewshot_library.selection import SelectionError
from worlds.source import SourceError

MAX_INLINE_QUESTIONS = 200
"""Questions that are answered while the page waits; more are a job beside the server."""
MAX_BARS = 15
MAX_LISTED_DEMONSTRATIONS = 500


def show_usage(library: SelectedLibrary) -> None:
    """Ask whose questions and how, and draw the counts."""
    if library.version is None:
        st.info("Usage is counted for a frozen version. Choose one on the left, or freeze one with Alt+L.")
        return
    services = library.services
    with services.database.read() as session:
        counts = {project.name: count_questions(session, project.id) for project in list_projects(session)}
    question_counts = {name: count for name, count in counts.items() if count}
    if not question_counts:
        st.info("No project has questions yet: `showhow questions import FILE --project NAME` adds some.")
        return
    name = st.selectbox(
        "Selections for the questions of",
        list(question_counts),
        format_func=lambda project: f"{project} ({question_counts[project]:,} questions)",
        key="usage_project",
        width=420,
        persist_state="session",
    )
    way = ask_selection_options("usage")
    request = UsageRequest(library.reference, name, way.config, way.leave_out_itself)
    report = load_usage(services, request)
    if report is None:
        _show_count_button(library, request, question_counts[name], way)
    else:
        _show_usage_report(report)
    if chosen := st.session_state.pop("usage_open", None):
        open_demonstration(services.database, UUID(chosen))


def _show_count_button(library: SelectedLibrary, request: UsageRequest, questions: int, way: SelectionOptions) -> None:
    """Nothing was counted for this yet."""
    name = f"{library.reference} for {request.project}"
    if show_verb_job(USAGE_JOB, name):
        return
    if not st.button(f"Count for {questions:,} questions", key="count_usage", type="primary"):
        st.caption(
            "Each question is compared with every demonstration, as when it is answered. "
            + (
                "The counting goes on beside the server while you do other things."
                if questions > MAX_INLINE_QUESTIONS
                else ""
            )
        )
        return
    if questions > MAX_INLINE_QUESTIONS:
        words = [*("library", "usage", library.reference, "--project", request.project), *_command_options(way)]
        start_verb_job(USAGE_JOB, name, words)
        st.rerun()
    try:
        open_selected_library(library)
        with st.empty():
            compute_usage(library.services, request, _show_progress)
    except (SelectionError, SourceError, StoreError) as refused:
        st.error(escape_markdown(str(refused)))
    else:
        # What was counted is kept, and drawn now.
        st.rerun()


def _show_progress(done: int, of: int) -> None:
    if done % 10 == 0 or done == of:
        st.progress(done / of, text=f"{done:,} of {of:,} questions")


def _command_options(way: SelectionOptions) -> list[str]:
    wish = way.config
    options = {"-k": wish.k, "--mode": wish.mode, "--alpha": wish.alpha, "--gamma": wish.gamma}
    more = {"--distance": wish.distance, "--seed": wish.seed, "--balance": wish.balance}
    words = [str(word) for pair in (options | more).items() for word in pair]
    return [
        *words,
        "--exchange" if wish.exchange else "--no-exchange",
        *(["--leave-out-itself"] if way.leave_out_itself else []),
    ]


def _show_usage_report(report: Report) -> None:
    used, never = report["used"], report["never"]
    with st.container(horizontal=True, key="usage_sizes"):
        for name, count in (
            ("questions", report["questions"]),
            ("picks", report["picks"]),
            ("demonstrations used", len(used)),
            ("never used", never),
        ):
            st.metric(name, f"{count:,}", width="content")
    st.caption(_describe_concentration(report))
    if used:
        with st.container(horizontal=True, gap="medium"):
            with st.container(width=470, gap="small"):
                st.markdown("**The most used demonstrations**")
                st.vega_lite_chart(
                    _usage_chart(used), width=460, key="usage_bars", alt="How often the most used are chosen"
                )
            with st.container(width=520):
                _show_usage_table(used, report["questions"])
    if never:
        st.subheader(f"Never used ({never:,})", anchor=False)
        st.caption(
            "Their questions are far from all of these, or others do the same and are nearer. For these questions the "
            "library is as good without them."
        )
        rows = [[TableCell(row["question"], go=row["id"])] for row in report["never_used"][:MAX_LISTED_DEMONSTRATIONS]]
        show_table(("question",), rows, key="never", label="Demonstrations that are never used", go=_request_open)
        if never > len(rows):
            st.caption(f"and {never - len(rows):,} more")


def _describe_concentration(report: Report) -> str:
    """How the picks are spread, in a sentence."""
    if not report["picks"]:
        return "Nothing was chosen."
    tenth = report["used"][: max(1, report["demonstrations"] // 10)]
    share = sum(row["times"] for row in tenth) / report["picks"]
    evenly = len(tenth) / report["demonstrations"]
    many = "demonstration makes" if len(tenth) == 1 else f"{len(tenth):,} demonstrations make"
    return f"The most used {many} up {share:.0%} of the picks; if all were used alike, it would be {evenly:.0%}."


def _usage_chart(used: list[dict[str, Any]]) -> dict[str, Any]:
    rows = [
        {"place": place, "question": row["question"], "label": f"{place}. {row['question']}", "times": row["times"]}
        for place, row in enumerate(used[:MAX_BARS], start=1)
    ]
    return {
        "data": {"values": rows},
        "mark": {"type": "bar", "color": BAR_COLOUR},
        "height": {"step": BAR_STEP},
        "encoding": {
            "y": {
                "field": "label",
                "type": "nominal",
                "sort": None,
                "title": None,
                "axis": {"labelLimit": 210, "labelOverlap": False},
            },
            "x": {"field": "times", "type": "quantitative", "title": "times chosen", "axis": {"tickMinStep": 1}},
            "tooltip": [{"field": name} for name in ("question", "times")],
        },
    }


def _show_usage_table(used: list[dict[str, Any]], questions: int) -> None:
    rows = [
        [
            TableCell(f"{place}", number=True),
            TableCell(row["question"], go=row["id"]),
            TableCell(f"{row['times']:,}", number=True),
            TableCell(f"{row['times'] / questions:.0%}", number=True),
        ]
        for place, row in enumerate(used[:MAX_LISTED_DEMONSTRATIONS], start=1)
    ]
    columns = ("", "question", "times", "of the questions")
    show_table(columns, rows, key="used", label="Demonstrations by how often they are chosen", go=_request_open)
    if len(used) > MAX_LISTED_DEMONSTRATIONS:
        st.caption(f"and {len(used) - MAX_LISTED_DEMONSTRATIONS:,} more, used less")


def _request_open(trace: str) -> None:
    st.session_state["usage_open"] = trace
