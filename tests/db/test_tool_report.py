"""Tool reports, compared with the same figures counted one by one in Python."""

import math
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, event

from showhow.db.database import Database
from showhow.db.models import Project, Question, Step, Trace
from showhow.db.questions import projects
from showhow.db.removal import removals
from showhow.db.removal.removal_kinds import Kind
from showhow.db.review.tool_report import (
    LATENCY_BUCKET_BOUNDS,
    ToolCallFilter,
    ToolReport,
    ToolStatistics,
    build_tool_report,
)
from showhow.db.serialization import field_values, insert_rows
from showhow.db.storage.schema import upgrade
from showhow.db.traces import recording
from showhow.db.traces import traces as forking
from showhow.db.traces import traces as reading
from showhow.db.traces.libraries import MODELS, PEOPLE
from tests.examples import examples

START = datetime(2026, 3, 1, tzinfo=UTC)
ERRORS = (("late 1", "time limit"), ("late 2", "time limit"), ("gone", "not found"), ("of an older program", None))
PROJECTS = ("quays", "locks")
ROW = {"tool": "read", "latency": 1.0, "rating": 2, "finished_at": START, "started_at": START}
used = st.fixed_dictionaries(
    {
        "model": st.just("m"),
        "calls": st.integers(1, 3),
        "input_tokens": st.none() | st.integers(0, 9000),
        "output_tokens": st.none() | st.integers(0, 900),
        "seconds": st.floats(0, 9),
        "cost": st.none() | st.floats(0, 1),
    }
)


@st.composite
def steps(draw: st.DrawFn) -> dict[str, Any]:
    """A step in any state: without a tool, unfinished, failed, undone, never timed, never rated."""
    finished = draw(st.booleans() | st.just(True))  # noqa: FBT003 - most are
    error, error_kind = draw(st.just((None, None)) | st.sampled_from(ERRORS)) if finished else (None, None)
    usage = draw(st.sampled_from(["", "thought", "tool"]))
    return {
        "tool": draw(st.none() | st.sampled_from(["read", "runQuery", "gone by now"])),
        "error": error,
        "error_kind": error_kind,
        "latency": draw(st.none() | st.floats(0, 40) | st.sampled_from(LATENCY_BUCKET_BOUNDS)) if finished else None,
        "rating": draw(st.none() | st.integers(1, 5)) if finished else None,
        "finished_at": START if finished else None,
        "started_at": START + timedelta(hours=draw(st.integers(0, 3))),
        "removed_at": draw(st.none() | st.none() | st.just(START)),
        "usage": {usage: draw(used)} if usage else {},
        "thought": draw(st.sampled_from(["", 'says "tool": {'])),
    }


traces = st.lists(
    st.tuples(st.sampled_from(PROJECTS), st.sampled_from(["human", "humaniq"]), st.lists(steps(), max_size=6)),
    max_size=4,
)
scopes = st.builds(
    ToolCallFilter,
    project=st.none() | st.sampled_from([*PROJECTS, "no such project"]),
    tool=st.none() | st.sampled_from(["read", "never called"]),
    by=st.none() | st.sampled_from([PEOPLE, MODELS]),
    since=st.none() | st.integers(0, 3).map(lambda hours: START + timedelta(hours=hours)),
    until=st.none() | st.integers(0, 4).map(lambda hours: START + timedelta(hours=hours)),
)


def report(database, scope: ToolCallFilter = ToolCallFilter(), **more: Any) -> ToolReport:  # noqa: B008 - it is frozen
    with database.read() as session:
        return build_tool_report(session, scope, **more)


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(stored=traces, scope=scopes)
def test_every_figure_equals_counting_the_steps_one_by_one(scene, stored, scope):
    rows = fill(scene.database, stored)
    tool_report = report(scene.database, scope, worst=3)
    mine = [row for row in rows if fits(row, scope)]
    assert [statistics.tool for statistics in tool_report.tools] == sorted({row["tool"] for row in mine})
    for statistics in tool_report.tools:
        compare(statistics, [row for row in mine if row["tool"] == statistics.tool])
    standing = [row for row in mine if row["removed_at"] is None and row["rating"] is not None]
    lowest = sorted(standing, key=lambda row: (row["rating"], -row["started_at"].timestamp()))[:3]
    assert [(w.rating, w.started_at) for w in tool_report.worst] == [
        (row["rating"], row["started_at"]) for row in lowest
    ]
    keys = {(row["trace_id"], row["position"]): row for row in standing}
    assert all(keys[w.trace_id, w.position]["tool"] == w.tool for w in tool_report.worst)


def fill(database, stored) -> list[dict[str, Any]]:
    """Store only these traces with their steps; returns the steps with the values of their traces."""
    rows = []
    with database.begin() as session:
        for kind in (Step, Trace, Question, Project):
            session.execute(delete(kind))
        for place, (name, reasoner, drawn_steps) in enumerate(stored):
            project = projects.find_project(session, name) or projects.create_project(session, name, "w")
            question = Question(project_id=project.id, position=place + 1, text=f"Which {place}?")
            insert_rows(session, Question, [field_values(question)])
            trace = Trace(question_id=question.id, reasoner=reasoner)
            insert_rows(session, Trace, [field_values(trace)])
            position = 0
            for values in drawn_steps:
                position += values.get("removed_at") is None
                step = field_values(Step(trace_id=trace.id, position=max(position, 1), **values))
                insert_rows(session, Step, [step])
                rows.append(step | {"project": name, "reasoner": reasoner})
    return rows


def fits(row: dict[str, Any], scope: ToolCallFilter) -> bool:
    return (
        row["tool"] is not None
        and scope.tool in (None, row["tool"])
        and scope.project in (None, row["project"])
        and scope.by in (None, PEOPLE if row["reasoner"] == "human" else MODELS)
        and (scope.since is None or row["started_at"] >= scope.since)
        and (scope.until is None or row["started_at"] < scope.until)
    )


def compare(statistics: ToolStatistics, rows: list[dict[str, Any]]) -> None:
    standing = [row for row in rows if row["removed_at"] is None]
    assert (statistics.calls, statistics.undone) == (len(standing), len(rows) - len(standing))
    assert statistics.interrupted == sum(row["finished_at"] is None for row in standing)
    failures = Counter(row["error_kind"] or "other" for row in standing if row["error"] is not None)
    assert statistics.failures == failures
    assert list(statistics.failures.values()) == sorted(failures.values(), reverse=True)
    assert statistics.failed == failures.total()
    compare_latency(statistics, [row["latency"] for row in standing if row["latency"] is not None])
    compare_ratings(statistics, [row["rating"] for row in standing if row["rating"] is not None])
    compare_usage(statistics, [row["usage"]["tool"] for row in standing if "tool" in row["usage"]])


def compare_latency(statistics: ToolStatistics, seconds: list[float]) -> None:
    if not seconds:
        assert statistics.latency is None
        return
    assert statistics.latency is not None
    percentiles = np.percentile(seconds, [50, 95], method="inverted_cdf").tolist()
    assert [statistics.latency.p50, statistics.latency.p95] == percentiles
    assert (statistics.latency.timed, statistics.latency.longest) == (len(seconds), max(seconds))
    assert list(statistics.latency.classes) == np.histogram(seconds, [0, *LATENCY_BUCKET_BOUNDS, math.inf])[0].tolist()


def compare_ratings(statistics: ToolStatistics, stars: list[int]) -> None:
    if not stars:
        assert statistics.ratings is None
        return
    assert statistics.ratings is not None
    assert statistics.ratings.count == len(stars)
    assert statistics.ratings.mean == pytest.approx(np.mean(stars))
    assert statistics.ratings.stars == {star: stars.count(star) for star in range(1, 6)}
    # A single rating has no deviation.
    assert statistics.ratings.spread == (pytest.approx(np.std(stars, ddof=1)) if len(stars) > 1 else None)


def compare_usage(statistics: ToolStatistics, usages: list[dict[str, Any]]) -> None:
    if not usages:
        assert statistics.usage is None
        return
    assert statistics.usage is not None
    assert statistics.usage.calls == sum(usage["calls"] for usage in usages)
    for name in ("input_tokens", "output_tokens", "seconds", "cost"):
        values = [usage[name] for usage in usages if usage[name] is not None]
        assert getattr(statistics.usage, name) == (pytest.approx(sum(values)) if values else None)
    untold = sum(None in (usage["input_tokens"], usage["output_tokens"]) for usage in usages)
    assert statistics.usage.untold == untold
    assert statistics.usage.unpriced == sum(usage["cost"] is None for usage in usages)


def record(scene, text: str = "Found.", error: str | None = None, place: int = 0) -> Trace:
    """A draft of ada's with two calls of `read`, the second one with this result."""
    with scene.database.begin() as session:
        trace = recording.start_trace(session, scene.questions[place].id, scene.ada.id)
        for observation, failed in (("Nothing much.", None), (text, error)):
            step = recording.begin_step(
                session, trace.id, recording.NewStep("Who?", "read"), seen=trace.version, by=scene.ada.id
            )
            recording.complete_step(
                session, step.id, recording.StepResult(observation, {}, failed, 0.5), by=scene.ada.id
            )
        return trace


def test_a_step_copied_by_forks_is_counted_once_and_calls_within_forks_count(scene):
    trace = record(scene)
    with scene.database.begin() as session:
        child = forking.fork_trace(session, trace.id, 2, scene.ben.id)
        grandchild = forking.fork_trace(session, child.id, 1, scene.ada.id)
        seen = reading.load_trace(session, child.id).trace.version
        again = reading.load_trace(session, child.id).steps[-1]
        recording.restart_step(session, again.id, seen=seen, by=scene.ben.id)
        recording.complete_step(
            session, again.id, recording.StepResult(None, None, "late", 2.0, None, "time limit"), by=scene.ben.id
        )
        copied = reading.load_trace(session, grandchild.id)
        recording.rate_step(session, copied.steps[0].id, 1, seen=copied.trace.version, by=scene.ada.id)
    (read,) = report(scene.database).tools
    assert (read.calls, read.failures, read.ratings) == (3, {"time limit": 1}, None)
    assert read.latency is not None
    assert (read.latency.timed, read.latency.longest) == (3, 2.0)


def test_undone_calls_are_counted_separately(scene):
    trace = record(scene, error="gone")
    with scene.database.begin() as session:
        recording.undo_step(
            session, trace.id, seen=reading.load_trace(session, trace.id).trace.version, by=scene.ada.id
        )
    (read,) = report(scene.database).tools
    assert (read.calls, read.undone, read.failures) == (1, 1, {})


def test_calls_of_what_is_archived_are_left_out_until_it_is_restored(scene):
    for place in range(2):
        record(scene, place=place)
    with scene.database.begin() as session:
        removals.remove(session, Kind.QUESTION, scene.questions[0].id, archives=True)
    (read,) = report(scene.database).tools
    with scene.database.begin() as session:
        removals.remove(session, Kind.PROJECT, scene.project.id)
    assert (read.calls, report(scene.database)) == (2, ToolReport((), ()))
    with scene.database.begin() as session:
        for stored in removals.list_removals(session):
            removals.restore(session, stored.id)
    assert [tool.calls for tool in report(scene.database).tools] == [4]


def test_a_store_without_calls_has_no_report(scene):
    assert report(scene.database) == ToolReport((), ())


def test_the_report_reads_only_indexes(tmp_path):
    """Otherwise a report on a million steps would read gigabytes of observations."""
    store = Database(f"sqlite:///{tmp_path / 'showhow.db'}")
    upgrade(store)
    fill(store, [(name, by, [ROW]) for name in PROJECTS for by in ("human", "humaniq")])
    statements: list[tuple[str, Any]] = []
    event.listen(
        store.engine,
        "before_cursor_execute",
        lambda _c, _d, words, parameters, *_: statements.append((words, parameters)),
    )
    report(store, ToolCallFilter(project="quays", by=PEOPLE))
    step_queries = [words for words in statements if " step" in words[0]]
    with store.engine.connect() as connection:
        plans = [
            connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {words}", parameters).all()
            for words, parameters in step_queries
        ]
    store.close()
    ways = [way for plan in plans for (*_, way) in plan if " step " in way]
    assert len(ways) >= 6
    # Steps with notes are found by their keys.
    few = ("ix_step_failed", "ix_step_modelled", "ux_step_position", "sqlite_autoindex_step_1 (id=?)")
    assert [
        way for way in ways if "USING COVERING INDEX ix_step_tool" not in way and not any(i in way for i in few)
    ] == []
