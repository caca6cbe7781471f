"""The actions of a person on a trace: each is one transaction, and a failure is shown as one sentence."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import streamlit as st

from app.pages.annotate.composer import StepComposer, insert_value
from db import recording, traces
from db.database import StoreError
from db.models import Draft, Step, User
from db.trace_record import TraceRecord
from reasoners.provenance import trace_argument_origins
from runs.recorders import PersonRecorder
from runs.services import Services
from runs.step_execution import ToolCaller, complete_tool_call, execute_step, run_to_completion
from tools.tool import Tool, ToolResult
from worlds.folder import WorldError
from worlds.source import ErrorKind, SourceError

ChangeResult = TypeVar("ChangeResult")
MAX_IDLE_TIME = timedelta(seconds=30)
SETTLE_SECONDS = 1.5
UNSEEN_VERSION = 0
CHANGED_NOTICE = (
    "This trace was changed in another tab; the page shows the newer state now, and what you typed is still here."
)


class AnnotationRecorder:
    """The actions of one person on one trace, as the page last saw it."""

    def __init__(self, services: Services, record: TraceRecord, person: User, draft: Draft | None) -> None:
        self.services = services
        self.record = record
        self.person = person
        self.draft = draft
        self._seen = f"seen_{record.trace.id.hex}"
        self._moved = f"moved_{record.trace.id.hex}"

    def remember_version(self) -> None:
        """Remember which version the page shows; set a notice when another tab has changed it."""
        previous, current = st.session_state.get(self._seen), self.record.trace.version
        if previous is not None and previous != current:
            st.session_state["notice"] = CHANGED_NOTICE
            st.session_state[self._moved] = time.monotonic()
        st.session_state[self._seen] = current

    @property
    def seen_version(self) -> int:
        """The version that the person has looked at; UNSEEN_VERSION right after another tab has changed it."""
        if time.monotonic() - st.session_state.get(self._moved, -SETTLE_SECONDS) < SETTLE_SECONDS:
            return UNSEEN_VERSION
        return int(st.session_state[self._seen])

    def _apply_change(self, change: Callable[[Any], ChangeResult]) -> ChangeResult | None:
        """Make one change in a transaction of its own; None when it failed, which a notice then says."""
        try:
            with self.services.database.begin() as session:
                result = change(session)
        except StoreError as failed:
            st.session_state["notice"] = str(failed)
            return None
        st.session_state.pop(self._seen, None)
        return result

    def run_step(self, composer: StepComposer) -> None:
        """Store the step, run its tool and store the result; the form is emptied if the step was stored."""
        new, tool = self._new_step(composer), composer.tool
        if self._execute(lambda recorder, call_tool: execute_step(recorder, new, call_tool), tool):
            composer.start_next_step()

    def _execute(self, work: Callable[[PersonRecorder, ToolCaller], Any], tool: Tool) -> bool:
        """Do the work on a step, which no rerun of the page can interrupt; whether a step was stored."""
        shared, world = self.services, self.record.project.world
        recorder = PersonRecorder(shared.database, self.record.trace.id, self.person.id, self.seen_version)

        def call_tool(_name: str, arguments: dict[str, Any]) -> ToolResult:
            try:
                context = shared.tool_context(world)
            except (WorldError, SourceError) as error:
                return ToolResult(None, str(error), 0.0, error_kind=ErrorKind.UNAVAILABLE)
            return tool.call(context, arguments)

        try:
            run_to_completion(lambda: work(recorder, call_tool))
        except StoreError as error:
            st.session_state["notice"] = str(error)
        if recorder.begun is not None:
            st.session_state.pop(self._seen, None)
        return recorder.begun is not None

    def _new_step(self, composer: StepComposer) -> recording.NewStep:
        arguments = composer.arguments()
        data = {step.position: step.data for step in self.record.steps}
        wall, active = self._elapsed_times()
        return recording.NewStep(
            thought=composer.thought(),
            tool=composer.tool.name,
            arguments=arguments,
            origins=trace_argument_origins(arguments, self.record.question.text, data),
            wall_seconds=wall,
            active_seconds=active,
        )

    def _elapsed_times(self) -> tuple[float, float | None]:
        """The seconds since the last step, and those of them that the page counted as active (None without a draft)."""
        now = datetime.now(UTC)
        since = self.record.trace.started_at
        if self.record.steps:
            since = max(since, *(step.finished_at or step.started_at for step in self.record.steps))
        wall = (now - since).total_seconds()
        counted = self.draft.content.get("active") if self.draft else None
        if self.draft is None or counted is None:
            return wall, None
        return wall, min(wall, counted + min(now - self.draft.saved_at, MAX_IDLE_TIME).total_seconds())

    def submit(self, composer: StepComposer) -> bool:
        """Submit the trace for review; False when that was refused, which a notice then says."""
        fields = composer.field_values()
        answers = recording.TraceAnswers(
            final_answer=fields.get("final_answer", "").strip(),
            answer_text=fields.get("answer_text", "").strip() or None,
            answer_graph=fields.get("answer_graph", "").strip() or None,
            final_thought=fields.get("final_thought", "").strip() or None,
        )
        trace, me = self.record.trace.id, self.person.id
        return (
            self._apply_change(
                lambda session: recording.submit_trace(session, trace, answers, seen=self.seen_version, by=me)
            )
            is not None
        )

    def undo(self) -> None:
        """Undo the last step."""
        trace, me = self.record.trace.id, self.person.id
        self._apply_change(lambda session: recording.undo_step(session, trace, seen=self.seen_version, by=me))

    def redo(self) -> None:
        """Bring back the step that was undone last."""
        trace, me = self.record.trace.id, self.person.id
        self._apply_change(lambda session: recording.redo_step(session, trace, seen=self.seen_version, by=me))

    def edit_thought(self, step: Step, thought: str) -> None:
        """Replace a step's thought."""
        me = self.person.id
        self._apply_change(
            lambda session: recording.edit_thought(session, step.id, thought, seen=self.seen_version, by=me)
        )

    def fork(self, position: int) -> UUID | None:
        """Fork a draft that has the steps up to that one; gives its id, None when that was refused."""
        trace, me = self.record.trace.id, self.person.id
        forked = self._apply_change(lambda session: traces.fork_trace(session, trace, position, me))
        return forked.id if forked is not None else None

    def handle_action(self, composer: StepComposer, action: dict[str, Any]) -> None:
        """Carry out an action of the notebook (pick, rate, again, edit, fork)."""
        step = next((step for step in self.record.steps if step.position == action["step"]), None)
        if step is None:
            st.session_state["notice"] = "That step is no longer there; the page shows the newer state now."
            return
        handlers: dict[str, Callable[[], None]] = {
            "pick": lambda: self._insert_picked_value(composer, step, action),
            "rate": lambda: self._rate_step(step, int(action["rating"])),
            "again": lambda: self._rerun_step(step),
            "edit": lambda: st.session_state.update(edit_step=step.position),
            "fork": lambda: st.session_state.update(open_trace=self.fork(step.position)),
        }
        handlers[action["kind"]]()

    def _insert_picked_value(self, composer: StepComposer, step: Step, action: dict[str, Any]) -> None:
        refusal = insert_value(composer, str(action["value"]), str(action["value_kind"]), step.tool)
        if refusal:
            st.session_state["notice"] = refusal

    def _rate_step(self, step: Step, rating: int) -> None:
        me = self.person.id
        self._apply_change(lambda session: recording.rate_step(session, step.id, rating, seen=self.seen_version, by=me))

    def _rerun_step(self, step: Step) -> None:
        tool = self.services.tool_registry().find(step.tool or "")
        if tool is None:
            problem = self.services.tool_registry().problem(step.tool or "")
            st.session_state["notice"] = f"The step cannot be run again, since its tool is not available. {problem}"
            return
        self._execute(lambda recorder, call_tool: complete_tool_call(recorder, recorder.restart(step), call_tool), tool)
