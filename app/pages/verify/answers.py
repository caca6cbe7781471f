"""The answers of a verification: the failures in the order of repair, right answers, filters and pages."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

import streamlit as st

from showhow.app.widgets.job_panel import VERIFICATION_JOB, may_start, start_verb_job
from showhow.app.widgets.table import TableCell, shorten, show_bar_chart, show_table
from showhow.app.widgets.url_state import clear_url_parameters, get_url_parameter, list_start
from showhow.db.models import Project, Run
from showhow.db.people.gold_visibility import is_gold_visible
from showhow.db.people.users import ADMIN, REVIEWER, authorize, has_acting_role
from showhow.db.runs import verifications
from showhow.db.runs.error_categories import ERROR_CATEGORIES, UNCATEGORIZED, set_error_category
from showhow.db.unanswerable import CANNOT_BE_ANSWERED, read_unanswerable
from showhow.evaluation.scoring.scoring import VerificationReport
from showhow.evaluation.value_format import format_count
from showhow.evaluation.verification.repairs import (
    VerificationFailure,
    count_categories,
    list_approved_repairs,
    list_failures,
)
from showhow.runs.services import Services
from showhow.tasks.task import dump_call
from showhow.tasks.verification import FinishRepairs, finish_repairs
from showhow.tools.registry import name_tools_by_title

OPENED_ANSWER = "open_answer"
"""The value of the session with the trace of a clicked answer."""
ANSWERS_PER_PAGE = 50
ORDER_EXPLANATION = (
    "Failures are sorted by expected benefit of a repair: the failures of a kind that are not being repaired yet, "
    "divided by one more than its demonstrations and repairs."
)
REPAIR_STATUS_LABELS = {
    "held": "held by {}",
    "draft": "being repaired by {}",
    "submitted": "repaired by {}, in review",
    "approved": "repaired by {}, approved",
    "rejected": "returned to {}",
    "failed": "abandoned by {}",
}
ALL_KINDS, ALL_CATEGORIES = "all kinds", "all categories"
_PICKED = "picked_failures"
"""Key of the session with a run, and the ids of the questions whose failures are marked on whichever of its pages."""
_OUTCOMES: Mapping[str, Callable[[VerificationFailure], bool]] = {
    "failures": lambda answer: not answer.outcome.is_correct,
    "right": lambda answer: answer.outcome.is_correct,
    "wrong": lambda answer: answer.outcome.ending == "answered" and not answer.outcome.is_correct,
    CANNOT_BE_ANSWERED: lambda answer: read_unanswerable(answer.outcome.answer) is not None,
    "refused": lambda answer: answer.outcome.ending == "refused",
    "failed": lambda answer: answer.outcome.ending not in ("answered", "refused"),
    "all": lambda _: True,
}
"""Which answers a choice lists."""


def show_answers(services: Services, project: Project, run: Run, report: VerificationReport, *, running: bool) -> None:
    """Draw the answers of the run that the filters choose, one page of them."""
    finished = report["questions"] - report["left"]
    if not finished:
        return
    st.header("Answers", anchor=False)
    _show_freezing(services, project, run, running=running)
    if report["questions"] == report["right"]:
        st.success("Every question was answered correctly.")
    answers = _list_answers(services, project, run)
    shows_gold = any(answer.outcome.gold for answer in answers)
    listed = _filter_answers(answers)
    if not listed:
        st.info("No answer matches. Try fewer filters.")
        return
    start = _page_start(len(listed))
    page = list(enumerate(listed, 1))[start : start + ANSWERS_PER_PAGE]
    with services.database.read() as session:
        may_categorize = report["questions"] > report["right"] and has_acting_role(session, REVIEWER, ADMIN)
    gold = ["gold answer"] if shows_gold else []
    columns = ["", "question", "kind", *gold, "answer or error", "category", "score", "repair"]
    rows = [_answer_row(rank, answer, shows_gold=shows_gold) for rank, answer in page]
    if all(answer.category is None for _, answer in page):
        columns.remove("category")
        rows = [[*row[:-3], *row[-2:]] for row in rows]
    show_table(
        columns,
        rows,
        key="failures",
        label="Answers of this verification",
        go=_request_open,
        picked=_list_picked(run) if may_categorize else None,
        pick=lambda shown, picked: _remember_picked(run, shown, picked),
    )
    _show_pager(len(listed), start)
    if may_categorize:
        _show_categorizing(services, run, answers)
    st.caption(ORDER_EXPLANATION)
    if any(answer.category for answer in answers):
        counts = count_categories(answers)
        show_bar_chart("Errors by category", "category", counts, key="categories", counted="failures")


def _list_picked(run: Run) -> list[str]:
    """The ids of the questions whose failures are marked."""
    of_run, picked = st.session_state.get(_PICKED, (None, []))
    return list(picked) if of_run == run.id else []


def _remember_picked(run: Run, shown: Sequence[str], picked: Sequence[str]) -> None:
    """The marks of this page replace those that it had; those of other pages stay."""
    others = [question for question in _list_picked(run) if question not in shown]
    st.session_state[_PICKED] = (run.id, [*others, *picked])


def _show_categorizing(services: Services, run: Run, answers: Sequence[VerificationFailure]) -> None:
    """Draw the category that the marked failures get."""
    picked = _list_picked(run)
    if not picked:
        st.caption("Mark failures to say what kind of error they are.")
        return

    def store() -> None:
        database = services.database
        by = authorize(database, REVIEWER, ADMIN)
        with database.begin() as session:
            set_error_category(session, run.id, [UUID(question) for question in picked], category or "", by=by)
        st.session_state.pop(_PICKED)

    with st.container(horizontal=True, vertical_alignment="bottom", gap="small"):
        options = dict.fromkeys((*ERROR_CATEGORIES, *(answer.category for answer in answers if answer.category)))
        category = st.selectbox(
            f"Category of the {len(picked):,} marked",
            list(options),
            index=None,
            key="error_category",
            placeholder="Choose one, or type a new one",
            accept_new_options=True,
            width=280,
        )
        has_category = any(answer.category for answer in answers if str(answer.outcome.question_id) in picked)
        label = "Set category" if category or not has_category else "Remove category"
        st.button(label, key="set_category", on_click=store, disabled=not (category or has_category))


def _show_freezing(services: Services, project: Project, run: Run, *, running: bool) -> None:
    """Draw the button that freezes the approved repairs, or say where repairs come from."""
    approved = list_approved_repairs(services, run)
    if approved and not running and may_start(services.database, VERIFICATION_JOB):
        count = format_count(len(approved), "repair")
        label = f"Freeze {count} and ask the failures again"
        if st.button(label, key="again", type="primary", shortcut="Alt+F", icon=":material/replay:"):
            start_verb_job(
                services.database,
                VERIFICATION_JOB,
                project.name,
                dump_call(finish_repairs, FinishRepairs(run=str(run.id))),
            )
            clear_url_parameters("verification")
            st.rerun()
        return
    st.caption(
        "Repairs that are approved on the Review page can be frozen here as the next version of the library; then the "
        "failures are asked again."
    )


def _list_answers(services: Services, project: Project, run: Run) -> list[VerificationFailure]:
    """The failures in the order of repair, then every other answer that the run has finished, in its order.

    Gold answers are only there for a person who sees them.
    """
    failures = list_failures(services, run)
    listed = {failure.outcome.question_id for failure in failures}
    with services.database.read() as session:
        outcomes = verifications.list_outcomes(session, run)
    others: dict[UUID, verifications.VerificationOutcome] = {}
    for outcome in outcomes:
        if outcome.is_finished and outcome.question_id not in listed:
            others.setdefault(outcome.question_id, outcome)
    answers = [*failures, *(VerificationFailure(outcome, None) for outcome in others.values())]
    with services.database.read() as session:
        if is_gold_visible(session, project):
            return answers
    return [replace(answer, outcome=answer.outcome._replace(gold=[])) for answer in answers]


def _filter_answers(answers: Sequence[VerificationFailure]) -> list[VerificationFailure]:
    """Draw the filters, which the link stores; returns the answers that pass all of them."""
    counts = {name: sum(map(passes, answers)) for name, passes in _OUTCOMES.items()}
    offered = [name for name in _OUTCOMES if counts[name] or name in ("failures", "right", "all")]
    if not counts["failures"]:
        offered.remove("failures")
    kinds = [ALL_KINDS, *sorted({answer.outcome.kind for answer in answers if answer.outcome.kind})]
    with st.container(horizontal=True, vertical_alignment="bottom", key="answer_filters"):
        outcome = _choose("Answers", "answers", offered, 190, lambda name: f"{name.capitalize()} ({counts[name]:,})")
        kind = _choose("Kind", "kind", kinds, 190, str) if len(kinds) > 2 else ALL_KINDS
        categories = [ALL_CATEGORIES, *(count_categories(answers) if any(a.category for a in answers) else ())]
        category = _choose("Category", "category", categories, 190, str) if len(categories) > 1 else ALL_CATEGORIES
        st.session_state["answers_search"] = get_url_parameter("words")
        words = st.text_input(
            "Search",
            key="answers_search",
            width=260,
            placeholder="words of question or answer",
            on_change=_store,
            args=("words", "answers_search"),
        )
    listed = [answer for answer in answers if _OUTCOMES[outcome](answer)]
    listed = [answer for answer in listed if kind in (ALL_KINDS, answer.outcome.kind)]
    if category != ALL_CATEGORIES:
        listed = [a for a in listed if not a.outcome.is_correct and category == (a.category or UNCATEGORIZED)]
    return [answer for answer in listed if all(word in _searched(answer) for word in words.casefold().split())]


def _searched(answer: VerificationFailure) -> str:
    outcome = answer.outcome
    return "\n".join([outcome.question, _gold(answer), outcome.answer or "", outcome.failure or ""]).casefold()


def _choose(label: str, name: str, options: Sequence[str], width: int, title: Callable[[str], str]) -> str:
    key = f"answers_{name}"
    stored = get_url_parameter(name)
    st.session_state[key] = stored if stored in options else options[0]
    return str(
        st.selectbox(label, options, key=key, format_func=title, width=width, on_change=_store, args=(name, key))
    )


def _store(name: str, key: str) -> None:
    clear_url_parameters("from")
    st.query_params[name] = st.session_state[key]


def _page_start(count: int) -> int:
    return min(list_start(), count - 1) // ANSWERS_PER_PAGE * ANSWERS_PER_PAGE


def _show_pager(count: int, start: int) -> None:
    last = min(start + ANSWERS_PER_PAGE, count)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        if count > ANSWERS_PER_PAGE:
            for label, target in (("Previous", start - ANSWERS_PER_PAGE), ("Next", start + ANSWERS_PER_PAGE)):
                is_off = not 0 <= target < count
                st.button(label, key=f"{label.lower()}_answers", disabled=is_off, on_click=_go_to, args=(target,))
        st.caption(f"{start + 1:,}–{last:,} of {count:,} answers", width="content")


def _go_to(start: int) -> None:
    st.query_params["from"] = str(start)


def _gold(answer: VerificationFailure) -> str:
    return ", ".join(str(gold["text"]) for gold in answer.outcome.gold)


def _answer_row(rank: int, answer: VerificationFailure, *, shows_gold: bool) -> list[TableCell]:
    outcome, repair = answer.outcome, answer.repair
    text = outcome.answer or f"{outcome.ending}: {name_tools_by_title(outcome.failure or '')}"
    status = "" if repair is None else REPAIR_STATUS_LABELS[repair.status].format(repair.person or "an unknown person")
    return [
        # A category is that of an error.
        TableCell(f"{rank}", number=True, pick="" if outcome.is_correct else str(outcome.question_id)),
        TableCell(outcome.question, go=str(outcome.trace_id)),
        TableCell(outcome.kind or "", whole=True),
        *([TableCell(shorten(_gold(answer)), whole=True)] if shows_gold else []),
        TableCell(shorten(text)),
        TableCell(answer.category or "", whole=True),
        TableCell(format_score(outcome.score), number=True),
        TableCell(status, whole=True),
    ]


def format_score(value: float | None) -> str:
    """A score for a table."""
    return "–" if value is None else f"{value:.2f}"


def _request_open(trace: str) -> None:
    st.session_state[OPENED_ANSWER] = trace
