"""The view of a run: its progress and streamed text while it runs, then its answer with evidence, and its buttons.

The buttons fix a run, ask again, continue, save its question and share it; its steps can be rated.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import streamlit as st

from app.pages.ask.form import limits_in_form
from app.widgets.notebook import show_trace
from app.widgets.plain_text import escape_html, escape_markdown
from app.widgets.usage import format_run_cost, format_trace_cost
from db import projects, runs, traces
from db.database import Database, StoreError
from db.models import User, utc_now
from db.trace_configuration import TraceConfiguration
from db.trace_record import TraceRecord
from evaluation.number_format import format_count, format_seconds
from reasoners.answers.agreement import ALL_AGREE, TWO_AGREE
from reasoners.answers.normalization import normalize_answer
from reasoners.registry import REASONERS
from runs.active_runs import BackgroundRun
from runs.ask import (
    ASK_ERRORS,
    AskRequest,
    FreeQuestion,
    begin_run,
    is_running,
    rerun_from_step,
    resume_run,
    run_config_of,
)
from runs.budget import RunLimits
from runs.preparation import RunConfig
from runs.services import Services

AGREEMENT_SIGNS = {ALL_AGREE: "good", TWO_AGREE: "fair"}
"""The sign of an answer by the agreement of its sources; poor for other states."""
ANSWER_SOURCE_LABELS = {
    "answer_text": "From the text",
    "answer_graph": "From the graph",
    "answer_model": "From the model's own knowledge",
    "final_thought": "Last thought",
}
MAX_EVIDENCE_STEPS = 8
"""The most steps that are named as evidence; a number that stands in more steps than these is no evidence."""


def build_conclusion(record: TraceRecord) -> dict[str, Any] | None:
    """The answer with its evidence for the notebook; None while there is none."""
    trace, configuration = record.trace, record.trace.configuration
    if trace.final_answer is None:
        return None
    agreement, response = configuration.get("agreement"), configuration.get("response")
    links = configuration.get("links") or []
    return {
        "answer": trace.final_answer,
        "response": response if response != trace.final_answer else None,
        "links": links,
        "agreement": agreement
        and {"words": agreement["words"], "sign": AGREEMENT_SIGNS.get(agreement["state"], "poor")},
        "sources": [
            {"name": name, "value": value}
            for field, name in ANSWER_SOURCE_LABELS.items()
            if (value := getattr(trace, field))
        ],
        "evidence": [] if links else find_evidence_steps(record),
        "note": configuration.get("unwritten"),
    }


def find_evidence_steps(record: TraceRecord) -> list[int]:
    """The steps whose observations show every part of the answer, else the fewest that together show the most parts."""
    answer_parts = normalize_answer(record.trace.final_answer or "")
    parts_by_step = {
        step.position: {part for part in answer_parts if f" {part} " in _normalize_text(step.observation)}
        for step in record.steps
        if step.observation
    }
    complete = [position for position, parts in parts_by_step.items() if parts == answer_parts]
    evidence = complete or _select_covering_steps(parts_by_step)
    if len(evidence) > MAX_EVIDENCE_STEPS and all(part.isdigit() for part in answer_parts):
        return []
    return evidence[-MAX_EVIDENCE_STEPS:]


def _select_covering_steps(parts_by_step: Mapping[int, set[str]]) -> list[int]:
    """Select steps greedily by the number of new parts; of equals the one nearest to the answer."""
    selected: list[int] = []
    covered: set[str] = set()
    while best := max(
        parts_by_step, key=lambda position: (len(parts_by_step[position] - covered), position), default=None
    ):
        if not parts_by_step[best] - covered:
            break
        selected.append(best)
        covered |= parts_by_step[best]
    return sorted(selected)


def _normalize_text(text: str) -> str:
    """The text in the normalized form of answers, so that parts of an answer can be found in it."""
    return f" {' '.join(' '.join(sorted(normalize_answer(line))) for line in text.splitlines())} "


NEW_PROJECT_OPTION = "a new project …"
RESUMABLE_ENDINGS = ("stopped", "limit", "failed", None)
"""Endings after which a run can be continued; None is an interruption."""


def start_ask(services: Services, request: AskRequest) -> bool:
    """Start the run in the background and open its trace; False when it was refused, which the page then says."""
    try:
        run = begin_run(services, request)
    except ASK_ERRORS as refused:
        st.error(escape_markdown(str(refused)))
        return False
    _open_run(services.active_runs.start(run))
    return True


def show_run_actions(services: Services, record: TraceRecord, person: User) -> None:
    """Draw the buttons of a run that has ended."""
    trace = record.trace
    if trace.run_id is None:
        return
    with st.container(horizontal=True, gap="small", key="acts"):
        if trace.ending in RESUMABLE_ENDINGS and trace.status in ("draft", "failed"):
            st.button(
                "Continue", key="go_on", icon=":material/play_arrow:", on_click=_resume_run, args=(services, record)
            )
        st.button(
            "Ask again",
            key="again",
            icon=":material/replay:",
            on_click=_rerun_from_step,
            args=(services, record, 0),
            shortcut="Alt+A",
        )
        if st.button("Fix this", key="fix", icon=":material/build:", shortcut="Alt+X"):
            st.session_state["fix_from"] = len(record.steps)
        if st.button("Save as question", key="save", icon=":material/bookmark_add:"):
            _save_question(services.database, record)
        with st.popover("Share", icon=":material/share:"):
            st.caption("Everyone who opens this link sees this trace.")
            st.code(_share_link(trace.id), language=None)
    position = st.session_state.pop("fix_from", None)
    if position is not None:
        _fork_for_repair(services.database, record, position, person)


def handle_run_action(services: Services, record: TraceRecord, person: User, action: dict[str, Any]) -> None:
    """Carry out an action of the notebook (rate, rerun, fix)."""
    position = int(action["step"])
    if action["kind"] == "rate":
        _rate_step(services.database, record, position, int(action["rating"]), person)
    elif action["kind"] == "rerun":
        _rerun_from_step(services, record, position - 1)
    elif action["kind"] == "fix":
        # A callback cannot switch pages; the next script run does.
        st.session_state["fix_from"] = position - 1


def _rate_step(database: Database, record: TraceRecord, position: int, rating: int, person: User) -> None:
    step = next((step for step in record.steps if step.position == position), None)
    if step is None:
        return
    try:
        with database.begin() as session:
            runs.rate_run_step(session, step.id, rating, by=person.id)
    except StoreError as refused:
        st.session_state["notice"] = str(refused)


def _config_and_limits(record: TraceRecord) -> tuple[RunConfig, RunLimits]:
    stored = TraceConfiguration.from_json(record.trace.configuration)
    config = run_config_of(stored)
    return config, limits_in_form(config.reasoner, stored)


def _resume_run(services: Services, record: TraceRecord) -> None:
    try:
        services.active_runs.start(resume_run(services, record.trace.id, _config_and_limits(record)[1]))
    except ASK_ERRORS as refused:
        st.session_state["notice"] = str(refused)


def _rerun_from_step(services: Services, record: TraceRecord, position: int) -> None:
    """Answer the question again after that step, in a trace of its own."""
    config, limits = _config_and_limits(record)
    try:
        _open_run(services.active_runs.start(rerun_from_step(services, record.trace.id, position, config, limits)))
    except ASK_ERRORS as refused:
        st.session_state["notice"] = str(refused)


def _fork_for_repair(database: Database, record: TraceRecord, position: int, person: User) -> None:
    """Fork a draft with the steps up to that one and open it on the Annotate page."""
    try:
        with database.begin() as session:
            fork = traces.fork_trace(session, record.trace.id, position, person.id)
    except StoreError as refused:
        st.error(escape_markdown(str(refused)))
        return
    place = {"you": person.name, "project": record.project.name, "trace": str(fork.id)}
    st.switch_page("annotate/page.py", query_params=place)


def _open_run(trace_id: UUID) -> None:
    st.query_params["trace"] = str(trace_id)
    st.query_params.pop("step", None)


def _share_link(trace_id: UUID) -> str:
    return f"{(st.context.url or '').partition('?')[0]}?trace={trace_id}"


@st.dialog("Save as question")
def _save_question(database: Database, record: TraceRecord) -> None:
    with database.read() as session:
        names = [project.name for project in projects.list_projects(session) if project.world == record.project.world]
    st.markdown(f"**{escape_markdown(record.question.text)}**")
    chosen = st.selectbox(
        "Into the project", [*(name for name in names if name != record.project.name), NEW_PROJECT_OPTION]
    )
    name = st.text_input("Its name", key="save_project") if chosen == NEW_PROJECT_OPTION else chosen
    gold = st.text_input(
        "Gold answer", value=record.trace.final_answer or "", key="save_gold", help="Leave it empty if it is unknown."
    )
    if st.button("Save", key="save_now", type="primary", shortcut="Ctrl+Enter"):
        question = FreeQuestion(
            record.question.text,
            gold_answers=({"text": gold.strip(), "entity": None},) if gold.strip() else (),
            details={"asked": str(record.trace.id)},
        )
        try:
            with database.begin() as session:
                project = projects.get_or_create_project(session, name.strip(), world=record.project.world)
                added = projects.add_questions(session, project.id, [question]).added
        except StoreError as refused:
            st.error(escape_markdown(str(refused)))
        else:
            st.success(
                f"Saved into {escape_markdown(name)}."
                if added
                else f"{escape_markdown(name)} has this question already."
            )


REFRESH_SECONDS = 0.5
"""Seconds between two refreshes of a run in progress."""
MAX_STREAMED_CHARACTERS = 4_000
"""The last characters of streamed text that are shown; all of them are stored."""
ENDING_ADVICE = {
    "refused": "Answer it yourself with **Fix this**: approved and frozen, it becomes the missing demonstration. "
    "Or ask a language model.",
    "failed": "Ask again, **Continue** from where it failed, or fix the step with **Fix this**.",
    "stopped": "**Continue** from where it stopped, or ask again.",
    "limit": "Raise it under **Limits** and **Continue**.",
    "interrupted": "The program ended during the run. **Continue** runs the unfinished step and what follows.",
}
INTERRUPTED_NOTE = "The run ended while this tool was running; Continue runs it again first."


def show_run(services: Services, trace_id: UUID, person: User) -> None:
    """Draw the run, and refresh it while it is running."""
    with services.database.read() as session:
        trace = traces.load_trace(session, trace_id).trace
    running = is_running(services, trace)
    panel = st.fragment(_show_panel, run_every=REFRESH_SECONDS if running else None)
    panel(services, trace_id, person, running=running)


def _show_panel(services: Services, trace_id: UUID, person: User, *, running: bool) -> None:
    active_run = services.active_runs.get(trace_id)
    with services.database.read() as session:
        record = traces.load_trace(session, trace_id)
    if running != is_running(services, record.trace) or st.query_params.get("trace") != str(trace_id):
        # The run has ended or was continued, or another one was opened: the whole page changes.
        st.rerun()
    if running:
        _show_running(record, active_run)
    else:
        _show_ended(record)
        show_run_actions(services, record, person)
    if notice := st.session_state.pop("notice", None):
        st.error(escape_markdown(notice))
    answer = build_conclusion(record)
    if record.steps or answer:
        show_trace(
            record,
            editable=False,
            forkable=False,
            on_act=lambda action: handle_run_action(services, record, person, action),
            more={
                "ratable": True,
                "mendable": not running,
                "answers": [],
                "conclusion": answer,
                "interrupted": "The tool is running …" if running else INTERRUPTED_NOTE,
                "hint": "",
                "spent": "",
            },
        )
    if running and active_run is not None and active_run.streamed_text:
        st.caption("The model writes")
        st.html(f'<div class="saying">{escape_html(active_run.streamed_text[-MAX_STREAMED_CHARACTERS:])}</div>')


def _show_running(record: TraceRecord, run: BackgroundRun | None) -> None:
    seconds = run.elapsed_seconds if run is not None else (utc_now() - record.trace.started_at).total_seconds()
    phase = (run.phase if run is not None else "") or f"step {len(record.steps) + 1}"
    status = " · ".join(filter(None, (phase, format_seconds(seconds), format_trace_cost(record.steps))))
    with st.container(horizontal=True, vertical_alignment="center", key="at_work"):
        st.markdown(f":material/pending: **Running** · {status}", width="stretch")
        if run is None:
            st.caption("It runs in another process of this machine; stop it there.")
        else:
            st.button(
                "Stopping …" if run.stop_requested else "Stop",
                key="stop",
                icon=":material/stop:",
                shortcut="Alt+S",
                on_click=run.stop,
                disabled=run.stop_requested,
            )


def _show_ended(record: TraceRecord) -> None:
    trace = record.trace
    duration = format_seconds(trace.wall_seconds) if trace.wall_seconds is not None else ""
    parts = (format_count(len(record.steps), "step"), duration, format_run_cost(trace.cost))
    summary = " · ".join(filter(None, parts))
    ending = trace.ending or ("interrupted" if trace.run_id is not None and trace.status == "draft" else None)
    if ending == "answered" or ending is None:
        entry = REASONERS.get(trace.reasoner)
        needs_model = entry is None or entry.needs_model
        maker = escape_markdown(record.creator_name) if needs_model else "by replay (no model)"
        reviewed = f" · {trace.status}" if trace.ending and trace.status != "submitted" else ""
        st.caption(f"{(trace.ending or trace.status).capitalize()} {maker}{reviewed} · {summary}")
        return
    show_notice = {"refused": st.info, "failed": st.error}.get(ending, st.warning)
    show_notice(f"**{ending.capitalize()}.** {_format_sentence(trace.failure)} {ENDING_ADVICE[ending]}")
    st.caption(summary)


def _format_sentence(reason: str | None) -> str:
    """The reason with a capital letter and a full stop."""
    text = (reason or "").strip().rstrip(".")
    return escape_markdown(text[:1].upper() + text[1:] + ".") if text else ""
