"""The questions of a world: filters, a paged list, and one open question with its gold parts."""

import json
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib.resources import files
from typing import Any

import streamlit as st

from showhow.app.pages.worlds.explorer import console_key
from showhow.app.pages.worlds.import_questions import show_question_import
from showhow.app.pages.worlds.world_choice import SelectedWorld
from showhow.app.widgets.job_panel import show_import_job
from showhow.app.widgets.notebook import show_trace
from showhow.app.widgets.page_layout import errors_shown, escape_html, escape_markdown, format_sentence
from showhow.app.widgets.table import TableCell, show_table
from showhow.app.widgets.url_state import get_url_parameter, go_to_entity, go_to_question, go_to_view
from showhow.db.database import StoreError
from showhow.db.models import Project, User
from showhow.db.people.gold_visibility import is_gold_of_world_visible
from showhow.db.people.users import ADMIN
from showhow.db.questions import projects
from showhow.db.traces.trace_record import TraceRecord
from showhow.evaluation.datasets import open_question_file
from showhow.evaluation.datasets.record import parse_question
from showhow.evaluation.scoring.gold_demonstrations import make_world_gold_trace
from showhow.fiction.generator.world_files import FACT_SOURCES_FILE
from showhow.fiction.questions.question_file import (
    QUESTIONS_FILE,
    QuestionFile,
    QuestionFilter,
    QuestionSummary,
    format_needs,
)
from showhow.worlds.folder import WorldError

GOLD_TRACE_KEY = "gold_trace"
"""Session key of the last gold trace, stored with the build of the world and the question id."""
MAX_PEOPLE = 200_000
"""Largest world for which the page makes gold traces; each one reads all facts."""


def show_gold_trace(world: SelectedWorld, row: dict[str, Any]) -> None:
    """Show the gold trace, or a button that makes it."""
    if int(world.about.get("people", 0)) > MAX_PEOPLE or not (world.folder / FACT_SOURCES_FILE).is_file():
        st.caption(f"Run `showhow world trace {world.name} {escape_markdown(str(row.get('id')))}` to make it.")
        return
    trace_key = (world.stamp, row.get("id"))
    cached_trace = st.session_state.get(GOLD_TRACE_KEY)
    if cached_trace is None or cached_trace[0] != trace_key:
        st.caption("A trace that follows the gold reasoning; every step is a real tool call on this world's sources.")
        if not st.button("Make the trace", key="make_trace"):
            return
        with st.spinner("Running the tools …"):
            cached_trace = st.session_state[GOLD_TRACE_KEY] = (
                trace_key,
                make_world_gold_trace(world.services, world.name, row),
            )
    record: TraceRecord = cached_trace[1]
    if record.trace.status == "approved":
        show_trace(record, editable=False, forkable=False)
    else:
        st.warning(format_sentence(record.trace.final_thought or "There is no gold trace."))


QuestionRow = dict[str, Any]
MAX_ANSWERS = 200
MAX_TEXT_CHARACTERS = 40_000


def show_gold_question(world: SelectedWorld, row: QuestionRow, person: User) -> None:
    """Show the question, and all its gold parts to a person who sees gold answers."""
    with world.services.database.read() as session:
        shows_gold = is_gold_of_world_visible(session, world.name)
    st.html(f'<h2 class="question">{escape_html(row["text"])}</h2>')
    st.caption(escape_markdown(" · ".join(_question_facts(row))))
    with st.container(horizontal=True, gap="small"):
        if st.button(
            "Annotate this", key="annotate_this", type="primary", shortcut="Alt+A", icon=":material/edit_note:"
        ):
            _annotate_question(world, row, person)
        if shows_gold and isinstance(row.get("sparql"), str):
            st.button(
                "Try its query", key="try_query", on_click=_open_in_console, args=(console_key(world), row["sparql"])
            )
    if not shows_gold:
        st.caption("Gold answers are hidden: a project over this world can show them to people who annotate.")
        return
    _show_answers(row)
    parts = {name: draw for name, draw in _PART_VIEWS.items() if row.get(name)}
    views = {_PART_TITLES[name]: draw for name, draw in parts.items()}
    if row.get("expression"):
        views["Trace"] = partial(show_gold_trace, world)
    views["Everything"] = _show_raw_record
    for tab, draw in zip(st.tabs(list(views), key="gold"), views.values(), strict=True):
        with tab:
            draw(row)


def _annotate_question(world: SelectedWorld, row: dict[str, Any], person: User) -> None:
    """Add the question to the first project of the world (created if missing) and open it, without a reservation."""
    record = parse_question(row, world.folder / QUESTIONS_FILE, None)
    with errors_shown(StoreError):
        with world.services.database.begin() as session:
            existing = [project for project in projects.list_projects(session) if project.world == world.name]
            project: Project = existing[0] if existing else _create_project(session, world.name)
            projects.add_question(session, project.id, record)
            question = projects.find_matching_question(session, project.id, record)
            parameters = {"you": person.name, "project": project.name, "question": str(question.id)}
        st.switch_page("annotate/page.py", query_params=parameters)


def _create_project(session: Any, world: str) -> Project:
    guidelines = files("showhow.app").joinpath("guidelines.md").read_text(encoding="utf-8")
    names = {project.name for project in projects.list_projects(session)}
    name = next(name for name in (world, *(f"{world} {number}" for number in range(2, 1000))) if name not in names)
    return projects.create_project(session, name, world, guidelines=guidelines)


def _question_facts(row: QuestionRow) -> list[str]:
    details = [str(row[name]) for name in ("id", "kind", "structure") if row.get(name)]
    details += [f"{name} {row[name]}" for name in ("difficulty", "hops") if row.get(name) is not None]
    needs = format_needs(row.get("needs"))
    return details + ([f"needs {needs}"] if needs else [])


def _open_in_console(key: str, sparql: str) -> None:
    st.session_state[key] = sparql
    go_to_view("query")


def _show_answers(row: QuestionRow) -> None:
    answers = row.get("answers") or []
    st.markdown(f"**{len(answers):,} gold {'answer' if len(answers) == 1 else 'answers'}**")
    if not answers:
        st.caption("This question has no answer in this world. The correct response is to say so.")
        return
    rows = [[_answer_cell(answer)] for answer in answers[:MAX_ANSWERS]]
    show_table(("answer",), rows, key="answers", label="Gold answers", go=go_to_entity)
    if len(answers) > MAX_ANSWERS:
        st.caption(f"These are the first {MAX_ANSWERS} answers; questions.jsonl of the world has all of them.")


def _answer_cell(answer: Any) -> TableCell:
    if not isinstance(answer, dict):
        return TableCell(str(answer))
    entity = answer.get("entity") or ""
    return TableCell(str(answer.get("text", "")), entity, entity)


def _show_sparql(row: QuestionRow) -> None:
    needs = row.get("needs")
    if isinstance(needs, list) and ["graph"] not in needs:
        st.caption(
            "The query returns the gold answers on a graph with all facts; this world's graph has only some of them."
        )
    st.code(row["sparql"], language="sparql", wrap_lines=True)


def _show_tree(row: QuestionRow) -> None:
    st.caption("Numbers in brackets refer to the answers of that question. Search, Relate and Filter query a source.")
    st.html(f'<ul class="tree">{_render_branch(row["tree"])}</ul>')


def _render_branch(node: QuestionRow) -> str:
    call = ""
    if operator := node.get("operator"):
        details = node["how"] if "how" in node else ", ".join(map(str, node.get("arguments", ())))
        call = f' <span class="operator">{escape_html(str(operator))}({escape_html(str(details))})</span>'
    child_items = "".join(map(_render_branch, node.get("children", ())))
    answers = escape_html(_format_answers(node))
    branches = f"<ul>{child_items}</ul>" if child_items else ""
    number = f"[{node.get('number', '')}] "
    text = escape_html(str(node.get("question", "")))
    return f'<li><span class="place">{number}</span>{text}{call}<br><span class="found">{answers}</span>{branches}</li>'


def _format_answers(row: QuestionRow) -> str:
    """The first five answers of one step in one line."""
    answers = row.get("answers") or []
    text = ", ".join(_answer_cell(answer).text for answer in answers[:5])
    hidden_count = int(row.get("count", len(answers))) - min(len(answers), 5)
    return f"→ {text or 'no answer'}{f' and {hidden_count:,} more' if hidden_count > 0 else ''}"


def _show_triples(row: QuestionRow) -> None:
    triples = row["triples"]
    columns = ("subject", "relation", "object")
    st.markdown("**The question as triples**")
    rows = [[TableCell(str(part)) for part in triple] for triple in triples.get("decomposition", ())]
    show_table(columns, rows, key="decomposition", label="The question as triples")
    st.markdown("**The facts that complete them**")
    facts = [
        [_entity_cell(fact, "subject"), _relation_cell(fact), _entity_cell(fact, "object")]
        for fact in triples.get("completed", ())
    ]
    show_table(columns, facts, key="completed", label="The facts that complete them", go=go_to_entity)
    if triples.get("left_off"):
        st.caption("Only the first facts of each step are listed.")


def _entity_cell(fact: QuestionRow, end: str) -> TableCell:
    entity = fact.get(f"{end}_id") or ""
    return TableCell(str(fact.get(end, "")), entity, entity)


def _relation_cell(fact: QuestionRow) -> TableCell:
    return TableCell(str(fact.get("relation", "")), str(fact.get("pid") or ""))


def _show_subquestions(row: QuestionRow) -> None:
    list_items = []
    for subquestion in row["subquestions"]:
        retrieval = "retrieval" if subquestion.get("retrieval") else "reasoning over earlier answers"
        facts = "".join(f"<li>{escape_html(fact)}</li>" for fact in subquestion.get("facts", ()))
        more_facts = "<li>and more facts</li>" if subquestion.get("more_facts") else ""
        list_items.append(
            f'<li>{escape_html(subquestion["question"])} <span class="operator">{retrieval}</span><br>'
            f'<span class="found">{escape_html(_format_answers(subquestion))}</span><ul>{facts}{more_facts}</ul></li>'
        )
    st.caption("#2 refers to the answer of the second sub-question.")
    st.html(f'<ol class="tree">{"".join(list_items)}</ol>')


def _show_raw_record(row: QuestionRow) -> None:
    text = json.dumps(row, ensure_ascii=False, indent=1)
    st.code(text[:MAX_TEXT_CHARACTERS], language="json", wrap_lines=True, height=420)
    if len(text) > MAX_TEXT_CHARACTERS:
        st.caption(f"{len(text) - MAX_TEXT_CHARACTERS:,} more characters; see questions.jsonl of the world.")


_PART_TITLES = {"sparql": "Query", "tree": "Atomic tree", "triples": "Triples", "subquestions": "Sub-questions"}
_PART_VIEWS: dict[str, Callable[[QuestionRow], None]] = {
    "sparql": _show_sparql,
    "tree": _show_tree,
    "triples": _show_triples,
    "subquestions": _show_subquestions,
}

PAGE_SIZE = 15
MAX_LISTED_PROJECTS = 5
ANY = "any"


def show_world_questions(world: SelectedWorld, person: User) -> None:
    """Show filters, the list on the left, and the open question on the right."""
    with st.spinner("Reading the questions …"):
        questions = world.questions()
    if questions is not None and questions.heads and ADMIN in person.roles:
        _show_administration(world, person)
    if questions is None or not questions.heads:
        show_next_steps(world, person)
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


def _show_administration(world: SelectedWorld, person: User) -> None:
    """Draw the buttons that fill a project: with a file, or with all questions of the world."""
    with world.services.database.read() as session:
        names = [project.name for project in projects.list_projects(session) if project.world == world.name]
    show_import_job(world.services.database)
    with st.container(horizontal=True, gap="small"):
        if st.button("Import questions", key="import_questions", shortcut="Alt+U", icon=":material/upload:"):
            show_question_import(world.services, person, names[0] if names else world.name, world.name)
        show_project_button(world, person)


def show_next_steps(world: SelectedWorld, person: User) -> None:
    """Say what can be done with a world that has no questions of its own, and draw the buttons that do it."""
    with world.services.database.read() as session:
        names = [project.name for project in projects.list_projects(session) if project.world == world.name]
    show_import_job(world.services.database)
    is_admin = ADMIN in person.roles
    with st.container(border=True, gap="small", key="next_steps"):
        st.markdown("**This world has no questions of its own.** " + _explain_next_steps(names, is_admin=is_admin))
        with st.container(horizontal=True, gap="small"):
            if is_admin and st.button("Import questions", key="import_questions", icon=":material/upload:"):
                show_question_import(world.services, person, names[0] if names else world.name, world.name)
            if is_admin and not names and st.button("Make a project", key="make_empty", icon=":material/add:"):
                _make_empty_project(world, person)
            for name in names[:MAX_LISTED_PROJECTS]:
                if st.button(
                    f"Open {escape_markdown(name)}", key=f"open_project_{name}", icon=":material/folder_open:"
                ):
                    st.switch_page("project/page.py", query_params={"you": person.name, "project": name})
            st.button("Look around", key="next_look", on_click=go_to_view, args=("look",), type="tertiary")
            ask = st.button("Ask a question", key="next_ask", type="tertiary")
    if ask:
        st.switch_page("ask/page.py", query_params={"you": person.name, "world": world.name})


def _explain_next_steps(names: list[str], *, is_admin: bool) -> str:
    if names:
        return "The questions of its projects are on the Project page; ask one of your own on the Ask page."
    if is_admin:
        return (
            "Import a file of questions (CSV, Excel, Parquet or JSON), or make a project and write them on its page. "
            "People then record how they are answered with this world."
        )
    return "An administrator can import a file of questions. You can look around, and ask a question of your own."


def _make_empty_project(world: SelectedWorld, person: User) -> None:
    """Create a project without questions over the world, and open it."""
    with errors_shown(StoreError):
        with world.services.database.begin() as session:
            parameters = {"you": person.name, "project": _create_project(session, world.name).name}
        st.switch_page("project/page.py", query_params={**parameters, "view": "questions"})


def show_project_button(world: SelectedWorld, person: User) -> None:
    """Draw the button that makes a project of the world's questions, for an administrator."""
    if (
        ADMIN in person.roles
        and (world.folder / QUESTIONS_FILE).is_file()
        and st.button("Make a project of its questions", key="make_project", icon=":material/create_new_folder:")
    ):
        _make_project(world, person)


def _make_project(world: SelectedWorld, person: User) -> None:
    """Create a project with all questions of the world, and open it."""
    with errors_shown(StoreError, WorldError):
        with world.services.database.begin() as session:
            project = _create_project(session, world.name)
            questions = open_question_file(world.folder / QUESTIONS_FILE).iter_records()
            projects.add_questions(session, project.id, questions)
            parameters = {"you": person.name, "project": project.name}
        st.switch_page("project/page.py", query_params=parameters)


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
    index = heads.index(chosen)
    previous, following = heads[index - 1] if index else None, heads[index + 1] if index + 1 < len(heads) else None
    st.caption(f"Question {index + 1:,} of {len(heads):,}")
    with st.container(horizontal=True, gap="small"):
        _show_navigation_button("Previous", "previous", "Alt+P", previous)
        _show_navigation_button("Next", "next", "Alt+N", following)
    # The list shows the page with the open question, so that the shortcuts also turn pages.
    start = index // PAGE_SIZE * PAGE_SIZE
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
    target = (head.id,) if head is not None else ("",)
    st.button(title, key=key, shortcut=shortcut, disabled=head is None, on_click=go_to_question, args=target)


def _show_page_button(title: str, key: str, heads: list[QuestionSummary], start: int) -> None:
    exists = 0 <= start < len(heads)
    target = (heads[start].id,) if exists else ("",)
    st.button(title, key=key, disabled=not exists, on_click=go_to_question, args=target)


def _truncate(text: str) -> str:
    return text if len(text) <= 160 else f"{text[:159]}…"


def _format_caption(head: QuestionSummary) -> str:
    parts = [head.kind, f"{head.answers:,} {'answer' if head.answers == 1 else 'answers'}"]
    parts += [f"difficulty {head.difficulty}"] if head.difficulty is not None else []
    return " · ".join([*parts, *([f"needs {head.needs}"] if head.needs else [])])
