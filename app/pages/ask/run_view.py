"""The view of a run: progress and streamed text while it runs, then the answer with its evidence and buttons.

The buttons fix the run, ask again, continue, save the question and share the run; its steps can be rated.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

import streamlit as st

from showhow.app.pages.ask.form import spec_in_form, start_run
from showhow.app.pages.ask.reply_form import FormButton, show_reply_form
from showhow.app.widgets.choices import compare_on_request
from showhow.app.widgets.notebook import format_run_cost, format_trace_cost, show_trace, status_label
from showhow.app.widgets.page_layout import errors_shown, escape_html, escape_markdown, format_sentence
from showhow.app.widgets.queue import current_project
from showhow.app.widgets.url_state import open_run
from showhow.db.database import Database, StoreError
from showhow.db.models import UNFINISHED_ENDINGS, Step, User
from showhow.db.people import users
from showhow.db.questions import projects
from showhow.db.runs import runs
from showhow.db.traces import traces
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.types import seconds_since
from showhow.db.unanswerable import normalize_unanswerable
from showhow.evaluation.comparison.gold_comparison import find_gold_responder
from showhow.evaluation.value_format import format_count, format_seconds
from showhow.reasoners.answers.extraction import find_evidence_steps
from showhow.reasoners.answers.normalization import ALL_AGREE, TWO_AGREE
from showhow.reasoners.registry import REASONERS, reasoner_title
from showhow.runs.active_runs import BackgroundRun
from showhow.runs.ask import ASK_ERRORS, AskRequest, FreeQuestion, begin_run, is_running
from showhow.runs.preparation import find_entry
from showhow.runs.resume import (
    WrittenReply,
    list_awaited_steps,
    rerun_from_step,
    rerun_with_reply,
    resume_run,
    resume_with_reply,
)
from showhow.runs.services import Services

AGREEMENT_SIGNS = {ALL_AGREE: "good", TWO_AGREE: "fair"}
"""The style of an answer by the agreement of its sources; "poor" for other states."""
ANSWER_SOURCE_LABELS = {
    "answer_text": "From the text",
    "answer_graph": "From the graph",
    "answer_model": "From the model's own knowledge",
    "final_thought": "Last thought",
}


def build_conclusion(record: TraceRecord, evidence: list[int] | None = None) -> dict[str, Any] | None:
    """The answer and its evidence as data for the notebook; None without an answer.

    `evidence` are the steps of find_evidence_steps, if they are known.
    """
    trace, result = record.trace, record.trace.result
    if trace.final_answer is None:
        return None
    agreement = result.agreement
    return {
        "answer": trace.final_answer,
        "response": result.response if result.response != trace.final_answer else None,
        "links": list(result.links),
        "agreement": agreement and {"words": agreement.words, "sign": AGREEMENT_SIGNS.get(agreement.state, "poor")},
        "sources": [
            {"name": name, "value": value}
            for field, name in ANSWER_SOURCE_LABELS.items()
            if (value := getattr(trace, field))
        ],
        "evidence": [] if result.links else find_evidence_steps(record) if evidence is None else evidence,
        "note": result.response_error,
    }


NEW_PROJECT_OPTION = "a new project …"
RESUMABLE_ENDINGS = (*UNFINISHED_ENDINGS, "limit", "failed", None)
"""Endings after which a run can be continued; None is an interruption."""


def start_ask(services: Services, request: AskRequest, person: User) -> bool:
    """Start the run in the background and open its trace; if it is refused, show the error and return False."""
    try:
        responder = find_gold_responder(
            services, request.spec.skills, request.world, " ".join(request.question.split())
        )
        run = begin_run(services, replace(request, spec=request.spec.replace(asked_by=person.name)))
    except ASK_ERRORS as error:
        st.error(format_sentence(str(error)))
        return False
    run.responder = responder
    open_run(services.active_runs.start(run))
    return True


def show_run_actions(services: Services, record: TraceRecord, person: User) -> None:
    """Draw the buttons of a run that has ended."""
    trace = record.trace
    if trace.run_id is None or not person.roles:
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
            on_click=rerun,
            args=(services, record, 0, person),
            shortcut="Alt+A",
        )
        if st.button("Fix this", key="fix", icon=":material/build:", shortcut="Alt+X"):
            st.session_state["fix_from"] = len(record.steps)
        if st.button("Save as question", key="save", icon=":material/bookmark_add:"):
            _save_question(services.database, record)
        with st.popover("Share", icon=":material/share:"):
            st.caption("Anyone who opens this link sees this trace.")
            st.code(_share_link(trace.id), language=None)
    if (position := st.session_state.pop("fix_from", None)) is not None:
        _fork_for_repair(services.database, record, position, person)
    if (changed_step := st.session_state.pop("change_reply_of", None)) is not None:
        _change_reply(services, record, int(changed_step), person)


def handle_run_action(services: Services, record: TraceRecord, person: User, action: dict[str, Any]) -> None:
    """Carry out an action of the notebook (rate, rerun, fix)."""
    position = action["step"]
    if action["kind"] == "rate":
        _rate_step(services.database, record, position, action["rating"] or None, person)
    elif action["kind"] == "rerun":
        rerun(services, record, position - 1, person)
    elif action["kind"] == "fix":
        # A callback cannot switch pages, so the next script run does it.
        st.session_state["fix_from"] = position - 1
    elif action["kind"] == "change":
        st.session_state["change_reply_of"] = position


@st.dialog("Change the reply", width="large")
def _change_reply(services: Services, record: TraceRecord, position: int, person: User) -> None:
    """Let the person write the reply of a skill, and open the run that goes on with it."""
    spec = spec_in_form(record)
    entry = find_entry(spec)
    step = next((step for step in record.steps if step.position == position), None)
    skill = None if step is None else entry.find_skill(step.skill)
    if step is None or skill is None:
        st.error(f"Step {position} calls no skill that {escape_markdown(reasoner_title(entry.name))} has now.")
        return
    document = show_reply_form(
        skill,
        step,
        "A new run goes on from this step with your reply, which its trace marks as yours. It takes the results of "
        "later steps wherever the same is asked. This trace stays as it is.",
        FormButton("Run on from here", "Ctrl+Enter"),
    )
    if document is None:
        return
    written = WrittenReply(position, document, person.name)
    with errors_shown(*ASK_ERRORS):
        open_run(start_run(services, rerun_with_reply(services, record.trace.id, written, spec)))
        st.rerun()


def _show_awaited_reply(services: Services, record: TraceRecord, awaited: Sequence[Step], person: User) -> None:
    """Draw the form of the first reply for which a run waits; the run goes on once the last one is written."""
    spec = spec_in_form(record)
    step, entry = awaited[0], find_entry(spec)
    skill = entry.find_skill(step.skill)
    if skill is None:
        title = escape_markdown(reasoner_title(entry.name))
        st.error(f"Step {step.position} calls a skill that {title} does not have any more.")
        return
    with st.container(border=True, key="awaited"):
        document = show_reply_form(
            skill,
            step,
            "The run waits for your reply and then goes on with it."
            if len(awaited) == 1
            else f"This is the first of {len(awaited)} replies for which the run waits; it goes on after the last one.",
            FormButton("Reply", "Alt+Enter"),
        )
        if document is None:
            return
        written = WrittenReply(step.position, document, person.name)
        try:
            run = resume_with_reply(services, record.trace.id, written, spec.limits)
            if run is not None:
                start_run(services, run)
        except ASK_ERRORS as error:
            st.error(format_sentence(str(error)))
            return
    st.rerun()


def _rate_step(database: Database, record: TraceRecord, position: int, rating: int | None, person: User) -> None:
    step = next((step for step in record.steps if step.position == position), None)
    if step is None:
        return
    try:
        with database.begin() as session:
            runs.rate_run_step(session, step.id, rating, by=users.register_user(session, person.name).id)
    except StoreError as error:
        st.session_state["notice"] = str(error)
    # A rating does not change the version of the trace.
    st.session_state.pop(RECORD_KEY, None)


def _resume_run(services: Services, record: TraceRecord) -> None:
    try:
        start_run(services, resume_run(services, record.trace.id, spec_in_form(record).limits))
    except ASK_ERRORS as error:
        st.session_state["notice"] = str(error)


def rerun(
    services: Services, record: TraceRecord, position: int, person: User, changed: Mapping[str, Any] | None = None
) -> None:
    """Answer the question again from that step on, in a new trace, with changed options if there are any."""
    spec = spec_in_form(record)
    spec = spec.replace(options={**spec.options, **(changed or {})}, asked_by=person.name)
    try:
        run = rerun_from_step(services, record.trace.id, position, spec)
        open_run(start_run(services, run))
    except ASK_ERRORS as error:
        st.session_state["notice"] = str(error)


def _fork_for_repair(database: Database, record: TraceRecord, position: int, person: User) -> None:
    """Fork a draft with the steps up to that position and open it on the Annotate page."""
    try:
        with database.begin() as session:
            author = users.register_user(session, person.name)
            fork = traces.fork_trace(session, record.trace.id, position, author.id)
    except StoreError as error:
        st.error(format_sentence(str(error)))
        return
    project = current_project(database) or record.project
    kept = {"you": person.name, "project": project.name}
    st.switch_page("annotate/page.py", query_params={**kept, "trace": str(fork.id)})


def _share_link(trace_id: UUID) -> str:
    return f"{(st.context.url or '').partition('?')[0]}?trace={trace_id}"


@st.dialog("Save as question")
def _save_question(database: Database, record: TraceRecord) -> None:
    with database.read() as session:
        names = [project.name for project in projects.list_projects(session) if project.world == record.project.world]
    st.markdown(f"**{escape_markdown(record.question.text)}**")
    chosen = st.selectbox("Project", [*(name for name in names if name != record.project.name), NEW_PROJECT_OPTION])
    name = st.text_input("Name of the project", key="save_project") if chosen == NEW_PROJECT_OPTION else chosen
    gold = st.text_input(
        "Gold answer", value=record.trace.final_answer or "", key="save_gold", help="Leave empty if it is unknown."
    )
    if st.button("Save", key="save_now", type="primary", shortcut="Ctrl+Enter"):
        question = FreeQuestion(
            record.question.text,
            gold_answers=({"text": normalize_unanswerable(gold) or gold.strip(), "entity": None},)
            if gold.strip()
            else (),
            details={"asked": str(record.trace.id)},
        )
        with errors_shown(StoreError):
            with database.begin() as session:
                project = projects.get_or_create_project(session, name.strip(), world=record.project.world)
                added_count = projects.add_question(session, project.id, question).added
            shown_name = escape_markdown(name)
            st.success(f"Saved into {shown_name}." if added_count else f"{shown_name} has this question already.")


RECORD_KEY = "record_of_run"
"""The key of the session for the trace that is shown."""
REFRESH_SECONDS = 0.5
"""Seconds between two refreshes of a run in progress."""
MAX_STREAMED_CHARACTERS = 4_000
"""How many of the last characters of streamed text are shown; all are stored."""
ENDING_ADVICE = {
    "refused": "Answer it yourself with **Fix this**; once approved and frozen, your trace is the missing "
    "demonstration. Or ask with another reasoner.",
    "failed": "Ask again, **Continue** from where it failed, or fix the step with **Fix this**.",
    "stopped": "**Continue** from where it stopped, or ask again.",
    "limit": "Raise the limit under **Options**, then **Continue**.",
    "waiting": "Write the reply below.",
    "interrupted": "The program ended during the run. **Continue** runs the unfinished step and goes on.",
}
INTERRUPTED_NOTE = "The run ended while this tool was running. Continue runs the tool again first."


def show_run(services: Services, trace_id: UUID, person: User) -> None:
    """Draw the run, and refresh it while it is running."""
    st.session_state.pop(RECORD_KEY, None)
    running = is_running(services, _load_record(services, trace_id).trace)
    panel = st.fragment(_show_panel, run_every=REFRESH_SECONDS if running else None)
    panel(services, trace_id, person, running=running)
    if not running:
        st.session_state.pop(RECORD_KEY, None)


def _load_record(services: Services, trace_id: UUID) -> TraceRecord:
    """The trace, loaded again only after it changed: a refresh of a run whose steps are large would be slow."""
    stored: TraceRecord | None = st.session_state.get(RECORD_KEY)
    with services.database.read() as session:
        if (
            stored is None
            or stored.trace.id != trace_id
            or stored.trace.version != runs.trace_version(session, trace_id)
        ):
            stored = traces.load_trace(session, trace_id)
            st.session_state[RECORD_KEY] = stored
    return stored


def _show_panel(services: Services, trace_id: UUID, person: User, *, running: bool) -> None:
    active_run = services.active_runs.get(trace_id)
    record = _load_record(services, trace_id)
    if running != is_running(services, record.trace) or st.query_params.get("trace") != str(trace_id):
        # The run has ended or was continued, or another run was opened, so the whole page changes.
        st.rerun()
    if running:
        _show_running(record, active_run)
    else:
        _show_ended(record)
        if awaited := list_awaited_steps(record):
            _show_awaited_reply(services, record, awaited, person)
        show_run_actions(services, record, person)
    if notice := st.session_state.pop("notice", None):
        st.error(format_sentence(notice))
    answer = build_conclusion(record, _known_evidence(record))
    if record.steps or answer:
        show_trace(
            record,
            editable=False,
            forkable=False,
            grows=running,
            on_act=lambda action: handle_run_action(services, record, person, action),
            overrides={
                "ratable": True,
                "folded": not running,
                "fixable": not running,
                "changeable": not running and _lists_skills(record),
                "gold": None if running else compare_on_request(services, record),
                "answers": [],
                "conclusion": answer,
                "interrupted": "The tool is running …" if running else INTERRUPTED_NOTE,
                "hint": "",
                "spent": "",
            },
        )
    if running and active_run is not None and active_run.streamed_text:
        st.caption("The model is writing:")
        st.html(f'<div class="saying">{escape_html(active_run.streamed_text[-MAX_STREAMED_CHARACTERS:])}</div>')


def _lists_skills(record: TraceRecord) -> bool:
    """Whether the reasoner of the run lists its skills, so that their replies can be checked and changed."""
    return bool(record.trace.reasoner in REASONERS and REASONERS[record.trace.reasoner].skills)


def _known_evidence(record: TraceRecord) -> list[int] | None:
    """The evidence of a trace that has an answer; of a long one, looking for it takes seconds, so it is done once."""
    if record.trace.final_answer is None:
        return None
    key = f"evidence_{record.trace.id.hex}"
    stored: tuple[int, list[int]] | None = st.session_state.get(key)
    if stored is None or stored[0] != record.trace.version:
        stored = (record.trace.version, find_evidence_steps(record))
        st.session_state[key] = stored
    return stored[1]


def _show_running(record: TraceRecord, run: BackgroundRun | None) -> None:
    seconds = run.elapsed_seconds if run is not None else seconds_since(record.trace.started_at)
    phase = (run.phase if run is not None else "") or f"step {len(record.steps) + 1}"
    status = " · ".join(filter(None, (phase, format_seconds(seconds), format_trace_cost(record.steps))))
    with st.container(horizontal=True, vertical_alignment="center", key="at_work"):
        st.markdown(f":material/pending: **Running** · {status}", width="stretch")
        if run is None:
            st.caption("This run belongs to another process on this machine. Stop it there.")
        else:
            st.button(
                "Stopping …" if run.stop_requested else "Stop",
                key="stop",
                icon=":material/stop:",
                shortcut="Alt+S",
                on_click=run.stop,
                disabled=run.stop_requested,
            )


def format_calls(calls: Mapping[str, Any], *, has_skills: bool) -> str:
    """The calls of a run with skills, counted beside expected, which a failed run does not tell; "" for any other."""
    expected = calls.get("model_calls_expected")
    if expected is None and not (has_skills and calls):
        return ""
    path = format_seconds(float(calls.get("critical_path", 0.0)))
    retrievals = format_count(int(calls.get("retrievals", 0)), "retrieval")
    reused = f" · {calls['reused']:,} results taken from the former run" if calls.get("reused") else ""
    counted = f"skills: {format_count(int(calls.get('model_calls', 0)), 'call')}"
    counts = counted if expected is None else f"{counted}, {expected:,} expected"
    return f"{counts} · {retrievals}{reused} · critical path {path}"


def _describe_author(record: TraceRecord) -> str:
    """Who answered, as Markdown: the title of the reasoner with its model, or a person."""
    model = record.spec.model_label
    author = f"by {reasoner_title(record.trace.reasoner)}" + (f" with {model}" if model else "")
    return escape_markdown(author if record.trace.reasoner in REASONERS else record.creator_name)


def _show_ended(record: TraceRecord) -> None:
    trace = record.trace
    duration = format_seconds(trace.wall_seconds) if trace.wall_seconds is not None else ""
    has_skills = any(step.skill is not None and step.tool is None for step in record.steps)
    spec = record.spec
    days = spec.date_notation and f"days as {spec.date_notation}"
    calls = format_calls(trace.result.calls, has_skills=has_skills)
    parts = (format_count(len(record.steps), "step"), duration, format_run_cost(trace.cost), calls, days)
    summary = " · ".join(filter(None, parts))
    ending = trace.ending or ("interrupted" if trace.run_id is not None and trace.status == "draft" else None)
    if ending == "answered" or ending is None:
        author = _describe_author(record)
        status_note = f" · {status_label(trace.status)}" if trace.ending and trace.status != "submitted" else ""
        st.caption(f"{(trace.ending or trace.status).capitalize()} {author}{status_note} · {summary}")
        return
    show_notice = {"refused": st.info, "waiting": st.info, "failed": st.error}.get(ending, st.warning)
    show_notice(f"**{ending.capitalize()}.** {format_sentence(trace.failure or '')} {ENDING_ADVICE[ending]}")
    model = spec.model_label or ""
    st.caption(" · ".join(filter(None, (escape_markdown(model), summary))))
