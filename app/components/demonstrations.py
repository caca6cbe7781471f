"""The demonstrations of a version or all approved ones: filtered, listed, one of them open."""

from uuid import UUID

import streamlit as st

from app.components.demonstration_filters import ask_conditions
from app.components.export_library import export_library
from app.components.library_places import FIRST, LAST, back_to_the_first, go_to_demonstration, list_start
from app.components.notebook import show_trace
from app.components.plain import plain, plain_html
from app.components.selected_library import SelectedLibrary
from app.resources import database
from db.database import StoreError
from db.libraries import Demonstration, Wanted
from db.reading import open_trace

PAGE = 12


def show_demonstrations(library: SelectedLibrary) -> None:
    """The filters, the list on the left, the open demonstration on the right."""
    if not library.count(Wanted()):
        st.info(
            "No trace is approved yet. Approve some on the Review page, or bring others' with "
            "`showhow traces import FILE`; they appear here."
        )
        return
    wanted = ask_conditions(library.choices(), key=library.reference or "approved", on_change=back_to_the_first)
    count = library.count(wanted)
    if not count:
        st.info("No demonstration is like that; loosen a filter.")
        return
    start = min(list_start(), (count - 1) // PAGE * PAGE)
    listed = library.page(wanted, start, PAGE)
    chosen = _chosen(listed)
    left, right = st.columns([1, 1.8], gap="medium")
    with left, st.container(key="list_demonstrations"):
        _list(library, wanted, listed, chosen)
    with right:
        show_demonstration(chosen)


def _chosen(listed: list[Demonstration]) -> UUID:
    """The demonstration that the address names, else one of those that are listed."""
    named = str(st.query_params.get("demonstration", FIRST))
    if named not in (FIRST, LAST):
        try:
            return UUID(named)
        except ValueError:
            st.warning("The address names a demonstration that is not here; this is the first of the list.")
    return listed[-1 if named == LAST else 0].trace_id


def _list(library: SelectedLibrary, wanted: Wanted, listed: list[Demonstration], chosen: UUID) -> None:
    count, start = library.count(wanted), list_start()
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        ids = [each.trace_id for each in listed]
        place = ids.index(chosen) if chosen in ids else None
        here = f"{start + place + 1:,} of {count:,}" if place is not None else f"{count:,} demonstrations"
        st.caption(here, width="content")
        st.space("stretch")
        if st.button("Export …", key="export", shortcut="Alt+E", type="tertiary"):
            export_library(library, wanted)
    with st.container(horizontal=True, gap="small"):
        _turn("Previous", "previous", "Alt+P", _before(ids, place, start))
        _turn("Next", "next", "Alt+N", _after(ids, place, start, count))
    for each in listed:
        with st.container(gap=None):
            st.button(
                plain(_short(each.question)),
                key=f"demonstration_{each.trace_id.hex}",
                type="primary" if each.trace_id == chosen else "tertiary",
                width="stretch",
                on_click=go_to_demonstration,
                args=(str(each.trace_id), start),
            )
            st.caption(plain(_note(each)))
    if count > PAGE:
        with st.container(horizontal=True, gap="small"):
            _turn("Earlier", "earlier", None, (FIRST, start - PAGE) if start else None)
            _turn("Later", "later", None, (FIRST, start + PAGE) if start + PAGE < count else None)


def _before(ids: list[UUID], place: int | None, start: int) -> tuple[str, int] | None:
    if place:
        return str(ids[place - 1]), start
    return (LAST, start - PAGE) if start and place == 0 else None


def _after(ids: list[UUID], place: int | None, start: int, count: int) -> tuple[str, int] | None:
    following = 0 if place is None else place + 1
    if following < len(ids):
        return str(ids[following]), start
    return (FIRST, start + PAGE) if start + PAGE < count else None


def _turn(title: str, key: str, shortcut: str | None, to: tuple[str, int] | None) -> None:
    st.button(
        title, key=key, shortcut=shortcut, disabled=to is None, on_click=go_to_demonstration, args=to or (FIRST, 0)
    )


def _short(text: str) -> str:
    return text if len(text) <= 160 else f"{text[:159]}…"


def _note(each: Demonstration) -> str:
    parts = [each.author or each.reasoner, f"{len(each.tools)} {'action' if len(each.tools) == 1 else 'actions'}"]
    parts += [each.kind] if each.kind else []
    parts += [f"{each.rating:.1f} stars"] if each.rating is not None else []
    return " · ".join(parts)


def show_demonstration(trace_id: UUID) -> None:
    """One demonstration as the Review page draws it, or a sentence that it is not there."""
    try:
        with database().read() as session:
            record = open_trace(session, trace_id)
    except StoreError:
        st.warning("The address names a demonstration that is not here; choose one from the list.")
        return
    st.html(f'<h2 class="question">{plain_html(record.question.text)}</h2>')
    gold = ", ".join(str(answer.get("text", "")) for answer in record.question.gold_answers) or "not known"
    st.markdown(
        f"Gold answer: **{plain(gold)}** · by {plain(record.author or record.trace.reasoner)} · "
        f"{plain(record.project.name)} · {record.trace.status}"
    )
    show_trace(record, editable=False, forkable=False)


@st.dialog("Demonstration", width="large")
def open_demonstration(trace_id: UUID) -> None:
    """The demonstration over the page, where the page is to stay as it is."""
    show_demonstration(trace_id)
