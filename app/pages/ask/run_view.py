"""A run as it goes and as it ended: what it took, its steps, what the model says, and how it ended.

What a run came to, as the notebook shows it: the answer with its evidence, and how far the sources agree.
What a person does with a run: mend it, ask again, go on, keep its question, share it, rate its steps.
"""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

import streamlit as st

from app.services import services
from app.widgets.notebook import show_trace
from app.widgets.plain_text import escape_html, escape_markdown
from app.widgets.usage import format_run_cost, format_trace_cost
from db import projects, runs, traces
from db.database import StoreError
from db.models import User, utc_now
from db.trace_record import TraceRecord
from evaluation.number_format import format_seconds
from reasoners.answers.agreement import ALL_AGREE, TWO_AGREE
from reasoners.answers.normalization import normalize_answer
from runs.active_runs import BackgroundRun
from runs.ask import (
    ASK_ERRORS,
    AskRequest,
    FreeQuestion,
    begin_run,
    is_running,
    rerun_from_step,
    resume_run,
)
from runs.budget import RunLimits
from runs.preparation import REPLAY, RunConfig

AGREEMENT_SIGNS = {ALL_AGREE: "good", TWO_AGREE: "fair"}
"""How far an answer can be trusted by the agreement of its sources; poor otherwise."""
ANSWER_SOURCE_LABELS = {
    "answer_text": "From the text",
    "answer_graph": "From the graph",
    "answer_model": "Known without a source",
    "final_thought": "Last thought",
}
MAX_EVIDENCE_STEPS = 8
"""Steps that are named as showing the answer; where a mere number stands in more than these, it says nothing."""


def build_conclusion(record: TraceRecord) -> dict[str, Any] | None:
    """The answer for the notebook; None while there is none."""
    trace, told = record.trace, record.trace.configuration
    if trace.final_answer is None:
        return None
    agreed, response = told.get("agreement"), told.get("response")
    links = told.get("links") or []
    return {
        "answer": trace.final_answer,
        "response": response if response != trace.final_answer else None,
        "links": links,
        "agreement": agreed and {"words": agreed["words"], "sign": AGREEMENT_SIGNS.get(agreed["state"], "poor")},
        "sources": [
            {"name": name, "value": value}
            for field, name in ANSWER_SOURCE_LABELS.items()
            if (value := getattr(trace, field))
        ],
        "evidence": [] if links else find_evidence_steps(record),
        "note": told.get("unwritten"),
    }


def find_evidence_steps(record: TraceRecord) -> list[int]:
    """The steps whose observations show all parts of the answer, or else few of them that together show the most."""
    wanted = normalize_answer(record.trace.final_answer or "")
    seen = {
        step.position: {part for part in wanted if f" {part} " in _normalize_text(step.observation)}
        for step in record.steps
        if step.observation
    }
    found = [position for position, shown in seen.items() if shown == wanted] or _select_covering_steps(seen)
    if len(found) > MAX_EVIDENCE_STEPS and all(part.isdigit() for part in wanted):
        return []
    return found[-MAX_EVIDENCE_STEPS:]


def _select_covering_steps(seen: Mapping[int, set[str]]) -> list[int]:
    """Steps each of which shows the most that those taken before it do not; of equals the one nearest to the answer."""
    taken: list[int] = []
    shown: set[str] = set()
    while best := max(seen, key=lambda position: (len(seen[position] - shown), position), default=None):
        if not seen[best] - shown:
            break
        taken.append(best)
        shown |= seen[best]
    return sorted(taken)


def _normalize_text(text: str) -> str:
    """Written as the parts of an answer are, so that one is found in the other."""
    return f" {' '.join(' '.join(sorted(normalize_answer(line))) for line in text.splitlines())} "


NEW_PROJECT_OPTION = "a new project …"
RESUMABLE_ENDINGS = ("stopped", "limit", "failed", None)
"""Endings from which a run can go on; None is an interruption."""


def start_ask(wanted: AskRequest) -> bool:
    """Begin in the background, and have the address name the trace; False when it cannot be asked."""
    try:
        ask = begin_run(services(), wanted)
    except ASK_ERRORS as refused:
        st.error(escape_markdown(str(refused)))
        return False
    _open_run(services().active_runs.start(ask))
    return True


def show_run_actions(record: TraceRecord, person: User) -> None:
    """The buttons of a run that has ended."""
    trace = record.trace
    if trace.run_id is None:
        return
    with st.container(horizontal=True, gap="small", key="acts"):
        if trace.ending in RESUMABLE_ENDINGS and trace.status in ("draft", "failed"):
            st.button("Go on", key="go_on", icon=":material/play_arrow:", on_click=_resume_run, args=(record,))
        st.button(
            "Ask again",
            key="again",
            icon=":material/replay:",
            on_click=_rerun_from_step,
            args=(record, 0),
            shortcut="Alt+A",
        )
        if st.button("Fix this", key="fix", icon=":material/build:", shortcut="Alt+X"):
            st.session_state["fix_from"] = len(record.steps)
        if st.button("Save as question", key="save", icon=":material/bookmark_add:"):
            _save_question(record)
        with st.popover("Share", icon=":material/share:"):
            st.caption("Whoever opens this link sees the trace as it is here.")
            st.code(_share_link(trace.id), language=None)
    position = st.session_state.pop("fix_from", None)
    if position is not None:
        _fork_for_repair(record, position, person)


def handle_run_action(record: TraceRecord, person: User, what: dict[str, Any]) -> None:
    """Do what was clicked in the notebook."""
    position = int(what["step"])
    if what["kind"] == "rate":
        _rate_step(record, position, int(what["rating"]), person)
    elif what["kind"] == "rerun":
        _rerun_from_step(record, position - 1)
    elif what["kind"] == "fix":
        # The page is left when it is drawn again; a callback cannot leave it.
        st.session_state["fix_from"] = position - 1


def _rate_step(record: TraceRecord, position: int, rating: int, person: User) -> None:
    step = next((step for step in record.steps if step.position == position), None)
    if step is None:
        return
    try:
        with services().database.begin() as session:
            runs.rate_run_step(session, step.id, rating, by=person.id)
    except StoreError as refused:
        st.session_state["notice"] = str(refused)


def _config_and_limits(record: TraceRecord) -> tuple[RunConfig, RunLimits]:
    told = record.trace.configuration
    return RunConfig.from_json(told["way"]), _current_limits(told)


def _current_limits(told: dict[str, Any]) -> RunLimits:
    """As the fields say now, since a run that reached one goes on with a higher one."""
    names = ("steps", "tokens", "seconds", "money")
    return RunLimits(**{name: st.session_state.get(f"ask_{name}", told["limits"].get(name)) for name in names})


def _resume_run(record: TraceRecord) -> None:
    try:
        services().active_runs.start(
            resume_run(services(), record.trace.id, _current_limits(record.trace.configuration))
        )
    except ASK_ERRORS as refused:
        st.session_state["notice"] = str(refused)


def _rerun_from_step(record: TraceRecord, position: int) -> None:
    """Answer the question again behind that step; the former trace stays as it is."""
    way, limits = _config_and_limits(record)
    try:
        _open_run(services().active_runs.start(rerun_from_step(services(), record.trace.id, position, way, limits)))
    except ASK_ERRORS as refused:
        st.session_state["notice"] = str(refused)


def _fork_for_repair(record: TraceRecord, position: int, person: User) -> None:
    """Open a draft of the person's on the Annotate page that keeps the steps up to there."""
    try:
        with services().database.begin() as session:
            forked = traces.fork_trace(session, record.trace.id, position, person.id)
    except StoreError as refused:
        st.error(escape_markdown(str(refused)))
        return
    place = {"you": person.name, "project": record.project.name, "trace": str(forked.id)}
    st.switch_page("annotate.py", query_params=place)


def _open_run(trace_id: UUID) -> None:
    st.query_params["trace"] = str(trace_id)
    st.query_params.pop("step", None)


def _share_link(trace_id: UUID) -> str:
    return f"{(st.context.url or '').partition('?')[0]}?trace={trace_id}"


@st.dialog("Save as question")
def _save_question(record: TraceRecord) -> None:
    with services().database.read() as session:
        over = [project.name for project in projects.list_projects(session) if project.world == record.project.world]
    st.markdown(f"**{escape_markdown(record.question.text)}**")
    chosen = st.selectbox(
        "Into the project", [*(name for name in over if name != record.project.name), NEW_PROJECT_OPTION]
    )
    name = st.text_input("Its name", key="save_project") if chosen == NEW_PROJECT_OPTION else chosen
    gold = st.text_input(
        "Gold answer", value=record.trace.final_answer or "", key="save_gold", help="Empty if it is not known."
    )
    if st.button("Save", key="save_now", type="primary", shortcut="Ctrl+Enter"):
        asked = FreeQuestion(
            record.question.text,
            gold_answers=({"text": gold.strip(), "entity": None},) if gold.strip() else (),
            details={"asked": str(record.trace.id)},
        )
        try:
            with services().database.begin() as session:
                project = projects.get_or_create_project(session, name.strip(), world=record.project.world)
                added = projects.add_questions(session, project.id, [asked]).added
        except StoreError as refused:
            st.error(escape_markdown(str(refused)))
        else:
            st.success(
                f"Saved into {escape_markdown(name)}."
                if added
                else f"{escape_markdown(name)} has this question already."
            )


REFRESH_SECONDS = 0.5
"""Seconds between two looks at a run that is at work."""
MAX_STREAMED_CHARACTERS = 4_000
"""Characters of what the model says that are shown while it says it; all of them join the record."""
ENDING_ADVICE = {
    "refused": "Answer it yourself with **Fix this**: approved and frozen, that is the demonstration that was missing. "
    "Or ask a model.",
    "failed": "Ask again, go on from where it broke, or mend the step with **Fix this**.",
    "stopped": "Go on from where it stopped, or ask again.",
    "limit": "Raise it under **Limits** and go on.",
    "interrupted": "The program ended while it was at work. Go on runs the unfinished step and what follows.",
}
INTERRUPTED_NOTE = "The run ended while this tool was at work; to go on runs it again first."


def show_run(trace_id: UUID, person: User) -> None:
    """Draw the run, anew twice a second while it is at work."""
    with services().database.read() as session:
        trace = traces.load_trace(session, trace_id).trace
    at_work = is_running(services(), trace)
    st.fragment(_show_panel, run_every=REFRESH_SECONDS if at_work else None)(trace_id, person, at_work=at_work)


def _show_panel(trace_id: UUID, person: User, *, at_work: bool) -> None:
    ask = services().active_runs.get(trace_id)
    with services().database.read() as session:
        record = traces.load_trace(session, trace_id)
    if at_work != is_running(services(), record.trace) or st.query_params.get("trace") != str(trace_id):
        # It has ended or goes on, or another one was begun: all of the page is another one now.
        st.rerun()
    if at_work:
        _show_running(record, ask)
    else:
        _show_ended(record)
        show_run_actions(record, person)
    if notice := st.session_state.pop("notice", None):
        st.error(escape_markdown(notice))
    answer = build_conclusion(record)
    if record.steps or answer:
        show_trace(
            record,
            editable=False,
            forkable=False,
            on_act=lambda what: handle_run_action(record, person, what),
            more={
                "ratable": True,
                "mendable": not at_work,
                "answers": [],
                "conclusion": answer,
                "interrupted": "The tool is at work …" if at_work else INTERRUPTED_NOTE,
                "hint": "",
                "spent": "",
            },
        )
    if at_work and ask is not None and ask.streamed_text:
        st.caption("The model says")
        st.html(f'<div class="saying">{escape_html(ask.streamed_text[-MAX_STREAMED_CHARACTERS:])}</div>')


def _show_running(record: TraceRecord, ask: BackgroundRun | None) -> None:
    trace = record.trace
    took = ask.elapsed_seconds if ask is not None else (utc_now() - trace.started_at).total_seconds()
    doing = (ask.phase if ask is not None else "") or f"step {len(record.steps) + 1}"
    told = " · ".join(filter(None, (doing, format_seconds(took), format_trace_cost(record.steps))))
    with st.container(horizontal=True, vertical_alignment="center", key="at_work"):
        st.markdown(f":material/pending: **At work** · {told}", width="stretch")
        if ask is None:
            st.caption("It runs in another process of this machine; stop it there.")
        else:
            st.button(
                "Stopping …" if ask.stop_requested else "Stop",
                key="stop",
                icon=":material/stop:",
                shortcut="Alt+S",
                on_click=ask.stop,
                disabled=ask.stop_requested,
            )


def _show_ended(record: TraceRecord) -> None:
    trace = record.trace
    took = format_seconds(trace.wall_seconds) if trace.wall_seconds is not None else ""
    told = " · ".join(filter(None, (_format_step_count(len(record.steps)), took, format_run_cost(trace.cost))))
    ending = trace.ending or ("interrupted" if trace.run_id is not None and trace.status == "draft" else None)
    if ending == "answered" or ending is None:
        maker = "by following a demonstration" if trace.reasoner == REPLAY else escape_markdown(record.creator_name)
        reviewed = f" · {trace.status}" if trace.ending and trace.status != "submitted" else ""
        st.caption(f"{(trace.ending or trace.status).capitalize()} {maker}{reviewed} · {told}")
        return
    say = {"refused": st.info, "failed": st.error}.get(ending, st.warning)
    say(f"**{ending.capitalize()}.** {_format_sentence(trace.failure)} {ENDING_ADVICE[ending]}")
    st.caption(told)


def _format_step_count(count: int) -> str:
    return f"{count} step" if count == 1 else f"{count} steps"


def _format_sentence(reason: str | None) -> str:
    """The reason with a capital letter and a full stop."""
    told = (reason or "").strip().rstrip(".")
    return escape_markdown(told[:1].upper() + told[1:] + ".") if told else ""
