"""Annotate: a person takes a question and records how they answer it, or repairs an agent's failed run."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal
from uuid import UUID

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx

from showhow.app.pages.annotate.answer_form import show_answer_form
from showhow.app.pages.annotate.composer import (
    StepComposer,
    list_takers,
    seed_composer,
    show_step_form,
    typed_field_classes,
)
from showhow.app.pages.annotate.queue_header import fork_returned_trace, show_queue_header
from showhow.app.pages.annotate.recorder import AnnotationRecorder, choose_tool
from showhow.app.widgets.autosave import mount_autosave
from showhow.app.widgets.choices import show_missing_tools, show_retry
from showhow.app.widgets.notebook import show_trace
from showhow.app.widgets.page_layout import escape_markdown, format_sentence
from showhow.app.widgets.person import acting_services
from showhow.app.widgets.queue import OpenedTrace, current_project, current_trace, postpone_trace, show_task
from showhow.app.widgets.repeatability import remember_state, show_repeatability
from showhow.app.widgets.step_notes import show_history_button, show_requested_note_dialog
from showhow.app.widgets.url_state import clear_url_parameters
from showhow.db.database import Database
from showhow.db.models import Project
from showhow.db.people.gold_visibility import is_gold_visible
from showhow.db.review import review
from showhow.db.review.review import ReturnedWork
from showhow.db.runs import verifications
from showhow.db.runs.verifications import VerificationOutcome
from showhow.db.traces import recording
from showhow.db.traces.trace_record import TraceRecord
from showhow.reasoners.mentions import name_lookup
from showhow.reasoners.registry import reasoner_title
from showhow.runs.services import Services
from showhow.tools.arguments import ToolError
from showhow.tools.tool import Tool
from showhow.worlds.folder import WorldError
from showhow.worlds.source import SourceError, World


def find_failure(database: Database, trace_id: UUID | None, project: Project) -> VerificationOutcome | None:
    """The failed outcome of this trace in a verification, with gold if the person sees it; None for other traces."""
    if trace_id is None:
        return None
    with database.read() as session:
        outcome = verifications.find_outcome(session, trace_id)
        if outcome is not None and not is_gold_visible(session, project):
            outcome = outcome._replace(gold=[])
    return outcome if outcome is not None and outcome.is_failed else None


def show_repair_options(record: TraceRecord, failure: VerificationOutcome, fork: Callable[[int], UUID | None]) -> None:
    """Show the agent's answer beside the gold answer, and the button that starts the repair."""
    st.markdown("**An answer to repair**")
    _show_gold_and_answer(reasoner_title(record.trace.reasoner), failure)
    advice = (
        "Find the first wrong step, fork at the step before it, and continue from there."
        if record.steps
        else "The agent took no step. Start over and record the solution."
    )
    st.info(f"{advice} What you submit becomes a demonstration once it is approved.")
    with st.container(horizontal=True):
        kind: Literal["primary", "secondary"] = "secondary" if record.steps else "primary"
        if st.button("Start over", key="start_over", type=kind, shortcut="Alt+B") and (fork_id := fork(0)) is not None:
            st.query_params["trace"] = str(fork_id)
            st.rerun()


def show_repair_context(database: Database, record: TraceRecord) -> None:
    """Show the agent's answer beside the gold answer above the form of a repair."""
    failure = find_failure(database, record.trace.parent_id, record.project)
    if failure is not None:
        _show_gold_and_answer("The agent", failure)


def _show_gold_and_answer(agent: str, failure: VerificationOutcome) -> None:
    gold = ", ".join(str(answer["text"]) for answer in failure.gold)
    answer = (
        f"said **{escape_markdown(failure.answer)}**"
        if failure.answer
        else f"gave no answer. {format_sentence(failure.failure or '')}"
    )
    shown_gold = f"Gold answer: **{escape_markdown(gold)}**  \n" if gold else ""
    st.markdown(f"{shown_gold}{escape_markdown(agent)} {answer}")


TRACE_NOUNS = {
    "draft": "draft",
    "submitted": "submitted trace",
    "approved": "approved trace",
    "rejected": "returned trace",
    "failed": "failed run",
}


@dataclass(frozen=True, slots=True)
class _Workbench:
    """What the workbench shows of a trace, as it is stored at this moment."""

    composer: StepComposer
    recorder: AnnotationRecorder
    tool_problem: str | None
    returned: ReturnedWork | None
    can_redo: bool

    @classmethod
    def load(cls, services: Services, opened: OpenedTrace) -> "_Workbench":
        """Load the trace, its draft and what its project offers."""
        record, person = opened.load(services.database)
        with services.database.read() as session:
            draft = recording.find_draft(session, opened.id)
            can_redo = recording.find_undone_step(session, opened.id) is not None
            returned = review.find_return(session, record.trace.parent_id) if record.trace.parent_id else None
        world = _try_open_world(services, record.project.world)
        tools, tool_problem = _offered_tools(services, world, record.project)
        recorder = AnnotationRecorder(services, opened, record, person, draft)
        recorder.remember_version()
        composer = StepComposer(record, tools, name_lookup(world))
        return cls(composer, recorder, tool_problem, returned, can_redo)

    @property
    def is_draft(self) -> bool:
        """Whether the person may change the trace."""
        trace, person = self.recorder.record.trace, self.recorder.person
        return bool(person.roles) and trace.status == "draft" and trace.author_id == person.id

    @property
    def is_editable(self) -> bool:
        """Whether the person may change the trace, and has a tool for the next step."""
        return self.is_draft and bool(self.composer.tools)


@st.fragment
def show_workbench(services: Services, opened: OpenedTrace) -> None:
    """Draw the notebook and the composer; each action redraws them from the store."""
    workbench = _Workbench.load(services, opened)
    with st.container(key="bench"):
        left, right = st.columns([1.2, 1], gap="medium")
        with right, st.container(key="composer"):
            form = st.container(key="form")
            foot = st.container(key="foot") if workbench.is_editable else None
            messages = foot.container() if foot else form
        # A pressed button is known before it is drawn. So the page is drawn once, with the step that it stores.
        if workbench.is_editable and st.session_state.get("run"):
            with messages:
                _run_step(workbench.composer, workbench.recorder)
            workbench = _Workbench.load(services, opened)
        if workbench.is_editable:
            seed_composer(workbench.composer, workbench.recorder.draft, workbench.returned)
        with left:
            show_task(workbench.recorder.record)
            show_trace(
                workbench.recorder.record,
                editable=workbench.is_editable,
                forkable=bool(workbench.recorder.person.roles),
                on_act=partial(workbench.recorder.handle_action, workbench.composer),
                is_known_name=workbench.composer.is_known_name,
                overrides={
                    "notable": True,
                    "takers": list_takers(workbench.composer.tools) if workbench.is_editable else {},
                    "answerable": workbench.composer.takes_answer,
                    "tool": workbench.composer.tool.name if workbench.is_editable else None,
                    "titles": {tool.name: tool.title for tool in workbench.composer.tools},
                },
            )
            if workbench.recorder.record.steps or not workbench.is_draft:
                show_history_button(workbench.recorder.record)
        with form:
            if workbench.is_draft:
                _show_composer(workbench)
            else:
                _show_read_only(workbench.recorder)
        if foot is not None and workbench.is_editable:
            with foot:
                is_submitted = _show_actions(workbench)
            if is_submitted:
                with messages:
                    _submit_answer(workbench.composer, workbench.recorder)
    _handle_pending_actions(workbench.recorder)


def _show_read_only(recorder: AnnotationRecorder) -> None:
    """Show what can be done with a read-only trace: fix returned work, repair, fork, or open the next question."""
    database, record, person = recorder.services.database, recorder.record, recorder.person
    if not person.roles:
        st.caption("Whoever has a role records steps here: a thought, a tool and its arguments, and at last an answer.")
        return
    failure = find_failure(database, record.trace.id, record.project)
    with database.read() as session:
        returned = review.find_return(session, record.trace.id)
    if failure is not None:
        show_repair_options(record, failure, recorder.fork)
    elif returned is not None and record.trace.author_id == person.id:
        _show_return_notice(returned)
        st.caption("Fix opens a new draft with your steps and answers.")
    else:
        owner = escape_markdown((record.author or record.trace.reasoner).capitalize())
        st.info(
            f"{owner}'s {TRACE_NOUNS[record.trace.status]} (read-only). Fork from any step to continue it yourself, or "
            "open the next question."
        )
    with st.container(horizontal=True, gap="small", key="acts"):
        is_returned_work = returned is not None and failure is None and record.trace.author_id == person.id
        if is_returned_work and st.button("Fix", key="fix_returned", type="primary", shortcut="Alt+X"):
            st.query_params["trace"] = str(fork_returned_trace(database, record.trace.id, person.id))
            st.rerun()
        kind: Literal["primary", "secondary"] = "secondary" if failure or is_returned_work else "primary"
        if st.button("Next question", key="next", type=kind, shortcut="Ctrl+Enter"):
            postpone_trace(record.trace.id)
            st.rerun()


def _show_return_notice(returned: ReturnedWork) -> None:
    reviewer = escape_markdown(returned.reviewer or "a reviewer")
    st.warning(f"**Returned by {reviewer}:** {escape_markdown(returned.comment)}", icon=":material/undo:")


def _offered_tools(services: Services, world: World | None, project: Project) -> tuple[tuple[Tool, ...], str | None]:
    """The tools that the project offers and that have a source here, if any has one; the problem if there are none.

    Agents are offered the others too, so that the prompt of a demonstration is that of the run which it shows.
    """
    try:
        offered = services.tool_registry().offered_tools(world, project.tools, waits_for_servers=False)
    except ToolError as error:
        return (), str(error)
    return tuple([tool for tool in offered if tool.has_source_in(world)] or offered), None


def _try_open_world(services: Services, name: str) -> World | None:
    """Open the world; None if that fails, since the first step reports the error."""
    try:
        return services.open_world(name)
    except (WorldError, SourceError):
        return None


def _show_composer(workbench: _Workbench) -> None:
    """Draw the form of the next step or of the answer."""
    composer, recorder = workbench.composer, workbench.recorder
    record, services = recorder.record, recorder.services
    registry = services.tool_registry()
    offered = {*registry.built_in, *(tool.name for tool in composer.tools)}
    if workbench.tool_problem is not None:
        st.error(format_sentence(workbench.tool_problem), icon=":material/power_off:")
        show_retry(registry, [name for name in record.project.tools if name not in offered])
        return
    with st.container(horizontal=True, horizontal_alignment="distribute", vertical_alignment="center"):
        st.markdown(f"**Step {len(record.steps) + 1}**" if composer.mode == "step" else "**Answer**", width="content")
        mount_autosave(
            services.database,
            recorder.opened,
            {"step": len(record.steps) + 1, "fields": composer.field_values()},
            typed_field_classes(composer),
            recorder.draft,
        )
    if notice := st.session_state.pop("notice", None):
        st.error(format_sentence(notice))
    chosen = current_project(services.database)
    if chosen is not None and chosen.id != record.project.id:
        st.info(
            f"This question belongs to the project **{escape_markdown(record.project.name)}**, which keeps your draft. "
            f"The next one is of **{escape_markdown(chosen.name)}** again."
        )
    if workbench.returned is not None:
        _show_return_notice(workbench.returned)
    show_repair_context(services.database, record)
    if composer.mode == "answer":
        show_answer_form(composer)
        show_repeatability(services, record, answer=_typed_answer(composer), change=recorder.apply_change)
    else:
        show_missing_tools(registry, record.project.tools, offered)
        show_step_form(composer, partial(choose_tool, composer))


def _typed_answer(composer: StepComposer) -> str:
    """The answer as typed; empty while a field is wrong."""
    try:
        return composer.answer()
    except ValueError:
        return ""


def _show_actions(workbench: _Workbench) -> bool:
    """Draw the row of buttons under the form; returns whether Submit was pressed."""
    composer, recorder = workbench.composer, workbench.recorder
    answering = composer.mode == "answer"
    with st.container(horizontal=True, gap="small", key="acts"):
        is_pressed = st.button(
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
            st.button("Undo", key="undo", shortcut="Alt+Z", on_click=recorder.undo, args=(composer,), type="tertiary")
        if workbench.can_redo and not answering:
            st.button("Redo", key="redo", shortcut="Alt+Y", on_click=recorder.redo, args=(composer,), type="tertiary")
    return is_pressed and answering


def _run_step(composer: StepComposer, recorder: AnnotationRecorder) -> None:
    if missing := composer.missing_fields():
        fields = " and ".join(f"“{escape_markdown(label)}”" for label in missing)
        st.error(f"Fill in {fields}, then run.")
        return
    try:
        composer.arguments()
    except ValueError as error:
        st.error(
            f"{escape_markdown(composer.tool.title)} cannot run: {escape_markdown(str(error))}. Correct it, then run."
        )
        return
    with st.spinner(f"{composer.tool.title} …"):
        recorder.run_step(composer)


def _submit_answer(composer: StepComposer, recorder: AnnotationRecorder) -> None:
    if recorder.submit(composer):
        remember_state(recorder.services, recorder.record.trace.id)
        st.toast("Submitted for review.", icon=":material/check:")
        clear_url_parameters("trace", "question")
        st.rerun()
    # The whole page, where Streamlit joined the click with another request for it.
    context = get_script_run_ctx()
    st.rerun(scope="fragment" if context is not None and context.fragment_ids_this_run else "app")


def _handle_pending_actions(recorder: AnnotationRecorder) -> None:
    """Open the fork or the dialog that an action of the notebook requested; its callback cannot."""
    fork_id = st.session_state.pop("open_trace", None)
    if fork_id is not None:
        st.query_params["trace"] = str(fork_id)
        st.rerun()
    position = st.session_state.pop("edit_step", None)
    if position is not None:
        _show_thought_dialog(recorder, position)
    else:
        show_requested_note_dialog(recorder.services.database, recorder.record, recorder.person)


@st.dialog("Edit the thought")
def _show_thought_dialog(recorder: AnnotationRecorder, position: int) -> None:
    step = recorder.record.steps[position - 1]
    text = st.text_area(f"Thought of step {position}", value=step.thought, height=160, key=f"edit_{step.id.hex}")
    st.caption("The previous wording stays in the history of edits.")
    if st.button("Save", type="primary", key="save_thought", shortcut="Ctrl+Enter"):
        recorder.edit_thought(step, text.strip())
        st.rerun()


services, person = acting_services()
opened = current_trace(services, person)
show_queue_header(services, person, opened)
if opened is not None:
    show_workbench(services, opened)
