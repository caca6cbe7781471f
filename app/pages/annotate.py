"""Annotate: take a question and record how a person answers it."""

from uuid import UUID

import streamlit as st

from app.components.choose_tools import tell_missing
from app.components.composer import Composer, compose_answer, compose_step, seed, watched
from app.components.keeper import keep
from app.components.notebook import show_trace
from app.components.plain import plain
from app.components.queue import KEYS as QUEUE_KEYS
from app.components.queue import masthead, open_next, open_trace_id
from app.components.recorder import Recorder
from app.components.repair import failure_in, offer_repair, tell_repair
from app.components.who import who
from app.registry import registry
from app.resources import database, open_world
from db import drafting, reading, recording
from db.models import Project
from tools.tool import Tool
from worlds.folder import WorldError
from worlds.source import SourceError, World

KEYS = {
    "Ctrl+Enter": "Run the step, or submit the answer",
    "Ctrl+Shift+Enter": "Go to the answer form, and back to the steps",
    "Alt+1, Alt+2 …": "Choose the tool, in the order of the buttons",
    "1 … 5": "Rate the last observation (outside of text fields), then go on to the thought",
    "Alt+T": "Go to the thought",
    "Alt+Z": "Undo the last step",
    "Alt+Y": "Bring the undone step back",
    "Alt+B": "Begin the repair of an agent's answer anew",
    **QUEUE_KEYS,
}


@st.fragment
def workbench(trace_id: UUID) -> None:
    """The notebook and the composer; everything in it is drawn anew from the store after each act."""
    person = who()
    with database().read() as session:
        record = reading.open_trace(session, trace_id)
        draft = drafting.draft_of(session, trace_id)
        undone = recording.undone_step(session, trace_id)
    composer = Composer(record, _tools(record.project))
    recorder = Recorder(record, person, draft)
    recorder.look()
    editable = record.trace.status == "draft" and record.trace.author_id == person.id
    with st.container(key="bench"):
        left, right = st.columns([1.2, 1], gap="medium")
        with left:
            if editable:
                seed(composer, draft)
            show_trace(record, editable=editable, forkable=True, on_act=lambda act: recorder.act(composer, act))
        with right, st.container(key="composer"):
            if editable:
                _compose(composer, recorder, can_redo=undone is not None)
            else:
                failure = failure_in(trace_id)
                if failure is not None:
                    offer_repair(record, failure, person, recorder.fork)
                else:
                    st.info(
                        f"This trace, {plain(record.maker)}, is {record.trace.status}. Fork it at a step to go on from "
                        "there, or take the next one."
                    )
                if st.button(
                    "Next question", key="next", type="secondary" if failure else "primary", shortcut="Ctrl+Enter"
                ):
                    open_next()
    _follow_up(recorder)


def _tools(project: Project) -> tuple[Tool, ...]:
    """What the project offers; ours where nothing that it chose is here, which the form then says."""
    world = _world(project.world)
    return tuple(registry().offered(world, project.tools) or registry().offered(world))


def _world(name: str) -> World | None:
    """The world of that name; None when it cannot be opened, which the first step that is run tells."""
    try:
        return open_world(name)
    except (WorldError, SourceError):
        return None


def _compose(composer: Composer, recorder: Recorder, *, can_redo: bool) -> None:
    record = recorder.record
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.markdown(f"**Step {len(record.steps) + 1}**" if composer.mode == "step" else "**Answer**", width="content")
        keep(
            record.trace.id,
            {"step": len(record.steps) + 1, "fields": composer.fields()},
            watched(composer),
            recorder.draft,
        )
    if notice := st.session_state.pop("notice", None):
        st.error(notice)
    tell_repair(record)
    answering = composer.mode == "answer"
    if answering:
        compose_answer(composer)
    else:
        tell_missing(record.project.tools)
        compose_step(composer, lambda name: st.session_state.update({composer.key("tool"): name}))
    with st.container(key="foot"):
        said = st.container()
        done = _acts(composer, recorder, can_redo=can_redo)
    if done:
        with said:
            (_submit if answering else _run)(composer, recorder)


def _acts(composer: Composer, recorder: Recorder, *, can_redo: bool) -> bool:
    """The row of buttons under the form; whether it is to be run or submitted now."""
    answering = composer.mode == "answer"
    with st.container(horizontal=True, gap="small", key="acts"):
        done = st.button(
            "Submit" if answering else "Run",
            key="submit" if answering else "run",
            type="primary",
            shortcut="Ctrl+Enter",
        )
        st.button(
            "Back to the steps" if answering else "Finish",
            key="finish",
            shortcut="Ctrl+Shift+Enter",
            on_click=lambda: st.session_state.update({composer.key("mode"): "step" if answering else "answer"}),
        )
        if recorder.record.steps and not answering:
            st.button("Undo", key="undo", shortcut="Alt+Z", on_click=recorder.undo, type="tertiary")
        if can_redo and not answering:
            st.button("Redo", key="redo", shortcut="Alt+Y", on_click=recorder.redo, type="tertiary")
    return done


def _run(composer: Composer, recorder: Recorder) -> None:
    if missing := composer.missing():
        fields = " and ".join(name.replace("_", " ") for name in missing)
        st.error(f"{composer.tool.title} needs {fields}; fill it in, then run.")
        return
    try:
        composer.arguments()
    except ValueError as wrong:
        st.error(f"{plain(composer.tool.title)} cannot run: {plain(str(wrong))}. Correct it, then run.")
        return
    with st.spinner(f"{composer.tool.title} …"):
        recorder.run_step(composer)
    st.rerun(scope="fragment")


def _submit(composer: Composer, recorder: Recorder) -> None:
    if recorder.submit(composer):
        st.toast("Submitted. A reviewer looks at it next.", icon=":material/check:")
        open_next()
    st.rerun(scope="fragment")


def _follow_up(recorder: Recorder) -> None:
    """What an act in the notebook asked for and only a drawn page can do."""
    forked = st.session_state.pop("open_trace", None)
    if forked is not None:
        st.query_params["trace"] = str(forked)
        st.rerun()
    position = st.session_state.pop("edit_step", None)
    if position is not None:
        _edit_thought(recorder, position)


@st.dialog("Edit the thought")
def _edit_thought(recorder: Recorder, position: int) -> None:
    step = recorder.record.steps[position - 1]
    text = st.text_area(f"Thought of step {position}", value=step.thought, height=160, key=f"edit_{step.id.hex}")
    st.caption("The former wording is kept with who changed it and when.")
    if st.button("Save", type="primary", key="save_thought", shortcut="Ctrl+Enter"):
        recorder.edit_thought(step, text.strip())
        st.rerun()


person = who()
trace_id = open_trace_id(person)
masthead(person, trace_id, KEYS)
if trace_id is not None:
    workbench(trace_id)
