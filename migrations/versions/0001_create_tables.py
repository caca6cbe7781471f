"""Create the tables."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "library",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("card", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("frozen_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_library")),
        sa.UniqueConstraint("name", "number", name=op.f("uq_library_name")),
    )
    op.create_table(
        "project",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("world", sa.Text(), nullable=False),
        sa.Column("guidelines", sa.Text(), nullable=False),
        sa.Column("tools", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("overlap", sa.Integer(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_project")),
        sa.UniqueConstraint("name", name=op.f("uq_project_name")),
    )
    op.create_table(
        "run",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("reasoner", sa.Text(), nullable=False),
        sa.Column("world", sa.Text(), nullable=False),
        sa.Column("configuration", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_run")),
    )
    op.create_table(
        "user",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("roles", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_user")),
        sa.UniqueConstraint("name", name=op.f("uq_user_name")),
    )
    op.create_table(
        "question",
        sa.Column("project_id", sa.Uuid(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("source_id", sa.Text(), nullable=True),
        sa.Column("dataset", sa.Text(), nullable=True),
        sa.Column("split", sa.Text(), nullable=True),
        sa.Column("kind", sa.Text(), nullable=True),
        sa.Column("gold_answers", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("decomposition", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("details", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("completed", sa.Integer(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["project_id"], ["project.id"], name=op.f("fk_question_project_id_project")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_question")),
        sa.UniqueConstraint("project_id", "position", name=op.f("uq_question_project_id")),
    )
    with op.batch_alter_table("question", schema=None) as batch_op:
        batch_op.create_index("ix_question_queue", ["project_id", "completed", "position"], unique=False)
        batch_op.create_index("ix_question_source", ["project_id", "source_id"], unique=False)

    op.create_table(
        "assignment",
        sa.Column("question_id", sa.Uuid(), nullable=False),
        sa.Column("user_id", sa.Uuid(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("state in ('open', 'skipped', 'done')", name=op.f("ck_assignment_state")),
        sa.ForeignKeyConstraint(["question_id"], ["question.id"], name=op.f("fk_assignment_question_id_question")),
        sa.ForeignKeyConstraint(["user_id"], ["user.id"], name=op.f("fk_assignment_user_id_user")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_assignment")),
        sa.UniqueConstraint("question_id", "user_id", name=op.f("uq_assignment_question_id")),
    )
    with op.batch_alter_table("assignment", schema=None) as batch_op:
        batch_op.create_index("ix_assignment_user", ["user_id", "state"], unique=False)

    op.create_table(
        "trace",
        sa.Column("question_id", sa.Uuid(), nullable=False),
        sa.Column("author_id", sa.Uuid(), nullable=True),
        sa.Column("run_id", sa.Uuid(), nullable=True),
        sa.Column("reasoner", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("answer_text", sa.Text(), nullable=True),
        sa.Column("answer_graph", sa.Text(), nullable=True),
        sa.Column("answer_model", sa.Text(), nullable=True),
        sa.Column("final_answer", sa.Text(), nullable=True),
        sa.Column("final_thought", sa.Text(), nullable=True),
        sa.Column("parent_id", sa.Uuid(), nullable=True),
        sa.Column("parent_position", sa.Integer(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("submitted_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("wall_seconds", sa.Double(), nullable=True),
        sa.Column("active_seconds", sa.Double(), nullable=True),
        sa.Column("configuration", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("cost", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.CheckConstraint(
            "status in ('draft', 'submitted', 'approved', 'rejected', 'failed')", name=op.f("ck_trace_status")
        ),
        sa.ForeignKeyConstraint(["author_id"], ["user.id"], name=op.f("fk_trace_author_id_user")),
        sa.ForeignKeyConstraint(["question_id"], ["question.id"], name=op.f("fk_trace_question_id_question")),
        sa.ForeignKeyConstraint(["run_id"], ["run.id"], name=op.f("fk_trace_run_id_run")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_trace")),
    )
    with op.batch_alter_table("trace", schema=None) as batch_op:
        batch_op.create_index("ix_trace_author", ["author_id", "status", "started_at"], unique=False)
        batch_op.create_index("ix_trace_parent", ["parent_id"], unique=False)
        batch_op.create_index("ix_trace_question", ["question_id", "status"], unique=False)
        batch_op.create_index("ix_trace_status", ["status", "submitted_at", "id"], unique=False)

    op.create_table(
        "draft",
        sa.Column("trace_id", sa.Uuid(), nullable=False),
        sa.Column("content", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("saved_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["trace_id"], ["trace.id"], name=op.f("fk_draft_trace_id_trace")),
        sa.PrimaryKeyConstraint("trace_id", name=op.f("pk_draft")),
    )
    op.create_table(
        "judgement",
        sa.Column("trace_id", sa.Uuid(), nullable=False),
        sa.Column("aspect", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("judge_id", sa.Uuid(), nullable=True),
        sa.Column("other_trace_id", sa.Uuid(), nullable=True),
        sa.Column("comment", sa.Text(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["judge_id"], ["user.id"], name=op.f("fk_judgement_judge_id_user")),
        sa.ForeignKeyConstraint(["trace_id"], ["trace.id"], name=op.f("fk_judgement_trace_id_trace")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_judgement")),
    )
    with op.batch_alter_table("judgement", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_judgement_trace_id"), ["trace_id"], unique=False)

    op.create_table(
        "library_item",
        sa.Column("library_id", sa.Uuid(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("trace_id", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(["library_id"], ["library.id"], name=op.f("fk_library_item_library_id_library")),
        sa.ForeignKeyConstraint(["trace_id"], ["trace.id"], name=op.f("fk_library_item_trace_id_trace")),
        sa.PrimaryKeyConstraint("library_id", "position", name=op.f("pk_library_item")),
    )
    with op.batch_alter_table("library_item", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_library_item_trace_id"), ["trace_id"], unique=False)

    op.create_table(
        "step",
        sa.Column("trace_id", sa.Uuid(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("thought", sa.Text(), nullable=False),
        sa.Column("tool", sa.Text(), nullable=True),
        sa.Column("arguments", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("origins", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("observation", sa.Text(), nullable=True),
        sa.Column("data", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("rating", sa.Integer(), nullable=True),
        sa.Column("latency", sa.Double(), nullable=True),
        sa.Column("started_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("wall_seconds", sa.Double(), nullable=True),
        sa.Column("active_seconds", sa.Double(), nullable=True),
        sa.Column("parent_id", sa.Uuid(), nullable=True),
        sa.Column("removed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.CheckConstraint("rating is null or rating between 1 and 5", name=op.f("ck_step_rating")),
        sa.ForeignKeyConstraint(["parent_id"], ["step.id"], name=op.f("fk_step_parent_id_step")),
        sa.ForeignKeyConstraint(["trace_id"], ["trace.id"], name=op.f("fk_step_trace_id_trace")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_step")),
    )
    with op.batch_alter_table("step", schema=None) as batch_op:
        batch_op.create_index("ix_step_trace", ["trace_id", "removed_at", "rating"], unique=False)
        batch_op.create_index(
            "ux_step_position",
            ["trace_id", "position"],
            unique=True,
            sqlite_where=sa.text("removed_at is null"),
            postgresql_where=sa.text("removed_at is null"),
        )

    op.create_table(
        "edit",
        sa.Column("trace_id", sa.Uuid(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("before", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("step_id", sa.Uuid(), nullable=True),
        sa.Column("editor_id", sa.Uuid(), nullable=True),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.ForeignKeyConstraint(["editor_id"], ["user.id"], name=op.f("fk_edit_editor_id_user")),
        sa.ForeignKeyConstraint(["step_id"], ["step.id"], name=op.f("fk_edit_step_id_step")),
        sa.ForeignKeyConstraint(["trace_id"], ["trace.id"], name=op.f("fk_edit_trace_id_trace")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_edit")),
    )
    with op.batch_alter_table("edit", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_edit_trace_id"), ["trace_id"], unique=False)


def downgrade() -> None:
    with op.batch_alter_table("edit", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_edit_trace_id"))

    op.drop_table("edit")
    with op.batch_alter_table("step", schema=None) as batch_op:
        batch_op.drop_index(
            "ux_step_position",
            sqlite_where=sa.text("removed_at is null"),
            postgresql_where=sa.text("removed_at is null"),
        )
        batch_op.drop_index("ix_step_trace")

    op.drop_table("step")
    with op.batch_alter_table("library_item", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_library_item_trace_id"))

    op.drop_table("library_item")
    with op.batch_alter_table("judgement", schema=None) as batch_op:
        batch_op.drop_index(batch_op.f("ix_judgement_trace_id"))

    op.drop_table("judgement")
    op.drop_table("draft")
    with op.batch_alter_table("trace", schema=None) as batch_op:
        batch_op.drop_index("ix_trace_status")
        batch_op.drop_index("ix_trace_question")
        batch_op.drop_index("ix_trace_parent")
        batch_op.drop_index("ix_trace_author")

    op.drop_table("trace")
    with op.batch_alter_table("assignment", schema=None) as batch_op:
        batch_op.drop_index("ix_assignment_user")

    op.drop_table("assignment")
    with op.batch_alter_table("question", schema=None) as batch_op:
        batch_op.drop_index("ix_question_source")
        batch_op.drop_index("ix_question_queue")

    op.drop_table("question")
    op.drop_table("user")
    op.drop_table("run")
    op.drop_table("project")
    op.drop_table("library")
