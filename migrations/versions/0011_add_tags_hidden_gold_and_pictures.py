"""Let questions have tags, projects say who sees gold answers, and guidelines have pictures."""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("project", sa.Column("shows_gold", sa.Boolean(), nullable=False, server_default=sa.false()))
    op.add_column("question", sa.Column("tags", sa.Text(), nullable=False, server_default="[]"))
    condition = sa.text("tags <> '[]'")
    columns = ["project_id", "tags", "position"]
    op.create_index("ix_question_tagged", "question", columns, sqlite_where=condition, postgresql_where=condition)
    op.create_table(
        "guideline_picture",
        # No foreign key: a project that is deleted leaves what nobody asks for.
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("project_id", "name", name=op.f("pk_guideline_picture")),
    )


def downgrade() -> None:
    op.drop_table("guideline_picture")
    op.drop_index("ix_question_tagged", "question")
    op.drop_column("question", "tags")
    op.drop_column("project", "shows_gold")
