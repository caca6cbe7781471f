"""The queue: which question a person gets next."""

import threading
from datetime import timedelta
from uuid import uuid4

import pytest

from showhow.db.database import Conflict, RowNotFound
from showhow.db.models import Assignment, Project, Question, Trace
from showhow.db.people import users
from showhow.db.questions import own_questions, projects
from showhow.db.questions.projects import find_assignment, reserve_question
from showhow.db.removal import removals
from showhow.db.removal.removal_kinds import Kind
from showhow.db.review import queue, review
from showhow.db.runs.runs import trace_version
from showhow.db.traces import recording, traces
from showhow.db.traces.recording import TraceAnswers
from showhow.db.types import utc_now


def look(scene, person):
    with scene.database.read() as session:
        return queue.next_question(session, scene.project.id, person.id)


def next_of(scene, person):
    """Look at the next question and reserve it."""
    question = look(scene, person)
    if question is not None:
        with scene.database.begin() as session:
            reserve_question(session, question.id, person.id)
    return question


def answer(scene, question, person, text="yes"):
    with scene.database.begin() as session:
        trace = recording.start_trace(session, question.id, person.id)
        recording.begin_step(session, trace.id, recording.NewStep("so"), seen=trace.version, by=trace.author_id)
        return recording.submit_trace(session, trace.id, TraceAnswers(text), seen=trace.version, by=person.id)


def completed(scene, question):
    with scene.database.read() as session:
        return session.get_one(Question, question.id).completed


def test_two_people_get_different_questions_and_keep_them(scene):
    first, second = next_of(scene, scene.ada), next_of(scene, scene.ben)
    assert (first.position, second.position) == (1, 2)
    assert next_of(scene, scene.ada).id == first.id


def test_sixteen_threads_get_sixteen_questions(scene, sample_question):
    with scene.database.begin() as session:
        projects.add_questions(
            session, scene.project.id, [sample_question(f"Which lock is number {n}?") for n in range(20)]
        )
        people = [users.register_user(session, f"person {n}") for n in range(16)]
    taken_questions = []

    def take(person):
        while True:
            question = look(scene, person)
            try:
                with scene.database.begin() as session:
                    queue.begin_question(session, question.id, person.id)
            except Conflict:
                continue
            taken_questions.append(question.position)
            return

    threads = [threading.Thread(target=take, args=(person,)) for person in people]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken_questions) == list(range(1, 17))


def test_a_question_that_others_look_at_is_offered_only_when_no_other_is_open(scene):
    first, second, third = scene.questions
    with scene.database.read() as session:

        def offer(*shown_to_others, last_shown=None):
            return queue.next_question(
                session, scene.project.id, scene.ada.id, last_shown=last_shown, shown_to_others=shown_to_others
            )

        assert offer(first.id).id == second.id
        assert offer(first.id, second.id).id == third.id
        assert offer(first.id, second.id, third.id).id == first.id
        assert offer(first.id, last_shown=third.id).id == third.id
    # The one that was shown last is not offered once others have begun it.
    with scene.database.begin() as session:
        queue.begin_question(session, third.id, scene.ben.id)
        assert offer(first.id, last_shown=third.id).id == second.id
    next_of(scene, scene.ada)
    with scene.database.read() as session:
        assert offer(first.id, last_shown=second.id).id == first.id, "a reservation comes first"


def test_looking_reserves_no_question(scene):
    for person in (scene.ada, scene.ben, users.User(name="visitor")):
        for _ in range(20):
            assert look(scene, person).position == 1
    with scene.database.read() as session:
        assert session.query(Assignment).count() == session.query(Trace).count() == 0


def test_the_first_act_reserves_a_question_that_was_offered_to_others_too(scene):
    question = look(scene, scene.ada)
    assert look(scene, scene.ben).id == question.id
    with scene.database.begin() as session:
        trace = queue.begin_question(session, question.id, scene.ada.id, trace_id=uuid4())
    assert look(scene, scene.ada).id != question.id  # it is a draft of hers now
    with pytest.raises(Conflict, match="somebody else has begun it"), scene.database.begin() as session:
        queue.begin_question(session, question.id, scene.ben.id)
    with scene.database.begin() as session:
        assert queue.begin_question(session, question.id, scene.ada.id, trace_id=uuid4()).id == trace.id
    assert look(scene, scene.ben).position == 2


def test_a_new_trace_began_when_its_question_was_opened(scene):
    opened_at = utc_now() - timedelta(minutes=3)
    with scene.database.begin() as session:
        trace = queue.begin_question(session, scene.questions[0].id, scene.ada.id, opened_at=opened_at)
        assert trace.started_at == opened_at
        late = queue.begin_question(
            session, scene.questions[1].id, scene.ada.id, opened_at=utc_now() + timedelta(days=9)
        )
        assert late.started_at <= utc_now()


def test_an_answered_question_is_completed_and_a_rejected_one_is_open_to_others_only(scene):
    trace = answer(scene, scene.questions[0], scene.ada)
    assert completed(scene, scene.questions[0]) == 1
    assert next_of(scene, scene.ben).position == 2
    with scene.database.begin() as session:
        review.reject_trace(session, trace.id, seen=trace_version(session, trace.id), by=scene.ben.id, comment="no")
    assert completed(scene, scene.questions[0]) == 0
    with scene.database.begin() as session:
        cleo = users.register_user(session, "cleo")
    assert next_of(scene, cleo).position == 1
    assert next_of(scene, scene.ada).position == 3


def test_a_reservation_expires_and_a_question_that_others_took_meanwhile_is_not_offered_again(scene):
    question = next_of(scene, scene.ada)
    with scene.database.begin() as session:
        find_assignment(session, question.id, scene.ada.id).until = utc_now() - timedelta(seconds=1)
    assert next_of(scene, scene.ben).id == question.id
    assert next_of(scene, scene.ada).id != question.id


def test_a_question_is_offered_to_as_many_people_as_the_overlap(scene):
    with scene.database.begin() as session:
        session.get_one(Project, scene.project.id).overlap = 2
        cleo = users.register_user(session, "cleo")
    assert {next_of(scene, person).position for person in (scene.ada, scene.ben)} == {1}
    assert next_of(scene, cleo).position == 2
    answer(scene, scene.questions[0], scene.ada)
    answer(scene, scene.questions[0], scene.ben)
    assert completed(scene, scene.questions[0]) == 2
    with scene.database.read() as session:
        far = queue.measure_progress(session, scene.project.id, scene.ada.id)
    assert (far.done, far.total, far.completed_by_user, far.skipped) == (1, 3, 1, 0)


def test_two_traces_of_one_person_count_once(scene):
    trace = answer(scene, scene.questions[0], scene.ada)
    with scene.database.begin() as session:
        child = traces.fork_trace(session, trace.id, 1, scene.ada.id)
        recording.submit_trace(session, child.id, TraceAnswers("still yes"), seen=child.version, by=scene.ada.id)
    assert completed(scene, scene.questions[0]) == 1


def test_a_skipped_question_is_offered_to_others_and_can_be_resumed(scene):
    question = next_of(scene, scene.ada)
    with scene.database.begin() as session:
        recording.start_trace(session, question.id, scene.ada.id)
    with pytest.raises(Conflict, match="why the question is skipped"), scene.database.begin() as session:
        queue.skip_question(session, question.id, scene.ada.id, " ")
    with scene.database.begin() as session:
        queue.skip_question(session, question.id, scene.ada.id, "unclear")
    assert next_of(scene, scene.ada).position == 2
    assert next_of(scene, scene.ben).id == question.id
    with scene.database.read() as session:
        assert queue.list_drafts(session, scene.project.id, scene.ada.id) == []
        assert [(q.id, why) for q, why in queue.list_skipped_questions(session, scene.project.id, scene.ada.id)] == [
            (question.id, "unclear")
        ]
        assert queue.measure_progress(session, scene.project.id, scene.ada.id).skipped == 1
    with scene.database.begin() as session:
        queue.unskip_question(session, question.id, scene.ada.id)
    with scene.database.read() as session:
        assert queue.list_skipped_questions(session, scene.project.id, scene.ada.id) == []


def test_a_page_that_is_late_begins_no_question_that_its_person_has_skipped(scene):
    question = next_of(scene, scene.ada)
    with scene.database.begin() as session:
        queue.skip_question(session, question.id, scene.ada.id, "unclear")
    with pytest.raises(Conflict, match="you have skipped this question"), scene.database.begin() as session:
        queue.begin_question(session, question.id, scene.ada.id, trace_id=uuid4())
    assert next_of(scene, scene.ada).position == 2
    with scene.database.begin() as session:
        queue.unskip_question(session, question.id, scene.ada.id)
        queue.begin_question(session, question.id, scene.ada.id)


def test_a_skipped_draft_with_steps_is_stored_but_not_listed(scene):
    with scene.database.begin() as session:
        trace = recording.start_trace(session, scene.questions[0].id, scene.ada.id)
        recording.begin_step(session, trace.id, recording.NewStep("a thought"), seen=trace.version, by=trace.author_id)
        queue.skip_question(session, scene.questions[0].id, scene.ada.id, "later")
    with scene.database.begin() as session:
        assert queue.list_drafts(session, scene.project.id, scene.ada.id) == []
        queue.unskip_question(session, scene.questions[0].id, scene.ada.id)
        (draft,) = queue.list_drafts(session, scene.project.id, scene.ada.id)
        assert draft.trace.id == trace.id


def test_a_returned_trace_leaves_the_list_when_it_is_forked(scene):
    trace = answer(scene, scene.questions[0], scene.ada)
    with scene.database.begin() as session:
        review.reject_trace(session, trace.id, seen=trace_version(session, trace.id), by=scene.ben.id, comment="no")
    with scene.database.begin() as session:
        assert len(queue.list_returned_traces(session, scene.project.id, scene.ada.id)) == 1
        traces.fork_trace(session, trace.id, 0, scene.ada.id)
        assert queue.list_returned_traces(session, scene.project.id, scene.ada.id) == []
        assert len(queue.list_drafts(session, scene.project.id, scene.ada.id)) == 1


def fork_answer(scene, person):
    """The person's abandoned draft of the first question, and their submitted fork of it."""
    with scene.database.begin() as session:
        draft = recording.start_trace(session, scene.questions[0].id, person.id)
        recording.begin_step(session, draft.id, recording.NewStep("so"), seen=draft.version, by=person.id)
        fork = traces.fork_trace(session, draft.id, 1, person.id)
        recording.submit_trace(session, fork.id, TraceAnswers("yes"), seen=fork.version, by=person.id)
    return draft, fork


def test_the_queue_does_not_come_back_to_a_draft_of_a_question_that_its_author_has_answered(scene):
    draft, fork = fork_answer(scene, scene.ada)
    with scene.database.read() as session:
        assert [item.trace.id for item in queue.list_drafts(session, scene.project.id, scene.ada.id)] == [draft.id]
        assert queue.list_work_to_resume(session, scene.project.id, scene.ada.id) == []
    assert look(scene, scene.ada).position == 2
    with pytest.raises(Conflict, match="cannot be skipped"), scene.database.begin() as session:
        queue.skip_question(session, draft.question_id, scene.ada.id, "done already")
    # Once the answer is returned, the draft is work again.
    with scene.database.begin() as session:
        review.reject_trace(session, fork.id, seen=trace_version(session, fork.id), by=scene.ben.id, comment="no")
    with scene.database.read() as session:
        resumed = queue.list_work_to_resume(session, scene.project.id, scene.ada.id)
        assert [item.trace.id for item in resumed] == [fork.id, draft.id]


def test_a_discarded_draft_is_gone_until_it_is_restored_and_its_forks_stay(scene):
    draft, fork = fork_answer(scene, scene.ada)
    ben = scene.database.acting_as(users.ActingPerson("ben", is_local=True))
    with pytest.raises(Conflict, match="ben is not an admin"), ben.begin() as session:
        removals.remove(session, Kind.DRAFT, draft.id)
    with pytest.raises(Conflict, match="only a person's draft"), scene.database.begin() as session:
        removals.remove(session, Kind.DRAFT, fork.id)
    with scene.database.begin() as session:
        removal = removals.remove(session, Kind.DRAFT, draft.id)
    with scene.database.read() as session:
        assert len(traces.load_trace(session, fork.id).steps) == 1
        assert queue.list_drafts(session, scene.project.id, scene.ada.id) == []
    with pytest.raises(RowNotFound, match="deleted"), scene.database.begin() as session:
        recording.begin_step(session, draft.id, recording.NewStep("on"), seen=1, by=scene.ada.id)
    with scene.database.begin() as session:
        removals.restore(session, removal.id)
    with scene.database.read() as session:
        assert [item.trace.id for item in queue.list_drafts(session, scene.project.id, scene.ada.id)] == [draft.id]


def test_the_question_of_a_discarded_draft_is_open_to_everybody_again(scene):
    with scene.database.begin() as session:
        draft = recording.start_trace(session, scene.questions[0].id, scene.ada.id)
        recording.begin_step(session, draft.id, recording.NewStep("so"), seen=draft.version, by=scene.ada.id)
        recording.save_draft(session, draft.id, {"step": 2, "fields": {}}, by=scene.ada.id)
    assert look(scene, scene.ben).position == 2
    with scene.database.acting_as(users.ActingPerson("ada", is_local=True)).begin() as session:
        removals.remove(session, Kind.DRAFT, draft.id)
    assert (look(scene, scene.ada).position, look(scene, scene.ben).position) == (1, 1)


def test_people_add_questions_of_their_own_where_the_project_allows_it(scene, sample_question):
    acting = scene.database.acting_as(users.ActingPerson(scene.ben.name, is_local=True))
    with scene.database.begin() as session:
        users.set_roles(session, scene.ben.name, ["annotator"])
    with pytest.raises(Conflict, match="ben is not an admin"), acting.begin() as session:
        own_questions.add_own_question(session, scene.project.id, sample_question("Who is new?"))
    with scene.database.begin() as session:
        projects.edit_project(session, scene.project.name, allows_questions=True)
    with acting.begin() as session:
        added = own_questions.add_own_question(session, scene.project.id, sample_question("Who is new?"))
        assert own_questions.add_own_question(session, scene.project.id, sample_question("Who is new?")).id == added.id
        with pytest.raises(Conflict, match="at least one word"):
            own_questions.add_own_question(session, scene.project.id, sample_question(" "))
    assert added.position == 4


def test_completed_work_is_listed_by_its_status_and_open_questions_of_others_are_counted(scene):
    first, second, third = scene.questions
    approved, submitted = (answer(scene, question, scene.ada) for question in (first, second))
    with scene.database.begin() as session:
        review.approve_trace(session, approved.id, seen=trace_version(session, approved.id), by=scene.ben.id)
        reserve_question(session, third.id, scene.ben.id)
    with scene.database.read() as session:
        listed = {
            status: [
                item.trace.id for item in queue.list_completed_traces(session, scene.project.id, scene.ada.id, status)
            ]
            for status in projects.COMPLETED_STATUSES
        }
        assert listed == {"submitted": [submitted.id], "approved": [approved.id]}
        assert queue.list_completed_traces(session, scene.project.id, scene.ben.id, "submitted") == []
        held = {
            person.name: queue.measure_progress(session, scene.project.id, person.id).held
            for person in (scene.ada, scene.ben)
        }
    # The answered questions are done, and nobody holds what is their own.
    assert held == {"ada": 1, "ben": 0}


def test_an_empty_queue_offers_no_question(scene):
    for question in scene.questions:
        answer(scene, question, scene.ada)
    assert next_of(scene, scene.ada) is None
    assert next_of(scene, scene.ben) is None


def test_recording_a_step_renews_the_reservation(scene):
    question = next_of(scene, scene.ada)
    with scene.database.begin() as session:
        trace = recording.start_trace(session, question.id, scene.ada.id)
        find_assignment(session, question.id, scene.ada.id).until = utc_now() - timedelta(seconds=1)
    with scene.database.begin() as session:
        recording.begin_step(session, trace.id, recording.NewStep("at work"), seen=trace.version, by=trace.author_id)
    with scene.database.read() as session:
        place = session.query(Assignment).one()
        assert place.until > utc_now() + timedelta(hours=1)
