"""Steps as a tree: open steps are completed after their children, and parents survive undo, redo, fork and merge."""

from dataclasses import replace
from typing import Any

import pytest

from showhow.db.database import Conflict, Database
from showhow.db.models import Run, Step, Trace
from showhow.db.runs import runs
from showhow.db.runs.runs import RunOutcome
from showhow.db.storage.merge import merge_trace
from showhow.db.storage.schema import upgrade
from showhow.db.traces import recording, traces
from showhow.db.traces.recording import NewStep, StepResult, TraceAnswers

PLAN = NewStep("two parts", node="0", skill="decompose/1", data={"parts": ["a", "b"]}, open=True)
RESULT = StepResult("both", {"answer": "Ada"}, None, None)
ANSWERED = RunOutcome("answered", answers=TraceAnswers("Ada"))


def begin(scene: Any, trace: Trace, new: NewStep) -> Step:
    with scene.database.begin() as session:
        return recording.begin_step(
            session, trace.id, new, seen=runs.trace_version(session, trace.id), by=trace.author_id
        )


def complete(scene: Any, step: Step, result: StepResult = RESULT) -> Step:
    with scene.database.begin() as session:
        author_id = session.get_one(Trace, step.trace_id).author_id
        return recording.complete_step(session, step.id, result, by=author_id)


def steps(scene: Any, trace: Trace) -> list[Step]:
    with scene.database.read() as session:
        return traces.load_trace(session, trace.id).steps


@pytest.fixture
def trace(scene: Any) -> Trace:
    """A trace of an unfinished run."""
    with scene.database.begin() as session:
        run = runs.start_run(session, Run(name="ask", reasoner="atomr", world="harbour"))
        return runs.start_run_trace(session, run, scene.questions[0].id, "")


@pytest.fixture
def own(scene: Any) -> Trace:
    """A person's draft."""
    with scene.database.begin() as session:
        return recording.start_trace(session, scene.questions[0].id, scene.ada.id)


def test_an_open_step_is_completed_after_its_children_and_stands_before_them(scene, trace):
    plan = begin(scene, trace, PLAN)
    child = begin(scene, trace, NewStep("look", "read", {"title": "Quay"}, parent=plan.id, node="0.0"))
    complete(scene, child, StepResult("a page", {"n": 1}, None, 0.1))
    assert [step.finished_at is None for step in steps(scene, trace)] == [True, False]
    complete(scene, plan)
    first, second = steps(scene, trace)
    assert (first.node, first.skill, first.observation, first.data) == ("0", "decompose/1", "both", {"answer": "Ada"})
    assert (second.node, second.skill, second.parent_id, second.position) == ("0.0", None, first.id, 2)
    assert first.finished_at is not None
    assert first.finished_at >= second.finished_at


def test_a_step_without_a_tool_stores_its_data_and_is_finished_when_it_is_written(scene, trace):
    begin(scene, trace, replace(PLAN, open=False))
    (step,) = steps(scene, trace)
    assert (step.data, step.finished_at is not None) == (PLAN.data, True)


def test_the_data_that_a_step_was_begun_with_stays_when_its_result_has_none(scene, trace):
    complete(scene, begin(scene, trace, PLAN), StepResult("both", None, None, None))
    assert steps(scene, trace)[0].data == PLAN.data


def test_the_kind_of_an_error_is_stored_and_restarting_the_step_clears_it(scene, own):
    step = begin(scene, own, NewStep("look", "read", {"title": "x"}))
    failed = StepResult(None, None, "There is no article x.", 0.1, error_kind="not found")
    assert complete(scene, step, failed).error_kind == "not found"
    with scene.database.begin() as session:
        again = recording.restart_step(session, step.id, seen=runs.trace_version(session, own.id), by=scene.ada.id)
        assert (again.error, again.error_kind) == (None, None)
    with scene.database.read() as session:
        (edit,) = traces.load_trace(session, own.id).edits
    assert edit.before["error_kind"] == "not found"


def test_a_refused_step_stores_the_kind_of_the_refusal(scene, trace):
    step = begin(scene, trace, NewStep("?", "nope", refusal="there is no tool nope", refusal_kind="wrong arguments"))
    assert (step.error_kind, step.finished_at is not None) == ("wrong arguments", True)


def test_a_parent_is_a_step_of_the_same_trace_that_was_not_undone(scene, trace, own):
    plan = begin(scene, trace, PLAN)
    with pytest.raises(Conflict, match="is not in this trace"):
        begin(scene, own, NewStep("look", parent=plan.id))
    gone = begin(scene, own, NewStep("look"))
    with scene.database.begin() as session:
        recording.undo_step(session, own.id, seen=runs.trace_version(session, own.id), by=scene.ada.id)
    with pytest.raises(Conflict, match="or was undone"):
        begin(scene, own, NewStep("look", parent=gone.id))


def test_undo_and_redo_leave_the_parent_as_it_was(scene, own):
    plan = begin(scene, own, replace(PLAN, open=False))
    child = begin(scene, own, NewStep("look", parent=plan.id))
    for change in (recording.undo_step, recording.undo_step, recording.redo_step, recording.redo_step):
        with scene.database.begin() as session:
            change(session, own.id, seen=runs.trace_version(session, own.id), by=scene.ada.id)
    assert [(step.id, step.parent_id) for step in steps(scene, own)] == [(plan.id, None), (child.id, plan.id)]


def test_a_trace_with_an_open_step_is_not_submitted(scene, own):
    plan = begin(scene, own, PLAN)
    begin(scene, own, NewStep("look", parent=plan.id))

    def submit() -> None:
        with scene.database.begin() as session:
            seen = runs.trace_version(session, own.id)
            recording.submit_trace(session, own.id, TraceAnswers("Ada"), seen=seen, by=scene.ada.id)

    with pytest.raises(Conflict, match="step 1 was never finished"):
        submit()
    complete(scene, plan)
    submit()


def tree(scene: Any, trace: Trace) -> list[Step]:
    """A plan with two calls and a nested plan with one call; both plans are completed at the end."""
    plan = begin(scene, trace, PLAN)
    complete(scene, begin(scene, trace, NewStep("a", "read", parent=plan.id, node="0.0")))
    inner = begin(scene, trace, replace(PLAN, parent=plan.id, node="0.1"))
    complete(scene, begin(scene, trace, NewStep("b", "read", parent=inner.id, node="0.1.0")))
    complete(scene, inner)
    complete(scene, plan)
    return steps(scene, trace)


def test_a_fork_points_to_its_own_copies(scene, trace):
    made = tree(scene, trace)
    with scene.database.begin() as session:
        fork = traces.fork_trace(session, trace.id, 4, scene.ada.id)
    copies = steps(scene, fork)
    places = {step.id: step.position for step in made} | {step.id: step.position for step in copies}
    assert [places.get(step.parent_id) for step in copies] == [None, 1, 1, 3]
    assert {step.parent_id for step in copies} - {None} <= {step.id for step in copies}
    assert [(s.node, s.skill, s.data, s.observation) for s in copies] == [
        (s.node, s.skill, s.data, s.observation) for s in made
    ]
    assert all(step.finished_at is not None for step in copies)


def test_a_run_forked_within_a_tree_has_the_enclosing_steps_open_again(scene, trace):
    tree(scene, trace)
    with scene.database.begin() as session:
        run = runs.start_run(session, Run(name="ask", reasoner="atomr", world="harbour"))
        fork = runs.fork_run_trace(session, trace.id, 3, run)
    plan, call, inner = steps(scene, fork)
    assert [step.finished_at is None for step in (plan, call, inner)] == [True, False, True]
    assert (plan.observation, inner.observation, call.observation) == (None, None, "both")
    complete(scene, inner)
    complete(scene, plan)


def test_a_person_who_forks_within_a_tree_can_submit_without_the_results_that_came_later(scene, trace):
    tree(scene, trace)
    with scene.database.begin() as session:
        fork = traces.fork_trace(session, trace.id, 3, scene.ada.id)
    assert [step.observation for step in steps(scene, fork)] == [None, "both", None]
    with scene.database.begin() as session:
        recording.submit_trace(session, fork.id, TraceAnswers("Ada"), seen=fork.version, by=scene.ada.id)


def test_a_person_who_forks_an_interrupted_run_has_no_open_step_left(scene, trace):
    plan = begin(scene, trace, PLAN)
    complete(scene, begin(scene, trace, NewStep("look", "read", parent=plan.id)))
    with scene.database.begin() as session:
        fork = traces.fork_trace(session, trace.id, 2, scene.ada.id)
        recording.submit_trace(session, fork.id, TraceAnswers("Ada"), seen=fork.version, by=scene.ada.id)
    assert steps(scene, fork)[0].data == PLAN.data


def test_reopening_a_run_leaves_its_open_steps_open(scene, trace):
    plan = begin(scene, trace, PLAN)
    with scene.database.begin() as session:
        seen = runs.trace_version(session, trace.id)
        runs.finish_run_trace(session, trace.id, RunOutcome("stopped", "it was stopped"), seen=seen)
        runs.reopen_run_trace(session, trace.id)
    (step,) = steps(scene, trace)
    assert (step.id, step.finished_at) == (plan.id, None)
    complete(scene, plan)


def test_a_tree_merges_into_another_store_with_its_parents(scene, trace, tmp_path):
    tree(scene, trace)
    with scene.database.begin() as session:
        runs.finish_run_trace(session, trace.id, ANSWERED, seen=runs.trace_version(session, trace.id))
    with scene.database.read() as session:
        record = traces.load_trace(session, trace.id)
    # The order of the steps in the record does not matter, nor the depth of the tree.
    record.steps[1:] = sorted(record.steps[1:], key=lambda step: -step.position)
    elsewhere = Database(f"sqlite:///{tmp_path / 'elsewhere.db'}")
    upgrade(elsewhere)
    with elsewhere.begin() as session:
        assert merge_trace(session, record) == "added"
    with elsewhere.read() as session:
        arrived = traces.load_trace(session, trace.id).steps
    elsewhere.close()
    assert arrived == steps(scene, trace)


def test_steps_that_are_their_own_ancestors_are_refused(scene, trace):
    tree(scene, trace)
    with scene.database.read() as session:
        record = traces.load_trace(session, trace.id)
        session.expunge_all()
    assert list(record.find_inconsistencies()) == []
    record.steps[0].parent_id = record.steps[3].id
    assert list(record.find_inconsistencies()) == ["a step is its own ancestor"]


def test_an_error_of_a_former_version_without_a_kind_is_the_same_error(scene, trace):
    failed = StepResult(None, None, "There is no article x.", 0.1, error_kind="not found")
    complete(scene, begin(scene, trace, NewStep("look", "read")), failed)
    with scene.database.begin() as session:
        former = traces.load_trace(session, trace.id)
        session.expunge_all()
        former.steps[0].error_kind = None
        assert merge_trace(session, former) == "same"
        former.steps[0].error_kind = "time limit"
        assert merge_trace(session, former) == "differs"
