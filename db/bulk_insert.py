"""Insert many rows at once without the mapper, for imports and for filling a database."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy.orm import Session

from db.models import Base


def field_values(row: Base) -> dict[str, Any]:
    """Return the fields of a row by name."""
    return {column.name: getattr(row, column.name) for column in fields(row)}


def insert_rows(session: Session, kind: type[Base], rows: Sequence[dict[str, Any]]) -> None:
    """Insert the rows unchanged, keys and versions included; each row has every column of the table."""
    if rows:
        session.execute(kind.__table__.insert(), list(rows))  # type: ignore[attr-defined]
