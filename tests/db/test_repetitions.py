"""Whether a trace can be repeated is kept with it, until a call, a link or the answer changes."""

from uuid import UUID

import pytest

from showhow.db.database import Conflict, Database
from showhow.db.people import users
from showhow.db.questions.projects import add_question, create_project, list_questions
from showhow.db.review import review
from showhow.db.runs.repetitions import (
    NEEDS_LINK,
    OTHER_NAMES,
    Repetition,
    Trial,
    link_arguments,
    list_repetition_states,
    read_repetition,
    store_repetition,
)
from showhow.db.traces import recording
from showhow.db.traces.libraries import DemonstrationFilter, count_demonstrations, store_version
from showhow.db.traces.recording import NewStep, StepResult, TraceAnswers
from showhow.db.traces.trace_record import NOT_TRIED, list_changes
from showhow.db.traces.traces import load_trace
from showhow.runs.ask import FreeQuestion

TRIED = Repetition(OTHER_NAMES, (Trial("Who lives in Basel?", "Cora Berg"),))
FROM_QUESTION = {"from": "question", "start": 13, "end": 17}


@pytest.fixture
def submitted(database: Database) -> UUID:
    """A trace that ann submitted, with an argument that was typed."""
    with database.begin() as session:
        project = create_project(session, "Shop", "", tools=["find"])
        add_question(session, project.id, FreeQuestion("Who lives in Bern?"))
        (question,) = list_questions(session, project.id)
        users.register_user(session, "lead")
        ann = users.register_user(session, "ann").id
        trace = recording.start_trace(session, question.id, ann)
        step = recording.begin_step(session, trace.id, NewStep("Who?", "find", {"city": "Bern"}), seen=1, by=ann)
        recording.complete_step(session, step.id, StepResult("Ada", {"text": "Ada"}, None, 0.1), by=ann)
        version = load_trace(session, trace.id).trace.version
        recording.submit_trace(session, trace.id, TraceAnswers("Ada"), seen=version, by=ann)
        return trace.id


def approve(database: Database, trace_id: UUID) -> None:
    with database.begin() as session:
        seen = load_trace(session, trace_id).trace.version
        review.approve_trace(session, trace_id, seen=seen, by=users.register_user(session, "lead").id)


def link(database: Database, trace_id: UUID, person: str) -> None:
    with database.begin() as session:
        record = load_trace(session, trace_id)
        by = users.register_user(session, person).id
        link_arguments(session, record.steps[0].id, {"city": FROM_QUESTION}, seen=record.trace.version, by=by)


def test_what_was_tried_holds_for_the_answer_that_it_was_tried_with(database: Database, submitted: UUID):
    with database.begin() as session:
        store_repetition(session, load_trace(session, submitted), "Ada", Repetition(NEEDS_LINK))
        store_repetition(session, load_trace(session, submitted), "Ada", TRIED)
    with database.read() as session:
        record = load_trace(session, submitted)
        assert read_repetition(record, "Ada") == TRIED
        assert read_repetition(record, "Eli") is None
        assert list_repetition_states(session, [submitted]) == {submitted: OTHER_NAMES}
        # It is no decision of anybody.
        assert "other names" not in str(list_changes(record))


def test_demonstrations_are_listed_by_whether_they_can_be_repeated(database: Database, submitted: UUID):
    approve(database, submitted)

    def count(state: str) -> int:
        with database.read() as session:
            return count_demonstrations(session, DemonstrationFilter(repeats=state))

    assert [count(NOT_TRIED), count(OTHER_NAMES)] == [1, 0]
    with database.begin() as session:
        store_repetition(session, load_trace(session, submitted), "Ada", TRIED)
    assert [count(NOT_TRIED), count(OTHER_NAMES), count(NEEDS_LINK)] == [0, 1, 0]


def test_a_reviewer_links_an_argument_unless_a_frozen_version_has_the_trace(database: Database, submitted: UUID):
    with pytest.raises(Conflict, match="ann is not a reviewer"):
        link(database, submitted, "ann")
    with database.begin() as session:
        store_repetition(session, load_trace(session, submitted), "Ada", TRIED)
    link(database, submitted, "lead")
    with database.read() as session:
        record = load_trace(session, submitted)
        assert record.steps[0].origins == {"city": FROM_QUESTION}
        assert [edit.action for edit in record.edits][-1] == "origins"
        assert read_repetition(record, "Ada") is None
    approve(database, submitted)
    with database.begin() as session:
        store_version(session, "shop", [submitted], {})
    with pytest.raises(Conflict, match="versions never change"):
        link(database, submitted, "lead")
