"""Let workers of several machines share runs: leases with an end, limits of all workers together, rate limits."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

UNFINISHED_ENDINGS = ("stopped", "interrupted", "waiting")

_ATTEMPT = sa.table("attempt", sa.column("state", sa.Text()), sa.column("ending", sa.Text()))


def upgrade() -> None:
    op.add_column("attempt", sa.Column("leased_until", sa.DateTime(timezone=True)))
    # An attempt that was stopped waits for a worker; until now it counted as ended.
    op.execute(
        _ATTEMPT.update()
        .where(_ATTEMPT.c.state == "ended", _ATTEMPT.c.ending.in_(UNFINISHED_ENDINGS))
        .values(state="open")
    )
    op.create_table(
        "worker_run",
        sa.Column("run_id", sa.Uuid(), nullable=False),
        sa.Column("is_active", sa.Boolean(), nullable=False),
        sa.Column("priority", sa.Integer(), nullable=False),
        sa.Column("money_limit", sa.Double()),
        sa.Column("token_limit", sa.BigInteger()),
        sa.Column("works_until", sa.DateTime(timezone=True)),
        sa.Column("used_money", sa.Double(), nullable=False),
        sa.Column("used_tokens", sa.BigInteger(), nullable=False),
        sa.Column("stop_reason", sa.Text()),
        sa.Column("has_failed", sa.Boolean(), nullable=False),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_worker_run_run_id_run")),
        sa.PrimaryKeyConstraint("run_id", name=op.f("pk_worker_run")),
    )
    op.create_table(
        "rate_limit",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("state", sa.JSON(none_as_null=True), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_rate_limit")),
    )


def downgrade() -> None:
    op.drop_table("rate_limit")
    op.drop_table("worker_run")
    op.execute(
        _ATTEMPT.update()
        .where(_ATTEMPT.c.state == "open", _ATTEMPT.c.ending.in_(UNFINISHED_ENDINGS))
        .values(state="ended")
    )
    op.drop_column("attempt", "leased_until")
