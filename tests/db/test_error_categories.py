"""Categories of a run's failures: one a person, the latest counts, and they go with the trace."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import select

from showhow.db.database import Conflict, Database
from showhow.db.models import Judgement, Trace
from showhow.db.people import users
from showhow.db.people.users import ActingPerson
from showhow.db.runs.error_categories import load_error_categories, set_error_category
from showhow.db.storage.merge import merge_trace
from showhow.db.storage.schema import upgrade
from showhow.db.traces import traces
from showhow.db.traces.trace_record import list_changes
from tests.fixtures.compared_runs import ComparedRuns, make_questions


@pytest.fixture
def made(tmp_path: Path) -> Iterator[ComparedRuns]:
    """A run that asked three questions twice: the first is right once, the second wrong, the third refused."""
    store = Database(f"sqlite:///{tmp_path / 'showhow.db'}")
    upgrade(store)
    made = make_questions(store, 3)
    right, wrong, refused = made.questions
    outcomes = {(wrong.id, n): {"ending": "answered", "score": 0.5} for n in (1, 2)}
    outcomes |= {(refused.id, n): {"ending": "refused"} for n in (1, 2)}
    outcomes |= {(right.id, n): {"ending": "answered", "score": float(n == 1)} for n in (1, 2)}
    made.add_run(made.questions, outcomes, repetitions=2)
    yield made
    store.close()


def test_failed_answers_have_the_category_that_was_set_last(made: ComparedRuns):
    run, ids = made.runs[0], [question.id for question in made.questions]
    with made.database.begin() as session:
        ada, ben = (users.find_or_add_author(session, name).id for name in ("ada", "ben"))
        # Of the first question, one of the two answers is right.
        assert set_error_category(session, run.id, ids, " wrong \n document ", by=ada) == 5
        assert set_error_category(session, run.id, ids[1:2], "the map was old", by=ben) == 2
        assert load_error_categories(session, run.id) == dict(
            zip(ids, ("wrong document", "the map was old", "wrong document"), strict=True)
        )
        # A person has one category; the latest counts, also where another person's stays.
        assert set_error_category(session, run.id, ids[1:2], "query", by=ada) == 2
        assert load_error_categories(session, run.id)[ids[1]] == "query"
        for by in (ada, ben):
            set_error_category(session, run.id, ids[1:2], "", by=by)
        assert ids[1] not in load_error_categories(session, run.id)
        assert len(session.scalars(select(Judgement)).all()) == 3
        with pytest.raises(Conflict, match="at most 60 characters"):
            set_error_category(session, run.id, ids, "x" * 61, by=ada)


def test_who_only_annotates_sets_none(made: ComparedRuns):
    with made.database.begin() as session:
        users.register_user(session, "lead")
        users.register_user(session, "ada")
    acting = made.database.acting_as(ActingPerson("ada", is_local=False))
    with pytest.raises(Conflict, match="reviewer"), acting.begin() as session:
        set_error_category(session, made.runs[0].id, [made.questions[1].id], "query", by=None)


def test_a_category_goes_with_its_trace_and_is_in_its_history(made: ComparedRuns, tmp_path: Path):
    elsewhere = Database(f"sqlite:///{tmp_path / 'elsewhere.db'}")
    upgrade(elsewhere)
    question = made.questions[2].id
    with made.database.begin() as session:
        ada = users.find_or_add_author(session, "ada").id
        set_error_category(session, made.runs[0].id, [question], "step limit", by=ada)
        failed = session.scalars(select(Trace.id).where(Trace.question_id == question)).first()
        record = traces.load_trace(session, failed)
    with elsewhere.begin() as session:
        assert merge_trace(session, record) == "added"
    with elsewhere.read() as session:
        arrived = traces.load_trace(session, failed)
    assert [(change.who, change.action) for change in list_changes(arrived)][-1] == (
        "ada",
        "error category: step limit",
    )
    elsewhere.close()
