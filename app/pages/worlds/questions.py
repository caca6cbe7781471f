"""The questions of a world: filters, a paged list, and one open question with its gold parts."""

from collections.abc import Iterable, Sequence

import streamlit as st

from app.pages.worlds.gold import show_gold_question
from app.pages.worlds.selected import SelectedWorld
from app.widgets.plain_text import escape_markdown
from app.widgets.url_state import get_url_parameter, go_to_question
from db.models import User
from fiction.questions.question_file import QuestionFile, QuestionFilter, QuestionSummary

PAGE_SIZE = 15
ANY = "any"


def show_world_questions(world: SelectedWorld, person: User) -> None:
    """Show filters, the list on the left, and the open question on the right."""
    with st.spinner("Reading the questions …"):
        questions = world.questions()
    if questions is None or not questions.heads:
        st.info(
            "This world has no questions of its own; generated worlds have. `showhow questions import` imports some "
            "from a file into a project."
        )
        return
    questions_shown = _show_filters(world, questions)
    if not questions_shown:
        st.info("No matches. Try fewer filters.")
        return
    requested = questions.find(get_url_parameter("question"))
    chosen = requested if requested in questions_shown else questions_shown[0]
    left, right = st.columns([1, 1.5], gap="medium")
    with left, st.container(key="list_questions"):
        _show_list(world, questions_shown, chosen)
    with right:
        show_gold_question(world, questions.load_row(chosen), person)


def _show_filters(world: SelectedWorld, questions: QuestionFile) -> list[QuestionSummary]:
    heads = questions.heads
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="filters"):
        text = st.text_input("Search", key=f"filter_text_{world.name}", width=220)
        kind = st.selectbox("Kind", _filter_options(h.kind for h in heads), key=f"filter_kind_{world.name}", width=180)
        needs = st.selectbox(
            "Needs", _filter_options(h.needs for h in heads), key=f"filter_needs_{world.name}", width=200
        )
        lowest, highest = _show_difficulty_filter(world, heads)
    return questions.select(QuestionFilter(text, _filter_value(kind), _filter_value(needs), lowest, highest))


def _filter_value(value: str | None) -> str:
    return "" if value in (None, ANY) else str(value)


def _filter_options(values: Iterable[str]) -> list[str]:
    return [ANY, *sorted({value for value in values if value})]


def _show_difficulty_filter(world: SelectedWorld, heads: Sequence[QuestionSummary]) -> tuple[int, int]:
    difficulties = [head.difficulty for head in heads if head.difficulty is not None]
    lowest, highest = min(difficulties, default=0), max(difficulties, default=0)
    if lowest == highest:
        return lowest, highest
    return st.slider("Difficulty", lowest, highest, (lowest, highest), key=f"filter_difficulty_{world.name}", width=200)


def _show_list(world: SelectedWorld, heads: list[QuestionSummary], chosen: QuestionSummary) -> None:
    place = heads.index(chosen)
    before, after = heads[place - 1] if place else None, heads[place + 1] if place + 1 < len(heads) else None
    st.caption(f"Question {place + 1:,} of {len(heads):,}")
    with st.container(horizontal=True, gap="small"):
        _show_navigation_button("Previous", "previous", "Alt+P", before)
        _show_navigation_button("Next", "next", "Alt+N", after)
    # The list shows the page with the open question, so that shortcuts turn pages as well.
    start = place // PAGE_SIZE * PAGE_SIZE
    for head in heads[start : start + PAGE_SIZE]:
        with st.container(gap=None):
            st.button(
                escape_markdown(_truncate(head.text)),
                key=f"question_{world.name}_{head.line}",
                type="primary" if head is chosen else "tertiary",
                width="stretch",
                on_click=go_to_question,
                args=(head.id,),
            )
            st.caption(escape_markdown(_format_caption(head)))
    if len(heads) > PAGE_SIZE:
        with st.container(horizontal=True, gap="small"):
            _show_page_button("Earlier", "earlier", heads, start - PAGE_SIZE)
            _show_page_button("Later", "later", heads, start + PAGE_SIZE)


def _show_navigation_button(title: str, key: str, shortcut: str, head: QuestionSummary | None) -> None:
    to = (head.id,) if head is not None else ("",)
    st.button(title, key=key, shortcut=shortcut, disabled=head is None, on_click=go_to_question, args=to)


def _show_page_button(title: str, key: str, heads: list[QuestionSummary], start: int) -> None:
    there = 0 <= start < len(heads)
    to = (heads[start].id,) if there else ("",)
    st.button(title, key=key, disabled=not there, on_click=go_to_question, args=to)


def _truncate(text: str) -> str:
    return text if len(text) <= 160 else f"{text[:159]}…"


def _format_caption(head: QuestionSummary) -> str:
    parts = [head.kind, f"{head.answers:,} {'answer' if head.answers == 1 else 'answers'}"]
    parts += [f"difficulty {head.difficulty}"] if head.difficulty is not None else []
    return " · ".join([*parts, *([f"needs {head.needs}"] if head.needs else [])])
