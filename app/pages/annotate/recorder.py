"""What a person does to a trace on the page, each act one transaction, a failure one sentence where the work is."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar
from uuid import UUID

import streamlit as st

from app.pages.annotate.composer import StepComposer, insert_value
from app.services import services
from db import recording, traces
from db.database import StoreError
from db.models import Draft, Step, User
from db.trace_record import TraceRecord
from reasoners.provenance import trace_argument_origins
from tools.tool import Tool
from worlds.folder import WorldError
from worlds.source import SourceError

ChangeResult = TypeVar("ChangeResult")
MAX_IDLE_TIME = timedelta(seconds=30)
SETTLE_SECONDS = 1.5
UNSEEN_VERSION = 0
CHANGED_NOTICE = (
    "This trace was changed in another tab; the page shows the newer state now, and what you typed is still here."
)


class AnnotationRecorder:
    """The acts of one person on one trace, as the page last saw it."""

    def __init__(self, record: TraceRecord, person: User, draft: Draft | None) -> None:
        self.record = record
        self.person = person
        self.draft = draft
        self._seen = f"seen_{record.trace.id.hex}"
        self._moved = f"moved_{record.trace.id.hex}"

    def remember_version(self) -> None:
        """Remember which version the page shows; say so when it is not the one that this tab left."""
        shown, now_shown = st.session_state.get(self._seen), self.record.trace.version
        if shown is not None and shown != now_shown:
            st.session_state["notice"] = CHANGED_NOTICE
            st.session_state[self._moved] = time.monotonic()
        st.session_state[self._seen] = now_shown

    @property
    def seen_version(self) -> int:
        """The version that the person has looked at; none right after it has changed under their hands."""
        if time.monotonic() - st.session_state.get(self._moved, -SETTLE_SECONDS) < SETTLE_SECONDS:
            return UNSEEN_VERSION
        return int(st.session_state[self._seen])

    def _apply_change(self, change: Callable[[Any], ChangeResult]) -> ChangeResult | None:
        """Make one change in a transaction of its own; None when it failed, which the page then says."""
        try:
            with services().database.begin() as session:
                done = change(session)
        except StoreError as failed:
            st.session_state["notice"] = str(failed)
            return None
        st.session_state.pop(self._seen, None)
        return done

    def run_step(self, composer: StepComposer) -> None:
        """Write the step, run its tool, write what it gave; the form is emptied once the step is on disk."""
        new, tool = self._new_step(composer), composer.tool
        trace, me = self.record.trace.id, self.person.id
        step = self._apply_change(
            lambda session: recording.begin_step(session, trace, new, seen=self.seen_version, by=me)
        )
        if step is not None:
            composer.start_next_step()
            self._run_tool(step, tool)

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
        """Seconds since the last step, and those at work as the page counted them, up to now."""
        moment = datetime.now(UTC)
        since = self.record.trace.started_at
        if self.record.steps:
            since = max(since, *(step.finished_at or step.started_at for step in self.record.steps))
        wall = (moment - since).total_seconds()
        counted = self.draft.content.get("active") if self.draft else None
        if self.draft is None or counted is None:
            return wall, None
        return wall, min(wall, counted + min(moment - self.draft.saved_at, MAX_IDLE_TIME).total_seconds())

    def _run_tool(self, step: Step, tool: Tool) -> None:
        try:
            context = services().tool_context(self.record.project.world)
        except (WorldError, SourceError) as gone:
            observed = recording.StepResult(text=None, data=None, error=str(gone), latency=None)
        else:
            outcome = tool.call(context, step.arguments)
            seen = outcome.observation
            text, data = (seen.text, seen.data) if seen else (None, None)
            usage = outcome.usage.to_json() if outcome.usage else None
            observed = recording.StepResult(text, data, outcome.error, outcome.seconds, usage)
        self._apply_change(lambda session: recording.complete_step(session, step.id, observed))

    def submit(self, composer: StepComposer) -> bool:
        """Hand the trace in; True when it was."""
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
        """Take the last step back."""
        trace, me = self.record.trace.id, self.person.id
        self._apply_change(lambda session: recording.undo_step(session, trace, seen=self.seen_version, by=me))

    def redo(self) -> None:
        """Bring the step that was taken back last back again."""
        trace, me = self.record.trace.id, self.person.id
        self._apply_change(lambda session: recording.redo_step(session, trace, seen=self.seen_version, by=me))

    def edit_thought(self, step: Step, thought: str) -> None:
        """Replace a step's thought."""
        me = self.person.id
        self._apply_change(
            lambda session: recording.edit_thought(session, step.id, thought, seen=self.seen_version, by=me)
        )

    def fork(self, position: int) -> UUID | None:
        """A new draft that keeps the steps up to that one."""
        trace, me = self.record.trace.id, self.person.id
        forked = self._apply_change(lambda session: traces.fork_trace(session, trace, position, me))
        return forked.id if forked is not None else None

    def handle_action(self, composer: StepComposer, what: dict[str, Any]) -> None:
        """Do what was clicked in the notebook."""
        step = next((step for step in self.record.steps if step.position == what["step"]), None)
        if step is None:
            st.session_state["notice"] = "That step is no longer there; look at the newer state."
            return
        acts: dict[str, Callable[[], None]] = {
            "pick": lambda: self._insert_picked_value(composer, step, what),
            "rate": lambda: self._rate_step(step, int(what["rating"])),
            "again": lambda: self._rerun_step(step),
            "edit": lambda: st.session_state.update(edit_step=step.position),
            "fork": lambda: st.session_state.update(open_trace=self.fork(step.position)),
        }
        acts[what["kind"]]()

    def _insert_picked_value(self, composer: StepComposer, step: Step, what: dict[str, Any]) -> None:
        refused = insert_value(composer, str(what["value"]), str(what["value_kind"]), step.tool)
        if refused:
            st.session_state["notice"] = refused

    def _rate_step(self, step: Step, rating: int) -> None:
        me = self.person.id
        self._apply_change(lambda session: recording.rate_step(session, step.id, rating, seen=self.seen_version, by=me))

    def _rerun_step(self, step: Step) -> None:
        tool = services().tool_registry().find(step.tool or "")
        if tool is None:
            why = services().tool_registry().problem(step.tool or "")
            st.session_state["notice"] = f"The step cannot be run again, since its tool is not here. {why}"
            return
        me = self.person.id
        restarted = self._apply_change(
            lambda session: recording.restart_step(session, step.id, seen=self.seen_version, by=me)
        )
        if restarted is not None:
            self._run_tool(restarted, tool)
