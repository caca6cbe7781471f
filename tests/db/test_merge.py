"""Merging traces of two machines into one database."""

import copy
from typing import Any
from uuid import UUID

import pytest

from showhow.db.database import Database, StoreError
from showhow.db.models import Question
from showhow.db.people import users
from showhow.db.questions import projects
from showhow.db.review import queue, review
from showhow.db.runs.runs import trace_version
from showhow.db.storage.merge import MergePreview, merge_trace
from showhow.db.storage.schema import upgrade
from showhow.db.traces import recording, traces
from showhow.db.traces.recording import NewStep, StepResult, TraceAnswers
from showhow.db.traces.trace_record import TraceRecord


@pytest.fixture
def elsewhere(tmp_path):
    """Another machine's store."""
    store = Database(f"sqlite:///{tmp_path / 'elsewhere.db'}")
    upgrade(store)
    yield store
    store.close()


def recorded(scene: Any) -> Any:
    """A trace with everything: a rated, a rerun and an undone step, edits, a fork's parent, a judgement."""
    with scene.database.begin() as session:
        first = recording.start_trace(session, scene.questions[1].id, scene.ada.id)
        recording.begin_step(session, first.id, NewStep("one"), seen=1, by=first.author_id)
        trace = traces.fork_trace(session, first.id, 1, scene.ada.id)
        step = recording.begin_step(
            session, trace.id, NewStep("two", "read", {"title": "é"}), seen=1, by=trace.author_id
        )
        recording.complete_step(session, step.id, StepResult("found", {"hits": []}, None, 0.5), by=scene.ada.id)
        recording.rate_step(session, step.id, 4, seen=3, by=scene.ada.id)
        recording.begin_step(session, trace.id, NewStep("three"), seen=4, by=trace.author_id)
        recording.undo_step(session, trace.id, seen=5, by=scene.ada.id)
        recording.submit_trace(session, trace.id, TraceAnswers("Ada"), seen=6, by=scene.ada.id)
        review.approve_trace(session, trace.id, seen=trace_version(session, trace.id), by=scene.ben.id, comment="good")
    with scene.database.read() as session:
        return traces.load_trace(session, trace.id)


def copy_as(trace_id: UUID, record: TraceRecord) -> TraceRecord:
    """Another trace with the same steps, which would be in two traces."""
    copied = copy.deepcopy(record)
    copied.trace.id = trace_id
    for part in (*copied.steps, *copied.removed, *copied.edits, *copied.judgements):
        part.trace_id = trace_id
    return copied


def test_a_trace_is_merged_completely_and_a_second_merge_changes_nothing(scene, elsewhere):
    record = recorded(scene)
    with elsewhere.begin() as session:
        # In this store ben has another key, and the project has another question at this position.
        users.register_user(session, "ben")
        assert merge_trace(session, record) == "added"
    with elsewhere.begin() as session:
        arrived = traces.load_trace(session, record.trace.id)
        assert merge_trace(session, record) == "same"
        assert merge_trace(session, arrived) == "same"
    assert (arrived.steps, arrived.removed) == (record.steps, record.removed)
    assert arrived.trace.version == record.trace.version
    assert [e.before for e in arrived.edits] == [e.before for e in record.edits]
    assert sorted(arrived.people.values()) == ["ada", "ben"]
    assert (arrived.author, arrived.question.completed, arrived.project.name) == ("ada", 1, "harbours")


def test_an_equal_question_is_matched_by_text_and_another_one_gets_a_new_position(scene, elsewhere, sample_question):
    record = recorded(scene)
    with elsewhere.begin() as session:
        project = projects.create_project(session, "harbours", "harbour")
        projects.add_questions(
            session, project.id, [sample_question("x?"), sample_question("y?"), sample_question(record.question.text)]
        )
        merge_trace(session, record)
        assert [q.completed for q in projects.list_questions(session, project.id)] == [0, 0, 1]
    with elsewhere.begin() as session:
        other = copy.deepcopy(record)
        other.question.text, other.question.id = "z?", scene.ada.id
        other.trace.id = scene.ben.id
        other.trace.question_id = other.question.id
        other.steps, other.removed, other.edits, other.judgements = [], [], [], []
        merge_trace(session, other)
        assert [(q.position, q.text) for q in projects.list_questions(session, project.id)][3:] == [(4, "z?")]


def test_a_task_is_matched_by_its_text_and_its_attachments(scene, elsewhere, sample_question):
    record = recorded(scene)
    record.question.details = {"attachments": {"mail": "B"}}
    tasks = [sample_question(record.question.text, details={"attachments": {"mail": mail}}) for mail in "AB"]
    with elsewhere.begin() as session:
        project = projects.create_project(session, "harbours", "harbour")
        projects.add_questions(session, project.id, tasks)
        assert merge_trace(session, record) == "added"
        assert [q.completed for q in projects.list_questions(session, project.id)] == [0, 1]


def test_a_trace_that_differs_is_not_changed(scene, elsewhere):
    record = recorded(scene)
    with elsewhere.begin() as session:
        merge_trace(session, record)
    changed = copy.deepcopy(record)
    changed.steps[0].thought = "something else"
    with elsewhere.begin() as session:
        assert merge_trace(session, changed) == "differs"
    with elsewhere.read() as session:
        assert traces.load_trace(session, record.trace.id).steps == record.steps


def test_a_trace_with_steps_of_another_trace_is_not_merged_at_all(scene, elsewhere):
    record = recorded(scene)
    with elsewhere.begin() as session:
        merge_trace(session, record)
    stolen = copy_as(scene.ben.id, record)
    with pytest.raises(StoreError, match="contradicts the stored data"), elsewhere.begin() as session:
        merge_trace(session, stolen)
    with elsewhere.read() as session:
        assert len(list(traces.iterate_traces(session))) == 1


def test_a_merged_trace_counts_for_the_queue(scene):
    record = recorded(scene)
    with scene.database.read() as session:
        assert session.get_one(Question, record.question.id).completed == 1
        assert queue.measure_progress(session, scene.project.id, scene.ada.id).completed_by_user == 1
        listed = traces.list_trace_summaries(session, statuses=["approved"], project="harbours")
        assert [row.id for row in listed] == [record.trace.id]
        assert [r.trace.id for r in traces.iterate_traces(session, status="draft")] == [record.trace.parent_id]


def test_a_preview_tells_what_a_merge_does_while_others_write_between_its_traces(scene, elsewhere):
    record = recorded(scene)
    changed = copy.deepcopy(record)
    changed.trace.final_answer = "Ben"
    with scene.database.read() as session:
        parent = traces.load_trace(session, record.trace.parent_id)
    arriving = [parent, record, record, changed]
    with elsewhere.begin() as session:
        assert merge_trace(session, parent) == "added"
    writer, preview, outcomes = Database(elsewhere.url), MergePreview(elsewhere), []
    for number, arrived in enumerate(arriving):
        outcomes.append(preview.merge(arrived))
        with writer.begin() as session:
            users.register_user(session, f"visitor {number}")
    writer.close()
    with elsewhere.read() as session:
        assert not traces.has_trace(session, record.trace.id)
        assert len(users.list_users(session)) == len(parent.people) + len(arriving)
    with elsewhere.begin() as session:
        assert outcomes == [merge_trace(session, arrived) for arrived in arriving]
    assert outcomes == ["same", "added", "same", "differs"]


def test_a_preview_refuses_what_a_merge_refuses(scene, elsewhere):
    record = recorded(scene)
    with elsewhere.begin() as session:
        merge_trace(session, record)
    stolen = copy_as(scene.ben.id, record)
    with pytest.raises(StoreError, match="contradicts the stored data"):
        MergePreview(elsewhere).merge(stolen)
