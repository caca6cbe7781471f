"""What people have answered, as rows and by day and week."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from sqlalchemy import update

from showhow.db.models import Trace
from showhow.db.people.gold_visibility import is_gold_of_world_visible, is_gold_visible
from showhow.db.people.users import ActingPerson
from showhow.db.questions import person_answers, projects
from showhow.db.questions.person_answers import AnswerConditions
from showhow.db.review import queue, review
from showhow.db.runs.runs import trace_version
from showhow.db.traces import recording, traces
from showhow.db.traces.recording import TraceAnswers
from showhow.db.unanswerable import write_unanswerable

COMPLETED_ANSWERS = AnswerConditions()


def answer(scene, question, person, text, *, seconds=60.0, at=None):
    with scene.database.begin() as session:
        trace = recording.start_trace(session, question.id, person.id)
        recording.begin_step(session, trace.id, recording.NewStep("so"), seen=trace.version, by=person.id)
        recording.submit_trace(session, trace.id, TraceAnswers(text), seen=trace.version, by=person.id)
        change = update(Trace).where(Trace.id == trace.id).values(active_seconds=seconds)
        session.execute(change.values(submitted_at=at) if at is not None else change)
        return trace.id


def decide(scene, act, trace_id, comment=""):
    with scene.database.begin() as session:
        act(session, trace_id, seen=trace_version(session, trace_id), by=scene.ben.id, comment=comment)


def list_rows(scene, conditions=COMPLETED_ANSWERS, **page):
    with scene.database.read() as session:
        ids = person_answers.list_answer_ids(session, scene.project.id, conditions, **page)
        count = person_answers.count_answers(session, scene.project.id, conditions)
        rows = person_answers.load_answers(session, ids)
    assert page or count == len(rows)
    return [(row.question.position, row.person, row.status, row.answer, row.comment) for row in rows]


def test_answers_are_listed_by_question_with_their_last_comment(scene):
    first, second, third = scene.questions
    approved = answer(scene, first, scene.ada, "Ada, Ben")
    returned = answer(scene, second, scene.ada, "Cyd")
    answer(scene, third, scene.ada, "Dot")
    with scene.database.begin() as session:
        recording.start_trace(session, first.id, scene.ben.id)
    decide(scene, review.reject_trace, approved, "Look again.")
    decide(scene, review.approve_trace, approved)
    decide(scene, review.reject_trace, returned, "No source.")
    rows = [
        (1, "ada", "approved", "Ada, Ben", "Look again."),
        (2, "ada", "rejected", "Cyd", "No source."),
        (3, "ada", "submitted", "Dot", None),
    ]
    assert list_rows(scene) == [rows[0], rows[2]]
    assert list_rows(scene, AnswerConditions("rejected")) == [rows[1]]
    everything = list_rows(scene, AnswerConditions(None))
    assert sorted(everything, key=str) == sorted([*rows, (1, "ben", "draft", None, None)], key=str)
    assert list_rows(scene, AnswerConditions(None, "ben")) == [(1, "ben", "draft", None, None)]
    assert list_rows(scene, AnswerConditions(None, text="cyd")) == [rows[1]]
    assert list_rows(scene, start=1, limit=1) == [rows[2]]


def test_progress_counts_what_was_submitted_in_each_day_and_week_of_the_persons_zone(scene):
    first, second, third = scene.questions
    # Sunday evening in UTC is Monday in Tokyo.
    sunday, monday = datetime(2026, 3, 1, 20, tzinfo=UTC), datetime(2026, 3, 2, 9, tzinfo=UTC)
    approved = answer(scene, first, scene.ada, "a", at=sunday)
    returned = answer(scene, second, scene.ada, "b", seconds=180.0, at=monday)
    answer(scene, third, scene.ada, write_unanswerable("ambiguous"), at=monday)
    decide(scene, review.approve_trace, approved)
    decide(scene, review.reject_trace, returned, "no")

    def progress(period, zone):
        with scene.database.read() as session:
            listed = person_answers.list_progress(session, scene.project.id, period, ZoneInfo(zone))
        return [(f"{row.begins}", row.submitted, row.approved, row.returned, row.median_seconds) for row in listed]

    with scene.database.read() as session:
        (week, earlier) = person_answers.list_progress(session, scene.project.id, "week", ZoneInfo("UTC"))
        (person,) = queue.list_annotators(session, scene.project.id)
    assert (week.unanswerable, earlier.unanswerable, person.unanswerable, person.completed) == (1, 0, 1, 2)
    assert progress("day", "UTC") == [("2026-03-02", 2, 0, 1, 120.0), ("2026-03-01", 1, 1, 0, 60.0)]
    assert progress("week", "UTC") == [("2026-03-02", 2, 0, 1, 120.0), ("2026-02-23", 1, 1, 0, 60.0)]
    assert progress("week", "Asia/Tokyo") == [("2026-03-02", 3, 1, 1, 60.0)]
    # Its author has gone on from it, as their own lists and the table of people say.
    with scene.database.begin() as session:
        traces.fork_trace(session, returned, 0, scene.ada.id)
        assert [person.returned for person in queue.list_annotators(session, scene.project.id)] == [0]
    assert progress("week", "Asia/Tokyo") == [("2026-03-02", 3, 1, 0, 60.0)]


def test_gold_answers_are_for_reviewers_and_for_all_where_the_project_shows_them(scene):
    with scene.database.begin() as session:
        other = projects.create_project(session, "others", "quay")

    def sees(name, *, is_local=True):
        acting = scene.database.acting_as(ActingPerson(name, is_local))
        with acting.read() as session:
            project = projects.get_project(session, scene.project.name)
            return is_gold_visible(session, project), is_gold_of_world_visible(session, "harbour")

    with scene.database.read() as session:
        assert is_gold_visible(session, other)
    assert [sees(name) for name in ("ada", "ben", "cleo")] == [(True, True), (True, True), (False, False)]
    assert sees("somebody", is_local=False) == (False, False)
    with scene.database.begin() as session:
        projects.edit_project(session, "others", shows_gold=True)
    assert sees("cleo") == (False, False)
    with scene.database.begin() as session:
        projects.edit_project(session, scene.project.name, shows_gold=True)
    assert sees("cleo") == (True, True)
