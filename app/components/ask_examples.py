"""Questions to begin with, where nobody has asked anything yet."""

import streamlit as st

from app.components.plain import plain
from app.resources import database
from db import libraries, projects
from db.libraries import Demonstration

SHOWN = 3
LOOKED_AT = 200
"""Of a project's questions, the first ones, among which examples are looked for."""
ALIKE = 2
"""First words in which a question is like one that the demonstrations show."""


def show_examples() -> None:
    """Some of the world's questions that begin as a demonstration of the library does; a click writes one down."""
    found = examples(str(st.session_state.get("ask_world", "")), st.session_state.get("ask_library"))
    if not found:
        return
    with st.container(gap="small", key="examples_to_ask"):
        st.caption("Questions to begin with; no demonstration shows their answers:")
        for place, text in enumerate(found):
            st.button(
                plain(text),
                key=f"example_{place}",
                type="tertiary",
                icon=":material/north_west:",
                help="Write it into the field",
                on_click=_write_down,
                args=(text,),
            )


def examples(world: str, library: str | None) -> list[str]:
    """A few questions over the world, each of another kind, that the library's demonstrations do not ask themselves."""
    if library is None:
        return []
    with database().read() as session:
        shown = libraries.demonstrations(session, libraries.version(session, library).id)
        over = [project for project in projects.projects(session) if project.world == world]
        asked = [question for each in over for question in projects.questions(session, each.id, limit=LOOKED_AT)]
    begun, known = {_beginning(each) for each in shown}, {each.question for each in shown}
    found: dict[str | None, str] = {}
    for question in asked:
        alike = (question.kind, *_words(question.text)) in begun
        if alike and question.gold_answers and question.text not in known:
            found.setdefault(question.kind, question.text)
    return sorted(found.values(), key=len)[:SHOWN]


def _beginning(shown: Demonstration) -> tuple[str | None, ...]:
    return (shown.kind, *_words(shown.question))


def _words(question: str) -> list[str]:
    return question.split()[:ALIKE]


def _write_down(text: str) -> None:
    st.session_state["ask_question"] = text
