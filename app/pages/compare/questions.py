"""The questions of a run and its baseline on the Compare page: filtered, sorted, and both traces of one of them."""

from collections.abc import Mapping, Sequence
from itertools import zip_longest
from typing import Any
from uuid import UUID

import streamlit as st

from showhow.app.widgets.notebook import NotebookPosition, page_of_step, show_trace
from showhow.app.widgets.page_layout import escape_html, escape_markdown
from showhow.app.widgets.table import TableCell, shorten, show_table, without_empty_columns
from showhow.app.widgets.url_state import clear_url_parameters, get_url_parameter, list_start
from showhow.db.database import Database
from showhow.db.models import SPAN_SKILL, Project, Step
from showhow.db.people.gold_visibility import is_gold_visible
from showhow.db.runs import comparisons
from showhow.db.runs.comparisons import ORDERS, VERDICTS, AttemptRow, ComparedQuestion, ComparisonFilter
from showhow.db.traces.traces import load_trace
from showhow.db.unanswerable import CANNOT_BE_ANSWERED
from showhow.evaluation.comparison.comparison import RunComparison
from showhow.evaluation.comparison.comparison_tables import format_sources
from showhow.evaluation.value_format import format_money
from showhow.runs.services import Services

CHOSEN_RUN = "run"
"""The parameter of the link with the run whose questions are listed beside those of the baseline."""
FILTERS = ("verdict", "kind", "hops", "sources", "text")
QUESTION_PARAMETERS = (CHOSEN_RUN, *FILTERS, "order", "from", "question")
PAGE_SIZE = 20
ALL = "all"
VERDICT_TITLES = {
    "gain": "Right, baseline wrong",
    "loss": "Wrong, baseline right",
    "both wrong": "Both wrong",
    "both right": "Both right",
    CANNOT_BE_ANSWERED: "“Cannot be answered” in one",
    "failed": "Failed in one",
    "refused": "Refused in one",
    "missing": "Without a score in one",
}
ORDER_TITLES = {"gains": "Gains first", "losses": "Losses first", "asked": "As asked"}
TRACE_HEIGHT = 640
"""Pixels of each of the two traces, which scroll apart."""


def find_first_different_step(first: Sequence[Step], second: Sequence[Step]) -> int | None:
    """The place, from 0, of the first steps that differ in call or result; None if none do.

    Thoughts are compared of steps without a tool, and not the results of steps that contain others, which follow from
    those. Where one trace ends earlier, it is the place after its last step.
    """
    for place, (step, other) in enumerate(zip_longest(first, second)):
        if step is None or other is None or _content(step) != _content(other):
            return place
    return None


def _content(step: Step) -> tuple[Any, ...]:
    decided = (step.thought, step.skill) if step.tool is None else (step.tool, step.arguments)
    result = () if step.skill == SPAN_SKILL else (step.observation, step.error)
    return *decided, step.node, *result


def show_questions(services: Services, comparison: RunComparison, project: Project) -> None:
    """Draw the choice of a run, the filters, one page of its questions, and the traces of the open question."""
    others = {str(run_id): label for run_id, label in comparison.labels.items() if run_id != comparison.baseline_id}
    st.header("Questions", anchor=False)
    with st.container(horizontal=True, vertical_alignment="bottom", key="question_filters"):
        run_id = UUID(choose_parameter("Run", CHOSEN_RUN, others, 300))
        chosen, order = _choose_filter(services.database, comparison)
    pair = (run_id, comparison.baseline_id)
    start = list_start()
    with services.database.read() as session:
        count = comparisons.count_compared_questions(session, pair, comparison.metric, chosen)
        start = min(start, max(0, (count - 1) // PAGE_SIZE * PAGE_SIZE))
        questions = comparisons.list_compared_questions(
            session, pair, comparison.metric, chosen, order, PAGE_SIZE, start
        )
        ids = [question.question_id for question in questions]
        answers = comparisons.list_attempt_rows(session, pair, ids, comparison.metric)
        shows_gold = is_gold_visible(session, project)
    if not count:
        st.info("No matches. Try fewer filters.")
        return
    first_answers: dict[tuple[UUID, UUID], AttemptRow] = {}
    for row in answers:
        first_answers.setdefault((row.run_id, row.question_id), row)
    rows = [_question_row(question, pair, first_answers, shows_gold=shows_gold) for question in questions]
    answers_of = ("answer", "baseline's answer")
    figures = ("score", "baseline's score", "difference", "cost", "baseline's cost")
    columns = ("question", "kind", *(("gold answer",) if shows_gold else ()), *answers_of, *figures)
    filled = without_empty_columns(columns, rows)
    show_table(*filled, key="compared_questions", label="Questions by difference", go=_open_question)
    _show_pager(count, start)
    repeated = any(row.repetition > 1 for row in answers)
    st.caption(
        "A question opens both traces at the first step that differs."
        + (" Answers and costs are those of the first repetition, scores the mean of all." if repeated else "")
    )
    _show_open_question(services, comparison, run_id, questions, shows_gold=shows_gold)


def choose_parameter(label: str, name: str, options: Mapping[str, str], width: int) -> str:
    """Draw a choice that the link stores; the first option is the default."""
    key = f"compare_{name}"
    stored = get_url_parameter(name)
    st.session_state[key] = stored if stored in options else next(iter(options))

    def change() -> None:
        clear_url_parameters("from", "question")
        st.query_params[name] = st.session_state[key]

    return st.selectbox(label, list(options), format_func=options.__getitem__, key=key, on_change=change, width=width)


def _choose_filter(database: Database, comparison: RunComparison) -> tuple[ComparisonFilter, str]:
    verdicts = {ALL: "All answers"} | {name: VERDICT_TITLES[name] for name in VERDICTS}
    values: dict[str, str | None] = {"verdict": choose_parameter("Answers", "verdict", verdicts, 210)}
    for name, title in (("kind", "Kind"), ("hops", "Hops"), ("sources", "Sources")):
        options = _list_values(database, comparison.baseline_id, name)
        if len(options) > 1:
            titles = {ALL: "All"} | {value: format_sources(value) if name == "sources" else value for value in options}
            values[name] = choose_parameter(title, name, titles, 190 if name == "kind" else 130)
    st.session_state["compare_text"] = get_url_parameter("text")

    def change() -> None:
        clear_url_parameters("from", "question")
        st.query_params["text"] = st.session_state["compare_text"]

    text = st.text_input("Search", key="compare_text", on_change=change, width=170, placeholder="words of the question")
    order = choose_parameter("Order", "order", {name: ORDER_TITLES[name] for name in ORDERS}, 140)
    chosen = {name: None if value == ALL else value for name, value in values.items()}
    return ComparisonFilter(**chosen, text=text.strip()), order


@st.cache_data(max_entries=64, show_spinner=False)
def _list_values(_database: Database, run_id: UUID, name: str) -> list[str]:
    """The values of a filter; the questions of a run do not change."""
    with _database.read() as session:
        return comparisons.list_question_values(session, run_id, name)


def _question_row(
    question: ComparedQuestion,
    pair: tuple[UUID, UUID],
    answers: Mapping[tuple[UUID, UUID], AttemptRow],
    *,
    shows_gold: bool,
) -> list[TableCell]:
    rows = [answers.get((run_id, question.question_id)) for run_id in pair]
    scores = (question.score, question.baseline_score)
    difference = None if None in scores else question.score - question.baseline_score  # type: ignore[operator]
    gold = ", ".join(str(answer["text"]) for answer in question.gold)
    return [
        TableCell(shorten(question.text, 200), go=str(question.question_id)),
        TableCell(question.kind or "", whole=True),
        *([TableCell(shorten(gold, 90))] if shows_gold else []),
        *(TableCell(_describe_answer(row)) for row in rows),
        *(TableCell("–" if score is None else f"{score:.2f}", number=True) for score in scores),
        TableCell("–" if difference is None else f"{difference:+.2f}" if difference else "0", number=True),
        *(TableCell("–" if row is None or row.cost is None else format_money(row.cost), number=True) for row in rows),
    ]


def _describe_answer(row: AttemptRow | None) -> str:
    if row is None:
        return "not asked"
    if row.ending is None:
        return "not finished"
    return shorten(row.answer, 90) if row.answer else f"{row.ending}: {shorten(row.failure or '', 90)}"


def _show_pager(count: int, start: int) -> None:
    if count <= PAGE_SIZE:
        st.caption(f"{count:,} questions")
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        for label, target, key in (("Previous", start - PAGE_SIZE, "earlier"), ("Next", start + PAGE_SIZE, "later")):
            st.button(
                label, key=f"{key}_questions", disabled=not 0 <= target < count, on_click=_go_to_start, args=(target,)
            )
        last = min(start + PAGE_SIZE, count)
        st.caption(f"{start + 1:,}–{last:,} of {count:,} questions", width="content")


def _go_to_start(start: int) -> None:
    clear_url_parameters("question")
    st.query_params["from"] = str(start)


def _open_question(question: str) -> None:
    st.query_params["question"] = question


def _show_open_question(
    services: Services,
    comparison: RunComparison,
    run_id: UUID,
    questions: Sequence[ComparedQuestion],
    *,
    shows_gold: bool,
) -> None:
    """Draw both traces of the question in the link side by side."""
    requested = get_url_parameter("question")
    if not requested:
        return
    try:
        question_id = UUID(requested)
    except ValueError:
        st.warning("The link names no question; choose one in the table.")
        return
    pair = (run_id, comparison.baseline_id)
    with services.database.read() as session:
        rows = comparisons.list_attempt_rows(session, pair, [question_id], comparison.metric)
        answers = {run: next((row for row in rows if row.run_id == run), None) for run in pair}
        traces = {run: row.trace_id for run, row in answers.items() if row is not None and row.trace_id is not None}
        records = {run: load_trace(session, trace_id) for run, trace_id in traces.items()}
    if not rows:
        st.warning("Neither of the two runs has this question; choose one in the table.")
        return
    ids = [str(question.question_id) for question in questions]
    st.html(f'<h2 class="question" id="open_question">{escape_html(rows[0].text)}</h2>')
    _show_neighbours(ids, requested)
    place = find_first_different_step(*(records[run].steps for run in pair)) if len(records) == len(pair) else None
    if shows_gold:
        gold_answers = ", ".join(str(gold["text"]) for gold in rows[0].gold) or "none"
        st.markdown(f"Gold answer: **{escape_markdown(gold_answers)}**")
    st.caption(_describe_difference(place, len(records)))
    for run, column in zip(pair, st.columns(2, gap="medium"), strict=True):
        with column, st.container(key=f"side_{'run' if run == run_id else 'baseline'}", gap="small"):
            role = " (baseline)" if run == comparison.baseline_id else ""
            st.markdown(f"**{escape_markdown(comparison.labels[run])}**{role}")
            row = answers[run]
            score = "no score" if row is None or row.score is None else f"score {row.score:.2f}"
            st.markdown(f"{escape_markdown(_describe_answer(row))} · {score}")
            if run not in records:
                st.info("There is no trace of this question in this run.")
                continue
            steps = records[run].steps
            focus = steps[place].position if place is not None and place < len(steps) else None
            if focus is not None:
                key = f"notebook_{records[run].trace.id.hex}_position"
                st.session_state.setdefault(key, NotebookPosition(page_of_step(steps, focus), step=focus, requests=1))
            with st.container(height=TRACE_HEIGHT, border=True):
                show_trace(records[run], editable=False, forkable=False)


def _describe_difference(place: int | None, records: int) -> str:
    if records < 2:
        return "Only one of the two runs has a trace of this question."
    if place is None:
        return "The two traces have the same steps."
    return f"The first difference is at step {place + 1}, which is marked in both traces."


def _show_neighbours(ids: Sequence[str], requested: str) -> None:
    place = ids.index(requested) if requested in ids else None
    with st.container(horizontal=True, gap="small", key="neighbours"):
        for label, offset, shortcut in (("Previous question", -1, "Alt+P"), ("Next question", 1, "Alt+N")):
            target = None if place is None else place + offset
            is_listed = target is not None and 0 <= target < len(ids)
            st.button(
                label,
                key=f"go_{offset}",
                shortcut=shortcut,
                disabled=not is_listed,
                on_click=_open_question,
                args=(ids[target] if is_listed and target is not None else "",),
            )
        st.button("Close", key="close_question", on_click=clear_url_parameters, args=("question",))
