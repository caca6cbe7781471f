"""Durations while the clock of the machine is set back or forward."""

from datetime import timedelta

import pytest

from db import recording
from db.models import utc_now
from db.steady_clock import seconds_since

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
    monkeypatch.setattr("db.steady_clock.utc_now", lambda: utc_now() + step)
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
