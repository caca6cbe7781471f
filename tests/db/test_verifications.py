"""Verifications in the database: the result of each question, and the repairs of failures."""

import pytest

from db import recording, review, runs, traces, verifications
from db.database import RowNotFound
from db.models import Run
from db.projects import reserve_question
from db.recording import TraceAnswers
from db.runs import RunOutcome
from db.verifications import VERIFICATION_NAME, VerificationOutcome


@pytest.fixture
def run(scene) -> Run:
    """A verification over the three questions: one right, one wrong, one refused."""
    endings = [("answered", "Ines Moor", 1.0), ("answered", "Otto Moor", 0.5), ("refused", None, None)]
    ids = [str(question.id) for question in scene.questions]
    configuration = {"project_id": str(scene.project.id), "questions": ids, "library": None}
    with scene.database.begin() as session:
        made = runs.start_run(
            session, Run(name=VERIFICATION_NAME, reasoner="replay", world="harbour", configuration=configuration)
        )
        for question, (ending, answer, score) in zip(scene.questions, endings, strict=True):
            trace = runs.start_run_trace(session, made, question.id, {})
            answers = TraceAnswers(answer) if answer else None
            failure = None if answer else "it cannot"
            runs.finish_run_trace(session, trace.id, RunOutcome(ending, failure, answers), seen=trace.version)
            if score is not None:
                verifications.save_score(session, trace.id, score)
                verifications.save_score(session, trace.id, 0.0)
        return made


def found(scene, run) -> list[VerificationOutcome]:
    with scene.database.read() as session:
        return verifications.list_outcomes(session, run)


def repairs(scene, run) -> dict[str, str]:
    """The status of each failure's repair, by question."""
    every = {outcome.trace_id: outcome.question for outcome in found(scene, run)}
    with scene.database.read() as session:
        found_repairs = verifications.find_repairs(
            session, [outcome for outcome in found(scene, run) if outcome.is_failed]
        )
    return {every[trace]: f"{repair.status} {repair.person}" for trace, repair in found_repairs.items()}


def test_each_question_has_its_result_and_the_first_score_stays(scene, run):
    right, wrong, refused = found(scene, run)
    assert (right.is_correct, right.is_failed, right.score, right.answer) == (True, False, 1.0, "Ines Moor")
    assert (wrong.is_correct, wrong.is_failed, wrong.score) == (False, True, 0.5)
    assert (refused.is_failed, refused.score, refused.failure) == (True, None, "it cannot")
    with scene.database.read() as session:
        assert verifications.find_outcome(session, wrong.trace_id) == wrong
        assert [run_row.id for run_row in verifications.list_verifications(session, scene.project.id)] == [run.id]
        assert verifications.list_gold_questions(session, scene.project.id) == []
        with pytest.raises(RowNotFound, match="no verification"):
            verifications.find_verification(session, scene.project.id)


@pytest.mark.parametrize(
    ("tool", "error_kind", "is_failed"),
    [
        ("wikisearch", "unavailable", False),
        ("wikisearch", "time limit", False),
        ("runQuery", "unavailable", False),
        # A query of the agent's own that takes too long, and a tool that is not offered, are the agent's mistakes.
        ("runQuery", "time limit", True),
        ("oracle", "unavailable", True),
        ("wikisearch", "not found", True),
        ("wikisearch", None, True),
    ],
)
def test_a_question_whose_source_was_unavailable_has_not_failed(scene, tool, error_kind, is_failed):
    configuration = {"project_id": str(scene.project.id), "questions": [str(scene.questions[0].id)], "library": None}
    with scene.database.begin() as session:
        made = runs.start_run(
            session,
            Run(
                name=VERIFICATION_NAME,
                reasoner="replay",
                world="harbour",
                configuration=configuration,
                tools=["wikisearch", "runQuery"],
            ),
        )
        trace = runs.start_run_trace(session, made, scene.questions[0].id, {})
        step = recording.begin_step(
            session, trace.id, recording.NewStep("so", tool=tool, arguments={}), seen=trace.version
        )
        error = None if error_kind is None else "an error"
        result = recording.StepResult(None, None, error, 0.1, error_kind=error_kind)
        recording.complete_step(session, step.id, result)
        outcome = RunOutcome("answered", None, TraceAnswers("Otto Moor"))
        runs.finish_run_trace(session, trace.id, outcome, seen=runs.trace_version(session, trace.id))
        verifications.save_score(session, trace.id, 0.0)
    (outcome,) = found(scene, made)
    assert (outcome.is_finished, outcome.is_failed, outcome.met_unavailable_source) == (True, is_failed, not is_failed)


def test_a_question_that_was_not_begun_has_not_ended(scene, run):
    with scene.database.begin() as session:
        stored = session.get_one(Run, run.id)
        later = Run(
            name=VERIFICATION_NAME, reasoner="replay", world="harbour", configuration=dict(stored.configuration)
        )
        runs.start_run(session, later)
    assert [(outcome.trace_id, outcome.ending, outcome.is_failed) for outcome in found(scene, later)] == [
        (None, None, False)
    ] * 3


def test_a_repair_is_tracked_from_the_reservation_to_the_approval(scene, run):
    _, wrong, refused = found(scene, run)
    assert repairs(scene, run) == {}
    with scene.database.begin() as session:
        reserve_question(session, refused.question_id, scene.ben.id)
        fork = traces.fork_trace(session, wrong.trace_id, 0, scene.ada.id)
    assert repairs(scene, run) == {wrong.question: "draft ada", refused.question: "held ben"}
    with scene.database.begin() as session:
        recording.begin_step(session, fork.id, recording.NewStep("so"), seen=fork.version, by=fork.author_id)
        recording.submit_trace(session, fork.id, TraceAnswers("Ines Moor"), seen=fork.version + 1, by=scene.ada.id)
        assert verifications.list_approved_repairs(session, [wrong]) == []
        review.reject_trace(session, fork.id, by=scene.ben.id, comment="no source")
    assert repairs(scene, run)[wrong.question] == "rejected ada"
    with scene.database.begin() as session:
        again = traces.fork_trace(session, fork.id, 0, scene.ada.id)
        recording.begin_step(session, again.id, recording.NewStep("so"), seen=again.version, by=again.author_id)
        recording.submit_trace(session, again.id, TraceAnswers("Ines Moor"), seen=again.version, by=scene.ada.id)
        review.approve_trace(session, again.id, by=scene.ben.id)
        # The repair of a repair counts, also for the question's failure in a later verification.
        assert verifications.list_approved_repairs(session, [wrong, refused]) == [again.id]
        assert verifications.count_kinds(session, [again.id]) == {None: 1}
    with scene.database.begin() as session:
        later = runs.start_run(
            session,
            Run(name=VERIFICATION_NAME, reasoner="replay", world="harbour", configuration=dict(run.configuration)),
        )
        trace = runs.start_run_trace(session, later, wrong.question_id, {})
        runs.finish_run_trace(session, trace.id, RunOutcome("refused", "it cannot"), seen=trace.version)
    assert repairs(scene, later) == {wrong.question: "approved ada"}
