"""Review by question: what is listed and counted, comments that are typed, decisions in bulk and their undo."""

from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select

from showhow.db.database import Conflict
from showhow.db.models import Draft, Trace, User
from showhow.db.people import users
from showhow.db.questions import question_list
from showhow.db.review import queue, review, review_queue
from showhow.db.review.review_queue import EVERYBODY, ReviewFilter
from showhow.db.runs.runs import trace_version
from showhow.db.traces import recording, traces
from showhow.db.traces.recording import NewStep, TraceAnswers
from showhow.db.traces.trace_record import list_changes


def submit(scene: Any, number: int, author: User, answer: str, parent: UUID | None = None) -> UUID:
    """Submit an answer to the question of that number, in a new trace or a fork of the parent."""
    with scene.database.begin() as session:
        if parent is None:
            trace = recording.start_trace(session, scene.questions[number].id, author.id)
        else:
            trace = traces.fork_trace(session, parent, 1, author.id)
        recording.begin_step(session, trace.id, NewStep(f"{author.name} looks"), seen=trace.version, by=author.id)
        session.refresh(trace)
        recording.submit_trace(session, trace.id, TraceAnswers(answer), seen=trace.version, by=author.id)
        return trace.id


def seen(scene: Any, *ids: UUID) -> dict[UUID, int]:
    with scene.database.read() as session:
        return {trace_id: trace_version(session, trace_id) for trace_id in ids}


def decide(scene: Any, trace_id: UUID, comment: str = "", by: str = "ben", *, returns: bool = False) -> None:
    version = seen(scene, trace_id)[trace_id]
    with scene.database.begin() as session:
        decision = review.reject_trace if returns else review.approve_trace
        decision(session, trace_id, seen=version, by=users.register_user(session, by).id, comment=comment)


def status(scene: Any, trace_id: UUID) -> str:
    with scene.database.read() as session:
        return traces.load_trace(session, trace_id).trace.status


@pytest.fixture
def cleo(scene: Any) -> User:
    with scene.database.begin() as session:
        return users.register_user(session, "cleo")


def listed(scene: Any, **chosen: str) -> list[tuple[int, int, int]]:
    """The position, the traces and the different answers of the listed questions."""
    with scene.database.read() as session:
        rows = review_queue.list_questions_to_review(session, scene.project.id, ReviewFilter(**chosen))
    return [(row.position, row.traces, row.answers) for row in rows]


def test_a_question_is_listed_once_with_all_its_traces_and_found_by_words_answers_and_people(scene, cleo):
    first = submit(scene, 0, scene.ada, "Ada Quay")
    second = submit(scene, 0, cleo, "Ben Quay")
    third = submit(scene, 1, cleo, "50 % of it")
    assert listed(scene) == listed(scene, by=EVERYBODY) == [(1, 2, 2), (2, 1, 1)]
    assert listed(scene, text="quay 2") == listed(scene, text="50 %") == [(2, 1, 1)]
    assert listed(scene, text="%  _") == listed(scene, by="models") == []
    assert listed(scene, author="ada") == [(1, 1, 2)]
    decide(scene, second)
    # The approved answer still differs from the one in review.
    assert listed(scene) == [(1, 1, 2), (2, 1, 1)]
    assert listed(scene, status="approved") == [(1, 1, 2)]
    with scene.database.read() as session:
        assert review_queue.list_authors(session, scene.project.id, "people") == ["ada", "cleo"]
        rows = review_queue.list_traces_to_review(session, [scene.questions[0].id], "people")
        outlines = review_queue.list_outlines(session, [first, third])
    assert [(row.id, row.author, row.status, row.answer, row.steps) for row in rows] == [
        (first, "ada", "submitted", "Ada Quay", 1),
        (second, "cleo", "approved", "Ben Quay", 1),
    ]
    assert [[step.thought for step in outlines[trace]] for trace in (first, third)] == [["ada looks"], ["cleo looks"]]


def counts(scene: Any) -> tuple[dict[str, int], dict[str, tuple[int, int, int]], dict[str, int], dict[str, int]]:
    """What Review, the overview's people, its questions and everybody's own lists count."""
    with scene.database.read() as session:
        people = queue.list_annotators(session, scene.project.id)
        states = question_list.count_question_states(session, scene.project.id)
        own = queue.count_own_work(session, scene.project.id, scene.ada.id)
        assert own["returned"] == len(queue.list_returned_traces(session, scene.project.id, scene.ada.id))
        assert own["drafts"] == len(queue.list_drafts(session, scene.project.id, scene.ada.id))
        return (
            review_queue.count_by_status(session, scene.project.id),
            {person.name: (person.completed, person.returned, person.drafts) for person in people},
            {state: count for state, count in states.items() if count},
            {name: count for name, count in own.items() if count},
        )


def test_drafts_and_returned_work_are_counted_alike_everywhere(scene):
    first = submit(scene, 0, scene.ada, "wrong")
    decide(scene, first, "look again", returns=True)
    assert counts(scene) == ({"rejected": 1}, {"ada": (0, 1, 0)}, {"returned": 1, "open": 2}, {"returned": 1})
    mended = submit(scene, 0, scene.ada, "right", parent=first)
    done = ({"submitted": 1}, {"ada": (1, 0, 0)}, {"in review": 1, "open": 2}, {"submitted": 1})
    assert counts(scene) == done
    assert listed(scene, status="rejected") == []
    decide(scene, mended)
    done = ({"approved": 1}, {"ada": (1, 0, 0)}, {"approved": 1, "open": 2}, {"approved": 1})
    assert counts(scene) == done
    # A draft that is left by skipping its question is no draft in any count.
    with scene.database.begin() as session:
        draft = recording.start_trace(session, scene.questions[1].id, scene.ada.id)
        recording.begin_step(session, draft.id, NewStep("a thought"), seen=draft.version, by=scene.ada.id)
    assert counts(scene)[1:] == (
        {"ada": (1, 0, 1)},
        {"approved": 1, "begun": 1, "open": 1},
        {"approved": 1, "drafts": 1},
    )
    with scene.database.begin() as session:
        queue.skip_question(session, scene.questions[1].id, scene.ada.id, "unclear")
    assert counts(scene)[1:] == ({"ada": (1, 0, 0)}, done[2] | {"open": 2}, {"approved": 1, "skipped": 1})


def test_returned_work_stays_its_authors_when_somebody_else_goes_on_from_it(scene, cleo):
    first = submit(scene, 0, scene.ada, "wrong")
    decide(scene, first, "look again", returns=True)
    submit(scene, 0, cleo, "right", parent=first)
    assert counts(scene)[0] == {"rejected": 1, "submitted": 1}
    assert counts(scene)[3] == {"returned": 1}


def comment_of(scene: Any, trace_id: UUID, person: User) -> str:
    with scene.database.read() as session:
        return review.find_comment(session, trace_id, person.id)


def test_a_comment_that_is_typed_is_stored_for_each_reviewer_until_the_decision(scene, cleo):
    trace = submit(scene, 0, cleo, "Ada Quay")
    version = seen(scene, trace)
    for person, text in ((scene.ben, "too sh"), (scene.ada, "fine"), (scene.ben, "too short")):
        with scene.database.begin() as session:
            review.save_comment(session, trace, text, seen=version[trace], by=person.id, page_number=3)
    assert (comment_of(scene, trace, scene.ben), comment_of(scene, trace, scene.ada)) == ("too short", "fine")
    with pytest.raises(Conflict, match="newer tab"), scene.database.begin() as session:
        review.save_comment(session, trace, "late", seen=version[trace], by=scene.ben.id, page_number=2)
    with pytest.raises(Conflict, match="cleo is not a reviewer"), scene.database.begin() as session:
        review.save_comment(session, trace, "mine", seen=version[trace], by=cleo.id)
    assert seen(scene, trace) == version, "a comment does not change what others have read"
    decide(scene, trace, "too short", returns=True)
    # What a page still sends after the decision is not stored.
    with pytest.raises(Conflict, match="returned to its author by ben"), scene.database.begin() as session:
        review.save_comment(session, trace, "too short", seen=version[trace], by=scene.ben.id, page_number=3)
    assert (comment_of(scene, trace, scene.ben), comment_of(scene, trace, scene.ada)) == ("", "fine")
    decide(scene, trace, by="ada")
    with scene.database.read() as session:
        assert session.scalars(select(Draft)).all() == []


def test_a_comment_on_a_draft_is_refused_and_the_authors_text_stays(scene):
    with scene.database.begin() as session:
        trace = recording.start_trace(session, scene.questions[0].id, scene.ada.id)
        recording.save_draft(session, trace.id, {"step": 1, "fields": {"thought": "hm"}}, by=scene.ada.id)
    with pytest.raises(Conflict, match="this trace is draft"), scene.database.begin() as session:
        review.save_comment(session, trace.id, "early", seen=trace.version, by=scene.ben.id)
    with scene.database.read() as session:
        assert recording.find_draft(session, trace.id).content == {"step": 1, "fields": {"thought": "hm"}}


def test_of_many_traces_those_that_can_be_are_approved_and_all_of_it_is_undone(scene, cleo):
    first, second = submit(scene, 0, cleo, "a"), submit(scene, 1, cleo, "b")
    own, changed = submit(scene, 2, scene.ben, "c"), submit(scene, 2, cleo, "d")
    read = seen(scene, first, second, own, changed)
    decide(scene, changed, "no source", by="ada", returns=True)
    with scene.database.begin() as session:
        done = review.approve_traces(session, read, by=scene.ben.id)
    assert done.versions.keys() == {first, second}
    assert done.refusals[own].startswith("ben recorded this trace")
    assert done.refusals[changed].startswith("this trace was returned to its author by ada after you opened it")
    with scene.database.begin() as session:
        undone = review.take_back_decisions(session, done.versions, by=scene.ben.id)
    assert (undone.versions.keys(), undone.refusals) == ({first, second}, {})
    assert [status(scene, trace) for trace in (first, second, own, changed)] == ["submitted"] * 3 + ["rejected"]
    with scene.database.read() as session:
        record = traces.load_trace(session, first)
    assert [(change.who, change.action) for change in list_changes(record)][-2:] == [
        ("ben", "approved"),
        ("ben", "took the decision back"),
    ]
    decide(scene, first)
    assert status(scene, first) == "approved"


def test_only_a_reviewers_own_last_decision_is_taken_back_and_no_return_that_is_being_fixed(scene, cleo):
    trace = submit(scene, 0, cleo, "a")
    decide(scene, trace, "look again", returns=True)
    read = seen(scene, trace)
    with pytest.raises(Conflict, match="decided last"), scene.database.begin() as session:
        review.take_back_decision(session, trace, seen=read[trace], by=scene.ada.id)
    decide(scene, trace)
    with pytest.raises(Conflict, match="after you opened it"), scene.database.begin() as session:
        review.take_back_decision(session, trace, seen=read[trace], by=scene.ben.id)
    read = seen(scene, trace)
    with scene.database.begin() as session:
        assert review.take_back_decision(session, trace, seen=read[trace], by=scene.ben.id).status == "rejected"
        # The reason of the return that holds again, not the comment of the approval.
        (back,) = queue.list_returned_traces(session, scene.project.id, cleo.id)
        assert back.comment == "look again"
    # An undo is not undone: the decision can be made again.
    with pytest.raises(Conflict, match="decided last"), scene.database.begin() as session:
        review.take_back_decision(session, trace, seen=seen(scene, trace)[trace], by=scene.ben.id)
    other = submit(scene, 1, cleo, "b")
    decide(scene, other, "and again", returns=True)
    with scene.database.begin() as session:
        traces.fork_trace(session, other, 1, cleo.id)
    with pytest.raises(Conflict, match="begun to fix"), scene.database.begin() as session:
        review.take_back_decision(session, other, seen=seen(scene, other)[other], by=scene.ben.id)


def test_a_resubmitted_trace_names_all_returns_it_goes_on_from(scene, cleo):
    first = submit(scene, 0, cleo, "a")
    decide(scene, first, "no source", returns=True)
    second = submit(scene, 0, cleo, "b", parent=first)
    decide(scene, second, "the wrong quay", by="ada", returns=True)
    third = submit(scene, 0, cleo, "c", parent=second)
    with scene.database.begin() as session:
        returns = review.list_returns(session, session.get_one(Trace, third))
        assert [(back.trace.id, back.comment, back.reviewer) for back in returns] == [
            (second, "the wrong quay", "ada"),
            (first, "no source", "ben"),
        ]
        (row,) = review_queue.list_traces_to_review(session, [scene.questions[0].id], "people")
        assert (row.id, row.is_resubmitted) == (third, True)
        # A brought-in trace may name itself, or its own successor, as its parent.
        session.get_one(Trace, first).parent_id = third
        session.flush()
        assert len(review.list_returns(session, session.get_one(Trace, third))) == 2
