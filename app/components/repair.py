"""An agent's failure beside the gold answer, where a person repairs it."""

from collections.abc import Callable
from typing import Literal
from uuid import UUID

import streamlit as st

from app.components.plain import plain
from app.components.queue import open_next
from app.resources import database
from db import queue, verifications
from db.database import StoreError
from db.models import User
from db.record import TraceRecord
from db.verifications import Outcome


def failure_in(trace_id: UUID | None) -> Outcome | None:
    """The failure of a verification that this trace is."""
    if trace_id is None:
        return None
    with database().read() as session:
        found = verifications.outcome_of(session, trace_id)
    return found if found is not None and found.failed else None


def offer_repair(record: TraceRecord, failure: Outcome, person: User, fork: Callable[[int], UUID | None]) -> None:
    """Say what went wrong, and how to begin."""
    st.markdown("**An answer to repair**")
    _compare(record.trace.reasoner, failure)
    how = (
        "Find the step that went wrong, fork at the last one before it, and go on as it should be done."
        if record.steps
        else "It took no step: begin anew, and show how it is done."
    )
    st.info(f"{how} What you submit becomes a demonstration once it is approved.")
    with st.container(horizontal=True):
        kind: Literal["primary", "secondary"] = "secondary" if record.steps else "primary"
        if st.button("Begin anew", key="begin_anew", type=kind, shortcut="Alt+B") and (made := fork(0)) is not None:
            st.query_params["trace"] = str(made)
            st.rerun()
        if st.button("Leave it to others", key="leave_it", type="tertiary"):
            _leave(failure, person)


def tell_repair(record: TraceRecord) -> None:
    """Above the form of a repair: what the agent said, and what is right."""
    failure = failure_in(record.trace.parent_id)
    if failure is not None:
        _compare("The agent", failure)


def _compare(agent: str, failure: Outcome) -> None:
    gold = ", ".join(str(answer["text"]) for answer in failure.gold)
    said = f"said **{plain(failure.answer)}**" if failure.answer else f"gave no answer: {plain(failure.failure or '')}"
    st.markdown(f"Gold answer: **{plain(gold)}**  \n{plain(agent)} {said}")


def _leave(failure: Outcome, person: User) -> None:
    try:
        with database().begin() as session:
            queue.skip(session, failure.question_id, person.id, "the repair is left to others")
    except StoreError as refused:
        st.error(str(refused))
    else:
        open_next()
