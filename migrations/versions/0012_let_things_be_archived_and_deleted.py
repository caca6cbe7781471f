"""Let things be archived and deleted, runs have a name and a note, and what is typed on Ask be stored."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

REMOVABLE = ("project", "question", "run", "trace", "library")
REMOVED_CONDITION = sa.text("removal_id is not null")
INDEXES = {
    "ix_question_queue": ("question", ["project_id", "completed", "position"]),
    "ix_trace_status": ("trace", ["status", "submitted_at", "id"]),
    "ix_trace_question": ("trace", ["question_id", "status"]),
}
"""Indexes that answer counts alone, so that they have the mark of removed rows too."""


def upgrade() -> None:
    op.create_table(
        "removal",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("touched", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("removed_by", sa.Text()),
        sa.Column("kept_until", sa.DateTime(timezone=True)),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("removed_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_removal")),
    )
    op.create_table(
        "unsent_question",
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("page_number", sa.Integer(), nullable=False),
        sa.Column("saved_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["user.id"], name=op.f("fk_unsent_question_user_id_user")),
        sa.PrimaryKeyConstraint("user_id", name=op.f("pk_unsent_question")),
    )
    for table in REMOVABLE:
        op.add_column(table, sa.Column("removal_id", sa.Uuid()))
    for column in ("title", "note"):
        op.add_column("run", sa.Column(column, sa.Text(), nullable=False, server_default=""))
    for name, (table, columns) in INDEXES.items():
        op.drop_index(name, table)
        op.create_index(name, table, [*columns, "removal_id"])
    for table in ("question", "trace"):
        op.create_index(
            f"ix_{table}_removed",
            table,
            ["removal_id"],
            sqlite_where=REMOVED_CONDITION,
            postgresql_where=REMOVED_CONDITION,
        )


def downgrade() -> None:
    for table in ("question", "trace"):
        op.drop_index(f"ix_{table}_removed", table)
    for name, (table, columns) in INDEXES.items():
        op.drop_index(name, table)
        op.create_index(name, table, columns)
    for column in ("title", "note"):
        op.drop_column("run", column)
    for table in REMOVABLE:
        op.drop_column(table, "removal_id")
    op.drop_table("unsent_question")
    op.drop_table("removal")
