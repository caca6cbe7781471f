"""Durations while the clock of the machine is set back or forward."""

from datetime import timedelta
from uuid import UUID

import pytest
from sqlalchemy import update
from uuid_utils.compat import uuid7

from showhow.db.models import Judgement, Step
from showhow.db.review import queue, review
from showhow.db.runs.runs import trace_version
from showhow.db.traces import recording
from showhow.db.types import id_after, seconds_since, utc_now

HOUR = timedelta(hours=1)


def test_seconds_count_from_the_moment():
    assert 60 <= seconds_since(utc_now() - timedelta(seconds=60)) < 70


def test_a_moment_that_a_clock_set_back_puts_into_the_future_counts_from_its_first_use():
    moment = utc_now() + HOUR
    first = seconds_since(moment)
    assert 0 <= first < 10
    assert first <= seconds_since(moment) < 10


@pytest.mark.parametrize("step", [-HOUR, HOUR])
def test_a_clock_that_is_set_during_the_work_changes_no_duration(monkeypatch, step):
    moment = utc_now()
    seconds_since(moment)
    monkeypatch.setattr("showhow.db.types.utc_now", lambda: utc_now() + step)
    assert 0 <= seconds_since(moment) < 10


def test_the_duration_of_a_trace_is_not_negative_after_the_clock_was_set_back(scene):
    with scene.database.begin() as session:
        trace = recording.start_trace(session, scene.questions[0].id, scene.ada.id)
        trace.started_at = utc_now() + HOUR
        new = recording.NewStep("look")
        session.flush()
        recording.begin_step(session, trace.id, new, seen=trace.version, by=scene.ada.id)
        answers = recording.TraceAnswers("quay")
        submitted = recording.submit_trace(session, trace.id, answers, seen=trace.version, by=scene.ada.id)
        assert submitted.wall_seconds is not None
        assert 0 <= submitted.wall_seconds < 10


def future_id() -> UUID:
    """An id that was made while the clock was an hour ahead."""
    return uuid7(timestamp=int((utc_now() + HOUR).timestamp()))


@pytest.fixture
def draft(scene):
    """A draft of ada's."""
    with scene.database.begin() as session:
        return recording.start_trace(session, scene.questions[0].id, scene.ada.id).id


def change(scene, trace_id, act, *arguments) -> Step:
    with scene.database.begin() as session:
        seen = session.get_one(recording.Trace, trace_id).version
        return act(session, trace_id, *arguments, seen=seen, by=scene.ada.id)


def begin_an_hour_ahead(scene, trace_id) -> Step:
    """Record a step while the clock is an hour ahead."""
    step = change(scene, trace_id, recording.begin_step, recording.NewStep("first", id=future_id()))
    with scene.database.begin() as session:
        session.get_one(Step, step.id).started_at = utc_now() + HOUR
    return step


def test_a_step_that_was_begun_before_the_clock_was_set_back_does_not_prevent_the_redo_of_a_later_one(scene, draft):
    begin_an_hour_ahead(scene, draft)
    second = change(scene, draft, recording.begin_step, recording.NewStep("second"))
    change(scene, draft, recording.undo_step)
    assert change(scene, draft, recording.redo_step).id == second.id


def test_the_step_that_was_undone_last_is_restored_after_the_clock_was_set_back(scene, draft):
    first = begin_an_hour_ahead(scene, draft)
    change(scene, draft, recording.undo_step)
    with scene.database.begin() as session:
        session.get_one(Step, first.id).removed_at = utc_now() + HOUR
    second = change(scene, draft, recording.begin_step, recording.NewStep("second"))
    change(scene, draft, recording.undo_step)
    assert change(scene, draft, recording.redo_step).id == second.id


def test_a_step_that_was_recorded_after_the_clock_was_set_back_prevents_the_redo_of_what_it_replaced(scene, draft):
    change(scene, draft, recording.begin_step, recording.NewStep("first"))
    change(scene, draft, recording.begin_step, recording.NewStep("second", id=future_id()))
    change(scene, draft, recording.undo_step)
    change(scene, draft, recording.undo_step)
    change(scene, draft, recording.begin_step, recording.NewStep("another first"))
    with scene.database.read() as session:
        assert recording.find_undone_step(session, draft) is None


def test_the_latest_return_and_its_comment_come_first_after_the_clock_was_set_back(scene):
    returned = []
    for question, decisions in zip(scene.questions, (["early"], ["wrong", None, "still wrong"]), strict=False):
        with scene.database.begin() as session:
            trace = recording.start_trace(session, question.id, scene.ada.id)
            returned.append(trace.id)
        change(scene, trace.id, recording.begin_step, recording.NewStep("so"))
        change(scene, trace.id, recording.submit_trace, recording.TraceAnswers("quay"))
        for number, comment in enumerate(decisions):
            with scene.database.begin() as session:
                if comment is None:
                    review.approve_trace(session, trace.id, seen=trace_version(session, trace.id), by=scene.ben.id)
                else:
                    review.reject_trace(
                        session, trace.id, seen=trace_version(session, trace.id), by=scene.ben.id, comment=comment
                    )
            if number == 0:
                # The clock was an hour ahead for the first decision on each trace.
                with scene.database.begin() as session:
                    session.execute(
                        update(Judgement)
                        .where(Judgement.trace_id == trace.id)
                        .values(created_at=utc_now() + HOUR, id=future_id())
                    )
    with scene.database.begin() as session:
        session.get_one(recording.Trace, returned[0]).submitted_at = utc_now() + HOUR
        listed = queue.list_returned_traces(session, scene.project.id, scene.ada.id)
        found = review.find_return(session, returned[1])
    assert [(item.trace.id, item.comment) for item in listed] == [(returned[1], "still wrong"), (returned[0], "early")]
    assert found is not None
    assert found.comment == "still wrong"


def test_an_id_sorts_after_the_last_one():
    assert id_after(None).version == 7
    last = future_id()
    assert id_after(last).int == last.int + 1
    assert id_after(uuid7()).version == 7
    assert id_after(UUID(int=(1 << 128) - 1)).version == 7
