"""The demonstrations of a version, or all approved ones: a list with filters, one open, and the export dialog.

The same filters apply to the list, to freezing and to exporting.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from uuid import UUID

import streamlit as st

from showhow.app.widgets.choices import SelectedLibrary
from showhow.app.widgets.job_panel import REPEAT_JOB, explain_roles, may_start, show_verb_job, start_verb_job
from showhow.app.widgets.notebook import show_trace, status_label
from showhow.app.widgets.page_layout import escape_html, escape_markdown, format_sentence
from showhow.app.widgets.queue import current_project, show_task
from showhow.app.widgets.repeatability import STATE_LABELS, show_repeatability
from showhow.app.widgets.table import TableCell, show_table
from showhow.app.widgets.url_state import FIRST, LAST, go_to_demonstration, list_start, reset_list
from showhow.db.database import Database, StoreError
from showhow.db.people.gold_visibility import is_gold_visible
from showhow.db.people.users import ADMIN, REVIEWER, has_acting_role
from showhow.db.runs.repetitions import list_repetition_states
from showhow.db.traces.libraries import MODELS, PEOPLE, Demonstration, DemonstrationFacets, DemonstrationFilter
from showhow.db.traces.trace_record import NOT_TRIED
from showhow.db.traces.traces import load_trace
from showhow.evaluation.value_format import format_count
from showhow.fewshot_library.formats import FORMATS, writable_formats
from showhow.fewshot_library.formats.format import ExportLosses, FormatError
from showhow.fewshot_library.library import LeakageError
from showhow.runs.services import Services
from showhow.tasks.task import dump_call
from showhow.tasks.trace_export import ExportPlan, write_traces
from showhow.tasks.traces import RepeatTraces, repeat

EXPORT_REFUSAL = "Reviewers and administrators can export."
MAX_EXPORTED = 5_000
"""Maximum demonstrations that the page exports; the command line writes more, directly to disk."""
MAX_LISTED_LEAKS = 100
"""Leaks that are listed; the refusal counts all."""
MAX_LISTED_LOSSES = 12
"""Losses that are listed; the rest is collapsed."""


@dataclass(frozen=True, slots=True)
class ExportFile:
    """The content of an exported file, and the losses of the export."""

    content: bytes
    losses: ExportLosses


@st.dialog("Export demonstrations", width="medium")
def show_export_dialog(library: SelectedLibrary, conditions: DemonstrationFilter) -> None:
    """Ask for the format, write the file, list the losses and offer the download."""
    count = library.count(conditions)
    chosen = f"{escape_markdown(library.title)} · {describe_filter(conditions)}"
    st.markdown(f"**{format_count(count, 'demonstration')}** of {chosen}")
    command = "showhow library export FILE" + (f" --library {library.reference}" if library.reference else "")
    plan = ExportPlan(writable_formats()[0], conditions, library.reference or None)
    show_export(library.services, count, plan, _export_file_name(library), command)


def may_export(database: Database) -> bool:
    """Whether the person who acts may export traces."""
    with database.read() as session:
        return has_acting_role(session, REVIEWER, ADMIN)


def show_export(services: Services, count: int, plan: ExportPlan, file_name: str, command: str) -> None:
    """Ask for the format, write the traces of the plan, list the losses and offer the download.

    `command` writes more of them than a page can, without its format.
    """
    name = st.selectbox(
        "Format",
        writable_formats(),
        key="export_format",
        format_func=lambda format_name: f"{format_name}: {FORMATS[format_name].purpose}",
    )
    plan = replace(plan, format_name=name)
    if not FORMATS[name].keeps_split:
        plan = replace(plan, test_split=_choose_test_split())
    if count > MAX_EXPORTED:
        st.info(f"The page exports up to {MAX_EXPORTED:,}. For more: `{command} --format {name}`")
        return
    with st.spinner("Writing …"):
        try:
            export_file = _write_export(services, plan)
        except (FormatError, LeakageError, StoreError) as error:
            st.error(format_sentence(str(error)))
            if isinstance(error, LeakageError):
                show_leaks(error)
            return
    _show_losses(export_file.losses)
    if not export_file.losses.written:
        st.warning("This format cannot represent any of these traces. Choose another one.")
        return
    st.download_button(
        f"Download {format_count(export_file.losses.written, 'trace')}",
        export_file.content,
        f"{file_name}.{_file_extension(name, export_file.content)}",
        key="download",
        type="primary",
        on_click="ignore",
    )


def _choose_test_split() -> str | None:
    """The split whose questions are kept out, or None to write all."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        split = st.text_input("Keep out questions from split", value="test", key="export_split", width=220)
        return None if st.checkbox("Write these too", key="export_with_test_split") else split.strip()


def show_leaks(error: LeakageError) -> None:
    """List the test questions among the demonstrations."""
    rows = [
        [TableCell(leak.demonstration.summary), TableCell(leak.tested), TableCell(f"{leak.cosine:.3f}", number=True)]
        for leak in error.leaks[:MAX_LISTED_LEAKS]
    ]
    columns = ("demonstration", "test question", "similarity")
    show_table(columns, rows, key="leaks", label="Test questions among the demonstrations")


def describe_filter(conditions: DemonstrationFilter) -> str:
    """Describe the filter as Markdown, with escaped values."""
    labels = {
        "text": "search",
        "by": "by",
        "rating": "min. rating",
        "kind": "kind",
        "project": "project",
        "repeats": "repeats:",
    }
    parts = [
        f"{labels[name]} {STATE_LABELS.get(value, value)}" for name, value in conditions.active_conditions().items()
    ]
    return escape_markdown(", ".join(parts)) if parts else "no filter"


def _write_export(services: Services, plan: ExportPlan) -> ExportFile:
    # A file, since some formats seek, and since the content should not be in memory twice.
    with tempfile.TemporaryFile() as file:
        losses = write_traces(services, plan, file)
        file.seek(0)
        return ExportFile(file.read(), losses)


def _show_losses(losses: ExportLosses) -> None:
    lines = losses.summary_lines()
    if not lines:
        st.success("The format represents everything; nothing is lost.")
        return
    st.markdown("This format does not represent:")
    st.markdown("\n".join(f"- {escape_markdown(line)}" for line in lines[:MAX_LISTED_LOSSES]))
    if len(lines) > MAX_LISTED_LOSSES:
        with st.expander(f"{len(lines) - MAX_LISTED_LOSSES} more"):
            st.markdown("\n".join(f"- {escape_markdown(line)}" for line in lines[MAX_LISTED_LOSSES:]))


def _export_file_name(library: SelectedLibrary) -> str:
    return library.reference.replace(":", "-") or "approved"


def _file_extension(name: str, content: bytes) -> str:
    """The extension of the file, from its content."""
    if content[:4] == b"PAR1":
        return "parquet"
    if content.lstrip()[:1] == b"[":
        return f"{name}.json"
    return f"{name}.jsonl" if content.lstrip()[:1] == b"{" else f"{name}.txt"


RATING_OPTIONS = (5.0, 4.5, 4.0, 3.0, 2.0, 1.0)


def show_demonstration_filters(
    choices: DemonstrationFacets, *, key: str, on_change: Callable[[], None] | None = None
) -> DemonstrationFilter:
    """Draw a row of filters, whose values persist for the browser session."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key=f"filters_{key}"):
        text = st.text_input(
            "Search",
            key=f"text_{key}",
            width=180,
            on_change=on_change,
            persist_state="session",
        )

        def choose(label: str, name: str, options: list[str]) -> str | None:
            return st.selectbox(
                label,
                options,
                index=None,
                key=f"{name}_{key}",
                placeholder="any",
                format_func=format_choice,
                width=160,
                on_change=on_change,
                persist_state="session",
            )

        project = choose("Project", "project", choices.projects)
        kind = choose("Kind", "kind", choices.kinds) if choices.kinds else None
        by = choose("By", "by", [PEOPLE, MODELS])
        repeats = choose("Repeats", "repeats", list(STATE_LABELS))
        rating = st.selectbox(
            "Min. rating",
            RATING_OPTIONS,
            index=None,
            key=f"rating_{key}",
            placeholder="any",
            format_func=lambda stars: f"{stars:g}",
            width=130,
            on_change=on_change,
            persist_state="session",
        )
    return DemonstrationFilter(
        project=project, kind=kind, rating=rating, by=by, repeats=repeats, text=text.strip() or None
    )


def format_choice(name: str) -> str:
    """The name on one line, shortened for a select box."""
    line = " ".join(STATE_LABELS.get(name, name).split())
    return line if len(line) <= 60 else f"{line[:59]}…"


PAGE_SIZE = 12


def show_demonstrations(library: SelectedLibrary) -> None:
    """Draw the filters, the list on the left and the open demonstration on the right."""
    if not library.count(DemonstrationFilter()):
        st.info(
            "No trace is approved yet. Approve traces on the Review page, or import some with "
            "`showhow traces import FILE`; they appear here."
        )
        return
    conditions = show_demonstration_filters(
        library.choices(), key=library.reference or "approved", on_change=reset_list
    )
    count = library.count(conditions)
    if not count:
        st.info("No matches. Try fewer filters.")
        return
    start = min(list_start(), (count - 1) // PAGE_SIZE * PAGE_SIZE)
    project = current_project(library.services.database)
    first_project = None if project is None else project.name
    listed = library.page(conditions, start, PAGE_SIZE, first_project=first_project)
    chosen = _selected_id(listed)
    left, right = st.columns([1, 1.8], gap="medium")
    with left, st.container(key="list_demonstrations"):
        _show_list(library, conditions, listed, chosen)
    with right:
        show_demonstration(library.services, chosen)


def _selected_id(listed: list[Demonstration]) -> UUID:
    """The id of the demonstration in the link, else of the first or last one of the list."""
    reference = str(st.query_params.get("demonstration", FIRST))
    if reference not in (FIRST, LAST):
        try:
            return UUID(reference)
        except ValueError:
            st.warning("The demonstration in the link does not exist. This is the first one of the list.")
    return listed[-1 if reference == LAST else 0].trace_id


def _show_list(
    library: SelectedLibrary, conditions: DemonstrationFilter, listed: list[Demonstration], chosen: UUID
) -> None:
    count, start = library.count(conditions), list_start()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        ids = [demonstration.trace_id for demonstration in listed]
        index = ids.index(chosen) if chosen in ids else None
        position_text = f"{start + index + 1:,} of {count:,}" if index is not None else f"{count:,} demonstrations"
        st.caption(position_text, width="content")
        st.space("stretch")
        is_refused = not may_export(library.services.database)
        if st.button(
            "Export",
            key="export",
            shortcut="Alt+E",
            type="tertiary",
            disabled=is_refused,
            help=EXPORT_REFUSAL if is_refused else None,
        ):
            show_export_dialog(library, conditions)
    with st.container(horizontal=True, gap="small"):
        _show_navigation_button("Previous", "previous", "Alt+P", _previous_target(ids, index, start))
        _show_navigation_button("Next", "next", "Alt+N", _next_target(ids, index, start, count))
    _show_trial_of_all(library, conditions)
    with library.services.database.read() as session:
        states = list_repetition_states(session, ids)
    for demonstration in listed:
        with st.container(gap=None):
            st.button(
                escape_markdown(_truncate(demonstration.summary)),
                key=f"demonstration_{demonstration.trace_id.hex}",
                type="primary" if demonstration.trace_id == chosen else "tertiary",
                width="stretch",
                on_click=go_to_demonstration,
                args=(str(demonstration.trace_id), start),
            )
            state = STATE_LABELS[states.get(demonstration.trace_id, NOT_TRIED)]
            st.caption(escape_markdown(f"{_format_caption(demonstration)} · {state}"))
    if count > PAGE_SIZE:
        with st.container(horizontal=True, gap="small"):
            _show_navigation_button("Earlier", "earlier", None, (FIRST, start - PAGE_SIZE) if start else None)
            _show_navigation_button(
                "Later", "later", None, (FIRST, start + PAGE_SIZE) if start + PAGE_SIZE < count else None
            )


def _show_trial_of_all(library: SelectedLibrary, conditions: DemonstrationFilter) -> None:
    """Draw the button that tries the demonstrations that nobody has tried, or the job that does."""
    database = library.services.database
    if show_verb_job(database, REPEAT_JOB, library.title):
        return
    count = library.count(DemonstrationFilter(project=conditions.project, repeats=NOT_TRIED))
    is_refused = not may_start(database, REPEAT_JOB)
    if count and st.button(
        f"Try {format_count(count, 'demonstration')} with other names",
        key="try_all",
        icon=":material/experiment:",
        disabled=is_refused,
        help=explain_roles(REPEAT_JOB)
        if is_refused
        else "Runs the calls of those that were not tried again, on their own questions and with other names.",
    ):
        request = RepeatTraces(library=library.reference or None, project=conditions.project or None, not_tried=True)
        start_verb_job(database, REPEAT_JOB, library.title, dump_call(repeat, request))
        st.rerun()


def _previous_target(ids: list[UUID], index: int | None, start: int) -> tuple[str, int] | None:
    if index:
        return str(ids[index - 1]), start
    return (LAST, start - PAGE_SIZE) if start and index == 0 else None


def _next_target(ids: list[UUID], index: int | None, start: int, count: int) -> tuple[str, int] | None:
    next_index = 0 if index is None else index + 1
    if next_index < len(ids):
        return str(ids[next_index]), start
    return (FIRST, start + PAGE_SIZE) if start + PAGE_SIZE < count else None


def _show_navigation_button(title: str, key: str, shortcut: str | None, to: tuple[str, int] | None) -> None:
    st.button(
        title, key=key, shortcut=shortcut, disabled=to is None, on_click=go_to_demonstration, args=to or (FIRST, 0)
    )


def _truncate(text: str) -> str:
    return text if len(text) <= 160 else f"{text[:159]}…"


def _format_caption(demonstration: Demonstration) -> str:
    parts = [
        demonstration.author or demonstration.reasoner,
        f"{len(demonstration.tools)} {'action' if len(demonstration.tools) == 1 else 'actions'}",
    ]
    parts += [demonstration.kind] if demonstration.kind else []
    parts += [f"{demonstration.rating:.1f} stars"] if demonstration.rating is not None else []
    return " · ".join(parts)


def show_demonstration(services: Services, trace_id: UUID) -> None:
    """Draw one demonstration as on the Review page, or a warning if it does not exist."""
    try:
        with services.database.read() as session:
            record = load_trace(session, trace_id)
            shows_gold = is_gold_visible(session, record.project)
    except StoreError:
        st.warning("The demonstration in the link does not exist. Choose one from the list.")
        return
    st.html(f'<h2 class="question">{escape_html(record.question.text)}</h2>')
    show_task(record)
    gold = ", ".join(str(answer.get("text", "")) for answer in record.question.gold_answers) or "unknown"
    shown_gold = f"Gold answer: **{escape_markdown(gold)}** · " if shows_gold else ""
    st.markdown(
        f"{shown_gold}by {escape_markdown(record.author or record.trace.reasoner)} · "
        f"{escape_markdown(record.project.name)} · {status_label(record.trace.status)}"
    )
    show_repeatability(services, record)
    show_trace(record, editable=False, forkable=False)


@st.dialog("Demonstration", width="large")
def open_demonstration(services: Services, trace_id: UUID) -> None:
    """Draw the demonstration in a dialog, so that the page below keeps its state."""
    show_demonstration(services, trace_id)
