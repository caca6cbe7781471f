"""People, their roles, and what the store refuses."""

import threading

import pytest

from showhow.db.database import Conflict, RowNotFound
from showhow.db.models import User
from showhow.db.people import users
from showhow.db.review import queue, review
from showhow.db.runs import runs
from showhow.db.runs.runs import trace_version
from showhow.db.storage.merge import merge_trace
from showhow.db.traces import libraries, recording, traces
from showhow.db.traces.recording import NewStep, StepResult, TraceAnswers


def submitted_trace(scene, author):
    with scene.database.begin() as session:
        trace = recording.start_trace(session, scene.questions[0].id, author.id)
        recording.begin_step(session, trace.id, NewStep("so"), seen=trace.version, by=author.id)
        return recording.submit_trace(session, trace.id, TraceAnswers("yes"), seen=trace.version, by=author.id)


def roles_of(database, name):
    with database.read() as session:
        user = users.find_user(session, name)
        return user.roles if user else None


def test_looking_stores_nobody(database):
    with database.read() as session:
        assert users.preview_user(session, "ada").roles == list(users.ROLES)
    assert roles_of(database, "ada") is None


def test_the_first_person_has_all_roles_and_the_others_are_annotators(database):
    with database.begin() as session:
        ada = users.register_user(session, "ada")
        assert users.preview_user(session, "ben").roles == [users.ANNOTATOR]
        assert users.register_user(session, "ben").roles == [users.ANNOTATOR]
        assert users.register_user(session, "ada").id == ada.id
    assert roles_of(database, "ada") == list(users.ROLES)


def test_of_people_who_come_first_at_the_same_moment_one_gets_all_roles(database):
    def register(name):
        with database.begin() as session:
            users.register_user(session, name)

    threads = [threading.Thread(target=register, args=(f"person {number % 6}",)) for number in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with database.read() as session:
        people = users.list_users(session)
    assert len(people) == 6
    assert sorted(len(person.roles) for person in people) == [1] * 5 + [3]


def test_an_author_of_imported_traces_has_no_role_until_they_act(database, scene):
    trace = submitted_trace(scene, scene.ada)
    with database.read() as session:
        record = traces.load_trace(session, trace.id)
    record.trace.id, record.people = type(trace.id)(int=7), {scene.ada.id: "from elsewhere"}
    record.trace.author_id, record.steps, record.edits = scene.ada.id, [], []
    with database.begin() as session:
        merge_trace(session, record)
        elsewhere = users.find_user(session, "from elsewhere")
        assert elsewhere.roles == []
        assert users.register_user(session, "from elsewhere").roles == [users.ANNOTATOR]


def test_only_reviewers_and_administrators_decide_on_a_trace(scene):
    trace = submitted_trace(scene, scene.ada)
    with scene.database.begin() as session:
        cleo = users.register_user(session, "cleo")
    for decide in (review.approve_trace, review.reject_trace):
        with pytest.raises(Conflict, match="cleo is not a reviewer or admin"), scene.database.begin() as session:
            decide(session, trace.id, seen=trace.version, by=cleo.id, comment="mine")
    with scene.database.begin() as session:
        assert (
            review.approve_trace(session, trace.id, seen=trace_version(session, trace.id), by=scene.ben.id).status
            == "approved"
        )


def test_only_reviewers_and_administrators_freeze_a_version(scene):
    trace = submitted_trace(scene, scene.ada)
    with scene.database.begin() as session:
        cleo = users.register_user(session, "cleo")
        review.approve_trace(session, trace.id, seen=trace_version(session, trace.id), by=scene.ben.id)
    with pytest.raises(Conflict, match="cleo is not a reviewer or admin"), scene.database.begin() as session:
        libraries.store_version(session, "quays", [trace.id], {}, by=cleo.id)
    with scene.database.begin() as session:
        assert libraries.store_version(session, "quays", [trace.id], {}, by=scene.ben.id).number == 1


def test_nobody_decides_on_a_trace_they_recorded(scene):
    trace = submitted_trace(scene, scene.ada)
    for decide in (review.approve_trace, review.reject_trace):
        with pytest.raises(Conflict, match="ada recorded this trace"), scene.database.begin() as session:
            decide(session, trace.id, seen=trace.version, by=scene.ada.id, comment="good")


def test_the_only_person_of_an_installation_reviews_their_own_traces_until_a_second_one_comes(scene):
    with scene.database.begin() as session:
        users.set_roles(session, "ben", [])
    trace = submitted_trace(scene, scene.ada)
    with scene.database.begin() as session:
        review.approve_trace(session, trace.id, seen=trace_version(session, trace.id), by=scene.ada.id)
    with scene.database.begin() as session:
        users.register_user(session, "ben")
    with pytest.raises(Conflict, match="ada recorded this trace"), scene.database.begin() as session:
        review.reject_trace(session, trace.id, seen=trace_version(session, trace.id), by=scene.ada.id, comment="no")


def test_nobody_acts_on_the_draft_of_another_person(scene):
    with scene.database.begin() as session:
        trace = recording.start_trace(session, scene.questions[0].id, scene.ada.id)
        step = recording.begin_step(session, trace.id, NewStep("so", "read"), seen=1, by=scene.ada.id)
    ben, seen = scene.ben.id, trace.version
    acts = {
        "step": lambda s: recording.begin_step(s, trace.id, NewStep("mine"), seen=seen, by=ben),
        "a step of a run": lambda s: recording.begin_step(s, trace.id, NewStep("mine"), seen=seen),
        "result": lambda s: recording.complete_step(s, step.id, StepResult("x", None, None, None), by=ben),
        "result of a run": lambda s: recording.complete_step(s, step.id, StepResult("x", None, None, None)),
        "rating": lambda s: recording.rate_step(s, step.id, 5, seen=seen, by=ben),
        "rating of a run": lambda s: runs.rate_run_step(s, step.id, 5, by=ben),
        "thought": lambda s: recording.edit_thought(s, step.id, "mine", seen=seen, by=ben),
        "again": lambda s: recording.restart_step(s, step.id, seen=seen, by=ben),
        "undo": lambda s: recording.undo_step(s, trace.id, seen=seen, by=ben),
        "redo": lambda s: recording.redo_step(s, trace.id, seen=seen, by=ben),
        "submit": lambda s: recording.submit_trace(s, trace.id, TraceAnswers("x"), seen=seen, by=ben),
        "draft": lambda s: recording.save_draft(s, trace.id, {"fields": {}}, by=ben),
    }
    accepted = []
    for name, act in acts.items():
        try:
            with scene.database.begin() as session:
                act(session)
        except Conflict:
            continue
        accepted.append(name)
    assert accepted == []
    with scene.database.begin() as session:
        queue.skip_question(session, trace.question_id, ben, "not mine")
    with scene.database.read() as session:
        assert len(traces.load_trace(session, trace.id).steps) == 1


def test_people_without_a_role_or_a_row_cannot_begin_or_fork(scene):
    trace = submitted_trace(scene, scene.ada)
    with scene.database.begin() as session:
        stranger = User(name="stranger")
        session.add(stranger)
    for act in (
        lambda s, by: recording.start_trace(s, scene.questions[1].id, by),
        lambda s, by: traces.fork_trace(s, trace.id, 0, by),
        lambda s, by: queue.skip_question(s, scene.questions[1].id, by, "no"),
    ):
        with pytest.raises(Conflict, match="'stranger' has no role here"), scene.database.begin() as session:
            act(session, stranger.id)
        with pytest.raises(RowNotFound, match="not stored"), scene.database.begin() as session:
            act(session, scene.questions[0].id)


def test_roles_are_changed_and_an_administrator_remains(scene):
    with scene.database.begin() as session:
        assert users.set_roles(session, "ben", ["admin", "annotator"]).roles == ["annotator", "admin"]
        assert users.set_roles(session, "ada", ["annotator"]).roles == ["annotator"]
    with pytest.raises(Conflict, match="ben is the only administrator"), scene.database.begin() as session:
        users.set_roles(session, "ben", ["reviewer"])
    with pytest.raises(Conflict, match="no role 'boss'"), scene.database.begin() as session:
        users.set_roles(session, "ben", ["boss"])
    with pytest.raises(RowNotFound, match="no person 'cleo'"), scene.database.begin() as session:
        users.set_roles(session, "cleo", ["reviewer"])


@pytest.mark.parametrize("name", ["", " ", "x" * 81])
def test_a_name_that_no_person_has_is_refused(database, name):
    with pytest.raises(Conflict, match="1 to 80 characters"), database.begin() as session:
        users.register_user(session, name)
