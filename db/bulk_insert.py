"""Many rows at once, past the mapper: for importing and for filling a store."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from sqlalchemy.orm import Session

from db.models import Base


def field_values(noun: Base) -> dict[str, Any]:
    """A noun's fields by name."""
    return {column.name: getattr(noun, column.name) for column in fields(noun)}


def insert_rows(session: Session, kind: type[Base], rows: Sequence[dict[str, Any]]) -> None:
    """Write the rows, each with every field of the noun, as they are: keys and versions included."""
    if rows:
        session.execute(kind.__table__.insert(), list(rows))  # type: ignore[attr-defined]
