"""How often each demonstration would be selected for a project's questions; what running them again gives (drift)."""

import re
from datetime import datetime
from difflib import SequenceMatcher
from html import escape
from typing import Any
from uuid import UUID

import streamlit as st

from showhow.app.pages.library.demonstrations import open_demonstration
from showhow.app.pages.library.selection import open_selected_library
from showhow.app.widgets.choices import SelectedLibrary
from showhow.app.widgets.job_panel import DRIFT_JOB, USAGE_JOB, explain_roles, may_start, show_verb_job, start_verb_job
from showhow.app.widgets.page_layout import errors_shown, escape_markdown, format_when
from showhow.app.widgets.person import current_user
from showhow.app.widgets.selection_form import ask_selection_options
from showhow.app.widgets.table import BAR_COLOUR, BAR_STEP, TableCell, show_table
from showhow.db.database import Database, StoreError
from showhow.db.people.users import authorize
from showhow.db.questions.projects import count_questions, list_projects
from showhow.db.traces.libraries import DemonstrationFilter
from showhow.evaluation.comparison.drift import load_drift
from showhow.evaluation.comparison.selection_usage import Report, UsageRequest, compute_usage, load_usage
from showhow.fewshot_library.selection import SelectionError
from showhow.tasks.library import count_usage
from showhow.tasks.task import dump_call
from showhow.tasks.traces import ReplayTraces, replay
from showhow.tools.registry import argument_label, tool_title
from showhow.worlds.source import SourceError

MAX_INLINE_QUESTIONS = 200
"""Up to this many questions are counted while the page waits; more are counted by a background job."""
MAX_BARS = 15
MAX_LISTED_DEMONSTRATIONS = 500


def show_usage(library: SelectedLibrary) -> None:
    """Ask for the project and the selection options, and draw the counts."""
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
        "Questions of the project",
        list(question_counts),
        format_func=lambda project: f"{project} ({question_counts[project]:,} questions)",
        key="usage_project",
        width=420,
        persist_state="session",
    )
    options = ask_selection_options("usage")
    request = UsageRequest(
        library=library.reference,
        project=name,
        selection_config=options.config,
        leave_out_itself=options.leave_out_itself,
    )
    report = load_usage(services, request)
    if report is None:
        _show_count_button(library, request, question_counts[name])
    else:
        _show_usage_report(report)
    if chosen_id := st.session_state.pop("usage_open", None):
        open_demonstration(services, UUID(chosen_id))


def _show_count_button(library: SelectedLibrary, request: UsageRequest, questions: int) -> None:
    """Draw the button that starts the count, or the job that counts."""
    name = f"{library.reference} for {request.project}"
    if show_verb_job(library.services.database, USAGE_JOB, name):
        return
    database = library.services.database
    is_refused = not may_start(database, USAGE_JOB)
    if not st.button(
        f"Count for {questions:,} questions",
        key="count_usage",
        type="primary",
        disabled=is_refused,
        help=explain_roles(USAGE_JOB) if is_refused else None,
    ):
        st.caption(
            "Each question is compared with every demonstration, as before an answer. "
            + ("The count runs in the background; you can leave this page." if questions > MAX_INLINE_QUESTIONS else "")
        )
        return
    if questions > MAX_INLINE_QUESTIONS:
        start_verb_job(library.services.database, USAGE_JOB, name, dump_call(count_usage, request))
        st.rerun()
    with errors_shown(SelectionError, SourceError, StoreError):
        authorize(database)
        open_selected_library(library)
        with st.empty():
            compute_usage(library.services, request, _show_progress)
        # The stored report is drawn now.
        st.rerun()


def _show_progress(done: int, total: int) -> None:
    if done % 10 == 0 or done == total:
        st.progress(done / total, text=f"{done:,} of {total:,} questions")


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
                    _usage_chart(used),
                    width=460,
                    key="usage_bars",
                    alt="How often the most used demonstrations are selected",
                )
            with st.container(width=520):
                _show_usage_table(used, report["questions"])
    if never:
        st.header(f"Never used ({never:,})", anchor=False)
        st.caption(
            "Other demonstrations with the same actions have more similar questions. For these questions the library "
            "works equally well without them."
        )
        rows = [[TableCell(row["question"], go=row["id"])] for row in report["never_used"][:MAX_LISTED_DEMONSTRATIONS]]
        show_table(("question",), rows, key="never", label="Demonstrations that are never used", go=_request_open)
        if never > len(rows):
            st.caption(f"and {never - len(rows):,} more")


def _describe_concentration(report: Report) -> str:
    """Describe in one sentence how evenly the picks are distributed."""
    if not report["picks"]:
        return "Nothing was selected."
    top_tenth = report["used"][: max(1, report["demonstrations"] // 10)]
    share = sum(row["times"] for row in top_tenth) / report["picks"]
    even_share = len(top_tenth) / report["demonstrations"]
    subject = "demonstration makes" if len(top_tenth) == 1 else f"{len(top_tenth):,} demonstrations make"
    return f"The most used {subject} up {share:.0%} of the picks; with even usage it would be {even_share:.0%}."


def _usage_chart(used: list[dict[str, Any]]) -> dict[str, Any]:
    rows = [
        {"place": rank, "question": row["question"], "label": f"{rank}. {row['question']}", "times": row["times"]}
        for rank, row in enumerate(used[:MAX_BARS], start=1)
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
            "x": {"field": "times", "type": "quantitative", "title": "times selected", "axis": {"tickMinStep": 1}},
            "tooltip": [{"field": name} for name in ("question", "times")],
        },
    }


def _show_usage_table(used: list[dict[str, Any]], questions: int) -> None:
    rows = [
        [
            TableCell(f"{rank}", number=True),
            TableCell(row["question"], go=row["id"]),
            TableCell(f"{row['times']:,}", number=True),
            TableCell(f"{row['times'] / questions:.0%}", number=True),
        ]
        for rank, row in enumerate(used[:MAX_LISTED_DEMONSTRATIONS], start=1)
    ]
    columns = ("", "question", "times", "of the questions")
    show_table(columns, rows, key="used", label="Demonstrations by how often they are selected", go=_request_open)
    if len(used) > MAX_LISTED_DEMONSTRATIONS:
        st.caption(f"and {len(used) - MAX_LISTED_DEMONSTRATIONS:,} more, used less often")


def _request_open(trace: str) -> None:
    st.session_state["usage_open"] = trace


STATE_DESCRIPTIONS = {
    "broken": "can no longer be followed",
    "differs": "can still be followed, but a tool returns something else now",
}
MAX_LISTED_TRACES = 200
MAX_OBSERVATION_CHARACTERS = 4_000
"""Characters of an observation that are drawn."""


def show_drift(library: SelectedLibrary) -> None:
    """Draw the button that runs the demonstrations again, and the last report."""
    reference = library.reference or None
    report = load_drift(library.services, reference)
    if show_verb_job(library.services.database, DRIFT_JOB, library.title):
        pass
    elif not library.count(DemonstrationFilter()):
        st.info("There is no demonstration yet. Traces that are approved on the Review page become demonstrations.")
    else:
        _show_run_button(library, again=report is not None)
    if report is not None:
        _show_report(library.services.database, report)


def _show_run_button(library: SelectedLibrary, *, again: bool) -> None:
    label = "Run them again now" if again else f"Run {library.count(DemonstrationFilter()):,} demonstrations again"
    is_refused = not may_start(library.services.database, DRIFT_JOB)
    if st.button(
        label,
        key="run_drift",
        type="secondary" if again else "primary",
        icon=":material/replay:",
        disabled=is_refused,
        help=explain_roles(DRIFT_JOB) if is_refused else None,
    ):
        request = ReplayTraces(library=library.reference or None)
        start_verb_job(library.services.database, DRIFT_JOB, library.title, dump_call(replay, request))
        st.rerun()
    if not again:
        st.caption(
            "Every tool call of every demonstration runs again in the current world and is compared with the recorded "
            "observation. The demonstrations do not change."
        )


def _show_report(database: Database, report: Report) -> None:
    with st.container(horizontal=True, key="drift_sizes"):
        for name, count in (
            ("run again", report["traces"]),
            ("the same", report["same"]),
            ("differ", report["differs"]),
            ("broken", report["broken"]),
        ):
            st.metric(name, f"{count:,}", width="content")
    computed_at = datetime.fromisoformat(report["at"])
    st.caption(
        f"As of {format_when(computed_at)}. Broken: {STATE_DESCRIPTIONS['broken']}. "
        f"Differ: {STATE_DESCRIPTIONS['differs']}."
    )
    changed = report["changed"]
    if not changed:
        st.success("Every observation is the same as recorded.")
        return
    rows = [
        [
            TableCell(trace["question"], go=trace["trace"]),
            TableCell(trace["state"]),
            TableCell(", ".join(str(step["position"]) for step in trace["steps"])),
        ]
        for trace in changed[:MAX_LISTED_TRACES]
    ]
    show_table(("question", "state", "steps"), rows, key="drifted", label="Traces that differ", go=_select_trace)
    if len(changed) > MAX_LISTED_TRACES:
        st.caption(f"and {len(changed) - MAX_LISTED_TRACES:,} more; `showhow traces replay --json` lists all")
    requested = st.query_params.get("drifted", changed[0]["trace"])
    chosen = next((trace for trace in changed if trace["trace"] == requested), changed[0])
    _show_trace_drift(database, chosen)


def _select_trace(trace: str) -> None:
    st.query_params["drifted"] = trace


def _show_trace_drift(database: Database, chosen: dict[str, Any]) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        st.header(escape_markdown(chosen["question"]), anchor=False, width="stretch")
        if st.button("Open in Annotate", key="fix_drift", icon=":material/edit_note:"):
            person = current_user(database)
            st.switch_page("annotate/page.py", query_params={"you": person.name, "trace": chosen["trace"]})
    for step in chosen["steps"]:
        tool = str(step["tool"])
        arguments = ", ".join(f"{argument_label(tool, name)}: {value}" for name, value in step["arguments"].items())
        reason = f" · {escape_markdown(step['why'])}" if step["why"] else ""
        st.markdown(
            f"**Step {step['position']}** · {escape_markdown(tool_title(tool))} · {escape_markdown(arguments)}{reason}"
        )
        if step["before"] == step["now"]:
            st.caption("The text is the same; its data, from which later steps take values, differ.")
        recorded_column, current_column = st.columns(2, gap="small")
        old, new = highlight_changes(
            step["before"][:MAX_OBSERVATION_CHARACTERS], step["now"][:MAX_OBSERVATION_CHARACTERS]
        )
        recorded_column.html(_render_side("As recorded", old))
        current_column.html(_render_side("Now", new))


def _render_side(name: str, text: str) -> str:
    body = text or '<span class="nothing">nothing</span>'
    return f'<div class="beside"><p class="name">{name}</p><div class="text">{body}</div></div>'


def highlight_changes(before: str, now: str) -> tuple[str, str]:
    """Render both texts as HTML, with the words that only one of them contains marked."""
    old, new = (re.findall(r"\s+|\S+", text) for text in (before, now))
    sides: tuple[list[str], list[str]] = ([], [])
    for tag, *(a, b, c, d) in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        for side, words in zip(sides, (old[a:b], new[c:d]), strict=True):
            if words:
                text = escape("".join(words))
                side.append(text if tag == "equal" else f"<mark>{text}</mark>")
    return "".join(sides[0]), "".join(sides[1])
