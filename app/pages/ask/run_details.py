"""What lies behind a run: which demonstrations it was given and why each, the exact prompt, the configuration."""

from typing import Any
from uuid import UUID

import streamlit as st

from app.pages.library.demonstrations import open_demonstration
from app.services import services
from app.widgets.pick_reasons import render_pick_reasons
from app.widgets.plain_text import escape_markdown
from db.trace_record import TraceRecord
from runs.ask import ASK_ERRORS, rebuild_prompt
from runs.preparation import REPLAY, RunConfig

TRACE, DEMONSTRATIONS, PROMPT, SETTINGS = "Trace", "Demonstrations", "Prompt", "Settings"
RUN_VIEWS = (TRACE, DEMONSTRATIONS, PROMPT, SETTINGS)
TITLE_LENGTH = 90
"""Characters of a message that stand where it is folded away."""
MAX_EXPLAINED = 3
"""Of the demonstrations that replay may follow, those that are explained besides the one that it followed."""


def choose_run_view(record: TraceRecord) -> str:
    """Which side of the run is looked at; the address says it."""
    looks = [look for look in RUN_VIEWS if look != PROMPT or record.trace.reasoner != REPLAY]
    if st.query_params.get("look") not in looks:
        st.query_params.pop("look", None)
    chosen = st.segmented_control(
        "Look", looks, default=TRACE, key="look", label_visibility="collapsed", required=True, bind="query-params"
    )
    return str(chosen)


def show_run_view(look: str, record: TraceRecord) -> None:
    """The chosen side, if it is not the trace itself."""
    try:
        if look == DEMONSTRATIONS:
            _show_demonstrations(record)
        elif look == PROMPT:
            _show_prompt(record)
        else:
            st.json(record.trace.configuration | {"encoder": services().settings.encoder}, expanded=2)
    except ASK_ERRORS as refused:
        st.error(escape_markdown(str(refused)))


def _show_demonstrations(record: TraceRecord) -> None:
    told = record.trace.configuration
    given = {each["id"] for each in told.get("demonstrations", ())}
    way = RunConfig.from_json(told["way"])
    if not given or way.library is None:
        st.info("No demonstration was given: there was none to choose, or none was wanted.")
        return
    with st.spinner("Choosing as it was chosen then …"):
        opened = services().open_library(way.library)[1]
        chosen = opened.select(record.question.text, way.selection_config(), leave_out_itself=True)
    replayed = told.get("replay") or {}
    followed = {each["id"] for each in replayed.get("demonstrations", ())}
    shown = [
        place
        for place, each in enumerate(chosen.demonstrations)
        if str(each.trace_id) in given
        and (way.reasoner != REPLAY or place < MAX_EXPLAINED or str(each.trace_id) in followed)
    ]
    st.caption(
        f"{len(given)} of the library {escape_markdown(way.library)}, "
        + ("the most alike first; the first that fits is followed." if way.reasoner == REPLAY else "in this order.")
    )
    with st.container(horizontal=True, gap="small", key="picks"):
        for place in shown:
            each = chosen.demonstrations[place]
            with st.container(border=True, width=330, gap="small", key=f"pick_{place + 1}"):
                if str(each.trace_id) in followed:
                    st.markdown(":material/check: **This one was followed.**")
                if st.button(
                    f"**{place + 1}** {escape_markdown(each.question)}",
                    key=f"open_pick_{place}",
                    type="tertiary",
                    help="Open the demonstration",
                ):
                    open_demonstration(UUID(str(each.trace_id)))
                if str(each.trace_id) in followed:
                    st.caption(_format_alignment(replayed))
                st.html(render_pick_reasons(chosen, opened, place))


def _format_alignment(replayed: dict[str, Any]) -> str:
    """What stands in the question where the demonstration's question has something else."""
    holes = replayed.get("alignment", {}).get("holes", ())
    return "  \n".join(f"{escape_markdown(each['there'])} → **{escape_markdown(each['here'])}**" for each in holes)


def _show_prompt(record: TraceRecord) -> None:
    last = len(record.steps) + 1
    position = last
    if last > 1:
        position = st.number_input("As it was sent for step", 1, last, last, key="prompt_step", width=200)
    messages = rebuild_prompt(services(), record, int(position))
    st.caption(
        f"{len(messages)} messages, {sum(len(message.text) for message in messages):,} characters"
        + ("; the last request for a step." if position == last else ".")
    )
    for place, message in enumerate(messages):
        begun = escape_markdown(message.text or " ".join(call.name for call in message.calls))[:TITLE_LENGTH]
        with st.expander(f"**{message.role}** {begun} …", expanded=place in (0, len(messages) - 1)):
            st.code(message.text or " ", language=None, wrap_lines=True)
            for call in message.calls:
                st.code(f"{call.name}({call.arguments})", language=None, wrap_lines=True)
