"""The list of a project's questions: what it lists, and what a lead does with many of them at once."""

from datetime import timedelta

import pytest
from sqlalchemy import event, select, update

from showhow.db.database import Conflict, Database
from showhow.db.models import Assignment, Question
from showhow.db.people import users
from showhow.db.questions import projects, question_list
from showhow.db.questions.question_list import QuestionConditions
from showhow.db.review import queue
from showhow.db.traces import recording
from showhow.db.traces.recording import TraceAnswers
from showhow.db.types import MAX_TAGS, utc_now

ALL = QuestionConditions()


def positions(scene, conditions=ALL, **page):
    with scene.database.read() as session:
        listed = question_list.list_question_states(session, scene.project.id, conditions, **page)
        total = question_list.count_listed_questions(session, scene.project.id, conditions)
    assert page or total == len(listed)
    return [entry.question.position for entry in listed]


def begin(scene, question, person):
    with scene.database.begin() as session:
        return queue.begin_question(session, question.id, person.id)


def answer(scene, question, person, text="yes"):
    with scene.database.begin() as session:
        trace = recording.start_trace(session, question.id, person.id)
        recording.begin_step(session, trace.id, recording.NewStep("so"), seen=trace.version, by=person.id)
        return recording.submit_trace(session, trace.id, TraceAnswers(text), seen=trace.version, by=person.id)


def next_position(scene, person):
    with scene.database.read() as session:
        question = queue.next_question(session, scene.project.id, person.id)
    return None if question is None else question.position


def assign(scene, conditions, *people):
    with scene.database.begin() as session:
        ids = question_list.list_question_ids(session, scene.project.id, conditions)
        question_list.assign_questions(session, ids, [person.id for person in people])


def of(*questions):
    return QuestionConditions(ids=tuple(question.id for question in questions))


def test_questions_are_listed_by_every_condition_with_their_total_and_in_pages(scene, sample_question):
    gold, refusal = ({"text": text, "entity": None} for text in ("Ada", "This question cannot be answered."))
    with scene.database.begin() as session:
        more = [sample_question(f"How high is mole {n}%?", kind="height", gold_answers=(gold,)) for n in range(39)]
        more.append(sample_question("How high is mole 39%?", kind="height", gold_answers=(refusal,)))
        projects.add_questions(session, scene.project.id, more)
    answer(scene, scene.questions[1], scene.ada)
    begin(scene, scene.questions[2], scene.ben)
    assert positions(scene, limit=25) == list(range(1, 26))
    assert positions(scene, start=40, limit=25) == [41, 42, 43]
    assert positions(scene, QuestionConditions(text="QUAY")) == [1, 2, 3]
    assert positions(scene, QuestionConditions(text="7%")) == [11, 21, 31, 41]
    assert positions(scene, QuestionConditions(state="in review")) == [2]
    assert positions(scene, QuestionConditions(state="begun")) == [3]
    assert positions(scene, QuestionConditions(state="open", answerable="no gold answer")) == [1]
    assert len(positions(scene, QuestionConditions(kind="height", answerable="answerable"), limit=50)) == 39
    assert positions(scene, QuestionConditions(answerable="cannot be answered")) == [43]
    assert positions(scene, QuestionConditions(person="ada")) == [2]
    assert positions(scene, QuestionConditions(person="ben")) == [3]
    assert positions(scene, QuestionConditions(person="nobody")) == []
    with scene.database.read() as session:
        assert question_list.count_question_states(session, scene.project.id) == {
            **{"approved": 0, "in review": 1, "returned": 0, "begun": 1, "open": 41}
        }


def test_tags_are_given_and_taken_from_many_questions_at_once(scene):
    first, second, third = scene.questions
    with scene.database.begin() as session:
        other = projects.create_project(session, "others", "harbour")
        assert question_list.add_tag(session, scene.project.id, ALL, " hard  one ") == 3
        assert question_list.add_tag(session, scene.project.id, of(first, second), "a%") == 2
        assert question_list.add_tag(session, scene.project.id, ALL, "a%") == 1
        assert question_list.remove_tag(session, scene.project.id, of(second), "hard one") == 1
        assert question_list.remove_tag(session, scene.project.id, QuestionConditions(tag="a%"), "a%") == 3
        assert question_list.add_tag(session, scene.project.id, of(third), "é") == 1
        assert question_list.list_tags(session, other.id) == []
    with scene.database.read() as session:
        assert question_list.list_tags(session, scene.project.id) == ["hard one", "é"]
        assert session.get_one(Question, third.id).tags == ["hard one", "é"]
        assert session.get_one(Question, second.id).tags == []
    assert positions(scene, QuestionConditions(tag="hard one")) == [1, 3]
    assert positions(scene, QuestionConditions(tag="hard")) == []
    for tag in ("", "x" * 61):
        with pytest.raises(Conflict, match="a tag has 1 to 60 characters"), scene.database.begin() as session:
            question_list.add_tag(session, scene.project.id, ALL, tag)
    with scene.database.begin() as session:
        for number in range(MAX_TAGS - 2):
            question_list.add_tag(session, scene.project.id, of(third), f"{number}{'😀' * 59}")
    with pytest.raises(Conflict, match="at most 10 tags"), scene.database.begin() as session:
        question_list.add_tag(session, scene.project.id, ALL, "one more")


def test_an_assigned_question_comes_first_and_is_nobody_elses_until_it_is_reassigned(scene):
    first, second, third = scene.questions
    assign(scene, of(third), scene.ada)
    assert (next_position(scene, scene.ada), next_position(scene, scene.ben)) == (3, 1)
    assert positions(scene, QuestionConditions(person="ada")) == [3]
    assign(scene, ALL, scene.ada)
    assert (next_position(scene, scene.ada), next_position(scene, scene.ben)) == (1, None)
    with pytest.raises(Conflict, match="not open any more"):
        begin(scene, second, scene.ben)
    # What was begun stays, also long after, and the rest is ben's now.
    trace = begin(scene, first, scene.ada)
    with scene.database.read() as session:
        assert session.scalar(select(Assignment.until).where(Assignment.question_id == first.id)) is None
    assign(scene, of(second, third), scene.ben)
    assert (next_position(scene, scene.ada), next_position(scene, scene.ben)) == (None, 2)
    with scene.database.read() as session:
        listed = question_list.list_question_states(session, scene.project.id, ALL)
        assert [(entry.people, entry.assigned) for entry in listed] == [(("ada",), ()), ((), ("ben",)), ((), ("ben",))]
        assert queue.find_own_trace(session, first.id, scene.ada.id).id == trace.id
    # Skipped, it waits for a decision of the lead; nobody means that it is everybody's again.
    with scene.database.begin() as session:
        queue.skip_question(session, second.id, scene.ben.id, "unclear")
    assert next_position(scene, scene.ben) == 3
    assign(scene, ALL)
    assert (next_position(scene, scene.ada), next_position(scene, scene.ben)) == (2, 3)
    assign(scene, of(second), scene.ben)
    assert next_position(scene, scene.ben) == 2


def test_work_of_others_outlasts_an_assignment_and_what_they_have_only_reserved_does_not(scene):
    first, second, third = scene.questions
    answer(scene, first, scene.ada)
    begin(scene, second, scene.ben)
    with scene.database.begin() as session:
        projects.reserve_question(session, third.id, scene.ben.id)
    assign(scene, ALL, scene.ada)
    with scene.database.read() as session:
        assert projects.find_assignment(session, first.id, scene.ada.id).state == "done"
        assert projects.find_assignment(session, second.id, scene.ben.id).until is not None
        assert projects.find_assignment(session, third.id, scene.ben.id) is None
    assert (next_position(scene, scene.ada), next_position(scene, scene.ben)) == (3, None)
    with scene.database.begin() as session:
        session.execute(update(Assignment).where(Assignment.until.is_not(None)).values(until=utc_now() - timedelta(1)))
    assert next_position(scene, scene.ada) == 2
    with scene.database.begin() as session:
        guest = users.find_or_add_author(session, "guest")
    with pytest.raises(Conflict, match="guest has no role here"):
        assign(scene, ALL, guest)


def test_the_list_of_a_large_project_is_read_from_indexes(sqlite_template, tmp_path, sample_question):
    (tmp_path / "large.db").write_bytes(sqlite_template.read_bytes())
    database = Database(f"sqlite:///{tmp_path / 'large.db'}")
    with database.begin() as session:
        project = projects.create_project(session, "large", "harbour")
        projects.add_questions(session, project.id, [sample_question(f"Who built quay {n}?") for n in range(100)])
        question_list.add_tag(session, project.id, ALL, "built")
    statements = []
    with database.read() as session:
        connection = session.connection()
        event.listen(connection, "before_cursor_execute", lambda *call: statements.append((call[2], call[3])) and None)
        question_list.count_listed_questions(session, project.id, ALL)
        question_list.list_tags(session, project.id)
        question_list.count_question_states(session, project.id)
        for conditions in (ALL, QuestionConditions(tag="built")):
            question_list.list_question_states(session, project.id, conditions, start=50)
        plans = [
            row[3]
            for statement, values in list(statements)
            for row in connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", values)
        ]
    database.close()
    assert plans
    assert [plan for plan in plans if plan.startswith("SCAN question")] == []
    # A condition on the project alone is never tried on the rows.
    assert [plan for plan in plans if "question" in plan and "INDEX" not in plan and "PRIMARY KEY" not in plan] == []
