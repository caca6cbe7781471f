"""A run as it goes and as it ended: what it took, its steps, what the model says, and how it ended."""

from uuid import UUID

import streamlit as st

from app.asking import Ask, asks, is_at_work
from app.components.ask_acts import act, show_acts
from app.components.ask_answer import conclusion
from app.components.notebook import show_trace
from app.components.plain import plain, plain_html
from app.components.usage import spent_in_all, trace_spent
from app.resources import database
from app.solving import REPLAY
from app.spent import seconds
from db import reading
from db.models import User, now
from db.record import TraceRecord

BEAT = 0.5
"""Seconds between two looks at a run that is at work."""
LONGEST = 4_000
"""Characters of what the model says that are shown while it says it; all of them join the record."""
ADVICE = {
    "refused": "Answer it yourself with **Fix this**: approved and frozen, that is the demonstration that was missing. "
    "Or ask a model.",
    "failed": "Ask again, go on from where it broke, or mend the step with **Fix this**.",
    "stopped": "Go on from where it stopped, or ask again.",
    "limit": "Raise it under **Limits** and go on.",
    "interrupted": "The program ended while it was at work. Go on runs the unfinished step and what follows.",
}
LEFT = "The run ended while this tool was at work; to go on runs it again first."


def show_run(trace_id: UUID, person: User) -> None:
    """Draw the run, anew twice a second while it is at work."""
    with database().read() as session:
        trace = reading.open_trace(session, trace_id).trace
    at_work = is_at_work(trace)
    st.fragment(_panel, run_every=BEAT if at_work else None)(trace_id, person, at_work=at_work)


def _panel(trace_id: UUID, person: User, *, at_work: bool) -> None:
    ask = asks().at(trace_id)
    with database().read() as session:
        record = reading.open_trace(session, trace_id)
    if at_work != is_at_work(record.trace) or st.query_params.get("trace") != str(trace_id):
        # It has ended or goes on, or another one was begun: all of the page is another one now.
        st.rerun()
    if at_work:
        _at_work(record, ask)
    else:
        _ended(record)
        show_acts(record, person)
    if notice := st.session_state.pop("notice", None):
        st.error(plain(notice))
    answer = conclusion(record)
    if record.steps or answer:
        show_trace(
            record,
            editable=False,
            forkable=False,
            on_act=lambda what: act(record, person, what),
            more={
                "ratable": True,
                "mendable": not at_work,
                "answers": [],
                "conclusion": answer,
                "interrupted": "The tool is at work …" if at_work else LEFT,
                "hint": "",
                "spent": "",
            },
        )
    if at_work and ask is not None and ask.said:
        st.caption("The model says")
        st.html(f'<div class="saying">{plain_html(ask.said[-LONGEST:])}</div>')


def _at_work(record: TraceRecord, ask: Ask | None) -> None:
    trace = record.trace
    took = ask.seconds if ask is not None else (now() - trace.started_at).total_seconds()
    doing = (ask.phase if ask is not None else "") or f"step {len(record.steps) + 1}"
    told = " · ".join(filter(None, (doing, seconds(took), trace_spent(record.steps))))
    with st.container(horizontal=True, vertical_alignment="center", key="at_work"):
        st.markdown(f":material/pending: **At work** · {told}", width="stretch")
        if ask is None:
            st.caption("It runs in another process of this machine; stop it there.")
        else:
            st.button(
                "Stopping …" if ask.stopping else "Stop",
                key="stop",
                icon=":material/stop:",
                shortcut="Alt+S",
                on_click=ask.stop,
                disabled=ask.stopping,
            )


def _ended(record: TraceRecord) -> None:
    trace = record.trace
    took = seconds(trace.wall_seconds) if trace.wall_seconds is not None else ""
    told = " · ".join(filter(None, (_steps(len(record.steps)), took, spent_in_all(trace.cost))))
    ending = trace.ending or ("interrupted" if trace.run_id is not None and trace.status == "draft" else None)
    if ending == "answered" or ending is None:
        maker = "by following a demonstration" if trace.reasoner == REPLAY else plain(record.maker)
        reviewed = f" · {trace.status}" if trace.ending and trace.status != "submitted" else ""
        st.caption(f"{(trace.ending or trace.status).capitalize()} {maker}{reviewed} · {told}")
        return
    say = {"refused": st.info, "failed": st.error}.get(ending, st.warning)
    say(f"**{ending.capitalize()}.** {_sentence(trace.failure)} {ADVICE[ending]}")
    st.caption(told)


def _steps(count: int) -> str:
    return f"{count} step" if count == 1 else f"{count} steps"


def _sentence(reason: str | None) -> str:
    """The reason with a capital letter and a full stop."""
    told = (reason or "").strip().rstrip(".")
    return plain(told[:1].upper() + told[1:] + ".") if told else ""
