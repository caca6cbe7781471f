"""Verifications: runs of a reasoner over a project's questions with gold answers, and the repairs of their failures.

A failure is an attempt of the verification with a score below 1 or without an answer; its repair is a person's fork of
its trace.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session

from showhow.db.database import RowNotFound
from showhow.db.models import UNFINISHED_ENDINGS, Assignment, Attempt, Project, Question, Run, Score, Trace, User
from showhow.db.questions.projects import COMPLETED_STATUSES
from showhow.db.removed_rows import WITH_REMOVED
from showhow.db.runs.attempts import CORRECT_SCORE, asked_in_run
from showhow.db.trace_states import is_held
from showhow.db.unanswerable import find_gold_reason, group_of_question, says_unanswerable

VERIFICATION_NAME = "verify"
"""The name of these runs; their specification names the project of their questions."""
CORRECTNESS_METRIC = "f1"
"""An answer with CORRECT_SCORE by this metric is right."""
_QUERY_BATCH_SIZE = 500


class VerificationOutcome(NamedTuple):
    """The result of one question of a verification."""

    question_id: UUID
    question: str
    kind: str | None
    gold: list[dict[str, Any]]
    trace_id: UUID | None = None
    ending: str | None = None
    """None until the run has ended on this question."""
    failure: str | None = None
    answer: str | None = None
    score: float | None = None
    """None without an answer."""
    cost: dict[str, Any] = {}  # noqa: RUF012 - the default is never changed
    met_unavailable_source: bool = False
    """Whether a source or a tool was unavailable in one of its steps, or did not answer in time."""

    @property
    def is_correct(self) -> bool:
        """Whether the answer equals a gold answer."""
        return self.score is not None and self.score >= CORRECT_SCORE

    @property
    def is_finished(self) -> bool:
        """Whether the question is done; a stopped one is resumed."""
        return self.ending is not None and self.ending not in UNFINISHED_ENDINGS

    @property
    def is_failed(self) -> bool:
        """Whether the question is done without a correct answer, and no source that was unavailable is the cause."""
        return self.is_finished and not self.is_correct and not self.met_unavailable_source


class Repair(NamedTuple):
    """The repair of a failure, its author and its status."""

    trace_id: UUID
    """The trace of the failure."""
    repair_id: UUID | None
    """The fork; None while the question is only reserved."""
    status: str
    """"held" for a reservation, else the fork's status."""
    person: str | None
    person_id: UUID | None


def list_verifications(session: Session, project_id: UUID) -> list[Run]:
    """List the project's verifications, the latest first."""
    runs = session.scalars(
        select(Run).where(Run.name == VERIFICATION_NAME).order_by(Run.started_at.desc(), Run.id.desc())
    )
    return [run for run in runs if run.spec.project_id == project_id]


def find_verification(session: Session, run_id: UUID) -> Run:
    """Find the verification by its id."""
    run = session.get(Run, run_id)
    if run is None or run.name != VERIFICATION_NAME:
        raise RowNotFound(f"there is no verification {run_id}; `showhow verify --list` has them")
    return run


def find_former_verification(session: Session, run: Run) -> Run | None:
    """Find the verification whose failures this one asks again, also a removed one; None for a first one."""
    former = run.spec.repeats
    return None if former is None else session.get(Run, former, execution_options=WITH_REMOVED)


def list_gold_questions(session: Session, project_id: UUID, *, answerable: bool = False) -> list[Question]:
    """List the project's questions that have a gold answer, in order; with `answerable`, those that have an answer."""
    questions = session.scalars(select(Question).where(Question.project_id == project_id).order_by(Question.position))
    return [
        question
        for question in questions
        if question.gold_answers and not (answerable and find_gold_reason(question.gold_answers))
    ]


def count_unanswerable(session: Session, run_id: UUID, *, asked_in: UUID | None = None) -> dict[str | None, int]:
    """Count by kind the run's answers that say that their question cannot be answered; `asked_in` as group_attempts."""
    rows = session.execute(
        select(Attempt.kind, func.count())
        .join(Trace, Trace.id == Attempt.trace_id)
        .where(Attempt.run_id == run_id, Attempt.ending == "answered", says_unanswerable(Trace.final_answer))
        .where(*asked_in_run(asked_in))
        .group_by(Attempt.kind)
    )
    return dict(rows.all())


def list_outcomes(session: Session, run: Run, *, failed: bool = False) -> list[VerificationOutcome]:
    """List the results of the verification's attempts in order.

    With `failed`, only those of questions to be repaired: failed ones that are neither archived nor deleted.
    """
    conditions = [Attempt.run_id == run.id]
    if failed:
        conditions += [
            Attempt.ending.not_in(UNFINISHED_ENDINGS),
            Attempt.met_unavailable_source.is_(False),
            Question.removal_id.is_(None),
            (Score.value < CORRECT_SCORE) | Score.value.is_(None),
        ]
    return list(_load_outcomes(session, conditions))


def _load_outcomes(session: Session, conditions: Sequence[ColumnElement[bool]]) -> Iterator[VerificationOutcome]:
    rows = session.execute(
        select(Question, Attempt, Trace, Score.value)
        .join(Question, Question.id == Attempt.question_id)
        .outerjoin(Trace, Trace.id == Attempt.trace_id)
        .outerjoin(Score, (Score.attempt_id == Attempt.id) & (Score.metric == CORRECTNESS_METRIC))
        .where(*conditions)
        .order_by(Attempt.position)
        .execution_options(**WITH_REMOVED)
    )
    for question, attempt, trace, value in rows:
        outcome = VerificationOutcome(question.id, question.text, attempt.kind, question.gold_answers)
        yield (
            outcome
            if trace is None
            else outcome._replace(
                trace_id=trace.id,
                ending=attempt.ending,
                failure=trace.failure,
                answer=trace.final_answer,
                score=value,
                cost=trace.cost,
                met_unavailable_source=attempt.met_unavailable_source,
            )
        )


def find_outcome(session: Session, trace_id: UUID) -> VerificationOutcome | None:
    """Find the result that the trace belongs to; None for a trace outside a verification."""
    return next(_load_outcomes(session, [Attempt.trace_id == trace_id]), None)


def skipped_question_ids(session: Session, person_id: UUID) -> set[UUID]:
    """Return the ids of the questions that the person has skipped."""
    skipped = select(Assignment.question_id).where(Assignment.user_id == person_id, Assignment.state == "skipped")
    return set(session.scalars(skipped))


def load_question(session: Session, question_id: UUID) -> tuple[Question, Project]:
    """Load the question and its project; a run answers a question that was removed since its start, too."""
    question = session.get(Question, question_id, execution_options=WITH_REMOVED)
    if question is None:
        raise RowNotFound(f"the question {question_id} no longer exists; start a new verification")
    return question, session.get_one(Project, question.project_id, execution_options=WITH_REMOVED)


def find_repairs(session: Session, failures: Iterable[VerificationOutcome]) -> dict[UUID, Repair]:
    """Find by failed trace its latest repair, a person's answer to its question, or a reservation of the question."""
    outcomes_by_trace = {outcome.trace_id: outcome for outcome in failures if outcome.trace_id is not None}
    repairs: dict[UUID, Repair] = {}
    for start in range(0, len(outcomes_by_trace), _QUERY_BATCH_SIZE):
        batch = list(outcomes_by_trace)[start : start + _QUERY_BATCH_SIZE]
        by_question = {outcomes_by_trace[trace].question_id: trace for trace in batch}
        reservations = session.execute(
            select(Assignment.question_id, User.name, User.id)
            .join(User, User.id == Assignment.user_id)
            .where(Assignment.question_id.in_(by_question), is_held())
        )
        for question_id, name, person_id in reservations:
            trace = by_question[question_id]
            repairs[trace] = Repair(trace, None, "held", name, person_id)
        # A question with a person's answer, in review or approved, needs no other repair; "approved" comes last.
        answers = session.execute(
            select(Trace.question_id, Trace.id, Trace.status, User.name, User.id)
            .join(User, User.id == Trace.author_id)
            .where(Trace.question_id.in_(by_question), Trace.status.in_(COMPLETED_STATUSES))
            .order_by(Trace.status.desc(), Trace.id)
        )
        for question_id, answer_id, status, name, person_id in answers:
            trace = by_question[question_id]
            repairs[trace] = Repair(trace, answer_id, status, name, person_id)
        forks = session.execute(
            select(Trace.parent_id, Trace.id, Trace.status, User.name, User.id)
            .outerjoin(User, User.id == Trace.author_id)
            .where(Trace.parent_id.in_(batch), Trace.author_id.is_not(None))
            .order_by(Trace.started_at, Trace.id)
        )
        for parent, fork, status, name, person_id in forks:
            if parent is not None:
                repairs[parent] = Repair(parent, fork, status, name, person_id)
    return repairs


def list_approved_repairs(session: Session, failures: Iterable[VerificationOutcome]) -> list[UUID]:
    """List the trace ids of approved repairs of these failures, and of repairs of rejected repairs."""
    parents = [outcome.trace_id for outcome in failures if outcome.trace_id is not None]
    repairs: list[UUID] = []
    while parents:
        forks: list[tuple[UUID, str]] = []
        for start in range(0, len(parents), _QUERY_BATCH_SIZE):
            batch = parents[start : start + _QUERY_BATCH_SIZE]
            rows = select(Trace.id, Trace.status).where(Trace.parent_id.in_(batch), Trace.author_id.is_not(None))
            forks += [(fork, status) for fork, status in session.execute(rows.order_by(Trace.id))]
        repairs += [fork for fork, status in forks if status == "approved"]
        parents = [fork for fork, status in forks if status != "approved"]
    return repairs


def count_kinds(session: Session, traces: Iterable[UUID]) -> Counter[str | None]:
    """Count these traces by the kind of their question, as an attempt has it."""
    ids = list(traces)
    counts: Counter[str | None] = Counter()
    for start in range(0, len(ids), _QUERY_BATCH_SIZE):
        rows = session.execute(
            select(Question.kind, Question.gold_answers)
            .join(Trace, Trace.question_id == Question.id)
            .where(Trace.id.in_(ids[start : start + _QUERY_BATCH_SIZE]))
        )
        counts.update(group_of_question(kind, golds) for kind, golds in rows)
    return counts
