"""A verb at work beside the server: how far it is, a button that stops it, and the page drawn anew when it is done."""

from contextlib import suppress
from dataclasses import dataclass
from functools import cache

import streamlit as st

from app.components.plain import plain
from app.jobs import Job, Jobs
from worlds.folder import WorldError


@dataclass(frozen=True, slots=True)
class Kind:
    """What a job does, in the words of its panel."""

    key: str
    doing: str
    """Counting ..."""
    stopped: str
    """The counting of ... was stopped, and what is left of it."""
    failed: str
    """... was not counted"""
    waiting: str
    """What is said until the verb says something itself."""


_LOADING = "the model that compares texts loads, some 5 seconds …"
COUNTING = Kind(
    "usage", "Counting", "The counting of {} was stopped; nothing of it is kept.", "was not counted", _LOADING
)
RUNNING_AGAIN = Kind(
    "drift",
    "Running again",
    "Running {} again was stopped; the former report stays.",
    "was not run again",
    _LOADING,
)
VERIFYING = Kind(
    "verify",
    "Verifying",
    "The verification of {} was stopped; it can be gone on with.",
    "was not verified to the end",
    _LOADING,
)


@cache
def _jobs(_kind: str) -> Jobs:
    return Jobs()


def start_verb_job(kind: Kind, name: str, words: list[str]) -> None:
    """Begin with it, unless somebody else has meanwhile."""
    with suppress(WorldError):
        _jobs(kind.key).start(name, kind.doing, words)


def show_verb_job(kind: Kind, name: str) -> bool:
    """Draw the job of that name, anew every second while it is at work; whether it is at work."""
    job = next((job for job in _jobs(kind.key).all() if job.world == name), None)
    if job is None:
        return False
    running = job.state == "running"
    st.fragment(_panel, run_every=1.0 if running else None)(kind, job, running=running)
    return running


def _panel(kind: Kind, job: Job, *, running: bool) -> None:
    if job.state == "done":
        _jobs(kind.key).dismiss(job)
    if job.state == "done" or (running and job.state != "running"):
        # What it made is kept, and drawn now; and all of the page shows that it is no longer at work.
        st.rerun()
    with st.container(key=f"{kind.key}_job", border=True, gap="small"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(_title(kind, job), width="stretch")
            if job.state == "running":
                stop = f"stop_{kind.key}"
                st.button("Stop", key=stop, on_click=job.stop, disabled=job.stopping, icon=":material/stop:")
            elif st.button("Dismiss", key=f"dismiss_{kind.key}", type="tertiary"):
                _jobs(kind.key).dismiss(job)
                st.rerun()
        if job.state == "running":
            st.progress(job.share or 0.0, text=plain(job.said or kind.waiting))


def _title(kind: Kind, job: Job) -> str:
    name = plain(job.world)
    match job.state:
        case "running":
            return f"**{kind.doing} {name}** · {job.seconds:.0f} s" + (" · stopping …" if job.stopping else "")
        case "stopped":
            return f":material/stop: {kind.stopped.format(f'**{name}**')}"
        case _:
            why = plain(job.said or "the process ended without a word")
            return f":red[:material/error:] **{name}** {kind.failed}: {why}"
