"""A gold question: its answers, its gold reasoning in each formalism, and its gold trace.

The gold trace is made on demand, by running the tools. The question can be opened on the Annotate page, which adds it
to a project of the world.
"""

import json
from collections.abc import Callable
from functools import partial
from importlib.resources import files
from typing import Any

import streamlit as st

from app.pages.worlds.query_console import console_key
from app.pages.worlds.selected import SelectedWorld
from app.widgets.notebook import show_trace
from app.widgets.plain_text import escape_html, escape_markdown
from app.widgets.table import TableCell, show_table
from app.widgets.url_state import go_to_entity, go_to_view
from db import projects, recording
from db.database import StoreError
from db.models import Project, User
from db.trace_record import TraceRecord
from evaluation.datasets.plain import parse_question
from evaluation.gold_traces.world import make_world_gold_trace
from fiction.generator.world_files import FACT_SOURCES_FILE
from fiction.questions.question_file import QUESTIONS_FILE, format_needs

GOLD_TRACE_KEY = "gold_trace"
"""Session key of the last gold trace, with the build of the world and the question id."""
MAX_PEOPLE = 200_000
"""Largest world for which the page makes gold traces; each one reads all facts."""


def show_gold_trace(world: SelectedWorld, row: dict[str, Any]) -> None:
    """Show the gold trace, or a button that makes it."""
    if int(world.about.get("people", 0)) > MAX_PEOPLE or not (world.folder / FACT_SOURCES_FILE).is_file():
        st.caption(f"`showhow world trace {world.name} {escape_markdown(str(row.get('id')))}` makes it.")
        return
    place = (world.stamp, row.get("id"))
    made = st.session_state.get(GOLD_TRACE_KEY)
    if made is None or made[0] != place:
        st.caption("A trace that follows the gold reasoning; every step is a real tool call on this world's sources.")
        if not st.button("Make the trace", key="make_trace"):
            return
        with st.spinner("Running the tools …"):
            made = st.session_state[GOLD_TRACE_KEY] = (place, make_world_gold_trace(world.services, world.name, row))
    record: TraceRecord = made[1]
    if record.trace.status == "approved":
        show_trace(record, editable=False, forkable=False)
    else:
        st.warning(escape_markdown(record.trace.final_thought or "There is no gold trace."))


QuestionRow = dict[str, Any]
MAX_ANSWERS = 200
MAX_TEXT_CHARACTERS = 40_000


def show_gold_question(world: SelectedWorld, row: QuestionRow, person: User) -> None:
    """Show the question with all its gold parts."""
    st.html(f'<h2 class="question">{escape_html(row["text"])}</h2>')
    st.caption(escape_markdown(" · ".join(_question_facts(row))))
    with st.container(horizontal=True, gap="small"):
        if st.button(
            "Annotate this", key="annotate_this", type="primary", shortcut="Alt+A", icon=":material/edit_note:"
        ):
            _annotate_question(world, row, person)
        if isinstance(row.get("sparql"), str):
            st.button(
                "Try its query", key="try_query", on_click=_open_in_console, args=(console_key(world), row["sparql"])
            )
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
    """Add the question to the world's first project (created if missing) and open a draft on the Annotate page."""
    record = parse_question(row, world.folder / QUESTIONS_FILE, None)
    try:
        with world.services.database.begin() as session:
            existing = [project for project in projects.list_projects(session) if project.world == world.name]
            project: Project = existing[0] if existing else _create_project(session, world.name)
            projects.add_questions(session, project.id, [record])
            question = projects.find_matching_question(session, project.id, record)
            trace = recording.start_trace(session, question.id, person.id)
            parameters = {"you": person.name, "project": project.name, "trace": str(trace.id)}
    except StoreError as error:
        st.error(escape_markdown(str(error)))
    else:
        st.switch_page("annotate/page.py", query_params=parameters)


def _create_project(session: Any, world: str) -> Project:
    guidelines = files("app").joinpath("guidelines.md").read_text(encoding="utf-8")
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
        st.caption("This question has no answer in this world; the correct response is to say so.")
        return
    rows = [[_answer_cell(one)] for one in answers[:MAX_ANSWERS]]
    show_table(("answer",), rows, key="answers", label="Gold answers", go=go_to_entity)
    if len(answers) > MAX_ANSWERS:
        st.caption(f"The first {MAX_ANSWERS} answers; questions.jsonl of the world has all of them.")


def _answer_cell(one: Any) -> TableCell:
    if not isinstance(one, dict):
        return TableCell(str(one))
    entity = one.get("entity") or ""
    return TableCell(str(one.get("text", "")), entity, entity)


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
    below = "".join(map(_render_branch, node.get("children", ())))
    answers = escape_html(_format_answers(node))
    children = f"<ul>{below}</ul>" if below else ""
    number = f"[{node.get('number', '')}] "
    text = escape_html(str(node.get("question", "")))
    return f'<li><span class="place">{number}</span>{text}{call}<br><span class="found">{answers}</span>{children}</li>'


def _format_answers(row: QuestionRow, most: int = 5) -> str:
    """Answers of one step in one line."""
    answers = row.get("answers") or []
    text = ", ".join(_answer_cell(one).text for one in answers[:most])
    left = int(row.get("count", len(answers))) - min(len(answers), most)
    return f"→ {text or 'no answer'}{f' and {left:,} more' if left > 0 else ''}"


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
    items = []
    for one in row["subquestions"]:
        retrieval = "retrieval" if one.get("retrieval") else "reasoning over earlier answers"
        facts = "".join(f"<li>{escape_html(fact)}</li>" for fact in one.get("facts", ()))
        more = "<li>and more facts</li>" if one.get("more_facts") else ""
        items.append(
            f'<li>{escape_html(one["question"])} <span class="operator">{retrieval}</span><br>'
            f'<span class="found">{escape_html(_format_answers(one))}</span><ul>{facts}{more}</ul></li>'
        )
    st.caption("#2 refers to the answer of the second sub-question.")
    st.html(f'<ol class="tree">{"".join(items)}</ol>')


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
