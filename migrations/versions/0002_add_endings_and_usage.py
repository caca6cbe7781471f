"""Add the ending of a run and the usage of its model calls."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

# Column by column, not in batches: a batch copies the table on SQLite, which foreign keys to its rows forbid.


def upgrade() -> None:
    op.add_column("run", sa.Column("library_id", sa.Uuid(), nullable=True))
    op.add_column("trace", sa.Column("ending", sa.Text(), nullable=True))
    op.add_column("trace", sa.Column("failure", sa.Text(), nullable=True))
    op.create_index("ix_trace_run", "trace", ["run_id", "question_id"])
    # Existing steps have no usage: people recorded them, and no tool called a model.
    op.add_column("step", sa.Column("usage", sa.JSON(none_as_null=True), nullable=False, server_default="{}"))


def downgrade() -> None:
    op.drop_column("step", "usage")
    op.drop_index("ix_trace_run", table_name="trace")
    op.drop_column("trace", "failure")
    op.drop_column("trace", "ending")
    op.drop_column("run", "library_id")
