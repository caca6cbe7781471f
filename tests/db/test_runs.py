"""Runs in the database that have not ended."""

import pytest

from showhow.db.models import Run, Trace
from showhow.db.runs import runs
from showhow.db.runs.runs import ASK_RUN_NAME, RunOutcome, finish_runs_without_drafts, list_unfinished_traces
from showhow.db.traces.model_calls import ModelRequest, begin_model_call
from showhow.db.traces.recording import NewStep, begin_step


@pytest.fixture
def asked(scene) -> Run:
    """A run with a trace of each of the three questions."""
    with scene.database.begin() as session:
        run = runs.start_run(session, Run(name=ASK_RUN_NAME, reasoner="replay", world="harbour"))
        for question in scene.questions:
            runs.start_run_trace(session, run, question.id, "")
        return run


def unfinished(scene) -> list[runs.UnfinishedTrace]:
    with scene.database.read() as session:
        return list_unfinished_traces(session)


def test_unfinished_traces_have_the_time_of_their_last_step_or_model_call(scene, asked):
    traces = unfinished(scene)
    assert [trace.question for trace in traces] == [question.text for question in scene.questions]
    assert {trace.run_name for trace in traces} == {ASK_RUN_NAME}
    with scene.database.begin() as session:
        step = begin_step(session, traces[1].trace_id, NewStep("I look.", "count", {}), seen=traces[1].version)
        request = ModelRequest("step", "m", [{"role": "user", "content": "x"}])
        call = begin_model_call(session, request, trace_id=traces[2].trace_id)
        started = session.get_one(Trace, traces[0].trace_id).started_at
    assert [trace.last_written_at for trace in unfinished(scene)] == [started, step.started_at, call.created_at]


def test_a_run_is_finished_once_none_of_its_traces_is_a_draft(scene, asked):
    for left, trace in zip((2, 1, 0), unfinished(scene), strict=True):
        with scene.database.begin() as session:
            runs.finish_run_trace(session, trace.trace_id, RunOutcome("stopped"), seen=trace.version)
            finish_runs_without_drafts(session, "verify")
            finish_runs_without_drafts(session, ASK_RUN_NAME)
        with scene.database.read() as session:
            assert (session.get_one(Run, asked.id).finished_at is None) == (left > 0)
        assert len(unfinished(scene)) == left


def test_drafts_of_people_are_no_unfinished_runs(scene):
    with scene.database.begin() as session:
        session.add(Trace(question_id=scene.questions[0].id, author_id=scene.ada.id))
    assert unfinished(scene) == []
