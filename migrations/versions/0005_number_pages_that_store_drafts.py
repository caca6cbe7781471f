"""Number the pages that store drafts: a counter orders them, since a clock may be set back."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    counter = op.create_table(
        "page_counter",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("value", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_page_counter")),
    )
    op.bulk_insert(counter, [{"id": 1, "value": 0}])
    # Stored drafts come from pages that are older than every numbered one.
    op.add_column("draft", sa.Column("page_number", sa.Integer(), nullable=False, server_default="0"))


def downgrade() -> None:
    op.drop_column("draft", "page_number")
    op.drop_table("page_counter")
