"""A reasoner that records a tree: an open step survives an interruption, and the resumed run completes it."""

from collections.abc import Iterator
from pathlib import Path
from threading import Event
from types import SimpleNamespace
from uuid import UUID, uuid4

import pytest
from uuid_utils.compat import uuid7

from showhow.db.database import Database
from showhow.db.models import Run, Step, Trace
from showhow.db.questions import projects
from showhow.db.runs import runs
from showhow.db.storage.schema import upgrade
from showhow.db.traces import traces
from showhow.db.traces.recording import TraceAnswers
from showhow.reasoners.base import Action, FinalAnswer, ReasonerGenerator, StepCompletion, Task
from showhow.runs.recorders import MemoryRecorder, StoreRecorder
from showhow.runs.runner import RunControl, RunRecorder, run_reasoner
from showhow.tools.tool import Observation, Tool, ToolContext
from tests.reasoners.scripted import NOWHERE, tool_of

PARTS = ("0.0", "0.1")


class Planner:
    """Plans in an open step, calls a tool for each part in a child, and completes the plan; resumes by node."""

    name = "planner"

    def solve(self, task: Task) -> ReasonerGenerator:
        nodes = {step.node: step for step in task.prior_steps}
        self.resumed_with = [(step.node, step.finished_at is not None) for step in task.prior_steps]
        plan = nodes["0"].id if "0" in nodes else uuid7()
        if "0" not in nodes:
            yield Action("Two parts.", node="0", skill="plan/1", data={"parts": list(PARTS)}, open=True, id=plan)
        for node in PARTS:
            if node not in nodes:
                yield Action(f"Part {node}.", "look", {"text": node}, parent=plan, node=node)
        if "0" not in nodes or nodes["0"].finished_at is None:
            yield StepCompletion(plan, "both parts", {"answer": "Ada"})
        return FinalAnswer(TraceAnswers("Ada"))


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Database]:
    store = Database(f"sqlite:///{tmp_path / 'showhow.db'}")
    upgrade(store)
    yield store
    store.close()


@pytest.fixture
def trace(store: Database) -> Trace:
    plain = {"source_id": None, "dataset": None, "split": None, "kind": None, "gold_answers": [], "decomposition": []}
    with store.begin() as session:
        project = projects.create_project(session, "p", "nowhere")
        projects.add_questions(session, project.id, [SimpleNamespace(text="Who?", details={}, **plain)])
        (question,) = projects.list_questions(session, project.id)
        run = runs.start_run(session, Run(name="ask", reasoner="planner", world="nowhere"))
        return runs.start_run_trace(session, run, question.id, "")


def look(_context: ToolContext, text: str) -> Observation:
    """Look."""
    return Observation(f"seen {text}", {})


def looking_until_stopped(stop: Event) -> Tool:
    """The tool `look`, which stops the run in its second call and never returns from it."""

    def look(_context: ToolContext, text: str) -> Observation:
        """Look."""
        if text == PARTS[1]:
            stop.set()
            Event().wait(30)
        return Observation(f"seen {text}", {})

    return tool_of(look)


def drive(recorder: RunRecorder, tool: Tool, control: RunControl | None = None) -> tuple[Planner, str]:
    planner = Planner()
    outcome = run_reasoner(planner, Task("Who?", NOWHERE, [tool]), recorder, control)
    return planner, outcome.ending


def check_tree(steps: list[Step]) -> None:
    plan, *children = steps
    assert [(step.node, step.observation) for step in steps] == [
        ("0", "both parts"),
        ("0.0", "seen 0.0"),
        ("0.1", "seen 0.1"),
    ]
    assert (plan.skill, plan.data, plan.parent_id) == ("plan/1", {"answer": "Ada"}, None)
    assert {child.parent_id for child in children} == {plan.id}
    assert all(step.finished_at is not None for step in steps)


def stored_steps(store: Database, trace_id: UUID) -> list[Step]:
    with store.read() as session:
        return traces.load_trace(session, trace_id).steps


def test_a_tree_is_recorded_in_the_store_and_in_memory(store, trace):
    assert drive(StoreRecorder(store, trace), tool_of(look))[1] == "answered"
    check_tree(stored_steps(store, trace.id))
    memory = MemoryRecorder()
    drive(memory, tool_of(look))
    check_tree(memory.steps)


def test_a_resumed_run_calls_the_interrupted_tool_first_and_leaves_the_open_step_to_the_reasoner(store, trace):
    stop = Event()
    assert drive(StoreRecorder(store, trace), looking_until_stopped(stop), RunControl(stop=stop))[1] == "stopped"
    assert [step.finished_at is not None for step in stored_steps(store, trace.id)] == [False, True, False]
    with store.begin() as session:
        reopened = runs.reopen_run_trace(session, trace.id)
    planner, ending = drive(StoreRecorder(store, reopened), tool_of(look))
    assert planner.resumed_with == [("0", False), ("0.0", True), ("0.1", True)]
    assert ending == "answered"
    check_tree(stored_steps(store, trace.id))


def test_a_run_from_within_the_tree_completes_the_plan_anew(store, trace):
    drive(StoreRecorder(store, trace), tool_of(look))
    with store.begin() as session:
        run = runs.start_run(session, Run(name="ask", reasoner="planner", world="nowhere"))
        fork = runs.fork_run_trace(session, trace.id, 2, run)
    planner, ending = drive(StoreRecorder(store, fork), tool_of(look))
    assert planner.resumed_with == [("0", False), ("0.0", True)]
    assert ending == "answered"
    check_tree(stored_steps(store, fork.id))


def test_completing_a_step_that_is_not_open_fails_the_run_with_a_reason():
    class Confused:
        name = "confused"

        def solve(self, _task: Task) -> ReasonerGenerator:
            yield StepCompletion(uuid4())
            return FinalAnswer(TraceAnswers("Ada"))

    outcome = run_reasoner(Confused(), Task("Who?", NOWHERE, []), MemoryRecorder())
    assert outcome.ending == "failed"
    assert "is not open" in (outcome.failure or "")
