"""Let a judgement name the step that it is about."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("judgement") as judgement:
        judgement.add_column(sa.Column("step_id", sa.Uuid()))
        judgement.create_foreign_key(op.f("fk_judgement_step_id_step"), "step", ["step_id"], ["id"])
    condition = sa.text("step_id is not null")
    op.create_index("ix_judgement_step", "judgement", ["step_id"], sqlite_where=condition, postgresql_where=condition)


def downgrade() -> None:
    # A note on a step would otherwise become a judgement of the whole trace.
    op.execute("DELETE FROM judgement WHERE step_id IS NOT NULL")
    op.drop_index("ix_judgement_step", "judgement")
    with op.batch_alter_table("judgement") as judgement:
        judgement.drop_constraint(op.f("fk_judgement_step_id_step"), type_="foreignkey")
        judgement.drop_column("step_id")
