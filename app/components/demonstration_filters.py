"""Which demonstrations are meant: the same conditions in the list, when freezing and when exporting."""

from collections.abc import Callable

import streamlit as st

from app.components.plain import plain
from db.libraries import MODELS, PEOPLE, Choices, Wanted

STARS = (5.0, 4.5, 4.0, 3.0, 2.0, 1.0)


def ask_conditions(choices: Choices, *, key: str, on_change: Callable[[], None] | None = None) -> Wanted:
    """A row of fields, each empty at first and kept while the person is here."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key=f"filters_{key}"):
        text = st.text_input(
            "Question has",
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
                format_func=plain_choice,
                width=170,
                on_change=on_change,
                persist_state="session",
            )

        project = choose("Project", "project", choices.projects)
        kind = choose("Kind", "kind", choices.kinds) if choices.kinds else None
        by = choose("By", "by", [PEOPLE, MODELS])
        rating = st.selectbox(
            "Stars, at least",
            STARS,
            index=None,
            key=f"rating_{key}",
            placeholder="any",
            format_func=lambda stars: f"{stars:g}",
            width=130,
            on_change=on_change,
            persist_state="session",
        )
    return Wanted(project=project, kind=kind, rating=rating, by=by, text=text.strip() or None)


def plain_choice(name: str) -> str:
    """A choice as a box shows it: on one line and not too long."""
    line = " ".join(name.split())
    return line if len(line) <= 60 else f"{line[:59]}…"


def told(wanted: Wanted) -> str:
    """The conditions in words, as Markdown that shows them letter by letter."""
    named = {"text": "question has", "by": "by", "rating": "stars at least", "kind": "kind", "project": "project"}
    parts = [f"{named[name]} {value}" for name, value in wanted.told().items()]
    return plain(", ".join(parts)) if parts else "no condition"
