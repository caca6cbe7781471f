"""What people may change through pages and jobs: the store checks it, whoever calls its functions."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Barrier
from typing import Any
from uuid import UUID, uuid4

import pytest
from sqlalchemy.orm import Session

from showhow import db
from showhow.db.database import Conflict, Database, RowNotFound, StoreError
from showhow.db.models import Project, Question, Run
from showhow.db.people import users
from showhow.db.people.users import ADMIN, ANNOTATOR, REVIEWER, ROLES, ActingPerson
from showhow.db.questions import own_questions, projects, question_list
from showhow.db.questions.answer_formats import AnswerFormat
from showhow.db.questions.guideline_pictures import remove_picture, store_picture
from showhow.db.questions.projects import ProjectSettings
from showhow.db.questions.question_list import QuestionConditions
from showhow.db.removal import renaming
from showhow.db.removal.removal_kinds import Kind
from showhow.db.removal.removals import remove, restore
from showhow.db.review import review
from showhow.db.runs import attempts, leases, runs
from showhow.db.storage.merge import merge_trace
from showhow.db.traces import libraries, recording, traces
from showhow.db.traces.recording import NewStep, TraceAnswers

READING = set(
    "acting approval asked authorize build check count database describe find get group has hash is iterate latest "
    "list load may measure next preview require roles skipped trace".split()
)
"""The first words of the names of functions that change nothing, or only check."""
OF_ANYBODY_WITH_A_ROLE = {
    # A run, its steps and its calls of models are those of who asked.
    "attempts": {"end_attempt_of_trace", "end_attempt_with_trace", "lock_attempt"},
    "leases": {"take_attempt", "renew_leases", "release_attempt", "end_leases_of", "open_call", "settle_call"},
    "model_calls": {
        *("begin_model_call", "complete_model_call", "fail_model_call", "withdraw_model_call"),
        *("mark_lost_model_calls", "link_model_calls", "mark_calls_lost"),
    },
    "runs": {
        *("finish_run", "start_run_trace", "update_result", "fork_run_trace", "complete_awaited_step"),
        *("finish_run_trace", "reopen_run_trace", "rate_run_step", "finish_runs_without_drafts"),
    },
    # Questions that one asks or chooses.
    "projects": {
        *("collect_asked_questions", "add_question", "reserve_question", "complete_assignment"),
        *("update_completed_count", "update_completed_counts"),
    },
    "queue": {"begin_question", "skip_question", "unskip_question"},
    # Drafts of one's own: `by` is their author (test_users.py).
    "recording": {
        *("start_trace", "begin_step", "complete_step", "complete_run_step", "restart_step", "edit_thought"),
        *("rate_step", "undo_step", "redo_step", "submit_trace", "save_draft"),
    },
    "traces": {"lock_trace", "lock_step", "lock_draft", "raise_run_version", "record_edit", "fork_trace"},
    "review": {"add_step_note", "remove_step_note"},
    # Of drafts, by their author; of other traces, by a reviewer (test_repetitions.py).
    "repetitions": {"store_repetition", "link_arguments"},
    "unsent_questions": {"save_unsent_question", "forget_unsent_question"},
    "users": {"register_user"},
    "tool_report": {"drop_redundant_conditions"},
}
Act = Callable[[Session, Any], object]
OF_REVIEWERS: dict[str, dict[str, Act]] = {
    "attempts": {
        "reopen_attempts": lambda s, _: attempts.reopen_attempts(s, uuid4(), ["failed"]),
        "save_scores": lambda s, _: attempts.save_scores(s, uuid4(), 0, []),
    },
    "leases": {
        "lock_or_add_worker_run": lambda s, _: leases.lock_or_add_worker_run(s, verification(s).id),
        "stop_workers": lambda s, _: leases.stop_workers(s, verification(s).id),
    },
    "libraries": {"store_version": lambda s, stage: libraries.store_version(s, "quays", [stage.submitted], {})},
    "question_list": {
        "assign_questions": lambda s, stage: question_list.assign_questions(s, [stage.questions[0].id], []),
    },
    "removals": {"remove": lambda s, _: remove(s, Kind.RUN, verification(s).id)},
    "renaming": {
        "name_run": lambda s, _: renaming.name_run(s, verification(s).id, title="the baseline"),
        "rename_library": lambda s, stage: (
            libraries.store_version(s, "quays", [stage.submitted], {}),
            renaming.rename_library(s, "quays", "piers"),
        ),
    },
    "review": {
        "approve_trace": lambda s, stage: decide(review.approve_trace, s, stage),
        "reject_trace": lambda s, stage: decide(review.reject_trace, s, stage),
        "approve_traces": lambda s, stage: review.approve_traces(s, {stage.submitted: 1}, by=me(s)),
        "take_back_decision": lambda s, stage: decide(take_back_own, s, stage),
        "take_back_decisions": lambda s, stage: review.take_back_decisions(s, {stage.submitted: 1}, by=me(s)),
        "save_comment": lambda s, stage: decide(type_comment, s, stage),
        "add_labels": lambda s, _: review.add_labels(s, verification(s).id, []),
    },
    "runs": {
        "start_run": lambda s, _: verification(s),
        "set_concurrency": lambda s, _: runs.set_concurrency(s, uuid4(), 3),
        "pause_run": lambda s, _: runs.pause_run(s, uuid4()),
    },
}
OF_ADMINISTRATORS: dict[str, dict[str, Act]] = {
    "guideline_pictures": {
        "store_picture": lambda s, stage: store_picture(s, stage.project.id, "map.gif", b"GIF89a"),
        "remove_picture": lambda s, stage: remove_picture(s, stage.project.id, "map.gif"),
    },
    "merge": {"merge_trace": lambda s, stage: merge_trace(s, traces.load_trace(s, stage.submitted))},
    # Where the project allows it, everybody with a role (test_queue.py).
    "own_questions": {
        "add_own_question": lambda s, stage: own_questions.add_own_question(s, stage.project.id, stage.questions[0]),
    },
    "projects": {
        "edit_project": lambda s, _: projects.edit_project(s, "harbours", overlap=2),
        "save_settings": lambda s, _: save_settings(s),
        "create_project": lambda s, _: projects.create_project(s, "another", "harbour"),
        "get_or_create_project": lambda s, _: projects.get_or_create_project(s, "another", world="harbour"),
        "set_tools": lambda s, _: projects.set_tools(s, "harbours", ["read"]),
        "add_questions": lambda s, stage: projects.add_questions(s, stage.project.id, []),
    },
    "question_list": {
        "add_tag": lambda s, stage: question_list.add_tag(s, stage.project.id, QuestionConditions(), "hard"),
        "remove_tag": lambda s, stage: question_list.remove_tag(s, stage.project.id, QuestionConditions(), "hard"),
    },
    "removals": {
        "remove": lambda s, stage: remove(s, Kind.PROJECT, stage.project.id),
        "restore": lambda s, stage: restore(s, remove(s, Kind.QUESTION, stage.questions[0].id).id),
    },
    "renaming": {
        "rename_project": lambda s, _: renaming.rename_project(s, "harbours", "piers"),
        "rename_world": lambda s, _: renaming.rename_world(s, "harbour", "pier"),
    },
    "users": {
        "set_roles": lambda s, _: users.set_roles(s, "cleo", list(users.ROLES)),
        "register_user": lambda s, _: users.register_user(s, "somebody else"),
    },
}


@dataclass(frozen=True, slots=True)
class Stage:
    """Something to change: a project with questions, and a trace that cleo has submitted."""

    database: Database
    project: Project
    questions: list[Question]
    submitted: UUID


def verification(session: Session) -> Run:
    return runs.start_run(session, Run(name="verify", reasoner="replay", world="harbour"))


def decide(decision: Callable[..., Any], session: Session, stage: Stage) -> None:
    actor = users.acting_person(session)
    assert actor is not None
    by = users.register_user(session, actor.name).id
    seen = runs.trace_version(session, stage.submitted)
    decision(session, stage.submitted, seen=seen, by=by, comment="no source")


def take_back_own(session: Session, trace_id: UUID, *, seen: int, by: UUID, comment: str) -> None:
    """A decision without a comment."""
    assert comment
    review.take_back_decision(session, trace_id, seen=seen, by=by)


def type_comment(session: Session, trace_id: UUID, *, seen: int, by: UUID, comment: str) -> None:
    review.save_comment(session, trace_id, comment, seen=seen, by=by)


def save_settings(session: Session) -> None:
    seen = ProjectSettings.of(projects.get_project(session, "harbours"))
    written = ProjectSettings("another instruction", AnswerFormat(), "", 2)
    projects.save_settings(session, "harbours", written, seen=seen)


@pytest.fixture
def stage(scene: Any) -> Stage:
    with scene.database.begin() as session:
        users.register_user(session, "cleo")
        users.register_user(session, "imported")
        users.set_roles(session, "imported", [])
        cleo = users.find_user(session, "cleo")
        trace = recording.start_trace(session, scene.questions[0].id, cleo.id)
        recording.begin_step(session, trace.id, NewStep("the sign says it"), seen=1, by=cleo.id)
        session.refresh(trace)
        recording.submit_trace(session, trace.id, TraceAnswers("Ada"), seen=trace.version, by=cleo.id)
    return Stage(scene.database, scene.project, scene.questions, trace.id)


def acts_of(table: dict[str, dict[str, Act]]) -> list[tuple[str, Act]]:
    return [(f"{module}.{name}", act) for module, acts in table.items() for name, act in acts.items()]


def outcome(database: Database, act: Act, stage: Stage) -> str:
    """Act, and undo it; returns what the store said, or an empty text."""
    try:
        with database.begin() as session:
            attempt = session.begin_nested()
            act(session, stage)
            attempt.rollback()
    except StoreError as refusal:
        return str(refusal)
    return ""


def test_every_function_that_changes_the_store_says_who_may_call_it():
    changing = {
        f"{module}.{name}"
        for module in (info.name for info in pkgutil.iter_modules(db.__path__))
        for name, function in inspect.getmembers(importlib.import_module(f"showhow.db.{module}"), inspect.isfunction)
        if function.__module__ == f"showhow.db.{module}"
        and not name.startswith("_")
        and next(iter(inspect.signature(function).parameters), "") == "session"
        and name.split("_")[0] not in READING
    }
    tables: list[dict[str, Any]] = [OF_ANYBODY_WITH_A_ROLE, OF_REVIEWERS, OF_ADMINISTRATORS]
    named = {f"{module}.{name}" for table in tables for module, names in table.items() for name in names}
    # Rows as they are, for the functions above.
    internal = {"serialization.insert_row", "serialization.insert_rows", "traces.delete_traces"}
    internal |= {"repetitions.forget_repetition", "audit.record_act"}
    assert changing - named - internal == set()


def test_an_annotator_changes_only_what_annotators_may(stage):
    cleo = stage.database.acting_as(ActingPerson("cleo", is_local=False))
    for name, act in acts_of(OF_REVIEWERS):
        assert "cleo is not a reviewer or admin" in outcome(cleo, act, stage), name
    for name, act in acts_of(OF_ADMINISTRATORS):
        assert "cleo is not an admin" in outcome(cleo, act, stage), name
    assert outcome(cleo, lambda s, stage: recording.start_trace(s, stage.questions[1].id, me(s)), stage) == ""


def me(session: Session) -> UUID:
    actor = users.acting_person(session)
    assert actor is not None
    return users.register_user(session, actor.name).id


def test_a_reviewer_verifies_and_freezes_but_changes_no_project(stage):
    ben = stage.database.acting_as(ActingPerson("ben", is_local=False))
    for name, act in acts_of(OF_REVIEWERS):
        assert "is not a" not in outcome(ben, act, stage), name
    for name, act in acts_of(OF_ADMINISTRATORS):
        assert "ben is not an admin" in outcome(ben, act, stage), name


@pytest.mark.parametrize("name", ["", "nobody", "imported"])
def test_a_visitor_from_elsewhere_without_a_role_changes_nothing_and_reads_what_to_do(stage, name):
    visitor = stage.database.acting_as(ActingPerson(name, is_local=False))
    reached = []
    everything = [*acts_of(OF_REVIEWERS), *acts_of(OF_ADMINISTRATORS), ("anything", lambda *_: None)]
    for act_name, act in everything:

        def note(session: Session, stage: Stage, name: str = act_name, act: Act = act) -> None:
            reached.append(name)
            act(session, stage)

        said = outcome(visitor, note, stage)
        assert "ask an administrator for an invitation" in said
    assert reached == [], "the store opens no transaction for them"
    with pytest.raises(Conflict, match="showhow users add"):
        users.authorize(visitor)
    with stage.database.read() as session:
        stored = users.find_user(session, name)
        assert stored is None or stored.roles == []


def test_from_elsewhere_nobody_becomes_an_administrator_by_being_first(database):
    with pytest.raises(Conflict, match="showhow users add eve"):
        users.authorize(database.acting_as(ActingPerson("eve", is_local=False)))
    with database.acting_as(ActingPerson("eve", is_local=False)).read() as session:
        assert users.preview_user(session, "eve").roles == []
    with database.read() as session:
        assert users.list_users(session) == []
    assert users.authorize(database.acting_as(ActingPerson("ada", is_local=True)), *ROLES) is not None


def test_an_administrator_invites_people_who_then_act_from_elsewhere(stage):
    with stage.database.acting_as(ActingPerson("ada", is_local=False)).begin() as session:
        assert users.register_user(session, "dora").roles == [ANNOTATOR]
        assert users.set_roles(session, "dora", [ANNOTATOR, REVIEWER]).roles == [ANNOTATOR, REVIEWER]
    dora = stage.database.acting_as(ActingPerson("dora", is_local=False))
    assert users.authorize(dora, REVIEWER, ADMIN) is not None
    with pytest.raises(Conflict, match="dora is not an admin"):
        users.authorize(dora, ADMIN)


def test_anothers_draft_is_answered_as_one_that_is_not_stored_unless_a_reviewer_asks(stage):
    with stage.database.begin() as session:
        users.register_user(session, "dora")
    with stage.database.acting_as(ActingPerson("cleo", is_local=False)).begin() as session:
        draft = recording.start_trace(session, stage.questions[1].id, me(session)).id
    for name in ("cleo", "ben", "ada"):
        with stage.database.acting_as(ActingPerson(name, is_local=False)).read() as session:
            assert traces.load_linked_trace(session, draft).author == "cleo"
    for name in ("dora", "", "nobody"):
        with stage.database.acting_as(ActingPerson(name, is_local=False)).read() as session:
            refusals = []
            for id_ in (draft, uuid4()):
                with pytest.raises(RowNotFound) as refusal:
                    traces.load_linked_trace(session, id_)
                refusals.append(str(refusal.value).replace(str(id_), ""))
            assert refusals[0] == refusals[1]
            assert traces.load_linked_trace(session, stage.submitted).trace.status == "submitted"
    with stage.database.read() as session:
        assert traces.load_linked_trace(session, draft).author == "cleo"


def test_labels_that_a_reviewer_brings_in_give_nobody_a_role(stage):
    with stage.database.begin() as session:
        assert users.find_or_add_author(session, "judge").roles == []
        assert users.find_or_add_author(session, "ben").roles == [ANNOTATOR, REVIEWER]


def test_a_run_records_the_person_who_started_it(stage):
    with stage.database.acting_as(ActingPerson("ben", is_local=False)).begin() as session:
        assert verification(session).spec.asked_by == "ben"
    with stage.database.begin() as session:
        assert verification(session).spec.asked_by is None


def test_of_an_approval_and_a_return_at_once_exactly_one_succeeds(stage):
    with stage.database.begin() as session:
        users.register_user(session, "rita")
        users.set_roles(session, "rita", [REVIEWER])
        seen = runs.trace_version(session, stage.submitted)
    both_are_ready = Barrier(2)

    def act(name: str, decision: Callable[..., Any]) -> str:
        both_are_ready.wait()
        try:
            with stage.database.acting_as(ActingPerson(name, is_local=False)).begin() as session:
                decision(session, stage.submitted, seen=seen, by=me(session), comment="no source")
        except Conflict as refusal:
            return str(refusal)
        return ""

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(act, ("ben", "rita"), (review.approve_trace, review.reject_trace)))
    with stage.database.read() as session:
        status = traces.load_trace(session, stage.submitted).trace.status
    assert sorted(answer == "" for answer in answers) == [False, True]
    refusal = max(answers)
    if status == "approved":
        assert refusal.startswith("this trace was approved by ben after you opened it; look at it")
    else:
        assert refusal.startswith("this trace was returned to its author by rita after you opened it; look at it")
    # Who has read the newer state may decide otherwise.
    with stage.database.begin() as session:
        seen = runs.trace_version(session, stage.submitted)
        decision = review.reject_trace if status == "approved" else review.approve_trace
        decision(session, stage.submitted, seen=seen, by=users.find_user(session, "ben").id, comment="no source")
