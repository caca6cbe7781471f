"""The list of the project's questions: filters, pages, and what is done with many of them at once."""

from collections.abc import Callable, Sequence
from functools import partial
from uuid import UUID

import streamlit as st

from showhow.app.widgets.dialog_acts import act_in_dialog, forget_outcome, show_outcome
from showhow.app.widgets.manage import show_removal
from showhow.app.widgets.page_layout import escape_markdown
from showhow.app.widgets.table import TableCell, show_table, without_empty_columns
from showhow.db.database import Database
from showhow.db.models import Project, User
from showhow.db.people import users
from showhow.db.people.gold_visibility import is_gold_visible
from showhow.db.people.users import ADMIN, REVIEWER
from showhow.db.questions import question_list
from showhow.db.questions.question_list import ANSWERABLE, OPEN, QUESTION_STATES, QuestionConditions, QuestionState
from showhow.db.removal import removals
from showhow.db.removal.removal_kinds import Kind
from showhow.evaluation.value_format import format_count
from showhow.runs.services import Services

ANY = "any"
PAGE_SIZE = 25
ASSIGNED_AT_ONCE = 1_000
"""The questions that one transaction assigns."""
_PICKED = "picked_questions"
"""Key of the session with the ids of the questions that are marked in the list, on whichever of its pages."""
_PAGE = "question_page"
_NOTICE = "question_notice"


def show_questions(services: Services, project: Project, person: User) -> None:
    """Draw the filters and one page of the list; a click opens a question for annotation."""
    database = services.database
    conditions = _choose_conditions(database, project)
    if st.session_state.get("question_conditions") != (project.id, conditions):
        st.session_state["question_conditions"] = (project.id, conditions)
        st.session_state[_PAGE], st.session_state[_PICKED] = 1, []
    with database.read() as session:
        total = question_list.count_listed_questions(session, project.id, conditions)
        shows_gold = is_gold_visible(session, project)
    if notice := st.session_state.pop(_NOTICE, None):
        st.success(notice)
    if not total:
        is_filtered = conditions != QuestionConditions()
        st.info("No matches. Try fewer filters." if is_filtered else "No questions yet.")
        return
    pages = (total - 1) // PAGE_SIZE + 1
    st.session_state[_PAGE] = min(int(st.session_state.get(_PAGE) or 1), pages)
    start = (st.session_state[_PAGE] - 1) * PAGE_SIZE
    with database.read() as session:
        listed = question_list.list_question_states(session, project.id, conditions, start=start, limit=PAGE_SIZE)
    acts = [draw for draw, roles in BULK_ACTS.items() if {*roles} & {*person.roles}]
    _show_total(database, project, conditions, start, total, acts)
    rows = [_question_row(entry, shows_gold=shows_gold) for entry in listed]
    columns = ["no.", "question", "kind", "status", "people", "tags"] + (["gold answer"] if shows_gold else [])
    show_table(
        *without_empty_columns(columns, rows),
        key="project_questions",
        label="Questions",
        go=_request_question,
        picked=st.session_state[_PICKED] if acts else None,
        pick=_remember_picked,
    )
    if pages > 1:
        _show_pager(pages)


def _choose_conditions(database: Database, project: Project) -> QuestionConditions:
    with database.read() as session:
        kinds = _list_kinds(
            database, project.name, question_list.count_listed_questions(session, project.id, QuestionConditions())
        )
        tags = question_list.list_tags(session, project.id)
        people = [user.name for user in users.list_users(session)]
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="question_filters"):
        text = st.text_input("Search", key="question_text", width=240).strip()
        kind = _choose("Kind", "question_kind", kinds, 170) if kinds else None
        state = _choose("Status", "question_state", [*QUESTION_STATES.values(), OPEN], 130)
        tag = _choose("Tag", "question_tag", tags, 150) if tags else None
        person = _choose("Person", "question_person", people, 150)
        answerable = _choose("Answerable", "question_answerable", list(ANSWERABLE), 170)
    return QuestionConditions(text, kind, state, tag, person, answerable)


@st.cache_data(max_entries=64, ttl=600, show_spinner=False)
def _list_kinds(_database: Database, project: str, _count: int) -> list[str]:
    """The kinds of a project's questions, for which all of them are read: once for each number of them."""
    with _database.read() as session:
        return question_list.list_question_kinds(session, [project])


def _choose(label: str, key: str, options: Sequence[str], width: int) -> str | None:
    if st.session_state.get(key, ANY) not in options:
        st.session_state[key] = ANY
    chosen = st.selectbox(label, [ANY, *options], key=key, width=width)
    return None if chosen == ANY else chosen


def _show_total(  # noqa: PLR0913, PLR0917 - the list, and what can be done with it
    database: Database,
    project: Project,
    conditions: QuestionConditions,
    start: int,
    total: int,
    acts: Sequence["BulkAct"],
) -> None:
    """Draw which questions are on the page, of how many, and the button of what can be done with several."""
    picked: list[str] = st.session_state[_PICKED]
    with st.container(horizontal=True, gap="small", vertical_alignment="center", key="question_total"):
        last = min(start + PAGE_SIZE, total)
        marked = f" · {len(picked):,} marked" if picked else ""
        st.caption(f"{start + 1:,}–{last:,} of {format_count(total, 'question')}{marked}", width="content")
        if picked:
            st.button("Unmark", key="questions_unmark", type="tertiary", on_click=picked.clear)
        if acts and st.button(
            "Change several", key="change_several", icon=":material/checklist:", on_click=forget_outcome
        ):
            _show_bulk_dialog(database, project, conditions, total, acts)


def _show_pager(pages: int) -> None:
    with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="question_pager"):
        page = int(st.session_state[_PAGE])
        st.button("Previous", key="questions_previous", disabled=page == 1, on_click=_go_to_page, args=(page - 1,))
        st.number_input(f"Page of {pages:,}", 1, pages, key=_PAGE, width=150)
        st.button("Next", key="questions_next", disabled=page == pages, on_click=_go_to_page, args=(page + 1,))


def _go_to_page(page: int) -> None:
    st.session_state[_PAGE] = page


def _question_row(entry: QuestionState, *, shows_gold: bool) -> list[TableCell]:
    question = entry.question
    people = [*entry.people, *(f"for {name}" for name in entry.assigned)]
    gold = "; ".join(str(gold["text"]) for gold in question.gold_answers[:3])
    return [
        TableCell(f"{question.position}", number=True, pick=str(question.id)),
        TableCell(question.summary, go=str(question.id)),
        TableCell(question.kind or "", whole=True),
        TableCell(entry.state, whole=True),
        TableCell(", ".join(people)),
        TableCell(", ".join(question.tags), whole=True),
        *([TableCell(gold)] if shows_gold else []),
    ]


def _request_question(question_id: str) -> None:
    st.session_state["open_question"] = question_id


def _remember_picked(shown: Sequence[str], picked: Sequence[str]) -> None:
    """The marks of this page replace those that it had; those of other pages stay."""
    others = [question for question in st.session_state[_PICKED] if question not in shown]
    st.session_state[_PICKED] = [*others, *picked]


@st.dialog("Change several questions", width="medium")
def _show_bulk_dialog(
    database: Database, project: Project, conditions: QuestionConditions, total: int, acts: Sequence["BulkAct"]
) -> None:
    """Ask which questions: those that are marked, or all that match; and draw what can be done with them."""
    show_outcome()
    picked: list[str] = st.session_state[_PICKED]
    labels = {"marked": f"The {len(picked):,} marked", "all": f"All {total:,} that match the filters"}
    options = list(labels) if picked else ["all"]
    which = st.radio("Questions", options, key="bulk_which", format_func=labels.__getitem__)
    chosen = conditions if which == "all" else QuestionConditions(ids=tuple(map(UUID, picked)))
    for draw in acts:
        draw(database, project, chosen)


def _show_act(label: str, key: str, act: Callable[[], str], *, disabled: bool = False) -> None:
    """Draw the button of an act, after which the list says what became of it."""

    def act_and_note() -> None:
        st.session_state[_NOTICE] = act()

    st.button(label, key=key, disabled=disabled, on_click=act_in_dialog, args=(act_and_note,))


def _show_tagging(database: Database, project: Project, chosen: QuestionConditions) -> None:
    with database.read() as session:
        tags = question_list.list_tags(session, project.id)

    def change(change_tag: Callable[..., int], done: str) -> str:
        with database.begin() as session:
            count = change_tag(session, project.id, chosen, str(tag))
        return f"{format_count(count, 'question')} {done} {escape_markdown(str(tag))}."

    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        tag = st.selectbox(
            "Tag",
            tags,
            index=None,
            key="bulk_tag",
            placeholder="Choose one, or type a new one",
            accept_new_options=True,
            width=280,
        )
        add = partial(change, question_list.add_tag, "now tagged")
        _show_act("Add tag", "bulk_add_tag", add, disabled=not tag)
        take = partial(change, question_list.remove_tag, "no longer tagged")
        _show_act("Remove tag", "bulk_remove_tag", take, disabled=tag not in tags)


def _show_assignment(database: Database, project: Project, chosen: QuestionConditions) -> None:
    with database.read() as session:
        members = {user.name: user.id for user in users.list_users(session) if user.roles}

    def assign() -> str:
        ids = _list_ids(database, project, chosen)
        for start in range(0, len(ids), ASSIGNED_AT_ONCE):
            with database.begin() as session:
                batch = ids[start : start + ASSIGNED_AT_ONCE]
                question_list.assign_questions(session, batch, [members[name] for name in names])
        assigned = f"assigned to {escape_markdown(', '.join(names))}" if names else "open to everybody"
        return f"{format_count(len(ids), 'question')} {assigned}."

    with st.container(horizontal=True, gap="small", vertical_alignment="bottom"):
        names = st.multiselect(
            "Assign to",
            list(members),
            key="bulk_people",
            placeholder="Nobody: open to everybody",
            width=400,
            help="They get these questions first, and nobody else does. What people have begun stays theirs.",
        )
        _show_act("Assign" if names else "Open to everybody", "bulk_assign", assign)


def _show_removal(database: Database, project: Project, chosen: QuestionConditions) -> None:
    # What very many questions touch takes a while to count.
    with st.expander("Archive or delete", key="bulk_removal", on_change="rerun") as expander:
        ids = _list_ids(database, project, chosen) if expander.open else []
        if not ids:
            return
        first, *others = ids
        with database.read() as session:
            effect = removals.describe_removal(session, Kind.QUESTION, first, others)

        def remove(*, archives: bool) -> None:
            with database.begin() as session:
                removals.remove(session, Kind.QUESTION, first, archives=archives, others=others)
            st.session_state[_PICKED] = []

        show_removal(effect, remove)


def _list_ids(database: Database, project: Project, chosen: QuestionConditions) -> list[UUID]:
    with database.read() as session:
        return question_list.list_question_ids(session, project.id, chosen)


BulkAct = Callable[[Database, Project, QuestionConditions], None]
BULK_ACTS: dict[BulkAct, tuple[str, ...]] = {
    _show_tagging: (ADMIN,),
    _show_assignment: (REVIEWER, ADMIN),
    _show_removal: (ADMIN,),
}
"""What can be done with several questions, in the order of the dialog, with the roles of those who may."""
