"""Verifications in the store: what became of each question, and how far the repairs of failures are."""

import pytest

from db import forking, recording, review, runs, verifications
from db.assignments import hold
from db.database import Missing
from db.models import Run
from db.recording import Answers
from db.runs import Ended
from db.verifications import VERIFY, Outcome


@pytest.fixture
def run(scene) -> Run:
    """A verification over the three questions: one right, one wrong, one refused."""
    endings = [("answered", "Ines Moor", 1.0), ("answered", "Otto Moor", 0.5), ("refused", None, None)]
    ids = [str(question.id) for question in scene.questions]
    told = {"project_id": str(scene.project.id), "questions": ids, "library": None}
    with scene.database.begin() as session:
        made = runs.start_run(session, Run(name=VERIFY, reasoner="replay", world="harbour", configuration=told))
        for question, (ending, answer, score) in zip(scene.questions, endings, strict=True):
            trace = runs.start_run_trace(session, made, question.id, {})
            answers = Answers(answer) if answer else None
            failure = None if answer else "it cannot"
            runs.conclude(session, trace.id, Ended(ending, failure, answers), seen=trace.version)
            if score is not None:
                verifications.keep_score(session, trace.id, score)
                verifications.keep_score(session, trace.id, 0.0)
        return made


def found(scene, run) -> list[Outcome]:
    with scene.database.read() as session:
        return verifications.outcomes(session, run)


def repairs(scene, run) -> dict[str, str]:
    """The status of each failure's repair, by question."""
    every = {each.trace_id: each.question for each in found(scene, run)}
    with scene.database.read() as session:
        told = verifications.repairs(session, [each for each in found(scene, run) if each.failed])
    return {every[trace]: f"{each.status} {each.person}" for trace, each in told.items()}


def test_each_question_has_its_outcome_and_the_first_score_stays(scene, run):
    right, wrong, refused = found(scene, run)
    assert (right.right, right.failed, right.score, right.answer) == (True, False, 1.0, "Ines Moor")
    assert (wrong.right, wrong.failed, wrong.score) == (False, True, 0.5)
    assert (refused.failed, refused.score, refused.failure) == (True, None, "it cannot")
    with scene.database.read() as session:
        assert verifications.outcome_of(session, wrong.trace_id) == wrong
        assert [each.id for each in verifications.verifications(session, scene.project.id)] == [run.id]
        assert verifications.gold_questions(session, scene.project.id) == []
        with pytest.raises(Missing, match="no verification"):
            verifications.verification(session, scene.project.id)


def test_a_question_that_was_not_begun_has_not_ended(scene, run):
    with scene.database.begin() as session:
        stored = session.get_one(Run, run.id)
        later = Run(name=VERIFY, reasoner="replay", world="harbour", configuration=dict(stored.configuration))
        runs.start_run(session, later)
    assert [(each.trace_id, each.ending, each.failed) for each in found(scene, later)] == [(None, None, False)] * 3


def test_a_repair_is_followed_from_the_hold_to_the_approval(scene, run):
    _, wrong, refused = found(scene, run)
    assert repairs(scene, run) == {}
    with scene.database.begin() as session:
        hold(session, refused.question_id, scene.ben.id)
        fork = forking.fork(session, wrong.trace_id, 0, scene.ada.id)
    assert repairs(scene, run) == {wrong.question: "draft ada", refused.question: "held ben"}
    with scene.database.begin() as session:
        recording.submit(session, fork.id, Answers("Ines Moor"), seen=fork.version, by=scene.ada.id)
        assert verifications.approved_repairs(session, [wrong]) == []
        review.reject(session, fork.id, by=scene.ben.id, comment="no source")
    assert repairs(scene, run)[wrong.question] == "rejected ada"
    with scene.database.begin() as session:
        again = forking.fork(session, fork.id, 0, scene.ada.id)
        recording.submit(session, again.id, Answers("Ines Moor"), seen=again.version, by=scene.ada.id)
        review.approve(session, again.id, by=scene.ben.id)
        # The repair of a repair counts, and the question needs no other one in a later verification either.
        assert verifications.approved_repairs(session, [wrong, refused]) == [again.id]
        assert verifications.kinds_of(session, [again.id]) == {None: 1}
    with scene.database.begin() as session:
        later = runs.start_run(
            session, Run(name=VERIFY, reasoner="replay", world="harbour", configuration=dict(run.configuration))
        )
        trace = runs.start_run_trace(session, later, wrong.question_id, {})
        runs.conclude(session, trace.id, Ended("refused", "it cannot"), seen=trace.version)
    assert repairs(scene, later) == {wrong.question: "approved ada"}
