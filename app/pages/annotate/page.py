"""Annotate: take a question and record how a person answers it.

An agent's failure beside the gold answer, where a person repairs it.
"""

from collections.abc import Callable
from typing import Literal
from uuid import UUID

import streamlit as st

from app.pages.annotate.composer import (
    StepComposer,
    seed_composer,
    show_answer_form,
    show_step_form,
    typed_field_classes,
)
from app.pages.annotate.recorder import AnnotationRecorder
from app.services import services
from app.widgets.autosave import mount_autosave
from app.widgets.notebook import show_trace
from app.widgets.person import current_user
from app.widgets.plain_text import escape_markdown
from app.widgets.queue import QUEUE_SHORTCUTS as QUEUE_KEYS
from app.widgets.queue import current_trace_id, open_next_question, show_queue_header
from app.widgets.tool_choice import show_missing_tools
from db import drafts, queue, recording, traces, verifications
from db.database import StoreError
from db.models import Project, User
from db.trace_record import TraceRecord
from db.verifications import VerificationOutcome
from tools.tool import Tool
from worlds.folder import WorldError
from worlds.source import SourceError, World


def find_failure(trace_id: UUID | None) -> VerificationOutcome | None:
    """The failure of a verification that this trace is."""
    if trace_id is None:
        return None
    with services().database.read() as session:
        found = verifications.find_outcome(session, trace_id)
    return found if found is not None and found.is_failed else None


def show_repair_options(
    record: TraceRecord, failure: VerificationOutcome, person: User, fork: Callable[[int], UUID | None]
) -> None:
    """Say what went wrong, and how to begin."""
    st.markdown("**An answer to repair**")
    _show_gold_and_answer(record.trace.reasoner, failure)
    how = (
        "Find the step that went wrong, fork at the last one before it, and go on as it should be done."
        if record.steps
        else "It took no step: begin anew, and show how it is done."
    )
    st.info(f"{how} What you submit becomes a demonstration once it is approved.")
    with st.container(horizontal=True):
        kind: Literal["primary", "secondary"] = "secondary" if record.steps else "primary"
        if st.button("Begin anew", key="begin_anew", type=kind, shortcut="Alt+B") and (made := fork(0)) is not None:
            st.query_params["trace"] = str(made)
            st.rerun()
        if st.button("Leave it to others", key="leave_it", type="tertiary"):
            _leave_to_others(failure, person)


def show_repair_context(record: TraceRecord) -> None:
    """Above the form of a repair: what the agent said, and what is right."""
    failure = find_failure(record.trace.parent_id)
    if failure is not None:
        _show_gold_and_answer("The agent", failure)


def _show_gold_and_answer(agent: str, failure: VerificationOutcome) -> None:
    gold = ", ".join(str(answer["text"]) for answer in failure.gold)
    said = (
        f"said **{escape_markdown(failure.answer)}**"
        if failure.answer
        else f"gave no answer: {escape_markdown(failure.failure or '')}"
    )
    st.markdown(f"Gold answer: **{escape_markdown(gold)}**  \n{escape_markdown(agent)} {said}")


def _leave_to_others(failure: VerificationOutcome, person: User) -> None:
    try:
        with services().database.begin() as session:
            queue.skip_question(session, failure.question_id, person.id, "the repair is left to others")
    except StoreError as refused:
        st.error(str(refused))
    else:
        open_next_question()


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
def show_workbench(trace_id: UUID) -> None:
    """The notebook and the composer; everything in it is drawn anew from the store after each act."""
    person = current_user()
    with services().database.read() as session:
        record = traces.load_trace(session, trace_id)
        draft = drafts.find_draft(session, trace_id)
        undone = recording.find_undone_step(session, trace_id)
    composer = StepComposer(record, _offered_tools(record.project))
    recorder = AnnotationRecorder(record, person, draft)
    recorder.remember_version()
    editable = record.trace.status == "draft" and record.trace.author_id == person.id
    with st.container(key="bench"):
        left, right = st.columns([1.2, 1], gap="medium")
        with left:
            if editable:
                seed_composer(composer, draft)
            show_trace(
                record, editable=editable, forkable=True, on_act=lambda act: recorder.handle_action(composer, act)
            )
        with right, st.container(key="composer"):
            if editable:
                _show_composer(composer, recorder, can_redo=undone is not None)
            else:
                failure = find_failure(trace_id)
                if failure is not None:
                    show_repair_options(record, failure, person, recorder.fork)
                else:
                    st.info(
                        f"This trace, {escape_markdown(record.creator_name)}, is {record.trace.status}. Fork it at a step to go on from "
                        "there, or take the next one."
                    )
                if st.button(
                    "Next question", key="next", type="secondary" if failure else "primary", shortcut="Ctrl+Enter"
                ):
                    open_next_question()
    _handle_pending_actions(recorder)


def _offered_tools(project: Project) -> tuple[Tool, ...]:
    """What the project offers; ours where nothing that it chose is here, which the form then says."""
    world = _try_open_world(project.world)
    return tuple(
        services().tool_registry().available_tools(world, project.tools)
        or services().tool_registry().available_tools(world)
    )


def _try_open_world(name: str) -> World | None:
    """The world of that name; None when it cannot be opened, which the first step that is run tells."""
    try:
        return services().open_world(name)
    except (WorldError, SourceError):
        return None


def _show_composer(composer: StepComposer, recorder: AnnotationRecorder, *, can_redo: bool) -> None:
    record = recorder.record
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.markdown(f"**Step {len(record.steps) + 1}**" if composer.mode == "step" else "**Answer**", width="content")
        mount_autosave(
            record.trace.id,
            {"step": len(record.steps) + 1, "fields": composer.field_values()},
            typed_field_classes(composer),
            recorder.draft,
        )
    if notice := st.session_state.pop("notice", None):
        st.error(notice)
    show_repair_context(record)
    answering = composer.mode == "answer"
    if answering:
        show_answer_form(composer)
    else:
        show_missing_tools(record.project.tools)
        show_step_form(composer, lambda name: st.session_state.update({composer.key("tool"): name}))
    with st.container(key="foot"):
        said = st.container()
        done = _show_actions(composer, recorder, can_redo=can_redo)
    if done:
        with said:
            (_submit_answer if answering else _run_step)(composer, recorder)


def _show_actions(composer: StepComposer, recorder: AnnotationRecorder, *, can_redo: bool) -> bool:
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


def _run_step(composer: StepComposer, recorder: AnnotationRecorder) -> None:
    if missing := composer.missing_arguments():
        fields = " and ".join(name.replace("_", " ") for name in missing)
        st.error(f"{composer.tool.title} needs {fields}; fill it in, then run.")
        return
    try:
        composer.arguments()
    except ValueError as wrong:
        st.error(
            f"{escape_markdown(composer.tool.title)} cannot run: {escape_markdown(str(wrong))}. Correct it, then run."
        )
        return
    with st.spinner(f"{composer.tool.title} …"):
        recorder.run_step(composer)
    st.rerun(scope="fragment")


def _submit_answer(composer: StepComposer, recorder: AnnotationRecorder) -> None:
    if recorder.submit(composer):
        st.toast("Submitted. A reviewer looks at it next.", icon=":material/check:")
        open_next_question()
    st.rerun(scope="fragment")


def _handle_pending_actions(recorder: AnnotationRecorder) -> None:
    """What an act in the notebook asked for and only a drawn page can do."""
    forked = st.session_state.pop("open_trace", None)
    if forked is not None:
        st.query_params["trace"] = str(forked)
        st.rerun()
    position = st.session_state.pop("edit_step", None)
    if position is not None:
        _show_thought_dialog(recorder, position)


@st.dialog("Edit the thought")
def _show_thought_dialog(recorder: AnnotationRecorder, position: int) -> None:
    step = recorder.record.steps[position - 1]
    text = st.text_area(f"Thought of step {position}", value=step.thought, height=160, key=f"edit_{step.id.hex}")
    st.caption("The former wording is kept with who changed it and when.")
    if st.button("Save", type="primary", key="save_thought", shortcut="Ctrl+Enter"):
        recorder.edit_thought(step, text.strip())
        st.rerun()


person = current_user()
trace_id = current_trace_id(person)
show_queue_header(person, trace_id, KEYS)
if trace_id is not None:
    show_workbench(trace_id)
