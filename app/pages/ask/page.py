"""The Ask page: a reasoner answers a question; its run can be stopped, continued, fixed and found in the history."""

from typing import Any
from uuid import UUID

import streamlit as st

from showhow.app.pages.ask.examples import SCAN_LIMIT, find_examples
from showhow.app.pages.ask.form import seed_ask_form, show_ask_form
from showhow.app.pages.ask.run_view import rerun, show_run, start_ask
from showhow.app.pages.library.demonstrations import open_demonstration
from showhow.app.widgets.autosave import mount_question_autosave
from showhow.app.widgets.manage import show_removal_notice, show_run_button
from showhow.app.widgets.page_layout import escape_html, escape_markdown, format_sentence, format_when, show_head
from showhow.app.widgets.person import acting_services, current_user
from showhow.app.widgets.queue import current_project
from showhow.app.widgets.selection_form import render_pick_reasons
from showhow.app.widgets.url_state import open_run
from showhow.db.database import Database, RowNotFound
from showhow.db.models import ModelCall, User
from showhow.db.runs import runs
from showhow.db.runs.runs import ASK_RUN_NAME
from showhow.db.traces import traces
from showhow.db.traces.model_calls import list_model_calls, load_prompt
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.traces.unsent_questions import find_unsent_question, forget_unsent_question
from showhow.evaluation.value_format import format_count
from showhow.llm.profiles import ProfileError
from showhow.reasoners.registry import REASONERS, ReasonerEntry, reasoner_title
from showhow.reasoners.replay.derivations import DERIVATIONS
from showhow.runs.ask import ASK_ERRORS
from showhow.runs.preparation import find_entry
from showhow.runs.services import Services

TRACE, DEMONSTRATIONS, PROMPT, SETTINGS = "Trace", "Demonstrations", "Prompt", "Settings"
RUN_VIEWS = (TRACE, DEMONSTRATIONS, PROMPT, SETTINGS)
TITLE_LENGTH = 90
"""Characters of the title of a collapsed message."""
MAX_EXPLAINED = 3
"""How many of replay's first candidates are explained, besides the demonstrations that it followed."""


def choose_run_view(record: TraceRecord) -> str:
    """Draw the choice of view, which the URL stores; returns the open view."""
    entry = REASONERS.get(record.trace.reasoner)
    unused = set() if entry is None else _list_unused_views(entry)
    views = [view for view in RUN_VIEWS if view not in unused]
    if st.query_params.get("look") not in views:
        st.query_params.pop("look", None)
    chosen = st.segmented_control(
        "View", views, default=TRACE, key="look", label_visibility="collapsed", required=True, bind="query-params"
    )
    return str(chosen)


def _list_unused_views(entry: ReasonerEntry) -> set[str]:
    return ({PROMPT} if not entry.needs_model else set()) | (
        {DEMONSTRATIONS} if not entry.uses_demonstrations else set()
    )


def show_run_view(services: Services, view: str, record: TraceRecord) -> None:
    """Draw a view other than the trace."""
    try:
        if view == DEMONSTRATIONS:
            _show_demonstrations(services, record)
        elif view == PROMPT:
            _show_prompt(services.database, record)
        else:
            if record.run is not None:
                show_run_button(services, record.run, parameters=["trace", "step", "look"])
            st.json(record.named_values | {"encoder": services.settings.encoder}, expanded=2)
    except ASK_ERRORS as error:
        st.error(format_sentence(str(error)))


def _show_demonstrations(services: Services, record: TraceRecord) -> None:
    stored, spec = record.trace.result, record.spec
    references = {str(reference.id) for reference in stored.demonstrations or ()}
    if not references or spec.library is None:
        st.info("The run used no demonstration: none matched, or none was requested.")
        return
    with st.spinner("Selecting them again …"):
        entry = find_entry(spec)
        library = services.open_demonstrations(spec.library, entry.planning_skill)
        selection = library.select(
            record.question.full_text, entry.selection_config(spec.options), leave_out_itself=not entry.repeats
        )
    followed = stored.followed_demonstrations
    explains_all = entry.explains_all_demonstrations
    explained = [
        index
        for index, demonstration in enumerate(selection.demonstrations)
        if str(demonstration.trace_id) in references
        and (explains_all or index < MAX_EXPLAINED or str(demonstration.trace_id) in followed)
    ]
    st.caption(
        f"{format_count(len(references), 'demonstration')} of the library {escape_markdown(spec.library)}, "
        + (
            "the most similar first; replay follows the first one that matches."
            if not explains_all
            else "in this order."
        )
    )
    with st.container(horizontal=True, gap="small", key="picks"):
        for index in explained:
            demonstration = selection.demonstrations[index]
            with st.container(border=True, width=330, gap="small", key=f"pick_{index + 1}"):
                if str(demonstration.trace_id) in followed:
                    st.markdown(":material/check: **Followed by the replay.**")
                if st.button(
                    f"**{index + 1}** {escape_markdown(demonstration.summary)}",
                    key=f"open_pick_{index}",
                    type="tertiary",
                    help="Open the demonstration",
                ):
                    open_demonstration(services, UUID(str(demonstration.trace_id)))
                if str(demonstration.trace_id) in followed:
                    st.caption(_format_alignment(dict(stored.replay or {})))
                st.html(render_pick_reasons(selection, library, index))
    _show_slot_form(services, record, dict(stored.replay or {}))


def _format_alignment(replay: dict[str, Any]) -> str:
    """The slots of the demonstration's question with their texts here, the words taken for others, the confidence."""
    alignment = replay.get("alignment", {})
    lines = [
        f"{escape_markdown(slot['there'])} → **{escape_markdown(slot['here'])}**" for slot in alignment.get("slots", ())
    ]
    lines += [
        f"{escape_markdown(own)} is taken for {escape_markdown(shown)}" for own, shown in alignment.get("soft", ())
    ]
    if "derivation" in alignment:
        lines.append(f"The answer is {DERIVATIONS.get(alignment['derivation'], alignment['derivation'])}.")
    if "confidence" in replay:
        lines.append(f"Confidence **{replay['confidence']:.2f}**; at least {replay['threshold']:.2f} is needed.")
    return "  \n".join(lines)


def _show_slot_form(services: Services, record: TraceRecord, replay: dict[str, Any]) -> None:
    """Draw the slots to correct, and a button that follows the demonstration again with their texts."""
    alignment = replay.get("alignment", {})
    slots = alignment.get("slots", ())
    if not slots or record.trace.ending is None:
        return
    # Runs of earlier versions store no key; they followed whole demonstrations.
    program = alignment.get("program", replay["demonstrations"][0]["id"])
    with st.form("slots", border=True, width="content"):
        st.markdown("Correct what was taken from your question, and follow the demonstration again:")
        for number, slot in enumerate(slots):
            st.text_input(slot["there"], slot["here"], key=f"slot_{number}")
        st.form_submit_button(
            "Run with these values",
            icon=":material/replay:",
            on_click=_follow_with_slots,
            args=(services, record, program, len(slots)),
        )


def _follow_with_slots(services: Services, record: TraceRecord, demonstration: str, count: int) -> None:
    texts = [str(st.session_state[f"slot_{number}"]) for number in range(count)]
    rerun(services, record, 0, current_user(services.database), {"demonstration": demonstration, "slots": texts})


def _show_prompt(database: Database, record: TraceRecord) -> None:
    with database.read() as session:
        calls = list_model_calls(session, record.trace.id)
    if not calls:
        st.info("This run has no stored requests to a model; earlier versions of Showhow did not store them.")
        return
    labels = [_request_label(record, call) for call in calls]
    index = st.selectbox(
        "Request", range(len(calls)), index=len(calls) - 1, format_func=labels.__getitem__, key="request", width=380
    )
    call = calls[index]
    with database.read() as session:
        messages = load_prompt(session, call.id)
    length = sum(len(message["content"]) for message in messages)
    versions = record.spec.prompt_versions
    version = f" Prompt version {escape_markdown(versions[call.purpose])}." if call.purpose in versions else ""
    st.caption(
        f"{len(messages)} messages, {length:,} characters, as they were sent to {escape_markdown(call.model)}.{version}"
    )
    for position, message in enumerate(messages):
        calls_of_message = message.get("tool_calls", ())
        title = message["content"] or " ".join(tool_call["name"] for tool_call in calls_of_message)
        title_start = escape_markdown(title)[:TITLE_LENGTH]
        with st.expander(f"**{message['role']}** {title_start} …", expanded=position in (0, len(messages) - 1)):
            st.code(message["content"] or " ", language=None, wrap_lines=True)
            for tool_call in calls_of_message:
                st.code(f"{tool_call['name']}({tool_call['arguments']})", language=None, wrap_lines=True)
    if call.error:
        st.error(format_sentence(call.error))
    elif call.reply is not None:
        with st.expander("**reply**", expanded=False):
            st.json(call.reply)


def _request_label(record: TraceRecord, call: ModelCall) -> str:
    step = next((step for step in record.steps if step.id == call.step_id), None)
    location = f"step {step.position}" if step is not None else "after the last step"
    purpose = "" if call.purpose == "step" else f", {call.purpose}"
    state = "" if call.state == "answered" else f" ({call.state})"
    return f"{location}{purpose}{state}"


HISTORY_LENGTH = 25
ENDING_ICONS = {
    "answered": ":material/check:",
    "refused": ":material/do_not_disturb_on:",
    "stopped": ":material/stop:",
    "interrupted": ":material/pause:",
    "waiting": ":material/edit:",
    "limit": ":material/hourglass_disabled:",
    "failed": ":material/error:",
    None: ":material/pending:",
}


def show_history(database: Database, person: User) -> None:
    """Draw the menu of the person's latest runs, or of everybody's with their names."""
    with st.popover("History", icon=":material/history:"):
        shows_all = st.toggle("Show everybody's", key="history_of_all", persist_state="session")
        with database.read() as session:
            latest = runs.list_latest_traces(session, ASK_RUN_NAME, limit=SCAN_LIMIT)
        latest = [run for run in latest if shows_all or run.asked_by == person.name][:HISTORY_LENGTH]
        if not latest:
            st.caption("Questions that you ask appear in this list.")
        with st.container(gap="small", key="list_asks"):
            for run in latest:
                st.button(
                    f"{ENDING_ICONS[run.ending]} {escape_markdown(run.question)}",
                    key=f"asked_{run.trace_id.hex}",
                    type="tertiary",
                    help=escape_markdown(run.final_answer or run.ending or "running or interrupted"),
                    on_click=open_run,
                    args=(run.trace_id,),
                )
                who = f"{run.asked_by or 'command line'} · " if shows_all else ""
                details = f"{who}{format_when(run.started_at)} · {run.world} · {reasoner_title(run.reasoner)}"
                st.caption(escape_markdown(details))


def show_examples(database: Database) -> None:
    """Draw questions that match the library's demonstrations; a click puts one into the field."""
    examples = find_examples(database, str(st.session_state.get("ask_world", "")), st.session_state.get("ask_library"))
    if not examples:
        return
    with st.container(gap="small", key="examples_to_ask"):
        st.caption("Example questions; no demonstration contains their answers.")
        for index, text in enumerate(examples):
            st.button(
                escape_markdown(text),
                key=f"example_{index}",
                type="tertiary",
                icon=":material/north_west:",
                help="Put it into the field",
                on_click=_fill_question,
                args=(text,),
            )


def _fill_question(text: str) -> None:
    st.session_state["ask_question"] = text


def restore_unsent_question(database: Database, person: User) -> None:
    """Fill the field with what the person typed in a former session and did not ask; a link's question stays."""
    with database.read() as session:
        unsent = find_unsent_question(session, person.id)
        latest = runs.list_latest_traces(session, ASK_RUN_NAME, limit=SCAN_LIMIT)
    # A draft that was on its way when its question was asked is stored after that.
    asked = next((run.question for run in latest if run.asked_by == person.name), "")
    if unsent.strip() not in ("", asked) and "question" not in st.query_params:
        st.session_state["ask_question"] = unsent


def load_record(database: Database) -> TraceRecord | None:
    """Load the trace that the link names; None if it names none, or one that does not exist."""
    trace_id = st.query_params.get("trace", "")
    if not trace_id:
        return None
    try:
        with database.read() as session:
            record = traces.load_linked_trace(session, UUID(trace_id))
    except (ValueError, RowNotFound):
        return None
    # An id may be written in other ways; the view of the run compares it with the one in the link.
    st.query_params["trace"] = str(record.trace.id)
    return record


services, person = acting_services()
database = services.database
record = load_record(database)
try:
    profiles = services.model_profiles()
except ProfileError as error:
    st.error(escape_markdown(str(error)))
    profiles = {}
show_removal_notice()
is_new_session = "ask_seeded" not in st.session_state
seed_ask_form(record, current_project(database), has_model=bool(profiles))
if is_new_session:
    restore_unsent_question(database, person)
with show_head("Ask"):
    show_history(database, person)
ask_request = show_ask_form(services, profiles, explained=record is None) if person.roles else None
if ask_request is not None and start_ask(services, ask_request, person):
    with database.begin() as session:
        forget_unsent_question(session, person.id)
    st.rerun()
if person.roles:
    typed = st.session_state.get("ask_question", "")
    mount_question_autosave(database, person, st.query_params.get("trace", ""), typed, "ask_question")
if record is None:
    if st.query_params.get("trace"):
        st.warning("The trace in the link does not exist. Ask a question, or open one from the history.")
    st.caption(
        "Each step appears here with its observation as soon as it is done. Every run is stored, so you can share it, "
        "fix it, and turn it into a demonstration."
    )
    show_examples(database)
else:
    if " ".join(st.session_state["ask_question"].split()) != record.question.text:
        # The person has edited the field since the run.
        st.html(f'<h2 class="question">{escape_html(record.question.text)}</h2>')
    view = choose_run_view(record)
    if view == TRACE:
        show_run(services, record.trace.id, person)
    else:
        show_run_view(services, view, record)
