"""The history of a trace: every event with its person, its step and the texts before and after."""

from typing import Any

from showhow.db.models import Trace
from showhow.db.review import review
from showhow.db.runs.runs import trace_version
from showhow.db.traces import recording, traces
from showhow.db.traces.recording import NewStep, StepResult, TraceAnswers
from showhow.db.traces.trace_record import TraceChange, list_changes


def change(scene: Any, trace: Trace, function: Any, *arguments: Any, **options: Any) -> Any:
    """Make one change in the version that is stored."""
    with scene.database.begin() as session:
        seen = traces.load_trace(session, trace.id).trace.version
        return function(session, *arguments, seen=seen, by=scene.ada.id, **options)


def run_step(scene: Any, trace: Trace, thought: str, result: str) -> Any:
    step = change(scene, trace, recording.begin_step, trace.id, NewStep(thought, "read", {"title": "Quay"}))
    with scene.database.begin() as session:
        recording.complete_step(session, step.id, StepResult(result, {}, None, 0.1), by=scene.ada.id)
    return step


def read_history(scene: Any, trace: Trace) -> list[TraceChange]:
    with scene.database.read() as session:
        return list_changes(traces.load_trace(session, trace.id))


def summarize(changes: list[TraceChange]) -> list[tuple[str, str, int | None, str, str]]:
    return [(entry.who, entry.action, entry.position, entry.before, entry.after) for entry in changes]


def test_each_change_has_its_person_and_the_texts_before_and_after(scene):
    with scene.database.begin() as session:
        trace = recording.start_trace(session, scene.questions[0].id, scene.ada.id)
    step = run_step(scene, trace, "Look", "first text")
    for thought in ("Look closer", "Look again"):
        change(scene, trace, recording.edit_thought, step.id, thought)
    for rating in (2, 4, 5):
        change(scene, trace, recording.rate_step, step.id, rating)
    change(scene, trace, recording.restart_step, step.id)
    with scene.database.begin() as session:
        recording.complete_step(session, step.id, StepResult(None, None, "no article", 0.1), by=scene.ada.id)
    run_step(scene, trace, "More", "second text")
    change(scene, trace, recording.undo_step, trace.id)
    change(scene, trace, recording.redo_step, trace.id)
    change(scene, trace, recording.submit_trace, trace.id, TraceAnswers("Ada Reed"))
    with scene.database.begin() as session:
        review.add_step_note(session, step.id, "wrong result", "another quay", by=scene.ben.id)
        review.reject_trace(
            session, trace.id, seen=trace_version(session, trace.id), by=scene.ben.id, comment="look at the map"
        )
        review.approve_trace(session, trace.id, seen=trace_version(session, trace.id), by=scene.ben.id)
    assert summarize(read_history(scene, trace)) == [
        ("ada", "began the trace", None, "", ""),
        ("ada", "ran read", 1, "", "first text"),
        ("ada", "changed the thought", 1, "Look", "Look closer"),
        ("ada", "changed the thought", 1, "Look closer", "Look again"),
        ("ada", "changed the rating", 1, "2", "4"),
        ("ada", "changed the rating", 1, "4", "5"),
        ("ada", "ran the step again", 1, "first text", "no article"),
        ("ada", "ran read", 2, "", "second text"),
        ("ada", "undo of the step", 2, "", ""),
        ("ada", "redo of the step", 2, "", ""),
        ("ada", "changed the status", None, "draft", "submitted"),
        ("ben", "wrong result", 1, "", "another quay"),
        ("ben", "returned", None, "", "look at the map"),
        ("ben", "approved", None, "", ""),
    ]
    times = [entry.at for entry in read_history(scene, trace)]
    assert times == sorted(times)


def test_a_fork_has_a_history_of_its_own(scene):
    with scene.database.begin() as session:
        trace = recording.start_trace(session, scene.questions[0].id, scene.ada.id)
    run_step(scene, trace, "Look", "first text")
    before = read_history(scene, trace)
    with scene.database.begin() as session:
        fork = traces.fork_trace(session, trace.id, 1, scene.ben.id)
    with scene.database.begin() as session:
        step = recording.begin_step(session, fork.id, NewStep("Then", "read", {}), seen=fork.version, by=scene.ben.id)
        recording.complete_step(session, step.id, StepResult("text", {}, None, 0.1), by=scene.ben.id)
    assert summarize(read_history(scene, fork)) == [
        ("ben", "forked another trace at step 1", None, "", ""),
        ("ben", "ran read", 2, "", "text"),
    ]
    assert read_history(scene, trace) == before
