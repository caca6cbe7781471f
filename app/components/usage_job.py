"""Counting of usage that goes on beside the server: how far it is, and a button that stops it."""

from functools import cache

import streamlit as st

from app.components.plain import plain
from app.jobs import Job, Jobs


@cache
def usage_jobs() -> Jobs:
    """The countings of this server."""
    return Jobs()


def show_usage_job(name: str) -> bool:
    """Draw the counting of that name, anew every second while it is at work; whether there is one."""
    job = _job(name)
    if job is None:
        return False
    st.fragment(_panel, run_every=1.0 if job.state == "running" else None)(job)
    return True


def _job(name: str) -> Job | None:
    return next((job for job in usage_jobs().all() if job.world == name), None)


def _panel(job: Job) -> None:
    if job.state == "done":
        usage_jobs().dismiss(job)
        # What it counted is kept, and drawn now.
        st.rerun()
    with st.container(key="usage_job", border=True, gap="small"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(_title(job), width="stretch")
            if job.state == "running":
                st.button("Stop", key="stop_usage", on_click=job.stop, disabled=job.stopping, icon=":material/stop:")
            elif st.button("Dismiss", key="dismiss_usage", type="tertiary"):
                usage_jobs().dismiss(job)
                st.rerun()
        if job.state == "running":
            said = plain(job.said or "the model that compares questions loads, some 5 seconds …")
            st.progress(job.share or 0.0, text=said)


def _title(job: Job) -> str:
    name = plain(job.world)
    match job.state:
        case "running":
            return f"**Counting {name}** · {job.seconds:.0f} s" + (" · stopping …" if job.stopping else "")
        case "stopped":
            return f":material/stop: The counting of **{name}** was stopped; nothing of it is kept."
        case _:
            why = plain(job.said or "the process ended without a word")
            return f":red[:material/error:] **{name}** was not counted: {why}"
