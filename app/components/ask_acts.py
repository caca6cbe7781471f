"""What a person does with a run: mend it, ask again, go on, keep its question, share it, rate its steps."""

from typing import Any
from uuid import UUID

import streamlit as st

from app.asking import FAILURES, FreeQuestion, Wanted, asks, begin, go_on, run_from
from app.components.plain import plain
from app.resources import database
from app.solving import Way
from db import forking, projects, runs
from db.database import StoreError
from db.models import User
from db.record import TraceRecord
from reasoners.limits import Limits

NEW = "a new project …"
ENDED = ("stopped", "limit", "failed", None)
"""Endings from which a run can go on; None is an interruption."""


def start(wanted: Wanted) -> bool:
    """Begin in the background, and have the address name the trace; False when it cannot be asked."""
    try:
        ask = begin(wanted)
    except FAILURES as refused:
        st.error(plain(str(refused)))
        return False
    _open(asks().start(ask))
    return True


def show_acts(record: TraceRecord, person: User) -> None:
    """The buttons of a run that has ended."""
    trace = record.trace
    if trace.run_id is None:
        return
    with st.container(horizontal=True, gap="small", key="acts"):
        if trace.ending in ENDED and trace.status in ("draft", "failed"):
            st.button("Go on", key="go_on", icon=":material/play_arrow:", on_click=_go_on, args=(record,))
        st.button(
            "Ask again", key="again", icon=":material/replay:", on_click=_rerun, args=(record, 0), shortcut="Alt+A"
        )
        if st.button("Fix this", key="fix", icon=":material/build:", shortcut="Alt+X"):
            st.session_state["fix_from"] = len(record.steps)
        if st.button("Save as question", key="save", icon=":material/bookmark_add:"):
            _save_question(record)
        with st.popover("Share", icon=":material/share:"):
            st.caption("Whoever opens this link sees the trace as it is here.")
            st.code(_link(trace.id), language=None)
    position = st.session_state.pop("fix_from", None)
    if position is not None:
        _fix(record, position, person)


def act(record: TraceRecord, person: User, what: dict[str, Any]) -> None:
    """Do what was clicked in the notebook."""
    position = int(what["step"])
    if what["kind"] == "rate":
        _rate(record, position, int(what["rating"]), person)
    elif what["kind"] == "rerun":
        _rerun(record, position - 1)
    elif what["kind"] == "fix":
        # The page is left when it is drawn again; a callback cannot leave it.
        st.session_state["fix_from"] = position - 1


def _rate(record: TraceRecord, position: int, rating: int, person: User) -> None:
    step = next((step for step in record.steps if step.position == position), None)
    if step is None:
        return
    try:
        with database().begin() as session:
            runs.rate_run(session, step.id, rating, by=person.id)
    except StoreError as refused:
        st.session_state["notice"] = str(refused)


def _way_and_limits(record: TraceRecord) -> tuple[Way, Limits]:
    told = record.trace.configuration
    return Way.from_json(told["way"]), _limits_now(told)


def _limits_now(told: dict[str, Any]) -> Limits:
    """As the fields say now, since a run that reached one goes on with a higher one."""
    names = ("steps", "tokens", "seconds", "money")
    return Limits(**{name: st.session_state.get(f"ask_{name}", told["limits"].get(name)) for name in names})


def _go_on(record: TraceRecord) -> None:
    try:
        asks().start(go_on(record.trace.id, _limits_now(record.trace.configuration)))
    except FAILURES as refused:
        st.session_state["notice"] = str(refused)


def _rerun(record: TraceRecord, position: int) -> None:
    """Answer the question again behind that step; the former trace stays as it is."""
    way, limits = _way_and_limits(record)
    try:
        _open(asks().start(run_from(record.trace.id, position, way, limits)))
    except FAILURES as refused:
        st.session_state["notice"] = str(refused)


def _fix(record: TraceRecord, position: int, person: User) -> None:
    """Open a draft of the person's on the Annotate page that keeps the steps up to there."""
    try:
        with database().begin() as session:
            forked = forking.fork(session, record.trace.id, position, person.id)
    except StoreError as refused:
        st.error(plain(str(refused)))
        return
    place = {"you": person.name, "project": record.project.name, "trace": str(forked.id)}
    st.switch_page("annotate.py", query_params=place)


def _open(trace_id: UUID) -> None:
    st.query_params["trace"] = str(trace_id)
    st.query_params.pop("step", None)


def _link(trace_id: UUID) -> str:
    return f"{(st.context.url or '').partition('?')[0]}?trace={trace_id}"


@st.dialog("Save as question")
def _save_question(record: TraceRecord) -> None:
    with database().read() as session:
        over = [project.name for project in projects.projects(session) if project.world == record.project.world]
    st.markdown(f"**{plain(record.question.text)}**")
    chosen = st.selectbox("Into the project", [*(name for name in over if name != record.project.name), NEW])
    name = st.text_input("Its name", key="save_project") if chosen == NEW else chosen
    gold = st.text_input(
        "Gold answer", value=record.trace.final_answer or "", key="save_gold", help="Empty if it is not known."
    )
    if st.button("Save", key="save_now", type="primary", shortcut="Ctrl+Enter"):
        asked = FreeQuestion(
            record.question.text,
            gold_answers=({"text": gold.strip(), "entity": None},) if gold.strip() else (),
            details={"asked": str(record.trace.id)},
        )
        try:
            with database().begin() as session:
                project = projects.get_or_create_project(session, name.strip(), world=record.project.world)
                added = projects.add_questions(session, project.id, [asked]).added
        except StoreError as refused:
            st.error(plain(str(refused)))
        else:
            st.success(f"Saved into {plain(name)}." if added else f"{plain(name)} has this question already.")
