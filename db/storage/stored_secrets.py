"""Secrets that a database holds from before its redaction, or before they were known as secrets."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

from sqlalchemy import Table, select, update
from sqlalchemy.orm import Session

from showhow.db.audit import AuditEntry
from showhow.db.database import Database
from showhow.db.types import Base, ExactJson, ExactText, TagList
from showhow.guard.redaction import Redactor

_BATCH_SIZE = 200


class SecretRow(NamedTuple):
    """A row with a secret: its table, its key, and its texts without the secret."""

    table: Table
    key: dict[str, Any]
    redacted: dict[str, Any]


def find_secrets(database: Database) -> list[str]:
    """One sentence for each table with rows that hold a secret."""
    with database.read() as session:
        counts = Counter(row.table.name for row in _iterate_rows(session, database.redactor))
    return [
        f"table {name}: {count} rows hold a key of the environment, which was not removed when they were written; "
        "`showhow db redact` removes it"
        for name, count in counts.items()
    ]


def remove_secrets(database: Database) -> int:
    """Remove the secrets from the stored rows, also from what SQLite's file keeps of deleted ones; return their number.

    A backup that was made before still has them.
    """
    with database.begin() as session:
        rows = list(_iterate_rows(session, database.redactor))
        for row in rows:
            conditions = [column == row.key[column.name] for column in row.table.primary_key]
            session.execute(update(row.table).where(*conditions).values(row.redacted))
    if database.is_sqlite:
        with closing(sqlite3.connect(str(database.url.database), isolation_level=None)) as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    return len(rows)


def _iterate_rows(session: Session, redactor: Redactor) -> Iterator[SecretRow]:
    if not redactor.has_secrets:
        return
    for table in Base.metadata.sorted_tables:
        columns = [column for column in table.columns if isinstance(column.type, ExactText | ExactJson | TagList)]
        keys = list(table.primary_key)
        # The audit log is never changed; it holds nothing that people type.
        if not columns or table is AuditEntry.__table__:
            continue
        rows = session.execute(select(*keys, *columns).execution_options(yield_per=_BATCH_SIZE))
        for row in rows:
            values = row._mapping
            redacted = {column.name: redactor.redact_json(values[column.name]) for column in columns}
            changed = {name: value for name, value in redacted.items() if value != values[name]}
            if changed:
                yield SecretRow(table, {column.name: values[column.name] for column in keys}, changed)
