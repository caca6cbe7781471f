"""The actions of a person on a trace, each one transaction, and on its form; a failure is shown as one notice."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import streamlit as st

from showhow.app.pages.annotate.composer import (
    MULTILINE_PARAMETERS,
    REASON_FIELD,
    StepComposer,
    accepts_kind,
    argument_field_name,
    value_field_name,
)
from showhow.app.widgets.notebook import larger_limit
from showhow.app.widgets.queue import OpenedTrace
from showhow.db.database import StoreError
from showhow.db.models import Draft, Step, User
from showhow.db.people import users
from showhow.db.traces import recording, traces
from showhow.db.traces.trace_record import TraceRecord
from showhow.db.types import seconds_since
from showhow.llm.profiles import ProfileError
from showhow.reasoners.linking import trace_external_origins
from showhow.reasoners.provenance import trace_argument_origins
from showhow.runs.recorders import PersonRecorder, ToolCaller, complete_tool_call, execute_step, run_to_completion
from showhow.runs.services import Services
from showhow.tools.tool import SourceKind, Tool, ToolResult
from showhow.worlds.folder import WorldError
from showhow.worlds.source import ErrorKind, SourceError
from showhow.worlds.terms import format_node, format_predicate

ChangeResult = TypeVar("ChangeResult")
MAX_IDLE_SECONDS = 30.0
SETTLE_SECONDS = 1.5
UNSEEN_VERSION = 0
CHANGED_NOTICE = (
    "This trace was changed in another tab; the page shows the newer state now, and what you typed is still here."
)


@dataclass(frozen=True, slots=True)
class PickedValue:
    """A clicked value with its kind; `label` is the name of what an id stands for."""

    value: str
    kind: str
    label: str = ""


def choose_tool(composer: StepComposer, name: str) -> None:
    """Choose the tool; the value that was clicked last goes along, if an empty field of the tool takes it."""
    st.session_state[composer.key("tool")] = name
    picked: PickedValue | None = st.session_state.get(composer.key("picked"))
    if picked is not None and any(
        accepts_kind(p, picked.kind) and not st.session_state.get(composer.key(argument_field_name(composer.tool, p)))
        for p in composer.tool.parameters
    ):
        insert_value(composer, picked, None)


def restore_step(composer: StepComposer, step: Step) -> None:
    """Put an undone step back into the form, unless another one is being written there."""
    tool = next((tool for tool in composer.tools if tool.name == step.tool), None)
    if tool is None or composer.thought():
        return
    st.session_state[composer.key("thought")], st.session_state[composer.key("tool")] = step.thought, tool.name
    for parameter in tool.parameters:
        if parameter.name in step.arguments:
            key = composer.key(argument_field_name(tool, parameter))
            st.session_state[key] = parameter.format(step.arguments[parameter.name])


def insert_value(composer: StepComposer, picked: PickedValue, source_tool: str | None) -> str | None:
    """Put a clicked value into the form; returns an error message if no field accepts it."""
    value, kind = picked.value, picked.kind
    st.session_state[composer.key("picked")] = picked
    if composer.mode == "answer":
        st.session_state[composer.key(REASON_FIELD)] = None
        # An answer is a name, not an id.
        value = picked.label or value
        if "final_answer" not in composer.answer_fields:
            return _insert_into_object(composer, value)
        source = next((tool.source for tool in composer.tools if tool.name == source_tool), None)
        source_field = "answer_graph" if source is SourceKind.GRAPH else "answer_text"
        st.session_state[composer.key(source_field)] = value
        if not st.session_state.get(composer.key("final_answer")):
            st.session_state[composer.key("final_answer")] = value
        return None
    if not any(accepts_kind(parameter, kind) for parameter in composer.tool.parameters):
        accepting_tools = [tool for tool in composer.tools if any(kind in (p.accepts or ()) for p in tool.parameters)]
        if len(accepting_tools) == 1:
            st.session_state[composer.key("tool")] = accepting_tools[0].name
    accepting_parameters = [p for p in composer.tool.parameters if accepts_kind(p, kind)]
    if not accepting_parameters:
        return f"{composer.tool.title} has no field for this value; choose another tool, or use it as the answer."
    empty_parameters = [
        p for p in accepting_parameters if not st.session_state.get(composer.key(argument_field_name(composer.tool, p)))
    ]
    target = (empty_parameters or accepting_parameters)[0]
    key = composer.key(argument_field_name(composer.tool, target))
    if target.kind == "list":
        list_values = target.parse(str(st.session_state.get(key, "")))
        st.session_state[key] = target.format(list_values if value in list_values else [*list_values, value])
    elif target.name in MULTILINE_PARAMETERS and kind in ("entity", "relation"):
        term = format_node(value) if kind == "entity" else format_predicate(value)
        st.session_state[key] = f"{st.session_state.get(key, '')} {term or value}".strip()
    else:
        st.session_state[key] = value
    return None


def _insert_into_object(composer: StepComposer, value: str) -> str | None:
    """Put a clicked value into the first empty text field of an answer; returns an error message if there is none."""
    for parameter in composer.answer_parameters:
        key = composer.key(value_field_name(parameter))
        if parameter.kind == "text" and not st.session_state.get(key):
            st.session_state[key] = value
            return None
    return "No empty field of the answer takes this value; empty one, then click the value again."


class AnnotationRecorder:
    """The actions of one person on one trace, in the version that the page shows."""

    def __init__(
        self, services: Services, opened: OpenedTrace, record: TraceRecord, person: User, draft: Draft | None
    ) -> None:
        self.services = services
        self.opened = opened
        self.record = record
        self.person = person
        self.draft = draft
        self._seen = f"seen_{record.trace.id.hex}"
        self._moved = f"moved_{record.trace.id.hex}"
        # The durations count from now on, whatever happens to the clock of the machine.
        seconds_since(record.trace.started_at)
        seconds_since(self._last_activity)

    def remember_version(self) -> None:
        """Store the version that the page shows; set a notice if another tab has changed it."""
        previous, current = st.session_state.get(self._seen), self.record.trace.version
        if previous is not None and previous != current:
            st.session_state["notice"] = CHANGED_NOTICE
            st.session_state[self._moved] = time.monotonic()
        st.session_state[self._seen] = current

    @property
    def seen_version(self) -> int:
        """The version that the person has seen; UNSEEN_VERSION right after another tab has changed it."""
        if time.monotonic() - st.session_state.get(self._moved, -SETTLE_SECONDS) < SETTLE_SECONDS:
            return UNSEEN_VERSION
        return int(st.session_state[self._seen])

    def apply_change(self, change: Callable[[Any, UUID], ChangeResult]) -> ChangeResult | None:
        """Make one change by the person of that id in a transaction; on failure, set a notice and return None."""
        try:
            with self.services.database.begin() as session:
                self.opened.begin(session)
                result = change(session, users.register_user(session, self.person.name).id)
        except StoreError as error:
            st.session_state["notice"] = str(error)
            return None
        st.session_state.pop(self._seen, None)
        return result

    def run_step(self, composer: StepComposer) -> None:
        """Store the step, run its tool and store the result; a stored step empties the form."""
        new, tool = self._new_step(composer), composer.tool
        if self._execute(lambda recorder, call_tool: execute_step(recorder, new, call_tool), tool):
            composer.start_next_step()

    def _execute(self, work: Callable[[PersonRecorder, ToolCaller], Any], tool: Tool) -> bool:
        """Execute a step, which a rerun of the page cannot interrupt; returns whether the step was stored."""
        services, world = self.services, self.record.project.world
        person_id = self._begin_trace()
        if person_id is None:
            return False
        recorder = PersonRecorder(services.database, self.record.trace.id, person_id, self.seen_version)

        def call_tool(_name: str, arguments: dict[str, Any]) -> ToolResult:
            try:
                context = replace(services.tool_context(world), by_person=True)
            except (WorldError, SourceError, ProfileError) as error:
                return ToolResult(None, str(error), 0.0, error_kind=ErrorKind.UNAVAILABLE)
            return tool.call(context, arguments)

        try:
            run_to_completion(lambda: work(recorder, call_tool))
        except StoreError as error:
            st.session_state["notice"] = str(error)
        if recorder.begun is not None:
            st.session_state.pop(self._seen, None)
        return recorder.begun is not None

    def _begin_trace(self) -> UUID | None:
        """Begin the trace, unless it is begun, and put it into the link; returns the person's id, None if refused."""
        if self.opened.question_id is None or self.record.steps:
            return self.person.id
        seen_version = self.seen_version
        person_id = self.apply_change(lambda _session, person_id: person_id)
        if person_id is not None:
            # Beginning is no change of the trace that the page shows.
            st.session_state[self._seen] = seen_version
            st.query_params["trace"] = str(self.opened.id)
        return person_id

    def _new_step(self, composer: StepComposer) -> recording.NewStep:
        arguments = composer.arguments()
        data = {step.position: step.data for step in self.record.steps}
        wall_seconds, active_seconds = self._elapsed_times()
        trace = trace_external_origins if composer.tool.origin else trace_argument_origins
        return recording.NewStep(
            thought=composer.thought(),
            tool=composer.tool.name,
            arguments=arguments,
            origins=trace(arguments, self.record.question.full_text, data),
            wall_seconds=wall_seconds,
            active_seconds=active_seconds,
        )

    def _elapsed_times(self) -> tuple[float, float | None]:
        """Wall seconds since the last step, and the active seconds that the page counted (None without a draft)."""
        wall_seconds = seconds_since(self._last_activity)
        counted_seconds = self.draft.content.get("active") if self.draft else None
        if self.draft is None or counted_seconds is None:
            return wall_seconds, None
        return wall_seconds, min(
            wall_seconds, counted_seconds + min(seconds_since(self.draft.saved_at), MAX_IDLE_SECONDS)
        )

    @property
    def _last_activity(self) -> datetime:
        """When the last step ended; when the trace began if it has no step of its own."""
        trace, steps = self.record.trace, self.record.steps
        if len(steps) <= (trace.parent_position or 0):
            return trace.started_at
        return steps[-1].finished_at or steps[-1].started_at

    def submit(self, composer: StepComposer) -> bool:
        """Submit the trace for review; if that is refused, set a notice and return False."""
        fields = composer.field_values()
        try:
            # The store checks it again, within its transaction, where it is known then.
            final_answer = composer.answer_format.normalize(composer.answer())
        except ValueError as error:
            st.session_state["notice"] = str(error)
            return False
        is_unanswerable = composer.unanswerable_reason is not None
        answers = recording.TraceAnswers(
            final_answer=final_answer,
            answer_text=None if is_unanswerable else fields.get("answer_text", "").strip() or None,
            answer_graph=None if is_unanswerable else fields.get("answer_graph", "").strip() or None,
            final_thought=fields.get("final_thought", "").strip() or None,
        )
        trace_id = self.record.trace.id
        return (
            self.apply_change(
                lambda session, person_id: recording.submit_trace(
                    session, trace_id, answers, seen=self.seen_version, by=person_id
                )
            )
            is not None
        )

    def undo(self, composer: StepComposer) -> None:
        """Undo the last step, and put it back into the form to be changed."""
        trace_id, undone = self.record.trace.id, self.record.steps[-1]
        removed = self.apply_change(
            lambda session, person_id: recording.undo_step(session, trace_id, seen=self.seen_version, by=person_id)
        )
        if removed is not None:
            restore_step(composer, undone)

    def redo(self, composer: StepComposer) -> None:
        """Restore the step that was undone last; the form is emptied if it holds just that step."""
        trace_id, typed = self.record.trace.id, composer.thought()
        restored_thought = self.apply_change(
            lambda session, person_id: (
                recording.redo_step(session, trace_id, seen=self.seen_version, by=person_id).thought
            )
        )
        if restored_thought is not None and typed == restored_thought.strip():
            composer.start_next_step()

    def edit_thought(self, step: Step, thought: str) -> None:
        """Replace a step's thought."""
        self.apply_change(
            lambda session, person_id: recording.edit_thought(
                session, step.id, thought, seen=self.seen_version, by=person_id
            )
        )

    def fork(self, position: int) -> UUID | None:
        """Fork a draft with the steps up to that position; returns its id, or None if that was refused."""
        trace_id = self.record.trace.id
        forked = self.apply_change(lambda session, person_id: traces.fork_trace(session, trace_id, position, person_id))
        return forked.id if forked is not None else None

    def handle_action(self, composer: StepComposer, action: dict[str, Any]) -> None:
        """Carry out an action of the notebook (pick, rate, again, edit, fork)."""
        step = next((step for step in self.record.steps if step.position == action["step"]), None)
        if step is None:
            st.session_state["notice"] = "This step was removed in another tab; the page shows the newer state now."
            return
        handlers: dict[str, Callable[[], None]] = {
            "pick": lambda: self._insert_picked_value(composer, step, action),
            "rate": lambda: self._rate_step(step, action["rating"] or None),
            "again": lambda: self._rerun_step(step),
            "more": lambda: self._rerun_step(step, {"limit": larger_limit(step)}),
            "edit": lambda: st.session_state.update(edit_step=step.position),
            "fork": lambda: st.session_state.update(open_trace=self.fork(step.position)),
        }
        if (handle := handlers.get(action["kind"])) is not None:
            handle()

    def _insert_picked_value(self, composer: StepComposer, step: Step, action: dict[str, Any]) -> None:
        if action.get("tool") in [tool.name for tool in composer.tools]:
            st.session_state[composer.key("tool")] = action["tool"]
        if action.get("is_answer"):
            st.session_state[composer.key("mode")] = "answer"
        picked = PickedValue(action["value"], action["value_kind"], action.get("label", ""))
        refusal = insert_value(composer, picked, step.tool)
        if refusal:
            st.session_state["notice"] = refusal

    def _rate_step(self, step: Step, rating: int | None) -> None:
        self.apply_change(
            lambda session, person_id: recording.rate_step(
                session, step.id, rating, seen=self.seen_version, by=person_id
            )
        )

    def _rerun_step(self, step: Step, typed: dict[str, Any] | None = None) -> None:
        tool = self.services.tool_registry().find(step.tool or "")
        if tool is None:
            problem = self.services.tool_registry().problem(step.tool or "")
            st.session_state["notice"] = f"The step cannot be run again: its tool is not available. {problem}"
            return
        self._execute(
            lambda recorder, call_tool: complete_tool_call(recorder, recorder.restart(step, typed), call_tool), tool
        )
