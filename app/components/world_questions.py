"""A world's own questions: filtered, listed some at a time, one of them open with its gold."""

from collections.abc import Iterable, Sequence

import streamlit as st

from app.components.gold import show_gold
from app.components.places import go_to_question, here
from app.components.plain import plain
from app.components.selected_world import SelectedWorld
from db.models import User
from worlds.questions.question_file import Head, QuestionFile, Wanted

PAGE = 15
ANY = "any"


def show_questions(world: SelectedWorld, person: User) -> None:
    """The filters and the list on the left, the open question on the right."""
    with st.spinner("Reading the questions …"):
        questions = world.questions()
    if questions is None or not questions.heads:
        st.info(
            "This world has no questions of its own: a generated one has. `showhow questions import` brings those of "
            "a file into a project, where annotators find them."
        )
        return
    found = _filtered(world, questions)
    if not found:
        st.info("No question is like that; loosen a filter.")
        return
    wanted = questions.head(here("question"))
    chosen = wanted if wanted in found else found[0]
    left, right = st.columns([1, 1.5], gap="medium")
    with left, st.container(key="list_questions"):
        _list(world, found, chosen)
    with right:
        show_gold(world, questions.row(chosen), person)


def _filtered(world: SelectedWorld, questions: QuestionFile) -> list[Head]:
    heads = questions.heads
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="filters"):
        text = st.text_input("Text has", key=f"filter_text_{world.name}", width=220)
        kind = st.selectbox("Kind", _choices(h.kind for h in heads), key=f"filter_kind_{world.name}", width=180)
        needs = st.selectbox("Needs", _choices(h.needs for h in heads), key=f"filter_needs_{world.name}", width=200)
        lowest, highest = _difficulty(world, heads)
    return questions.like(Wanted(text, _chosen(kind), _chosen(needs), lowest, highest))


def _chosen(value: str | None) -> str:
    return "" if value in (None, ANY) else str(value)


def _choices(values: Iterable[str]) -> list[str]:
    return [ANY, *sorted({value for value in values if value})]


def _difficulty(world: SelectedWorld, heads: Sequence[Head]) -> tuple[int, int]:
    known = [head.difficulty for head in heads if head.difficulty is not None]
    lowest, highest = min(known, default=0), max(known, default=0)
    if lowest == highest:
        return lowest, highest
    return st.slider("Difficulty", lowest, highest, (lowest, highest), key=f"filter_difficulty_{world.name}", width=200)


def _list(world: SelectedWorld, found: list[Head], chosen: Head) -> None:
    place = found.index(chosen)
    before, after = found[place - 1] if place else None, found[place + 1] if place + 1 < len(found) else None
    st.caption(f"Question {place + 1:,} of {len(found):,}")
    with st.container(horizontal=True, gap="small"):
        _turn("Previous", "previous", "Alt+P", before)
        _turn("Next", "next", "Alt+N", after)
    # The page of the list is the one that the open question is on, so that the keys turn it too.
    start = place // PAGE * PAGE
    for head in found[start : start + PAGE]:
        with st.container(gap=None):
            st.button(
                plain(_short(head.text)),
                key=f"question_{world.name}_{head.line}",
                type="primary" if head is chosen else "tertiary",
                width="stretch",
                on_click=go_to_question,
                args=(head.id,),
            )
            st.caption(plain(_note(head)))
    if len(found) > PAGE:
        with st.container(horizontal=True, gap="small"):
            _leaf("Earlier", "earlier", found, start - PAGE)
            _leaf("Later", "later", found, start + PAGE)


def _turn(title: str, key: str, shortcut: str, head: Head | None) -> None:
    to = (head.id,) if head is not None else ("",)
    st.button(title, key=key, shortcut=shortcut, disabled=head is None, on_click=go_to_question, args=to)


def _leaf(title: str, key: str, found: list[Head], start: int) -> None:
    there = 0 <= start < len(found)
    to = (found[start].id,) if there else ("",)
    st.button(title, key=key, disabled=not there, on_click=go_to_question, args=to)


def _short(text: str) -> str:
    return text if len(text) <= 160 else f"{text[:159]}…"


def _note(head: Head) -> str:
    parts = [head.kind, f"{head.answers:,} {'answer' if head.answers == 1 else 'answers'}"]
    parts += [f"difficulty {head.difficulty}"] if head.difficulty is not None else []
    return " · ".join([*parts, *([f"needs {head.needs}"] if head.needs else [])])
