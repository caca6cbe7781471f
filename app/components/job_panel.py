"""Worlds in the making: how far each is, and a button that stops it."""

from functools import cache

import streamlit as st

from app.components.places import go_to_world
from app.components.plain import plain
from app.jobs import Job, Jobs


@cache
def jobs() -> Jobs:
    """The jobs of this server."""
    return Jobs()


def show_jobs(*, stoppable: bool) -> None:
    """Draw them, anew every second while one is at work; the whole page when one has ended."""
    at_work = any(job.state == "running" for job in jobs().all())
    st.fragment(_panel, run_every=1.0 if at_work else None)(at_work=at_work, stoppable=stoppable)


def _panel(*, at_work: bool, stoppable: bool) -> None:
    found = jobs().all()
    if at_work and not any(job.state == "running" for job in found):
        # What it made is in the list now.
        st.rerun()
    for job in found:
        with st.container(key=f"job_{job.world}", border=True, gap="small"):
            if job.state == "running":
                _running(job, stoppable=stoppable)
            else:
                _over(job)


def _running(job: Job, *, stoppable: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        ending = " · stopping …" if job.stopping else ""
        st.markdown(f"**{job.doing} {plain(job.world)}** · {_clock(job.seconds)}{ending}", width="stretch")
        if stoppable:
            st.button("Stop", key=f"stop_{job.world}", on_click=job.stop, disabled=job.stopping, icon=":material/stop:")
    said = plain(job.said or "starting …")
    if job.share is None:
        st.caption(said)
    else:
        st.progress(job.share, text=said)


def _over(job: Job) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        name, took = plain(job.world), _clock(job.seconds)
        if job.state == "done":
            st.markdown(f":material/check: **{name}** is there, after {took}.", width="stretch")
            if st.button("Open", key=f"see_{job.world}", type="primary"):
                jobs().dismiss(job)
                go_to_world(job.world)
                st.rerun()
        elif job.state == "stopped":
            st.markdown(f":material/stop: **{name}** was stopped after {took}; nothing of it is left.", width="stretch")
        else:
            why = plain(job.said or "the process ended without a word")
            st.markdown(f":red[:material/error:] **{name}** was not made: {why}", width="stretch")
        st.button("Dismiss", key=f"dismiss_{job.world}", on_click=jobs().dismiss, args=(job,), type="tertiary")


def _clock(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds // 60:.0f} min {seconds % 60:02.0f} s"
