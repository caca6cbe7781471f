"""The Judge page: a person rates the answers of a blind study one by one, and then compares them.

Nothing that the server sends says where an answer comes from: the page has a BlindItem only. Each click is stored.
"""

from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID

import streamlit as st

from showhow.app.widgets.page_layout import escape_html, escape_markdown, format_sentence, show_head
from showhow.app.widgets.person import acting_services
from showhow.app.widgets.queue import current_project
from showhow.db.database import Database, StoreError
from showhow.db.models import Project, User
from showhow.db.people import users
from showhow.db.review import studies
from showhow.db.review.studies import ANSWERS, EVIDENCE, OPEN, PREFERENCE, PROCESSES, SCALES, SIDES, BlindItem, Study

QUESTIONS = {
    "truthful": "Is the {side} answer true?",
    "evidence": "Where does one see that the {side} answer is false?",
    "informative": "How informative is the {side} answer?",
    "quality": "How good is the {side} answer?",
    "preference": "Which answer is better?",
}
NEARER = "Which of the two is nearer to the person's?"
TASKS = {
    ANSWERS: "You see one answer after the other and rate each alone; then you see both and say which one is better. "
    "Do not ask anybody, and do not guess where an answer comes from.",
    PROCESSES: "You see a person's trace between two others, and say which of the two is nearer to it. "
    "Do not ask anybody, and do not guess where a trace comes from.",
}
ARROWS = {"left": "Left", "tie": "Down", "right": "Right"}
SIGNS = {"left": "←", "tie": "↓", "right": "→"}
_PROBLEM = "judge_problem"
_COUNT_DOWN_SECONDS = 5.0


def show_judge() -> None:
    """Draw the study of the project that is open, or the choice of one."""
    services, person = acting_services()
    database = services.database
    project = current_project(database)
    study = _choose_study(database, project)
    if study is None:
        show_head("Judge")
        st.info("No study of this project is open. A lead makes one with `showhow studies make` and opens it.")
        return
    with database.read() as session:
        stored = users.find_user(session, person.name)
        judge_id = None if stored is None else stored.id
        progress = studies.measure_progress(session, study.id, judge_id)
        item = None if judge_id is None else studies.find_item(session, study, judge_id)
    counts = f"{progress.judged:,} of {progress.planned:,} pairs judged, {progress.own:,} by you"
    note = f"{escape_markdown(study.name)}: {counts}"
    with show_head("Judge", note):
        is_begun = progress.own > 0 or (item is not None and bool(item.values))
        st.button(
            "Undo",
            key="judge_undo",
            icon=":material/undo:",
            shortcut="Alt+Z",
            disabled=not is_begun,
            on_click=_act,
            args=(database, person.name, lambda session, by: studies.undo_click(session, study.id, by=by)),
        )
    st.progress(progress.judged / max(progress.planned, 1))
    if problem := st.session_state.pop(_PROBLEM, None):
        st.warning(format_sentence(problem))
    if item is None:
        _show_start(database, study, person, has_judged=progress.own > 0)
    else:
        _show_item(database, study, person, item)


def _choose_study(database: Database, project: Project | None) -> Study | None:
    with database.read() as session:
        opened = studies.list_studies(session, project.id, OPEN) if project is not None else []
    by_id = {str(study.id): study for study in opened}
    if len(opened) < 2:
        return next(iter(opened), None)
    chosen = st.selectbox(
        "Study", list(by_id), key="judge_study", format_func=lambda key: escape_markdown(by_id[key].name), width=320
    )
    return by_id[chosen]


def _show_start(database: Database, study: Study, person: User, *, has_judged: bool) -> None:
    """Draw the scales with the button that takes the first pair, or what is said once nothing is left."""
    if has_judged:
        st.info("Nothing is left for you now. A pair that somebody leaves becomes free after a while.")
    else:
        st.markdown(TASKS[study.design["mode"]])
        for name, scale in study.design["scales"].items():
            values, definition = escape_markdown(", ".join(scale["values"])), escape_markdown(scale["definition"])
            st.markdown(f"**{name.capitalize()}** ({values}): {definition}")
    st.button(
        "Look again" if has_judged else "Start judging",
        key="judge_start",
        type="primary",
        on_click=_act,
        args=(database, person.name, lambda session, by: studies.take_item(session, study.id, by=by)),
    )


def _show_item(database: Database, study: Study, person: User, item: BlindItem) -> None:
    """Draw the question, the answer that is rated or both, and the buttons of the field to fill in."""
    st.html(f'<h2 class="question">{escape_html(item.question)}</h2>')
    field = item.open_field or PREFERENCE
    scale, _, rated_side = field.partition(" ")
    contents = [
        _Content(
            f"{side.capitalize()} {'answer' if item.reference is None else 'trace'}",
            text if scale == PREFERENCE or side == rated_side else None,
            [f"{name.split(' ')[0]}: {value}" for name, value in item.values.items() if name.endswith(side)],
        )
        for side, text in zip(SIDES, item.texts, strict=True)
    ]
    if item.reference is not None:
        contents.insert(1, _Content("The person's trace", item.reference, []))
    for column, content in zip(st.columns(len(contents), gap="medium"), contents, strict=True):
        with column:
            _show_content(content, is_rated=item.reference is None)
    question = NEARER if study.design["mode"] == PROCESSES else QUESTIONS[scale].format(side=rated_side)
    with st.container(key="judge_field", gap="small"):
        st.markdown(f"**{question}** {escape_markdown(study.design['scales'].get(scale, {}).get('definition', ''))}")
        if scale == EVIDENCE:
            _show_link_field(database, person, item, field)
        else:
            _show_values(database, study, person, item, field)


class _Content(NamedTuple):
    """An answer or a trace with its ratings; the text is None before its turn."""

    label: str
    text: str | None
    ratings: list[str]


def _show_content(content: _Content, *, is_rated: bool) -> None:
    st.html(f'<h3 class="judged">{content.label}</h3>')
    waiting = "<em>Shown in its turn: each answer is rated alone.</em>"
    body = waiting if content.text is None else escape_html(content.text)
    st.html(f'<div class="judged" tabindex="0" role="region" aria-label="{content.label}">{body}</div>')
    if is_rated:
        st.caption(escape_markdown(" · ".join(content.ratings)) or "not rated yet")


def _show_values(database: Database, study: Study, person: User, item: BlindItem, field: str) -> None:
    scale = field.partition(" ")[0]
    waiting = studies.seconds_to_search(study, item)
    with st.container(horizontal=True, gap="small"):
        for number, value in enumerate(SCALES[scale], 1):
            st.button(
                f"{SIGNS[value]} {value}" if scale == PREFERENCE else f"{number} {value}",
                key=f"judge_{item.id.hex}_{field.replace(' ', '_')}_{number}",
                shortcut=ARROWS[value] if scale == PREFERENCE else str(number),
                disabled=value == "cannot judge" and waiting > 0,
                on_click=_record,
                args=(database, person.name, study.id, item.id, field, value),
            )
    if scale == "truthful" and waiting > 0:
        _count_down(study, item)


@st.fragment(run_every=_COUNT_DOWN_SECONDS)
def _count_down(study: Study, item: BlindItem) -> None:
    """Say how long to search; at the end the page is drawn anew, with the third button."""
    waiting = studies.seconds_to_search(study, item)
    if waiting <= 0:
        st.rerun()
    st.caption(
        f"Search the web as long as you need; “cannot judge” can be chosen in {waiting // 60:.0f}:{waiting % 60:02.0f}."
    )


def _show_link_field(database: Database, person: User, item: BlindItem, field: str) -> None:
    key = f"judge_link_{item.id.hex}_{field.partition(' ')[2]}"

    def save() -> None:
        if link := st.session_state.get(key):
            _act(database, person.name, lambda session, by: studies.record_click(session, item.id, field, link, by=by))

    st.text_input("Link of a page that shows it; Enter saves it", key=key, placeholder="https://…", on_change=save)


def _record(database: Database, name: str, study_id: UUID, item_id: UUID, field: str, value: str) -> None:  # noqa: PLR0913, PLR0917 - a click, and where it belongs
    """Callback: store a click, and take the next pair after the preference."""

    def record(session: Any, by: UUID) -> None:
        item = studies.record_click(session, item_id, field, value, by=by)
        if item.open_field is None:
            studies.take_item(session, study_id, by=by)

    _act(database, name, record)


def _act(database: Database, name: str, act: Callable[..., object]) -> None:
    """Callback: change the store as the person; a refusal is told when the page is drawn."""
    try:
        with database.begin() as session:
            act(session, users.register_user(session, name).id)
    except StoreError as error:
        st.session_state[_PROBLEM] = str(error)


show_judge()
