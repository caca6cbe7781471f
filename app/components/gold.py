"""All that is known of a question: its answers and, in every formalism, the way to them."""

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from app.components.annotate_this import annotate_this
from app.components.gold_trace import show_gold_trace
from app.components.places import go_to_entity, go_to_view
from app.components.plain import plain, plain_html
from app.components.query_console import console_key
from app.components.selected_world import SelectedWorld
from app.components.table import Entry, show_table
from db.models import User
from worlds.questions.question_file import needs_in_words

Row = dict[str, Any]
MOST_ANSWERS = 200
MOST_TEXT = 40_000


def show_gold(world: SelectedWorld, row: Row, person: User) -> None:
    """Draw the question with everything of its gold."""
    st.html(f'<h2 class="question">{plain_html(row["text"])}</h2>')
    st.caption(plain(" · ".join(_facts(row))))
    with st.container(horizontal=True, gap="small"):
        if st.button(
            "Annotate this", key="annotate_this", type="primary", shortcut="Alt+A", icon=":material/edit_note:"
        ):
            annotate_this(world, row, person)
        if isinstance(row.get("sparql"), str):
            st.button("Try its query", key="try_query", on_click=_try, args=(console_key(world), row["sparql"]))
    _show_answers(row)
    parts = {name: draw for name, draw in _PARTS.items() if row.get(name)}
    drawn = {_TITLES[name]: draw for name, draw in parts.items()}
    if row.get("expression"):
        drawn["Trace"] = partial(show_gold_trace, world)
    drawn["Everything"] = _everything
    for tab, draw in zip(st.tabs(list(drawn), key="gold"), drawn.values(), strict=True):
        with tab:
            draw(row)


def _facts(row: Row) -> list[str]:
    told = [str(row[name]) for name in ("id", "kind", "structure") if row.get(name)]
    told += [f"{name} {row[name]}" for name in ("difficulty", "hops") if row.get(name) is not None]
    needs = needs_in_words(row.get("needs"))
    return told + ([f"needs {needs}"] if needs else [])


def _try(key: str, sparql: str) -> None:
    st.session_state[key] = sparql
    go_to_view("query")


def _show_answers(row: Row) -> None:
    answers = row.get("answers") or []
    st.markdown(f"**{len(answers):,} gold {'answer' if len(answers) == 1 else 'answers'}**")
    if not answers:
        st.caption("Nothing in this world answers it, and that is the right answer.")
        return
    rows = [[_answer(one)] for one in answers[:MOST_ANSWERS]]
    show_table(("answer",), rows, key="answers", label="Gold answers", go=go_to_entity)
    if len(answers) > MOST_ANSWERS:
        st.caption(f"The first {MOST_ANSWERS}; all of them are in the world's questions.jsonl.")


def _answer(one: Any) -> Entry:
    if not isinstance(one, dict):
        return Entry(str(one))
    entity = one.get("entity") or ""
    return Entry(str(one.get("text", "")), entity, entity)


def _sparql(row: Row) -> None:
    needs = row.get("needs")
    if isinstance(needs, list) and ["graph"] not in needs:
        st.caption(
            "On a graph that tells every fact it gives the gold answers; this world's graph tells a part of them."
        )
    st.code(row["sparql"], language="sparql", wrap_lines=True)


def _tree(row: Row) -> None:
    st.caption("Numbers in brackets stand for the answers of that question. Search, Relate and Filter ask a source.")
    st.html(f'<ul class="tree">{_branch(row["tree"])}</ul>')


def _branch(node: Row) -> str:
    call = ""
    if operator := node.get("operator"):
        told = node["how"] if "how" in node else ", ".join(map(str, node.get("arguments", ())))
        call = f' <span class="operator">{plain_html(str(operator))}({plain_html(str(told))})</span>'
    below = "".join(map(_branch, node.get("children", ())))
    found = plain_html(_said(node))
    children = f"<ul>{below}</ul>" if below else ""
    number = f"[{node.get('number', '')}] "
    text = plain_html(str(node.get("question", "")))
    return f'<li><span class="place">{number}</span>{text}{call}<br><span class="found">{found}</span>{children}</li>'


def _said(told: Row, most: int = 5) -> str:
    """The answers of one step in a line."""
    answers = told.get("answers") or []
    shown = ", ".join(_answer(one).text for one in answers[:most])
    left = int(told.get("count", len(answers))) - min(len(answers), most)
    return f"→ {shown or 'nobody and nothing'}{f' and {left:,} more' if left > 0 else ''}"


def _triples(row: Row) -> None:
    found = row["triples"]
    columns = ("subject", "relation", "object")
    st.markdown("**The question as triples**")
    asked = [[Entry(str(part)) for part in triple] for triple in found.get("decomposition", ())]
    show_table(columns, asked, key="decomposition", label="The question as triples")
    st.markdown("**The facts that complete them**")
    facts = [[_end(fact, "subject"), _relation(fact), _end(fact, "object")] for fact in found.get("completed", ())]
    show_table(columns, facts, key="completed", label="The facts that complete them", go=go_to_entity)
    if found.get("left_off"):
        st.caption("There are more facts; of each step the first ones are written.")


def _end(fact: Row, end: str) -> Entry:
    entity = fact.get(f"{end}_id") or ""
    return Entry(str(fact.get(end, "")), entity, entity)


def _relation(fact: Row) -> Entry:
    return Entry(str(fact.get("relation", "")), str(fact.get("pid") or ""))


def _subquestions(row: Row) -> None:
    items = []
    for one in row["subquestions"]:
        asked = "asks a source" if one.get("retrieval") else "reasons about what is known"
        facts = "".join(f"<li>{plain_html(fact)}</li>" for fact in one.get("facts", ()))
        more = "<li>and more facts</li>" if one.get("more_facts") else ""
        items.append(
            f'<li>{plain_html(one["question"])} <span class="operator">{asked}</span><br>'
            f'<span class="found">{plain_html(_said(one))}</span><ul>{facts}{more}</ul></li>'
        )
    st.caption("#2 stands for the answer of the second one.")
    st.html(f'<ol class="tree">{"".join(items)}</ol>')


def _everything(row: Row) -> None:
    text = json.dumps(row, ensure_ascii=False, indent=1)
    st.code(text[:MOST_TEXT], language="json", wrap_lines=True, height=420)
    if len(text) > MOST_TEXT:
        st.caption(f"{len(text) - MOST_TEXT:,} more characters; the world's questions.jsonl has them.")


_TITLES = {"sparql": "Query", "tree": "Atomic tree", "triples": "Triples", "subquestions": "Sub-questions"}
_PARTS: dict[str, Callable[[Row], None]] = {
    "sparql": _sparql,
    "tree": _tree,
    "triples": _triples,
    "subquestions": _subquestions,
}
