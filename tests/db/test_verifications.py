"""Verifications in the database: the result of each question, and the repairs of failures."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select

from showhow.db import batches
from showhow.db.database import Conflict, RowNotFound
from showhow.db.models import Attempt, Question, Run
from showhow.db.questions import projects
from showhow.db.questions.projects import reserve_question
from showhow.db.review import review, review_queue
from showhow.db.review.review_queue import ReviewFilter
from showhow.db.run_spec import RunSpec
from showhow.db.runs import attempts, leases, runs, verifications
from showhow.db.runs.attempts import MetricScore
from showhow.db.runs.leases import Taker
from showhow.db.runs.runs import RunOutcome, trace_version
from showhow.db.runs.verifications import VERIFICATION_NAME, VerificationOutcome
from showhow.db.traces import model_calls, recording, traces
from showhow.db.traces.libraries import MODELS
from showhow.db.traces.recording import TraceAnswers
from showhow.db.unanswerable import CANNOT_BE_ANSWERED, UnanswerableReason, write_unanswerable
from showhow.evaluation.metrics import METRICS, Metric
from showhow.evaluation.scoring.scoring import load_figures
from showhow.llm.usage import Usage


def start(scene, questions, tools=()) -> Run:
    """Store a verification over these questions."""
    spec = RunSpec(reasoner="replay", project_id=scene.project.id, tools=tuple(tools))
    run = Run(name=VERIFICATION_NAME, reasoner="replay", world="harbour", spec=spec)
    with scene.database.begin() as session:
        runs.start_run(session, run)
    attempts.add_attempts(scene.database, run, questions)
    return run


def take(scene, run) -> Attempt:
    """Take the run's first attempt that has not begun, and start its trace."""
    with scene.database.begin() as session:
        waiting = attempts.list_unfinished_attempts(session, run.id)
        first = next(attempt for attempt in waiting if session.get_one(Attempt, attempt).trace_id is None)
        attempt = leases.take_attempt(session, first, Taker("here:1:1"))
        attempt.trace_id = runs.start_run_trace(session, run, attempt.question_id, "").id
    return attempt


def end(scene, attempt, outcome, score=None) -> None:
    """End the attempt's trace, and score its answer."""
    with scene.database.begin() as session:
        runs.finish_run_trace(session, attempt.trace_id, outcome, seen=runs.trace_version(session, attempt.trace_id))
        if score is not None:
            attempts.save_scores(session, attempt.id, attempt.lease_token, [MetricScore("f1", 2, score)])


@pytest.fixture
def run(scene) -> Run:
    """A verification over the three questions: one right, one wrong, one refused."""
    made = start(scene, scene.questions)
    usage = {"calls": 2, "input_tokens": 30, "output_tokens": 4, "seconds": 1.0, "cost": 0.5}
    for ending, answer, score in (
        ("answered", "Ines Moor", 1.0),
        ("answered", "Otto Moor", 0.5),
        ("refused", None, None),
    ):
        answers = TraceAnswers(answer) if answer else None
        failure = None if answer else "it cannot"
        end(scene, take(scene, made), RunOutcome(ending, failure, answers, usage=usage, seconds=2.0), score)
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


def test_each_question_has_its_result(scene, run):
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


def test_attempts_are_stored_in_short_transactions_and_the_rest_by_the_next_process(scene, monkeypatch):
    # Each statement is a transaction of its own.
    monkeypatch.setattr(batches, "HOLD_SECONDS", 0.0)
    monkeypatch.setattr(attempts, "_ROWS_OF_A_STATEMENT", 2)
    stored = start(scene, [])
    insert_rows = attempts.insert_rows

    def end_at_the_third(session, kind, rows):
        if rows[0]["position"] == 5:
            raise KeyboardInterrupt
        insert_rows(session, kind, rows)

    with monkeypatch.context() as patch:
        patch.setattr(attempts, "insert_rows", end_at_the_third)
        with pytest.raises(KeyboardInterrupt):
            attempts.add_attempts(scene.database, stored, scene.questions, 3)
    with scene.database.read() as session:
        assert attempts.count_attempts(session, stored.id) == 4
    for _ in range(2):
        attempts.add_attempts(scene.database, stored, scene.questions, 3)
    with scene.database.read() as session:
        rows = session.scalars(select(Attempt).where(Attempt.run_id == stored.id).order_by(Attempt.position))
        keys = [(row.repetition, row.question_id, row.position) for row in rows]
    asked = [(repetition, question.id) for repetition in (1, 2, 3) for question in scene.questions]
    assert keys == [(*key, position) for position, key in enumerate(asked, 1)]


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
    made = start(scene, scene.questions[:1], tools=["wikisearch", "runQuery"])
    attempt = take(scene, made)
    with scene.database.begin() as session:
        new = recording.NewStep("so", tool=tool, arguments={})
        step = recording.begin_step(session, attempt.trace_id, new, seen=runs.trace_version(session, attempt.trace_id))
        error = None if error_kind is None else "an error"
        result = recording.StepResult(None, None, error, 0.1, error_kind=error_kind)
        recording.complete_step(session, step.id, result)
    end(scene, attempt, RunOutcome("answered", None, TraceAnswers("Otto Moor")), 0.0)
    with scene.database.read() as session:
        unavailable = attempts.count_unavailable(session, made.id, "f1")
    assert sum(unavailable.values()) == (not is_failed)
    (outcome,) = found(scene, made)
    assert (outcome.is_finished, outcome.is_failed, outcome.met_unavailable_source) == (True, is_failed, not is_failed)


def test_a_question_that_was_not_begun_has_not_ended(scene, run):
    later = start(scene, scene.questions)
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
        review.reject_trace(
            session, fork.id, seen=trace_version(session, fork.id), by=scene.ben.id, comment="no source"
        )
    assert repairs(scene, run)[wrong.question] == "rejected ada"
    with scene.database.begin() as session:
        again = traces.fork_trace(session, fork.id, 0, scene.ada.id)
        recording.begin_step(session, again.id, recording.NewStep("so"), seen=again.version, by=again.author_id)
        recording.submit_trace(session, again.id, TraceAnswers("Ines Moor"), seen=again.version, by=scene.ada.id)
        review.approve_trace(session, again.id, seen=trace_version(session, again.id), by=scene.ben.id)
        # The repair of a repair counts, also for the question's failure in a later verification.
        assert verifications.list_approved_repairs(session, [wrong, refused]) == [again.id]
        assert verifications.count_kinds(session, [again.id]) == {None: 1}
    later = start(scene, [question for question in scene.questions if question.id == wrong.question_id])
    end(scene, take(scene, later), RunOutcome("refused", "it cannot"))
    assert repairs(scene, later) == {wrong.question: "approved ada"}


def test_only_the_last_worker_that_took_an_attempt_stores_its_score(scene):
    made = start(scene, scene.questions[:1])
    slow = take(scene, made)
    slow_token = slow.lease_token
    with scene.database.begin() as session:
        assert leases.take_attempt(session, slow.id, Taker("there:2:2")) is None
        later = leases.take_attempt(session, slow.id, Taker("there:2:2", is_gone=lambda worker: worker == "here:1:1"))
        trace = runs.reopen_run_trace(session, later.trace_id)
    end(scene, later, RunOutcome("answered", None, TraceAnswers("Ines Moor")), 1.0)
    late_score = [MetricScore("f1", 2, 0.0)]
    with pytest.raises(Conflict, match="taken by another worker"), scene.database.begin() as session:
        attempts.save_scores(session, slow.id, slow_token, late_score)
    with pytest.raises(Conflict), scene.database.begin() as session:
        runs.finish_run_trace(session, trace.id, RunOutcome("refused", "too late"), seen=trace.version - 1)
    assert [outcome.score for outcome in found(scene, made)] == [1.0]


def test_a_newer_version_of_a_metric_replaces_its_score_without_asking_again(scene, run):
    with scene.database.begin() as session:
        unscored = attempts.list_answers_without_score(session, run.id, "f1", 3)
        assert [row.answer for row in unscored] == ["Ines Moor", "Otto Moor"]
        for row in unscored:
            attempts.save_scores(session, row.attempt_id, row.lease_token, [MetricScore("f1", 3, 0.25)])
        assert attempts.list_answers_without_score(session, run.id, "f1", 3) == []
        assert [(group.version, group.scores, group.total) for group in attempts.group_scores(session, run.id)] == [
            (3, 2, 0.5)
        ]


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_figures_equal_those_of_the_listed_outcomes(scene, data):
    """Compare the sums of the database with sums over the outcomes in Python."""
    kinds = data.draw(st.lists(st.sampled_from(["who", "when", None]), min_size=3, max_size=3), label="kinds")
    with scene.database.begin() as session:
        for question, kind in zip(scene.questions, kinds, strict=True):
            session.get_one(Question, question.id).kind = kind
        questions = [session.get_one(Question, question.id) for question in scene.questions]
    made = start(scene, questions)
    for _ in range(data.draw(st.integers(0, 3), label="begun")):
        ending = data.draw(st.sampled_from(["answered", "refused", "stopped", "limit"]))
        calls = data.draw(st.integers(0, 3))
        usage = {"calls": calls, "seconds": 1.0, "unreported_calls": data.draw(st.integers(0, 2))}
        counts, amounts = ("input_tokens", "output_tokens"), st.integers(0, 9)
        has_price = data.draw(st.booleans())
        if not calls or data.draw(st.booleans()):
            usage |= {name: data.draw(amounts) if calls else 0 for name in counts}
            usage["cost"] = data.draw(amounts) if calls and has_price else None if calls else 0
        else:
            # The tokens of a call were not reported, so the usage has bounds.
            usage |= dict.fromkeys((*counts, "cost")) | {"token_bound": data.draw(amounts)}
            usage["cost_bound"] = data.draw(amounts) if has_price else None
        is_answered = ending == "answered"
        score = data.draw(st.sampled_from([0.0, 0.5, 1.0])) if is_answered else None
        answers = TraceAnswers("x") if is_answered else None
        attempt = take(scene, made)
        if ending == "stopped":
            with scene.database.begin() as session:
                request = model_calls.ModelRequest("step", "model", [])
                call = model_calls.begin_model_call(session, request, trace_id=attempt.trace_id)
                model_calls.complete_model_call(session, call.id, model_calls.ModelReply({}, usage))
        end(scene, attempt, RunOutcome(ending, None if is_answered else "so", answers, usage=usage), score)
    outcomes = found(scene, made)
    report = load_figures(scene.database, made.id)
    for figures, chosen in (
        (report, outcomes),
        *(
            (of_kind, [row for row in outcomes if (row.kind or "") == kind])
            for kind, of_kind in report["by_kind"].items()
        ),
    ):
        finished = [row for row in chosen if row.is_finished]
        assert (figures["questions"], figures["left"]) == (len(chosen), len(chosen) - len(finished))
        assert figures["right"] == sum(row.is_correct for row in finished)
        usage = sum((Usage(**{**row.cost, "model": ""}) for row in chosen if row.cost), Usage())
        assert (figures["input_tokens"], figures["cost"], figures["cost_bound"]) == (
            usage.input_tokens,
            usage.cost,
            usage.max_cost,
        )
        total = sum(row.score or 0.0 for row in finished)
        assert figures["f1"] == (pytest.approx(total / len(finished)) if finished else None)


def test_a_new_metric_is_in_the_figures_once_all_answers_have_its_score(scene, run, monkeypatch):
    monkeypatch.setitem(METRICS, "length", Metric("length", 1, "length", "", lambda answer, _: len(answer) / 10))
    assert load_figures(scene.database, run.id)["length"] is None
    with scene.database.begin() as session:
        for row in attempts.list_answers_without_score(session, run.id, "length", 1):
            score = MetricScore("length", 1, len(row.answer) / 10)
            attempts.save_scores(session, row.attempt_id, row.lease_token, [score])
    # Two answers of nine characters, and a question without an answer.
    figures = load_figures(scene.database, run.id)
    assert (figures["length"], figures["length_answered"]) == (pytest.approx(0.6), pytest.approx(0.9))


def test_tasks_with_one_text_are_told_apart_by_their_attachments(scene, sample_question):
    mails = ["The quay is closed.", "The quay is open. " * 20]
    tasks = [sample_question("Triage it.", details={"attachments": {"mail": mail}}) for mail in mails]
    with scene.database.begin() as session:
        project = projects.create_project(session, "inbox", "harbour")
        projects.add_questions(session, project.id, tasks)
        stored = projects.list_questions(session, project.id)
    made = start(scene, stored)
    for _ in stored:
        end(scene, take(scene, made), RunOutcome("answered", None, TraceAnswers("low"), usage={}, seconds=1.0))
    full_texts = [f"Triage it.\n\nmail:\n{mail}" for mail in mails]
    with scene.database.begin() as session:
        assert [a.question for a in review.list_answers_to_judge(session, made.id, "judge", 1)] == full_texts
        rows = review_queue.list_questions_to_review(session, project.id, ReviewFilter(by=MODELS))
        questions = review_queue.load_questions(session, [row.id for row in rows])
        listed = [questions[row.id].summary for row in rows]
        assert listed[0] == "Triage it. · mail: The quay is closed."
        assert listed[1].startswith("Triage it. · mail: The quay is open. The")
        assert listed[1].endswith(" …")
        assert review.add_labels(session, made.id, [(full_texts[0], "truthfulness", "true", "ben")]) == 1
        assert len(review.list_labels(session, made.id, "truthfulness")) == 1
        with pytest.raises(RowNotFound, match="2 questions say"):
            review.add_labels(session, made.id, [("Triage it.", "truthfulness", "true", "ben")])


def test_questions_that_cannot_be_answered_are_asked_and_counted_in_a_group_of_their_own(scene, sample_question):
    said = write_unanswerable(UnanswerableReason.NOT_IN_SOURCES)
    gold = ({"text": said, "entity": None},)
    ada = ({"text": "Ada", "entity": None},)
    asked = [("One?", ada), ("Two?", gold), ("Three?", gold), ("Four?", ada), ("Five?", ())]
    with scene.database.begin() as session:
        projects.add_questions(
            session,
            scene.project.id,
            [sample_question(text, kind="bridge", gold_answers=golds) for text, golds in asked],
        )
        listed = verifications.list_gold_questions(session, scene.project.id)
        answerable = verifications.list_gold_questions(session, scene.project.id, answerable=True)
    assert [question.text for question in listed] == ["One?", "Two?", "Three?", "Four?"]
    assert [question.text for question in answerable] == ["One?", "Four?"]
    run = start(scene, listed)
    for answer, score in (("Ada", 1.0), (said, 1.0), (None, None), (said, 0.0)):
        outcome = RunOutcome("answered", None, TraceAnswers(answer)) if answer else RunOutcome("refused", "it cannot")
        end(scene, take(scene, run), outcome, score)
    report = load_figures(scene.database, run.id)
    names = ("questions", "answered", "cannot_be_answered", "refused", "failed", "right")
    assert [report[name] for name in names] == [4, 3, 2, 1, 0, 2]
    groups = {kind: [group[name] for name in names] for kind, group in report["by_kind"].items()}
    assert groups == {"bridge": [2, 2, 1, 0, 0, 1], CANNOT_BE_ANSWERED: [2, 1, 1, 1, 0, 1]}
    with scene.database.read() as session:
        traces = [outcome.trace_id for outcome in verifications.list_outcomes(session, run) if outcome.trace_id]
        assert verifications.count_kinds(session, traces) == {"bridge": 2, CANNOT_BE_ANSWERED: 2}


def test_a_project_of_a_former_version_has_the_questions_that_cannot_be_answered_without_gold(scene, sample_question):
    gold = ({"text": write_unanswerable(UnanswerableReason.FALSE_PREMISE), "entity": None},)
    with scene.database.begin() as session:
        project = projects.create_project(session, "world", "harbour")
        projects.add_questions(session, project.id, [sample_question("Who?")])
        new = sample_question("Who?", gold_answers=gold)
        assert projects.has_questions(session, project.id, [new])
        counts = projects.add_questions(session, project.id, [new])
    assert (counts.added, counts.existing, counts.differing) == (0, 1, 0)
