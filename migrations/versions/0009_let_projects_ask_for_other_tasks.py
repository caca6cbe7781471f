"""Let projects ask for other tasks than questions: an instruction, and the format of their answers."""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.add_column("project", sa.Column("instruction", sa.Text(), nullable=False, server_default=""))
    op.add_column(
        "project", sa.Column("answer_format", sa.JSON(none_as_null=True), nullable=False, server_default="{}")
    )


def downgrade() -> None:
    op.drop_column("project", "answer_format")
    op.drop_column("project", "instruction")
