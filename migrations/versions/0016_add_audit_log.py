"""Add the audit log, to which the database itself lets nobody do anything but add entries."""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

_REFUSAL = "the audit log is append-only"
_SQLITE = {
    "audit_entry_no_update": "BEFORE UPDATE ON audit_entry",
    "audit_entry_no_delete": "BEFORE DELETE ON audit_entry",
    # INSERT OR REPLACE deletes without a trigger.
    "audit_entry_no_replace": "BEFORE INSERT ON audit_entry WHEN EXISTS "
    "(SELECT 1 FROM audit_entry WHERE position = NEW.position)",
}
_POSTGRESQL = {
    "audit_entry_no_change": "BEFORE UPDATE OR DELETE ON audit_entry FOR EACH ROW",
    "audit_entry_no_truncate": "BEFORE TRUNCATE ON audit_entry FOR EACH STATEMENT",
}


def upgrade() -> None:
    op.create_table(
        "audit_entry",
        sa.Column("position", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("person_id", sa.Uuid()),
        sa.Column("access", sa.Text(), nullable=False),
        sa.Column("action", sa.Text(), nullable=False),
        sa.Column("object_kind", sa.Text(), nullable=False),
        sa.Column("object_id", sa.Text(), nullable=False),
        sa.Column("details", sa.JSON(none_as_null=True), nullable=False),
        sa.Column("previous", sa.Text(), nullable=False),
        sa.Column("digest", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("position", name=op.f("pk_audit_entry")),
    )
    if op.get_bind().dialect.name == "sqlite":
        for name, moment in _SQLITE.items():
            op.execute(f"CREATE TRIGGER {name} {moment} BEGIN SELECT RAISE(ABORT, '{_REFUSAL}'); END")
        return
    op.execute(
        "CREATE FUNCTION refuse_audit_change() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$BEGIN RAISE EXCEPTION '{_REFUSAL}'; END$$"
    )
    for name, moment in _POSTGRESQL.items():
        op.execute(f"CREATE TRIGGER {name} {moment} EXECUTE FUNCTION refuse_audit_change()")


def downgrade() -> None:
    op.drop_table("audit_entry")
    if op.get_bind().dialect.name != "sqlite":
        op.execute("DROP FUNCTION refuse_audit_change()")
