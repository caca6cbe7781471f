"""Add blind studies: frozen pairs of answers that people rate and compare, and each click of theirs."""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "study",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("seed", sa.Integer(), nullable=False),
        sa.Column("design", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text()),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("opened_at", sa.DateTime(timezone=True)),
        sa.Column("closed_at", sa.DateTime(timezone=True)),
        sa.CheckConstraint("state in ('draft', 'open', 'closed')", name=op.f("ck_study_state")),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_study_project_id_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study")),
        sa.UniqueConstraint("project_id", "name", name=op.f("uq_study_project_id")),
    )
    op.create_table(
        "study_item",
        sa.Column("study_id", sa.Uuid(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("left_answer", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("right_answer", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("authors", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("stratum", sa.Text(), nullable=False),
        sa.Column("reference", sa.Text()),
        sa.Column("repeats", sa.Uuid()),
        sa.Column("repeated_by", sa.Text()),
        sa.Column("judge_id", sa.Uuid()),
        sa.Column("taken_at", sa.DateTime(timezone=True)),
        sa.Column("finished_at", sa.DateTime(timezone=True)),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.CheckConstraint("repeated_by in ('same', 'other')", name=op.f("ck_study_item_repeated_by")),
        sa.ForeignKeyConstraint(["study_id"], ["study.id"], name=op.f("fk_study_item_study_id_study")),
        sa.ForeignKeyConstraint(["judge_id"], ["user.id"], name=op.f("fk_study_item_judge_id_user")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study_item")),
        sa.UniqueConstraint("study_id", "position", name=op.f("uq_study_item_study_id")),
    )
    op.create_table(
        "study_click",
        sa.Column("item_id", sa.Uuid(), nullable=False),
        sa.Column("judge_id", sa.Uuid(), nullable=False),
        sa.Column("field", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("undone_at", sa.DateTime(timezone=True)),
        sa.ForeignKeyConstraint(["item_id"], ["study_item.id"], name=op.f("fk_study_click_item_id_study_item")),
        sa.ForeignKeyConstraint(["judge_id"], ["user.id"], name=op.f("fk_study_click_judge_id_user")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_study_click")),
    )
    op.create_index("ix_study_click_item", "study_click", ["item_id", "judge_id"])


def downgrade() -> None:
    op.drop_table("study_click")
    op.drop_table("study_item")
    op.drop_table("study")
