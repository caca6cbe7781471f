"""The demonstrations of a version or all approved ones: filtered, listed, one of them open.

Which demonstrations are meant: the same conditions in the list, when freezing and when exporting.
"""

from collections.abc import Callable
from uuid import UUID

import streamlit as st

from app.pages.library.export import show_export_dialog
from app.widgets.notebook import show_trace
from app.widgets.plain_text import escape_html, escape_markdown
from app.widgets.selected_library import SelectedLibrary
from app.widgets.url_state import FIRST, LAST, go_to_demonstration, list_start, reset_list
from db.database import Database, StoreError
from db.libraries import MODELS, PEOPLE, Demonstration, DemonstrationFacets, DemonstrationFilter
from db.traces import load_trace

RATING_OPTIONS = (5.0, 4.5, 4.0, 3.0, 2.0, 1.0)


def show_demonstration_filters(
    choices: DemonstrationFacets, *, key: str, on_change: Callable[[], None] | None = None
) -> DemonstrationFilter:
    """Draw a row of filters; their values last as long as the browser session."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key=f"filters_{key}"):
        text = st.text_input(
            "Search",
            key=f"text_{key}",
            width=200,
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
                width=170,
                on_change=on_change,
                persist_state="session",
            )

        project = choose("Project", "project", choices.projects)
        kind = choose("Kind", "kind", choices.kinds) if choices.kinds else None
        by = choose("By", "by", [PEOPLE, MODELS])
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
    return DemonstrationFilter(project=project, kind=kind, rating=rating, by=by, text=text.strip() or None)


def format_choice(name: str) -> str:
    """The name on one line, shortened for a select box."""
    line = " ".join(name.split())
    return line if len(line) <= 60 else f"{line[:59]}…"


PAGE_SIZE = 12


def show_demonstrations(library: SelectedLibrary) -> None:
    """The filters, the list on the left, the open demonstration on the right."""
    if not library.count(DemonstrationFilter()):
        st.info(
            "No trace is approved yet. Approve some on the Review page, or import "
            "some with `showhow traces import FILE`; they appear here."
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
    listed = library.page(conditions, start, PAGE_SIZE)
    chosen = _selected_id(listed)
    left, right = st.columns([1, 1.8], gap="medium")
    with left, st.container(key="list_demonstrations"):
        _show_list(library, conditions, listed, chosen)
    with right:
        show_demonstration(library.services.database, chosen)


def _selected_id(listed: list[Demonstration]) -> UUID:
    """The demonstration that the address names, else one of those that are listed."""
    named = str(st.query_params.get("demonstration", FIRST))
    if named not in (FIRST, LAST):
        try:
            return UUID(named)
        except ValueError:
            st.warning("The address names a demonstration that is not here; this is the first of the list.")
    return listed[-1 if named == LAST else 0].trace_id


def _show_list(
    library: SelectedLibrary, conditions: DemonstrationFilter, listed: list[Demonstration], chosen: UUID
) -> None:
    count, start = library.count(conditions), list_start()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        ids = [demonstration.trace_id for demonstration in listed]
        place = ids.index(chosen) if chosen in ids else None
        here = f"{start + place + 1:,} of {count:,}" if place is not None else f"{count:,} demonstrations"
        st.caption(here, width="content")
        st.space("stretch")
        if st.button("Export …", key="export", shortcut="Alt+E", type="tertiary"):
            show_export_dialog(library, conditions)
    with st.container(horizontal=True, gap="small"):
        _show_navigation_button("Previous", "previous", "Alt+P", _previous_target(ids, place, start))
        _show_navigation_button("Next", "next", "Alt+N", _next_target(ids, place, start, count))
    for demonstration in listed:
        with st.container(gap=None):
            st.button(
                escape_markdown(_truncate(demonstration.question)),
                key=f"demonstration_{demonstration.trace_id.hex}",
                type="primary" if demonstration.trace_id == chosen else "tertiary",
                width="stretch",
                on_click=go_to_demonstration,
                args=(str(demonstration.trace_id), start),
            )
            st.caption(escape_markdown(_format_caption(demonstration)))
    if count > PAGE_SIZE:
        with st.container(horizontal=True, gap="small"):
            _show_navigation_button("Earlier", "earlier", None, (FIRST, start - PAGE_SIZE) if start else None)
            _show_navigation_button(
                "Later", "later", None, (FIRST, start + PAGE_SIZE) if start + PAGE_SIZE < count else None
            )


def _previous_target(ids: list[UUID], place: int | None, start: int) -> tuple[str, int] | None:
    if place:
        return str(ids[place - 1]), start
    return (LAST, start - PAGE_SIZE) if start and place == 0 else None


def _next_target(ids: list[UUID], place: int | None, start: int, count: int) -> tuple[str, int] | None:
    following = 0 if place is None else place + 1
    if following < len(ids):
        return str(ids[following]), start
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


def show_demonstration(database: Database, trace_id: UUID) -> None:
    """One demonstration as the Review page draws it, or a sentence that it is not there."""
    try:
        with database.read() as session:
            record = load_trace(session, trace_id)
    except StoreError:
        st.warning("There is no demonstration with the id in the link; choose one from the list.")
        return
    st.html(f'<h2 class="question">{escape_html(record.question.text)}</h2>')
    gold = ", ".join(str(answer.get("text", "")) for answer in record.question.gold_answers) or "not known"
    st.markdown(
        f"Gold answer: **{escape_markdown(gold)}** · by {escape_markdown(record.author or record.trace.reasoner)} · "
        f"{escape_markdown(record.project.name)} · {record.trace.status}"
    )
    show_trace(record, editable=False, forkable=False)


@st.dialog("Demonstration", width="large")
def open_demonstration(database: Database, trace_id: UUID) -> None:
    """The demonstration over the page, where the page is to stay as it is."""
    show_demonstration(database, trace_id)
