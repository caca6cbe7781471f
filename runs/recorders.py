"""Where the record of a run is kept: in the store, each step before its tool runs, or in memory for an evaluation."""

from uuid import UUID, uuid4

from db import recording, runs, traces
from db.database import Database
from db.models import Step, Trace
from db.recording import NewStep, StepResult
from db.runs import RunOutcome
from llm.usage import Usage
from runs.budget import sum_step_usage


class MemoryRecorder:
    """A record that is gone with the process."""

    def __init__(self) -> None:
        self.id = uuid4()
        self.steps: list[Step] = []
        self.result: RunOutcome | None = None

    @property
    def recorded_steps(self) -> list[Step]:
        """No step is there when it begins."""
        return list(self.steps)

    @property
    def usage(self) -> Usage:
        """Nothing was used before."""
        return sum_step_usage(self.steps)

    def begin(self, new: NewStep) -> Step:
        """Add a step."""
        self.steps.append(recording.build_step(self.id, len(self.steps) + 1, new))
        return self.steps[-1]

    def complete(self, step: Step, observed: StepResult) -> Step:
        """Fill in what its tool gave."""
        recording.apply_result(step, observed)
        return step

    def finish(self, ended: RunOutcome) -> None:
        """Remember how it ended."""
        self.result = ended


class StoreRecorder:
    """A run's trace in the database, as it was started, forked or reopened there (db/runs.py)."""

    def __init__(self, database: Database, trace: Trace) -> None:
        self.trace_id: UUID = trace.id
        self._database = database
        self._seen_version = trace.version
        with database.read() as session:
            self.recorded_steps = traces.load_trace(session, trace.id).steps
        # What was copied from another trace was paid for there.
        by_steps = sum_step_usage(step for step in self.recorded_steps if step.position > (trace.parent_position or 0))
        # At its end, a run may have paid for more than its steps: for a reply that a limit left no room for.
        at_its_end = Usage(**trace.cost)
        self.usage = max(by_steps, at_its_end, key=lambda used: used.calls)

    def begin(self, new: NewStep) -> Step:
        """Put the step on disk; Conflict when somebody else is at work on the trace."""
        with self._database.begin() as session:
            step = recording.begin_step(session, self.trace_id, new, seen=self._seen_version)
        self._seen_version += 1
        return step

    def complete(self, step: Step, observed: StepResult) -> Step:
        """Put what its tool gave on disk."""
        with self._database.begin() as session:
            done = recording.complete_step(session, step.id, observed)
            self._seen_version = runs.trace_version(session, self.trace_id)
        return done

    def finish(self, ended: RunOutcome) -> None:
        """Put the end on disk."""
        with self._database.begin() as session:
            runs.finish_run_trace(session, self.trace_id, ended, seen=self._seen_version)
