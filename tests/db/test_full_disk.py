"""The disk fills up during recording: a clear error, nothing is lost, and recording continues when there is room."""

import pytest
from sqlalchemy import event

from showhow.db.database import Database, StoreFull
from showhow.db.people import users
from showhow.db.questions import projects
from showhow.db.storage.schema import check_database, upgrade
from showhow.db.traces import recording, traces
from tests.db.conftest import full_disk

STEP = recording.NewStep("a thought that takes some room " * 300, "read", {"title": "Quay"})


def prepared(store: Database, sample_question) -> recording.Trace:
    upgrade(store)
    with store.begin() as session:
        project = projects.create_project(session, "p", "w")
        projects.add_questions(session, project.id, [sample_question("who?")])
        (question,) = projects.list_questions(session, project.id)
        return recording.start_trace(session, question.id, users.register_user(session, "ada").id)


def record_until_full(store: Database, trace_id) -> list[str]:
    """Record until the store refuses; returns the acknowledged steps."""
    acknowledged: list[str] = []

    def record() -> None:
        while True:
            with store.begin() as session:
                trace = session.get_one(recording.Trace, trace_id)
                step = recording.begin_step(session, trace_id, STEP, seen=trace.version, by=trace.author_id)
            acknowledged.append(str(step.id))

    with pytest.raises(StoreFull, match=r"disk is full .* free some space .* nothing stored is lost"):
        record()
    return acknowledged


def stored(store: Database, trace_id) -> list[str]:
    with store.read() as session:
        return [str(step.id) for step in traces.load_trace(session, trace_id).steps]


def test_a_full_disk_loses_nothing_and_recording_continues_when_there_is_room(tmp_path, sample_question):
    store = Database(f"sqlite:///{tmp_path / 'showhow.db'}")
    trace = prepared(store, sample_question)
    with full_disk(max(file.stat().st_size for file in tmp_path.iterdir()) + 400_000):
        acknowledged = record_until_full(store, trace.id)
        assert len(acknowledged) > 3
        assert stored(store, trace.id) == acknowledged
    with store.begin() as session:
        seen = session.get_one(recording.Trace, trace.id).version
        acknowledged.append(str(recording.begin_step(session, trace.id, STEP, seen=seen, by=trace.author_id).id))
    assert stored(store, trace.id) == acknowledged
    assert check_database(store) == []
    store.close()


def test_a_database_at_its_size_limit_is_reported_as_a_full_disk(tmp_path, sample_question):
    store = Database(f"sqlite:///{tmp_path / 'showhow.db'}")
    trace = prepared(store, sample_question)
    store.close()
    limit = [300]
    event.listen(store.engine, "checkout", lambda raw, *_: raw.execute(f"PRAGMA max_page_count = {limit[0]}"))
    acknowledged = record_until_full(store, trace.id)
    assert stored(store, trace.id) == acknowledged
    limit[0] = 10_000
    with store.begin() as session:
        seen = session.get_one(recording.Trace, trace.id).version
        recording.begin_step(session, trace.id, STEP, seen=seen, by=trace.author_id)
    assert len(stored(store, trace.id)) == len(acknowledged) + 1
    assert check_database(store) == []
    store.close()
