"""Record changes in any order, compared with a model of a few lists."""

import itertools
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, invariant, rule

from showhow.db.database import Conflict, Database, RowNotFound
from showhow.db.models import Trace
from showhow.db.people import users
from showhow.db.questions import projects
from showhow.db.storage.schema import check_database, upgrade
from showhow.db.traces import recording
from showhow.db.traces import traces as forking
from showhow.db.traces import traces as reading
from tests.examples import examples

TEXTS = st.text(st.characters(exclude_characters="\x00", exclude_categories=("Cs",)), max_size=20)
numbers = itertools.count()


class Expected:
    """The expected trace: its steps as [id, thought, rating, done, tool, parent's position], undone steps, version."""

    def __init__(self, trace: Trace, steps: list[list[object]]) -> None:
        self.id = trace.id
        self.version = trace.version
        self.steps = steps
        self.undone: list[list[object]] = []
        self.submitted = False


class RecordingMachine(RuleBasedStateMachine):
    """Every change is tried at any time; an invalid one must be refused and change nothing."""

    traces = Bundle("traces")

    @initialize()
    def open_store(self) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.store = Database(f"sqlite:///{Path(self.folder.name) / 'x.db'}")
        upgrade(self.store)
        self.expected: list[Expected] = []
        with self.store.begin() as session:
            self.project = projects.create_project(session, "p", "w")
            self.ada = users.register_user(session, "ada").id

    def teardown(self) -> None:
        assert check_database(self.store) == []
        self.store.close()
        self.folder.cleanup()

    @rule(target=traces)
    def start(self) -> Expected:
        question = SimpleNamespace(
            source_id=None, dataset=None, split=None, kind=None, gold_answers=[], decomposition=[]
        )
        question.text, question.details = f"question {next(numbers)}", {}
        with self.store.begin() as session:
            projects.add_questions(session, self.project.id, [question])
            last = projects.list_questions(session, self.project.id)[-1]
            trace = recording.start_trace(session, last.id, self.ada)
        self.expected.append(Expected(trace, []))
        return self.expected[-1]

    def change(self, trace: Expected, act, *, allowed: bool = True):
        """Apply the change, or assert that it is refused if it is invalid."""
        if trace.submitted or not allowed:
            with pytest.raises((Conflict, RowNotFound)), self.store.begin() as session:
                act(session)
            return None
        with self.store.begin() as session:
            changed = act(session)
        trace.version += 1
        return changed

    @rule(
        trace=traces, thought=TEXTS, tool=st.sampled_from([None, "read"]), opened=st.booleans(), place=st.integers(0, 9)
    )
    def begin(self, trace: Expected, thought: str, tool: str | None, opened: bool, place: int) -> None:  # noqa: FBT001
        parent = trace.steps[place] if place < len(trace.steps) else None
        new = recording.NewStep(thought, tool, {"title": thought}, parent=parent[0] if parent else None, open=opened)
        step = self.change(trace, lambda s: recording.begin_step(s, trace.id, new, seen=trace.version, by=self.ada))
        if step is not None:
            trace.steps.append(
                [step.id, thought, None, tool is None and not opened, tool, place + 1 if parent else None]
            )
            trace.undone = []

    @rule(trace=traces, place=st.integers(0, 9), text=TEXTS)
    def complete(self, trace: Expected, place: int, text: str) -> None:
        if trace.steps:
            step = trace.steps[place % len(trace.steps)]
            observed = recording.StepResult(text, {"text": text}, None, 0.1)
            act = lambda s: recording.complete_step(s, step[0], observed, by=self.ada)  # noqa: E731 - as the other rules have it
            if self.change(trace, act, allowed=not step[3]):
                step[3] = True

    @rule(trace=traces, place=st.integers(0, 9), rating=st.integers(0, 6))
    def rate(self, trace: Expected, place: int, rating: int) -> None:
        if trace.steps:
            step = trace.steps[place % len(trace.steps)]
            act = lambda s: recording.rate_step(s, step[0], rating, seen=trace.version, by=self.ada)  # noqa: E731 - as above
            if self.change(trace, act, allowed=1 <= rating <= 5):
                step[2] = rating

    @rule(trace=traces, place=st.integers(0, 9), thought=TEXTS)
    def edit(self, trace: Expected, place: int, thought: str) -> None:
        if trace.steps:
            step = trace.steps[place % len(trace.steps)]
            before = trace.version
            self.change(trace, lambda s: recording.edit_thought(s, step[0], thought, seen=trace.version, by=self.ada))
            if not trace.submitted:
                trace.version = before + (thought != step[1])
                step[1] = thought

    @rule(trace=traces)
    def undo(self, trace: Expected) -> None:
        act = lambda s: recording.undo_step(s, trace.id, seen=trace.version, by=self.ada)  # noqa: E731 - as above
        if self.change(trace, act, allowed=bool(trace.steps)):
            trace.undone.append(trace.steps.pop())

    @rule(trace=traces)
    def redo(self, trace: Expected) -> None:
        act = lambda s: recording.redo_step(s, trace.id, seen=trace.version, by=self.ada)  # noqa: E731 - as above
        if self.change(trace, act, allowed=bool(trace.undone)):
            trace.steps.append(trace.undone.pop())

    @rule(trace=traces, stale=st.integers(1, 3))
    def act_on_an_older_state(self, trace: Expected, stale: int) -> None:
        new = recording.NewStep("late")
        seen = trace.version - stale
        self.change(trace, lambda s: recording.begin_step(s, trace.id, new, seen=seen, by=self.ada), allowed=False)

    @rule(trace=traces, answer=TEXTS)
    def submit(self, trace: Expected, answer: str) -> None:
        answers = recording.TraceAnswers(answer)
        act = lambda s: recording.submit_trace(s, trace.id, answers, seen=trace.version, by=self.ada)  # noqa: E731 - as above
        has_thought = any(str(step[1]).strip() for step in trace.steps)
        if self.change(trace, act, allowed=bool(answer.strip()) and has_thought and all(s[3] for s in trace.steps)):
            trace.submitted = True

    @rule(target=traces, trace=traces, place=st.integers(0, 4))
    def fork(self, trace: Expected, place: int) -> Expected:
        with self.store.begin() as session:
            child = forking.fork_trace(session, trace.id, min(place, len(trace.steps)), self.ada)
            copies = reading.load_trace(session, child.id).steps
        # A person's fork has no open step without a tool.
        copied = [
            [copy.id, *step[1:3], step[3] or step[4] is None, *step[4:]]
            for copy, step in zip(copies, trace.steps, strict=False)
        ]
        self.expected.append(Expected(child, copied))
        return self.expected[-1]

    @invariant()
    def the_store_is_as_expected(self) -> None:
        for trace in self.expected:
            with self.store.read() as session:
                record = reading.load_trace(session, trace.id)
            places = {step.id: step.position for step in record.steps}
            stored = [
                [s.id, s.thought, s.rating, s.finished_at is not None, s.tool, s.parent_id and places[s.parent_id]]
                for s in record.steps
            ]
            assert stored == trace.steps
            assert record.trace.version == trace.version
            assert (record.trace.status == "submitted") == trace.submitted
            assert [step.position for step in record.steps] == list(range(1, len(trace.steps) + 1))
            assert next(record.find_inconsistencies(), None) is None


TestRecording = RecordingMachine.TestCase
TestRecording.settings = settings(
    max_examples=examples(25), stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
