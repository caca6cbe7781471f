"""The views of a run beside its trace: its demonstrations and why each was selected, the prompts, the settings."""

from typing import Any
from uuid import UUID

import streamlit as st

from app.pages.library.demonstrations import open_demonstration
from app.widgets.pick_reasons import render_pick_reasons
from app.widgets.plain_text import escape_markdown
from db.database import Database
from db.model_calls import list_model_calls, load_prompt
from db.models import ModelCall
from db.trace_configuration import TraceConfiguration
from db.trace_record import TraceRecord
from reasoners.registry import REASONERS
from runs.ask import ASK_ERRORS, run_config_of
from runs.services import Services

TRACE, DEMONSTRATIONS, PROMPT, SETTINGS = "Trace", "Demonstrations", "Prompt", "Settings"
RUN_VIEWS = (TRACE, DEMONSTRATIONS, PROMPT, SETTINGS)
TITLE_LENGTH = 90
"""Characters of a folded message's title."""
MAX_EXPLAINED = 3
"""How many of the demonstrations that replay tries first are explained, besides the ones that it followed."""


def choose_run_view(record: TraceRecord) -> str:
    """Draw the choice of view, which the URL stores; gives the open one."""
    entry = REASONERS.get(record.trace.reasoner)
    views = [view for view in RUN_VIEWS if view != PROMPT or entry is None or entry.needs_model]
    if st.query_params.get("look") not in views:
        st.query_params.pop("look", None)
    chosen = st.segmented_control(
        "View", views, default=TRACE, key="look", label_visibility="collapsed", required=True, bind="query-params"
    )
    return str(chosen)


def show_run_view(services: Services, view: str, record: TraceRecord) -> None:
    """Draw a view other than the trace."""
    try:
        if view == DEMONSTRATIONS:
            _show_demonstrations(services, record)
        elif view == PROMPT:
            _show_prompt(services.database, record)
        else:
            st.json(record.trace.configuration | {"encoder": services.settings.encoder}, expanded=2)
    except ASK_ERRORS as refused:
        st.error(escape_markdown(str(refused)))


def _show_demonstrations(services: Services, record: TraceRecord) -> None:
    stored = TraceConfiguration.from_json(record.trace.configuration)
    references = {str(reference.id) for reference in stored.demonstrations or ()}
    config = run_config_of(stored)
    if not references or config.library is None:
        st.info("The run used no demonstration: none fitted, or none was requested.")
        return
    with st.spinner("Selecting them again …"):
        library = services.open_library(config.library)[1]
        selection = library.select(record.question.text, config.selection_config(), leave_out_itself=True)
    followed = stored.followed_demonstrations
    explains_all = config.entry.explains_all_demonstrations
    explained = [
        place
        for place, demonstration in enumerate(selection.demonstrations)
        if str(demonstration.trace_id) in references
        and (explains_all or place < MAX_EXPLAINED or str(demonstration.trace_id) in followed)
    ]
    st.caption(
        f"{len(references)} of the library {escape_markdown(config.library)}, "
        + ("the most similar first; replay follows the first that fits." if not explains_all else "in this order.")
    )
    with st.container(horizontal=True, gap="small", key="picks"):
        for place in explained:
            demonstration = selection.demonstrations[place]
            with st.container(border=True, width=330, gap="small", key=f"pick_{place + 1}"):
                if str(demonstration.trace_id) in followed:
                    st.markdown(":material/check: **This one was followed.**")
                if st.button(
                    f"**{place + 1}** {escape_markdown(demonstration.question)}",
                    key=f"open_pick_{place}",
                    type="tertiary",
                    help="Open the demonstration",
                ):
                    open_demonstration(services.database, UUID(str(demonstration.trace_id)))
                if str(demonstration.trace_id) in followed:
                    st.caption(_format_alignment(dict(stored.replay or {})))
                st.html(render_pick_reasons(selection, library, place))


def _format_alignment(replayed: dict[str, Any]) -> str:
    """The names of the demonstration's question, each with the one that replaces it."""
    holes = replayed.get("alignment", {}).get("holes", ())
    return "  \n".join(f"{escape_markdown(hole['there'])} → **{escape_markdown(hole['here'])}**" for hole in holes)


def _show_prompt(database: Database, record: TraceRecord) -> None:
    with database.read() as session:
        calls = list_model_calls(session, record.trace.id)
    if not calls:
        st.info("No request to a model is stored for this run; an earlier version of Showhow did not store them.")
        return
    labels = [_request_label(record, call) for call in calls]
    place = st.selectbox(
        "Request", range(len(calls)), index=len(calls) - 1, format_func=labels.__getitem__, key="request", width=380
    )
    call = calls[place]
    with database.read() as session:
        messages = load_prompt(session, call.id)
    length = sum(len(message["content"]) for message in messages)
    st.caption(f"{len(messages)} messages, {length:,} characters, as they were sent to {escape_markdown(call.model)}.")
    for position, message in enumerate(messages):
        calls_of_message = message.get("tool_calls", ())
        title = message["content"] or " ".join(tool_call["name"] for tool_call in calls_of_message)
        begins = escape_markdown(title)[:TITLE_LENGTH]
        with st.expander(f"**{message['role']}** {begins} …", expanded=position in (0, len(messages) - 1)):
            st.code(message["content"] or " ", language=None, wrap_lines=True)
            for tool_call in calls_of_message:
                st.code(f"{tool_call['name']}({tool_call['arguments']})", language=None, wrap_lines=True)
    if call.error:
        st.error(escape_markdown(call.error))
    elif call.reply is not None:
        with st.expander("**reply**", expanded=False):
            st.json(call.reply)


def _request_label(record: TraceRecord, call: ModelCall) -> str:
    step = next((step for step in record.steps if step.id == call.step_id), None)
    place = f"step {step.position}" if step is not None else "after the last step"
    purpose = "" if call.purpose == "step" else f", {call.purpose}"
    state = "" if call.state == "answered" else f" ({call.state})"
    return f"{place}{purpose}{state}"
