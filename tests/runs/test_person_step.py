"""Execution of one step: its tool runs after the step is stored, even if the caller is interrupted."""

import ctypes
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from showhow.db.database import Conflict, Database
from showhow.db.people import users
from showhow.db.questions import projects
from showhow.db.storage.schema import upgrade
from showhow.db.traces import recording, traces
from showhow.db.traces.recording import NewStep
from showhow.runs.recorders import PersonRecorder, complete_tool_call, execute_step, run_to_completion
from showhow.tools.tool import ToolResult
from tests.reasoners.scripted import NOWHERE, Hanging, echo, tool_of, until

LOOK = NewStep("I look.", "echo", {"text": "a quay"})


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    database = Database(f"sqlite:///{tmp_path / 'showhow.db'}")
    upgrade(database)
    yield database
    database.close()


@pytest.fixture
def trace(database: Database) -> Any:
    question = SimpleNamespace(
        text="?", source_id=None, dataset=None, split=None, kind=None, gold_answers=[], decomposition=[], details={}
    )
    with database.begin() as session:
        project = projects.create_project(session, "P", "w")
        projects.add_questions(session, project.id, [question])
        (stored,) = projects.list_questions(session, project.id)
        return recording.start_trace(session, stored.id, users.register_user(session, "ada").id)


def recorder_of(database: Database, trace: Any) -> PersonRecorder:
    return PersonRecorder(database, trace.id, trace.author_id, trace.version)


def steps_of(database: Database, trace_id: UUID) -> list[Any]:
    with database.read() as session:
        return traces.load_trace(session, trace_id).steps


def call_echo(_name: str, arguments: dict[str, Any]) -> ToolResult:
    return tool_of(echo).call(NOWHERE, arguments)


def test_a_step_is_stored_before_its_tool_runs_and_completed_after(database: Database, trace: Any):
    def call(name: str, arguments: dict[str, Any]) -> ToolResult:
        (begun,) = steps_of(database, trace.id)
        assert (begun.tool, begun.finished_at) == (name, None)
        return call_echo(name, arguments)

    step, outcome = execute_step(recorder_of(database, trace), LOOK, call)
    assert outcome.observation is not None
    assert (step.observation, step.data) == ("a quay", {"value": "a quay"})
    assert [stored.observation for stored in steps_of(database, trace.id)] == ["a quay"]


def test_a_step_that_cannot_be_stored_calls_no_tool(database: Database, trace: Any):
    calls: list[str] = []
    recorder = PersonRecorder(database, trace.id, trace.author_id, trace.version + 1)
    with pytest.raises(Conflict, match="changed in another tab"):
        execute_step(recorder, LOOK, lambda name, _arguments: calls.append(name))  # type: ignore[arg-type, return-value]
    assert (calls, recorder.begun, steps_of(database, trace.id)) == ([], None, [])


def test_the_last_step_is_run_again_with_its_own_arguments(database: Database, trace: Any):
    step, _ = execute_step(recorder_of(database, trace), LOOK, lambda *_: ToolResult(None, "the source is down", 0.1))
    assert step.error == "the source is down"
    with database.read() as session:
        current = traces.load_trace(session, trace.id).trace
    recorder = recorder_of(database, current)
    complete_tool_call(recorder, recorder.restart(step), call_echo)
    (again,) = steps_of(database, trace.id)
    assert (again.observation, again.error) == ("a quay", None)


class Interrupted(BaseException):
    """The exception that interrupts the script of a page when the page is rerun."""


def test_the_tool_runs_even_if_the_caller_is_interrupted_meanwhile(database: Database, trace: Any):
    hanging, outcome = Hanging(), []
    recorder = recorder_of(database, trace)

    def call(_name: str, arguments: dict[str, Any]) -> ToolResult:
        return hanging.tool.call(NOWHERE, arguments)

    def run_script() -> None:
        try:
            run_to_completion(lambda: execute_step(recorder, LOOK, call))
        except Interrupted:
            outcome.append("interrupted")

    script = Thread(target=run_script)
    script.start()
    until(hanging.called.is_set)
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(script.ident or 0), ctypes.py_object(Interrupted))
    hanging.go.set()
    script.join(60)
    until(lambda: steps_of(database, trace.id)[0].finished_at is not None)
    assert outcome == ["interrupted"]
    assert [step.observation for step in steps_of(database, trace.id)] == ["a quay"]
