"""Attempts of runs over many questions: taken by workers, ended with their traces, scored; figures by the database.

    with database.begin() as session:
        attempt = take_attempt(session, attempt_id, taker)      # of db/runs/leases.py: its lease token goes up
    ...                                                         # the run of its trace, which ends the attempt
    with database.begin() as session:
        save_scores(session, attempt.id, token, scores)         # Conflict if another worker has taken it meanwhile

The trace is the truth: db/runs/runs.py ends the attempt in the transaction that ends its trace, and refuses writes to a
trace that another worker has reopened.
"""

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import ColumnElement, Exists, Integer, case, cast, exists, func, select, text, update
from sqlalchemy.orm import Session, aliased
from uuid_utils.compat import uuid7

from showhow.db.batches import write_in_batches
from showhow.db.database import Conflict, Database, RowNotFound
from showhow.db.models import (
    MET_UNAVAILABLE_SOURCE_CONDITION,
    UNFINISHED_ENDINGS,
    Attempt,
    ModelCall,
    Question,
    Run,
    Score,
    Step,
    Trace,
)
from showhow.db.people.users import ADMIN, REVIEWER, require_acting_role
from showhow.db.removed_rows import WITH_REMOVED
from showhow.db.serialization import insert_rows
from showhow.db.types import utc_now
from showhow.db.unanswerable import group_of_question

UNAVAILABLE_KIND = "unavailable"
TIME_LIMIT_KIND = "time limit"
"""Kinds of errors of a step, as worlds.source.ErrorKind names them."""
QUERY_TOOL = "runQuery"
"""The tool that runs a query of the agent's own."""
_ROWS_OF_A_STATEMENT = 250
CORRECT_SCORE = 1.0
"""The score of an answer that equals the gold answers."""
_QUERY_BATCH_SIZE = 500


class MetricScore(NamedTuple):
    """The value of a metric for an answer: from 0 to 1, or as its data set's rule says, CRAG's from -1."""

    metric: str
    version: int
    value: float
    details: dict[str, Any] = {}  # noqa: RUF012 - the default is never changed


class AttemptGroup(NamedTuple):
    """The attempts of a run with the same kind of question and the same ending, and what they used together."""

    kind: str | None
    ending: str | None
    """None for attempts that have not ended."""
    attempts: int
    model_calls: int
    input_tokens: int | None
    output_tokens: int | None
    """None if they are unknown for one of the attempts."""
    unreported_calls: int
    token_bound: int | None
    """The most input and output tokens; None if it is their sum."""
    cost: float | None
    cost_bound: float | None
    """The most that the calls can have cost; None if it is `cost`."""
    seconds: float


class ScoreGroup(NamedTuple):
    """The scores of a run's answers by one metric for questions of one kind."""

    kind: str | None
    metric: str
    version: int
    scores: int
    total: float
    """The sum of the scores."""
    correct: int
    """The number of scores of at least CORRECT_SCORE."""


def add_attempts(database: Database, run: Run, questions: Sequence[Question], repetitions: int = 1) -> None:
    """Store a run's attempts, its questions in order and repeated, in short transactions; those that it has stay."""
    with database.read() as session:
        rows = islice(_attempt_rows(run, questions, repetitions), count_attempts(session, run.id), None)

    def insert(session: Session, group: list[dict[str, Any]]) -> None:
        require_acting_role(session, REVIEWER, ADMIN)
        insert_rows(session, Attempt, group)

    write_in_batches(database, iter(lambda: list(islice(rows, _ROWS_OF_A_STATEMENT)), []), insert)


def count_attempts(session: Session, run_id: UUID) -> int:
    """Count the run's attempts."""
    return session.execute(select(func.count()).where(Attempt.run_id == run_id)).scalar_one()


def _attempt_rows(run: Run, questions: Sequence[Question], repetitions: int) -> Iterator[dict[str, Any]]:
    return (
        {
            "run_id": run.id,
            "question_id": question.id,
            "position": (repetition - 1) * len(questions) + number,
            "repetition": repetition,
            "kind": group_of_question(question.kind, question.gold_answers),
            "state": "open",
            "worker": None,
            "lease_token": 0,
            "leased_until": None,
            "trace_id": None,
            "ending": None,
            "met_unavailable_source": False,
            "model_calls": 0,
            "input_tokens": None,
            "output_tokens": None,
            "unreported_calls": 0,
            "token_bound": None,
            "cost": None,
            "cost_bound": None,
            "seconds": None,
            "id": uuid7(),
        }
        for repetition in range(1, repetitions + 1)
        for number, question in enumerate(questions, 1)
    )


def hash_questions(questions: Iterable[Question]) -> str:
    """SHA-256 of the full texts and gold answers of questions in order: runs with equal hashes asked the same."""
    digest = hashlib.sha256()
    for question in questions:
        digest.update(
            json.dumps([question.full_text, question.gold_answers], sort_keys=True, ensure_ascii=False).encode()
        )
    return digest.hexdigest()


def list_unfinished_attempts(session: Session, run_id: UUID) -> list[UUID]:
    """List the ids of the run's attempts that have not ended, or were stopped, in order."""
    rows = select(Attempt.id).where(Attempt.run_id == run_id, Attempt.state.in_(["open", "leased"]))
    return list(session.scalars(rows.order_by(Attempt.position)))


def count_unfinished_attempts(session: Session, run_id: UUID) -> int:
    """Count the run's attempts that have not ended, or were stopped."""
    unfinished = select(func.count()).where(Attempt.run_id == run_id, Attempt.state.in_(["open", "leased"]))
    return session.execute(unfinished).scalar_one()


def reopen_attempts(session: Session, run_id: UUID, endings: Iterable[str]) -> None:
    """Have attempts with these endings made again; each keeps its ending until then."""
    require_acting_role(session, REVIEWER, ADMIN)
    ended = (Attempt.run_id == run_id) & Attempt.ending.in_(list(endings))
    session.execute(update(Attempt).where(ended, Attempt.state == "ended").values(state="open"))


def list_asked_questions(session: Session, run_id: UUID) -> list[Question]:
    """List the questions of the run in order."""
    rows = select(Question).join(Attempt, Attempt.question_id == Question.id)
    rows = rows.where(Attempt.run_id == run_id, Attempt.repetition == 1).order_by(Attempt.position)
    return list(session.scalars(rows, execution_options=WITH_REMOVED))


def end_attempt_of_trace(session: Session, trace: Trace) -> None:
    """Copy the ending and the usage of a trace that has ended to its attempt, if it belongs to one."""
    attempt = session.scalar(select(Attempt).where(Attempt.trace_id == trace.id).with_for_update())
    if attempt is None:
        return
    usage: Mapping[str, Any] = trace.cost
    attempt.ending, attempt.seconds, attempt.leased_until = trace.ending, trace.wall_seconds, None
    attempt.state = "open" if trace.ending in UNFINISHED_ENDINGS else "ended"
    attempt.model_calls = usage.get("calls") or 0
    attempt.unreported_calls = usage.get("unreported_calls") or 0
    for name in ("input_tokens", "output_tokens", "token_bound", "cost", "cost_bound"):
        setattr(attempt, name, usage.get(name))
    _add_lost_calls(session, attempt)
    tools = session.get_one(Run, attempt.run_id, execution_options=WITH_REMOVED).spec.tools
    attempt.met_unavailable_source = bool(session.scalar(select(_unavailable_step(trace.id, tools or ()))))
    session.flush()


def end_attempt_with_trace(session: Session, run_id: UUID, question_id: UUID, repetition: int, trace: Trace) -> Attempt:
    """Give a trace that has ended elsewhere to its attempt, and end that."""
    is_attempt = (Attempt.run_id == run_id, Attempt.question_id == question_id, Attempt.repetition == repetition)
    attempt = session.scalars(select(Attempt).where(*is_attempt)).one()
    attempt.trace_id = trace.id
    session.flush()
    end_attempt_of_trace(session, trace)
    return attempt


def _add_lost_calls(session: Session, attempt: Attempt) -> None:
    """Count the calls whose replies were lost with a process: each may have used as much as it can."""
    calls = select(ModelCall.usage).where(ModelCall.trace_id == attempt.trace_id, ModelCall.state == "lost")
    lost = [usage for usage in session.scalars(calls) if usage]
    if not lost:
        return
    if not attempt.model_calls:
        attempt.input_tokens, attempt.output_tokens, attempt.cost = 0, 0, 0.0
    tokens = (attempt.input_tokens, attempt.output_tokens)
    reported = {
        "token_bound": None if None in tokens else sum(filter(None, tokens)),
        "cost_bound": attempt.cost,
    }
    for name, value in reported.items():
        known = value if getattr(attempt, name) is None else getattr(attempt, name)
        bounds = [known, *(usage.get(name) for usage in lost)]
        setattr(attempt, name, None if None in bounds else sum(bounds))
    attempt.model_calls += len(lost)
    attempt.unreported_calls += len(lost)


def _unavailable_step(trace_id: UUID, tools: Sequence[str]) -> Exists:
    """Whether the trace has a step whose tool failed for a reason that is not the agent's.

    A tool that is not offered is the agent's mistake, and so is a query of its own that takes too long.
    """
    is_late = (Step.error_kind == TIME_LIMIT_KIND) & (Step.tool != QUERY_TOOL)
    return exists(
        select(Step.id).where(
            Step.trace_id == trace_id,
            Step.removed_at.is_(None),
            Step.tool.in_(tools),
            (Step.error_kind == UNAVAILABLE_KIND) | is_late,
        )
    )


def save_scores(session: Session, attempt_id: UUID, token: int, scores: Iterable[MetricScore]) -> None:
    """Store the scores of the attempt's answer in place of those by the same metrics.

    Conflict if another worker has taken the attempt since it had the lease token `token`.
    """
    require_acting_role(session, REVIEWER, ADMIN)
    attempt = lock_attempt(session, attempt_id)
    if attempt.lease_token != token:
        raise Conflict(f"the question was taken by another worker ({attempt.worker}), whose answer counts")
    stored = {row.metric: row for row in session.scalars(select(Score).where(Score.attempt_id == attempt_id))}
    for score in scores:
        row = stored.get(score.metric)
        if row is None:
            row = Score(
                attempt_id=attempt.id,
                run_id=attempt.run_id,
                kind=attempt.kind,
                metric=score.metric,
                metric_version=score.version,
                value=score.value,
            )
            session.add(row)
        row.metric_version, row.value, row.details = score.version, score.value, score.details
        row.scored_at = utc_now()
    session.flush()


class AnswerToScore(NamedTuple):
    """A stored answer with what it is compared with, and the lease token of its attempt."""

    attempt_id: UUID
    lease_token: int
    answer: str
    gold: list[dict[str, Any]]


def list_answers_without_score(
    session: Session, run_id: UUID, metric: str, version: int, limit: int = _QUERY_BATCH_SIZE
) -> list[AnswerToScore]:
    """List at most `limit` answers of the run that have no score by this version of the metric."""
    scored = exists().where(Score.attempt_id == Attempt.id, Score.metric == metric, Score.metric_version == version)
    rows = session.execute(
        select(Attempt.id, Attempt.lease_token, Trace.final_answer, Question.gold_answers)
        .join(Trace, Trace.id == Attempt.trace_id)
        .join(Question, Question.id == Attempt.question_id)
        .where(Attempt.run_id == run_id, Attempt.ending == "answered", ~scored)
        .order_by(Attempt.position)
        .limit(limit)
        .execution_options(**WITH_REMOVED)
    )
    return [AnswerToScore(attempt, token, answer or "", gold) for attempt, token, answer, gold in rows]


class FinishedAnswer(NamedTuple):
    """The answer of an attempt that has ended, None without one, and the question that was asked."""

    attempt_id: UUID
    lease_token: int
    ending: str
    answer: str | None
    question: Question


def list_finished_answers(session: Session, run_id: UUID) -> list[FinishedAnswer]:
    """List the run's attempts that have ended, with answer or without, in order."""
    rows = session.execute(
        select(Attempt.id, Attempt.lease_token, Attempt.ending, Trace.final_answer, Question)
        .join(Trace, Trace.id == Attempt.trace_id)
        .join(Question, Question.id == Attempt.question_id)
        .where(Attempt.run_id == run_id, Attempt.ending.not_in(UNFINISHED_ENDINGS))
        .order_by(Attempt.position)
        .execution_options(**WITH_REMOVED)
    )
    return [FinishedAnswer(key, token, str(ending), answer, question) for key, token, ending, answer, question in rows]


def group_attempts(session: Session, run_id: UUID, *, asked_in: UUID | None = None) -> list[AttemptGroup]:
    """What the run's attempts used, by kind and ending; with `asked_in` only at questions that ended in that run."""
    has_calls = Attempt.model_calls > 0
    sums: dict[str, ColumnElement[Any]] = {
        "model_calls": func.sum(Attempt.model_calls),
        "unreported_calls": func.sum(Attempt.unreported_calls),
        "seconds": func.coalesce(func.sum(Attempt.seconds), 0.0),
    }
    # What is unknown for one attempt is unknown for all; NULL for attempts without calls counts as 0.
    for column in (Attempt.input_tokens, Attempt.output_tokens, Attempt.cost):
        unknown = func.sum(cast(has_calls & column.is_(None), Integer))
        sums[column.key] = case((unknown == 0, func.coalesce(func.sum(column), 0)))
    known = {"token_bound": Attempt.input_tokens + Attempt.output_tokens, "cost_bound": Attempt.cost}
    for column in (Attempt.token_bound, Attempt.cost_bound):
        most = func.coalesce(column, known[column.key])
        unknown = func.sum(cast(has_calls & most.is_(None), Integer))
        sums[column.key] = case(((func.count(column) > 0) & (unknown == 0), func.sum(most)))
    rows = session.execute(
        select(
            Attempt.kind,
            Attempt.ending,
            func.count().label("attempts"),
            *(value.label(name) for name, value in sums.items()),
        )
        .where(Attempt.run_id == run_id, *asked_in_run(asked_in))
        .group_by(Attempt.kind, Attempt.ending)
    )
    return [AttemptGroup(**row) for row in rows.mappings()]


def asked_in_run(run_id: UUID | None) -> list[ColumnElement[bool]]:
    """The conditions on an attempt that its question has ended in this run; none for None."""
    if run_id is None:
        return []
    other = aliased(Attempt)
    return [Attempt.question_id.in_(select(other.question_id).where(other.run_id == run_id, other.state == "ended"))]


def group_scores(session: Session, run_id: UUID, *, asked_in: UUID | None = None) -> list[ScoreGroup]:
    """Count and add up the run's scores by metric, version and kind of question; `asked_in` as in group_attempts."""
    conditions = [Score.run_id == run_id]
    if asked_in is not None:
        conditions.append(
            Score.attempt_id.in_(select(Attempt.id).where(Attempt.run_id == run_id, *asked_in_run(asked_in)))
        )
    rows = session.execute(
        select(
            Score.kind,
            Score.metric,
            Score.metric_version,
            func.count(),
            func.sum(Score.value),
            func.sum(cast(Score.value >= CORRECT_SCORE, Integer)),
        )
        .where(*conditions)
        .group_by(Score.metric, Score.metric_version, Score.kind)
    )
    return [ScoreGroup(*row) for row in rows]


class RepeatedQuestions(NamedTuple):
    """Questions of a run that have as many correct answers among their repetitions as each other."""

    correct: int
    questions: int


def count_repeated_questions(session: Session, run_id: UUID, metric: str, repetitions: int) -> list[RepeatedQuestions]:
    """Count the run's questions, all of whose repetitions have ended, by the number of correct answers."""
    is_correct = cast(Score.value >= CORRECT_SCORE, Integer)
    by_question = (
        select(func.coalesce(func.sum(is_correct), 0).label("correct"))
        .select_from(Attempt)
        .outerjoin(Score, (Score.attempt_id == Attempt.id) & (Score.metric == metric))
        .where(Attempt.run_id == run_id, Attempt.ending.not_in(UNFINISHED_ENDINGS))
        .group_by(Attempt.question_id)
        .having(func.count() == repetitions)
        .subquery()
    )
    rows = session.execute(select(by_question.c.correct, func.count()).group_by(by_question.c.correct))
    return [RepeatedQuestions(*row) for row in rows]


def count_unavailable(session: Session, run_id: UUID, metric: str) -> dict[str | None, int]:
    """Count by kind the ended attempts without a correct answer that met an unavailable source."""
    is_correct = exists().where(Score.attempt_id == Attempt.id, Score.metric == metric, Score.value >= CORRECT_SCORE)
    rows = session.execute(
        select(Attempt.kind, func.count())
        .where(
            Attempt.run_id == run_id,
            text(MET_UNAVAILABLE_SOURCE_CONDITION),
            Attempt.ending.not_in(UNFINISHED_ENDINGS),
            ~is_correct,
        )
        .group_by(Attempt.kind)
    )
    return dict(rows.all())


class NamedScore(NamedTuple):
    """A score of a run's attempt, with the question that was asked."""

    attempt_id: UUID
    question_id: UUID
    value: float
    details: dict[str, Any]


def list_scores(session: Session, run_id: UUID, metric: str, version: int) -> list[NamedScore]:
    """List the run's scores by this version of the metric, in the order of the attempts."""
    rows = session.execute(
        select(Score.attempt_id, Attempt.question_id, Score.value, Score.details)
        .join(Attempt, Attempt.id == Score.attempt_id)
        .where(Score.run_id == run_id, Score.metric == metric, Score.metric_version == version)
        .order_by(Attempt.position, Attempt.repetition)
    )
    return [NamedScore(*row) for row in rows]


def list_trace_scores(session: Session, trace_id: UUID) -> list[Score]:
    """List the scores of the answer of a run's trace by metric; none for a trace that belongs to no attempt."""
    scores = select(Score).join(Attempt, Attempt.id == Score.attempt_id).where(Attempt.trace_id == trace_id)
    return list(session.scalars(scores.order_by(Score.metric)))


def lock_attempt(session: Session, attempt_id: UUID) -> Attempt:
    """Load the attempt and lock it until the transaction ends."""
    attempt = session.get(Attempt, attempt_id, with_for_update=True, populate_existing=True)
    if attempt is None:
        raise RowNotFound(f"there is no attempt {attempt_id} here; it may be in another database")
    return attempt
