"""Index the tool calls of steps for the tool report."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

CALLS = ["tool", "latency", "rating", "removed_at", "trace_id", "position", "started_at", "finished_at"]
FAILED = sa.text("error is not null")
MODELLED = sa.text("""cast(usage as text) like '%"tool": {%'""")


def upgrade() -> None:
    op.create_index("ix_step_tool", "step", CALLS)
    _create_partial("ix_step_failed", FAILED)
    _create_partial("ix_step_modelled", MODELLED)


def _create_partial(name: str, where: sa.TextClause) -> None:
    op.create_index(name, "step", ["tool", "trace_id"], sqlite_where=where, postgresql_where=where)


def downgrade() -> None:
    for name in ("ix_step_modelled", "ix_step_failed", "ix_step_tool"):
        op.drop_index(name, table_name="step")
