"""Recorders: where the steps and model calls of a run, and the steps of a person, are stored."""

from collections.abc import Callable, Collection
from dataclasses import asdict
from typing import Any
from uuid import UUID, uuid4

from db import recording, runs, traces
from db.database import Database
from db.model_calls import (
    ModelReply,
    ModelRequest,
    begin_model_call,
    complete_model_call,
    fail_model_call,
    mark_lost_model_calls,
)
from db.models import Step, Trace
from db.recording import NewStep, StepResult
from db.runs import RunOutcome
from llm.errors import ChatError
from llm.streaming import make_storable
from llm.types import ChatReply, OutgoingRequest
from llm.usage import Usage
from runs.budget import sum_step_usage


class MemoryRecorder:
    """The record of a run in memory."""

    def __init__(self) -> None:
        self.id = uuid4()
        self.steps: list[Step] = []
        self.result: RunOutcome | None = None

    @property
    def recorded_steps(self) -> list[Step]:
        """The steps so far."""
        return list(self.steps)

    @property
    def usage(self) -> Usage:
        """The usage of the steps so far."""
        return sum_step_usage(self.steps)

    def begin(self, new: NewStep) -> Step:
        """Add a step."""
        self.steps.append(recording.build_step(self.id, len(self.steps) + 1, new))
        return self.steps[-1]

    def complete(self, step: Step, observed: StepResult) -> Step:
        """Add the result of its tool."""
        recording.apply_result(step, observed)
        return step

    def finish(self, ended: RunOutcome) -> None:
        """Keep how the run ended."""
        self.result = ended


TOOL_PURPOSE_PREFIX = "tool:"
"""How the purpose of a tool's own requests begins (tools/tool.py)."""


def _ignore_step(_step: Step) -> None:
    """No caller wants to be notified."""


class StoreRecorder:
    """The record of a run as its trace in the database, which was started, forked or reopened there (db/runs.py)."""

    def __init__(self, database: Database, trace: Trace, on_step: Callable[[Step], None] = _ignore_step) -> None:
        self.trace_id: UUID = trace.id
        self._database = database
        self._seen_version = trace.version
        self._on_step = on_step
        self.last_step_id: UUID | None = None
        """The step that was begun last."""
        with database.read() as session:
            self.recorded_steps = traces.load_trace(session, trace.id).steps
        # Steps that were copied from another trace were paid for there.
        of_steps = sum_step_usage(step for step in self.recorded_steps if step.position > (trace.parent_position or 0))
        # An ended run may have paid for more than its steps: for a reply that a limit left no room for.
        at_end = Usage(**trace.cost)
        self.usage = max(of_steps, at_end, key=lambda usage: usage.calls)

    def begin(self, new: NewStep) -> Step:
        """Store the step; Conflict when another process or person has changed the trace."""
        with self._database.begin() as session:
            step = recording.begin_step(session, self.trace_id, new, seen=self._seen_version)
        self._seen_version += 1
        self.last_step_id = step.id
        self._on_step(step)
        return step

    def complete(self, step: Step, observed: StepResult) -> Step:
        """Store the result of its tool."""
        with self._database.begin() as session:
            completed = recording.complete_step(session, step.id, observed)
            self._seen_version = runs.trace_version(session, self.trace_id)
        self._on_step(completed)
        return completed

    def finish(self, ended: RunOutcome) -> None:
        """Store how the run ended; requests to a model that it abandoned are lost."""
        with self._database.begin() as session:
            runs.finish_run_trace(session, self.trace_id, ended, seen=self._seen_version)
            mark_lost_model_calls(session, self.trace_id)


class PersonRecorder:
    """The steps of a person as their trace in the database; `seen` is the version that the person looks at."""

    def __init__(self, database: Database, trace_id: UUID, person_id: UUID, seen: int) -> None:
        self._database = database
        self._trace_id = trace_id
        self._person_id = person_id
        self._seen_version = seen
        self.begun: Step | None = None
        """The step that was stored last."""

    def begin(self, new: NewStep) -> Step:
        """Store the step; Conflict when the trace was changed since the person looked at it."""
        with self._database.begin() as session:
            self.begun = recording.begin_step(session, self._trace_id, new, seen=self._seen_version, by=self._person_id)
        return self.begun

    def restart(self, step: Step) -> Step:
        """Make the last step ready to be run again; its former result is kept as an Edit."""
        with self._database.begin() as session:
            self.begun = recording.restart_step(session, step.id, seen=self._seen_version, by=self._person_id)
        return self.begun

    def complete(self, step: Step, observed: StepResult) -> Step:
        """Store the result of its tool."""
        with self._database.begin() as session:
            return recording.complete_step(session, step.id, observed)


class StoreModelCallRecorder:
    """Stores the requests of a run's trace before they are sent, and the replies before they are used; thread-safe."""

    def __init__(self, database: Database, steps: StoreRecorder, secrets: Collection[str] = ()) -> None:
        self._database = database
        self._steps = steps
        self._secrets = secrets

    def begin(self, request: OutgoingRequest) -> UUID:
        """Store the request without the secrets, and return the id of its ModelCall."""
        stored = ModelRequest(
            request.purpose, request.model, make_storable(request.messages), make_storable(request.parameters)
        )
        # Another request decides the next step, and is linked to it when that step begins.
        step_id = self._steps.last_step_id if request.purpose.startswith(TOOL_PURPOSE_PREFIX) else None
        with self._database.begin() as session:
            call = begin_model_call(
                session, stored, trace_id=self._steps.trace_id, step_id=step_id, secrets=self._secrets
            )
            return call.id

    def complete(self, handle: UUID, reply: ChatReply) -> None:
        """Store the reply; Conflict when the run was ended or resumed meanwhile, and then the reply is not used."""
        content = {"text": reply.text, "calls": [asdict(call) for call in reply.calls], "stopped": reply.stopped}
        stored = _to_model_reply(make_storable(content), reply.usage)
        with self._database.begin() as session:
            complete_model_call(session, handle, stored)

    def fail(self, handle: UUID, error: BaseException) -> None:
        """Store why there is no reply."""
        usage = error.usage if isinstance(error, ChatError) else None
        reason = make_storable(str(error) or type(error).__name__)
        with self._database.begin() as session:
            fail_model_call(session, handle, reason, _to_model_reply(None, usage) if usage else None)


def _to_model_reply(content: dict[str, Any] | None, usage: Usage) -> ModelReply:
    return ModelReply(content, usage.to_json(), usage.cost, usage.seconds)
