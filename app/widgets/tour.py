"""The tour: five steps through the pages for somebody new, which can be skipped and is found again on Settings."""

from dataclasses import dataclass

import streamlit as st

from showhow.db.database import Database
from showhow.db.models import User
from showhow.db.people.users import REVIEWER, has_acted

TOUR_COOKIE = "showhow_tour"
"""The cookie, and the value of the session, that say that this browser has ended or skipped the tour."""
_STEP = "tour_step"
"""The key of the number of the tour's step, from 0."""


@dataclass(frozen=True, slots=True)
class TourStep:
    """A step of the tour: the name of its page, a title, and what to try there."""

    page: str
    title: str
    text: str
    role: str = ""
    """The role that sees the page; the step is told to others on the page before."""


TOUR = (
    TourStep(
        "annotate",
        "Record a step",
        "Write in *Thought* what you need to know about the question above. *Search* (Alt+1) begins with a name "
        "of the question; type another if you like. Press *Run* (Ctrl+Enter): the step is stored before its tool runs.",
    ),
    TourStep(
        "annotate",
        "Let results lead on",
        "Click a name or an id in a result: it fills the next form, and the step remembers its origin. Rate what a "
        "tool returned with 1 to 5. When you know the answer, press *Finish* (Ctrl+Shift+Enter), write it, and submit.",
    ),
    TourStep(
        "review",
        "Review",
        "A reviewer reads the steps beside the gold answer, then approves the trace or returns it with a reason. An "
        "approved trace is a demonstration.",
        REVIEWER,
    ),
    TourStep(
        "library",
        "Freeze a library",
        "Demonstrations are frozen as numbered versions (Alt+L). *Choose* shows which of them fit a question and "
        "differ from each other, and why. The default world brings 60 demonstrations.",
    ),
    TourStep(
        "ask",
        "Ask",
        "Type a question that a demonstration shows how to answer: its steps run again on the new question, without a "
        "language model. Where an answer is wrong, *Fix this* opens it on the Annotate page.",
    ),
)


def is_tour_ended() -> bool:
    """Whether this browser has ended or skipped the tour."""
    return bool(st.session_state.get(TOUR_COOKIE, st.context.cookies.get(TOUR_COOKIE) == "ended"))


def start_tour() -> None:
    """Begin the tour at its first step."""
    st.session_state[TOUR_COOKIE] = False
    _go_to_step(0)


def end_tour() -> None:
    """End the tour, or decline it; it is not offered again in this browser."""
    st.session_state[TOUR_COOKIE] = True
    st.session_state.pop(_STEP, None)


def _go_to_step(number: int) -> None:
    st.session_state[_STEP] = number
    st.session_state["tour_page"] = TOUR[number].page


def show_tour(database: Database, person: User) -> str | None:
    """Draw the step of the tour, or offer the tour to a person who has not done anything; returns the page to open."""
    number = st.session_state.get(_STEP)
    if number is not None:
        _show_step(int(number), person)
    elif not is_tour_ended() and not _has_acted(database, person):
        with st.container(key="tour", horizontal=True, vertical_alignment="center", gap="small"):
            st.markdown("**New here?** Five short steps show how it works.", width="content")
            st.button("Start the tour", key="tour_start", on_click=start_tour)
            st.button("No, thanks", key="decline_tour", on_click=end_tour, type="tertiary")
    page = st.session_state.pop("tour_page", None)
    return str(page) if page is not None else None


def _has_acted(database: Database, person: User) -> bool:
    with database.read() as session:
        return has_acted(session, person.name)


def _show_step(number: int, person: User) -> None:
    step = TOUR[number]
    hint = "" if not step.role or step.role in person.roles else " Your account has no part in this: read on."
    with st.container(key="tour", border=True, gap="small"):
        st.markdown(f"**Tour, {number + 1} of {len(TOUR)}: {step.title}.** {step.text}{hint}")
        with st.container(horizontal=True, gap="small"):
            st.button("Step back", key="tour_back", on_click=_go_to_step, args=(number - 1,), disabled=number == 0)
            if number + 1 < len(TOUR):
                st.button("Next tip", key="tour_next", on_click=_go_to_step, args=(number + 1,))
            st.button("End the tour", key="tour_end", on_click=end_tour, type="tertiary")
