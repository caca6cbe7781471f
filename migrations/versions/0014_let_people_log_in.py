"""Let people log in: what proves who they are, their logins, invitations; and let them be switched off."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

_TIME = sa.DateTime(timezone=True)


def _create(name: str, *columns: sa.Column[Any], unique: tuple[str, ...]) -> None:
    """A table of what belongs to people."""
    op.create_table(
        name,
        sa.Column("user_id", sa.Uuid(), nullable=False),
        *columns,
        sa.Column("id", sa.Uuid(), nullable=False),
        sa.Column("created_at", _TIME, nullable=False),
        sa.ForeignKeyConstraint(["user_id"], ["user.id"], name=op.f(f"fk_{name}_user_id_user")),
        sa.PrimaryKeyConstraint("id", name=op.f(f"pk_{name}")),
        sa.UniqueConstraint(*unique, name=op.f(f"uq_{name}_{unique[0]}")),
    )
    op.create_index(op.f(f"ix_{name}_user_id"), name, ["user_id"])


def _token_columns() -> tuple[sa.Column[Any], sa.Column[Any]]:
    return sa.Column("token_hash", sa.Text(), nullable=False), sa.Column("expires_at", _TIME, nullable=False)


def upgrade() -> None:
    op.add_column("user", sa.Column("is_active", sa.Boolean(), nullable=False, server_default=sa.true()))
    _create(
        "identity",
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("issuer", sa.Text(), nullable=False),
        sa.Column("password_hash", sa.Text()),
        unique=("kind", "issuer", "subject"),
    )
    _create("login", *_token_columns(), sa.Column("used_at", _TIME, nullable=False), unique=("token_hash",))
    _create("invitation", *_token_columns(), sa.Column("used_at", _TIME), unique=("token_hash",))


def downgrade() -> None:
    for name in ("invitation", "login", "identity"):
        op.drop_table(name)
    op.drop_column("user", "is_active")
