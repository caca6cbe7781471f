"""Add attempts and scores: verifications kept their questions in the run's configuration, scores in judgements."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

import sqlalchemy as sa
from alembic import op
from uuid_utils.compat import uuid7

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

VERIFICATION_NAME = "verify"
SCORE_ASPECT = METRIC = "f1"
METRIC_VERSION = 2
_BATCH_SIZE = 500


def upgrade() -> None:
    op.add_column("run", sa.Column("questions_hash", sa.Text()))
    op.add_column("run", sa.Column("concurrency", sa.Integer()))
    op.add_column("run", sa.Column("is_paused", sa.Boolean(), nullable=False, server_default=sa.false()))
    attempt = op.create_table(
        "attempt",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("question_id", sa.Uuid(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("repetition", sa.Integer(), nullable=False),
        sa.Column("kind", sa.Text()),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("worker", sa.Text()),
        sa.Column("lease_token", sa.Integer(), nullable=False),
        sa.Column("trace_id", sa.Uuid()),
        sa.Column("ending", sa.Text()),
        sa.Column("met_unavailable_source", sa.Boolean(), nullable=False),
        sa.Column("model_calls", sa.Integer(), nullable=False),
        sa.Column("input_tokens", sa.Integer()),
        sa.Column("output_tokens", sa.Integer()),
        sa.Column("unreported_calls", sa.Integer(), nullable=False),
        sa.Column("token_bound", sa.Integer()),
        sa.Column("cost", sa.Double()),
        sa.Column("cost_bound", sa.Double()),
        sa.Column("seconds", sa.Double()),
        sa.CheckConstraint("state in ('open', 'leased', 'ended')", name=op.f("ck_attempt_state")),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_attempt_run_id_run")),
        sa.ForeignKeyConstraint(["question_id"], ["question.id"], name=op.f("fk_attempt_question_id_question")),
        sa.ForeignKeyConstraint(["trace_id"], ["trace.id"], name=op.f("fk_attempt_trace_id_trace")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_attempt")),
        sa.UniqueConstraint("run_id", "question_id", "repetition", name=op.f("uq_attempt_run_id")),
    )
    op.create_index("ix_attempt_state", "attempt", ["run_id", "state", "position"])
    op.create_index("ix_attempt_trace", "attempt", ["trace_id"])
    op.create_index(
        "ix_attempt_figures",
        "attempt",
        [
            "run_id",
            "kind",
            "ending",
            "model_calls",
            "input_tokens",
            "output_tokens",
            "unreported_calls",
            "token_bound",
            "cost",
            "cost_bound",
            "seconds",
        ],
    )
    condition = sa.text("met_unavailable_source")
    op.create_index(
        "ix_attempt_unavailable", "attempt", ["run_id", "kind"], sqlite_where=condition, postgresql_where=condition
    )
    score = op.create_table(
        "score",
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("attempt_id", sa.Uuid(), nullable=False),
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("kind", sa.Text()),
        sa.Column("metric", sa.Text(), nullable=False),
        sa.Column("metric_version", sa.Integer(), nullable=False),
        sa.Column("value", sa.Double(), nullable=False),
        sa.Column("details", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("scored_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["attempt_id"], ["attempt.id"], name=op.f("fk_score_attempt_id_attempt")),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_score_run_id_run")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_score")),
        sa.UniqueConstraint("attempt_id", "metric", name=op.f("uq_score_attempt_id")),
    )
    op.create_index("ix_score_figures", "score", ["run_id", "metric", "metric_version", "kind", "value", "attempt_id"])
    _move_verifications(op.get_bind(), attempt, score)


def _table(title: str, /, **columns: Any) -> sa.TableClause:
    """A table with those of its columns that this migration reads or writes."""
    return sa.table(title, *(sa.column(column, kind) for column, kind in columns.items()))


_ID, _JSON, _TIME = sa.Uuid(), sa.JSON(none_as_null=True), sa.DateTime(timezone=True)
_RUN = _table("run", id=_ID, name=sa.Text(), configuration=_JSON, tools=_JSON)
_QUESTION = _table("question", id=_ID, kind=sa.Text())
_TRACE = _table("trace", id=_ID, run_id=_ID, question_id=_ID, ending=sa.Text(), cost=_JSON, wall_seconds=sa.Double())
_STEP = _table("step", trace_id=_ID, tool=sa.Text(), error_kind=sa.Text(), removed_at=_TIME)
_JUDGEMENT = _table(
    "judgement", id=_ID, trace_id=_ID, aspect=sa.Text(), value=sa.Text(), created_at=_TIME, comment=sa.Text()
)


def _move_verifications(connection: sa.Connection, attempt: sa.Table, score: sa.Table) -> None:
    runs = connection.execute(
        sa.select(_RUN.c.id, _RUN.c.configuration, _RUN.c.tools).where(_RUN.c.name == VERIFICATION_NAME)
    ).all()
    for run_id, configuration, tools in runs:
        # The list stays in the configuration of these runs, so that their traces are exported as before.
        questions = configuration.get("questions", []) if isinstance(configuration, dict) else []
        for start in range(0, len(questions), _BATCH_SIZE):
            ids = [UUID(question) for question in questions[start : start + _BATCH_SIZE]]
            attempts, scores = _read_outcomes(connection, run_id, ids, start, tools or ())
            if attempts:
                connection.execute(attempt.insert(), attempts)
            if scores:
                connection.execute(score.insert(), scores)
                moved = [row["attempt_id"] for row in scores]
                traces = [row["trace_id"] for row in attempts if row["id"] in moved]
                connection.execute(
                    _JUDGEMENT.delete().where(_JUDGEMENT.c.trace_id.in_(traces), _JUDGEMENT.c.aspect == SCORE_ASPECT)
                )


def _read_outcomes(
    connection: sa.Connection, run_id: UUID, ids: list[UUID], start: int, tools: Sequence[str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of attempts and scores of these questions; questions that no longer exist have none."""
    kinds = dict(connection.execute(sa.select(_QUESTION.c.id, _QUESTION.c.kind).where(_QUESTION.c.id.in_(ids))).all())
    traces = {
        row.question_id: row
        for row in connection.execute(
            sa.select(_TRACE.c.id, _TRACE.c.question_id, _TRACE.c.ending, _TRACE.c.cost, _TRACE.c.wall_seconds).where(
                _TRACE.c.run_id == run_id, _TRACE.c.question_id.in_(ids)
            )
        )
    }
    trace_ids = [row.id for row in traces.values()]
    is_late = (_STEP.c.error_kind == "time limit") & (_STEP.c.tool != "runQuery")
    unavailable = set(
        connection.scalars(
            sa.select(_STEP.c.trace_id).where(
                _STEP.c.trace_id.in_(trace_ids),
                _STEP.c.removed_at.is_(None),
                _STEP.c.tool.in_(list(tools)),
                (_STEP.c.error_kind == "unavailable") | is_late,
            )
        )
    )
    values = {
        row.trace_id: row
        for row in connection.execute(
            sa.select(_JUDGEMENT.c.trace_id, _JUDGEMENT.c.value, _JUDGEMENT.c.created_at).where(
                _JUDGEMENT.c.trace_id.in_(trace_ids), _JUDGEMENT.c.aspect == SCORE_ASPECT
            )
        )
    }
    attempts: list[dict[str, Any]] = []
    scores: list[dict[str, Any]] = []
    for offset, question_id in enumerate(ids, 1):
        if question_id not in kinds:
            continue
        row = traces.get(question_id)
        attempt = {
            "id": uuid7(),
            "run_id": run_id,
            "question_id": question_id,
            "position": start + offset,
            "repetition": 1,
            "kind": kinds[question_id],
            "state": "open" if row is None or row.ending is None else "ended",
            "lease_token": 0,
            "trace_id": None if row is None else row.id,
            "ending": None if row is None else row.ending,
            "met_unavailable_source": row is not None and row.id in unavailable,
            "seconds": None if row is None else row.wall_seconds,
            **dict(_usage_values({} if row is None else row.cost or {})),
        }
        attempts.append(attempt)
        if row is not None and (value := values.get(row.id)) is not None:
            scores.append(
                {
                    "id": uuid7(),
                    "attempt_id": attempt["id"],
                    "run_id": run_id,
                    "kind": attempt["kind"],
                    "metric": METRIC,
                    "metric_version": METRIC_VERSION,
                    "value": float(value.value),
                    "details": {},
                    "scored_at": value.created_at,
                }
            )
    return attempts, scores


def _usage_values(cost: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    yield "model_calls", cost.get("calls") or 0
    for name in ("input_tokens", "output_tokens", "cost", "token_bound", "cost_bound"):
        yield name, cost.get(name)
    yield "unreported_calls", cost.get("unreported_calls") or 0


def downgrade() -> None:
    connection = op.get_bind()
    attempt = _table(
        "attempt", id=_ID, run_id=_ID, question_id=_ID, position=sa.Integer(), repetition=sa.Integer(), trace_id=_ID
    )
    score = _table("score", attempt_id=_ID, metric=sa.Text(), value=sa.Double(), scored_at=_TIME)
    for run_id, configuration in connection.execute(
        sa.select(_RUN.c.id, _RUN.c.configuration).where(_RUN.c.name == VERIFICATION_NAME)
    ).all():
        questions = connection.scalars(
            sa.select(attempt.c.question_id)
            .where(attempt.c.run_id == run_id, attempt.c.repetition == 1)
            .order_by(attempt.c.position)
        )
        listed = {**configuration, "questions": [str(question) for question in questions]}
        connection.execute(_RUN.update().where(_RUN.c.id == run_id).values(configuration=listed))
    scores = connection.execute(
        sa.select(attempt.c.trace_id, score.c.value, score.c.scored_at)
        .join(attempt, attempt.c.id == score.c.attempt_id)
        .where(score.c.metric == METRIC, attempt.c.repetition == 1)
    ).all()
    rows = [
        {
            "id": uuid7(),
            "trace_id": row.trace_id,
            "aspect": SCORE_ASPECT,
            "value": f"{row.value:.6f}",
            "created_at": row.scored_at,
            "comment": "",
        }
        for row in scores
    ]
    if rows:
        connection.execute(_JUDGEMENT.insert(), rows)
    op.drop_table("score")
    op.drop_table("attempt")
    op.drop_column("run", "is_paused")
    op.drop_column("run", "concurrency")
    op.drop_column("run", "questions_hash")
