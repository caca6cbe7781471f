"""Describe a run by one value, and what it made of a question by another, in place of configurations and pins."""

from collections.abc import Iterator
from typing import Any

import sqlalchemy as sa
from alembic import op

from showhow.db.former_configuration import PINS, FormerRun, read_run, read_trace, write_run, write_trace

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

_BATCH_SIZE = 500
_ID, _JSON = sa.Uuid(), sa.JSON(none_as_null=True)
_PIN_COLUMNS = {name: _JSON if name in ("tools", "options") else sa.Text() for name in PINS}


def _table(title: str, **columns: Any) -> sa.TableClause:
    """A table with those of its columns that this migration reads or writes."""
    return sa.table(title, *(sa.column(column, kind) for column, kind in columns.items()))


def upgrade() -> None:
    connection = op.get_bind()
    run = _table("run", id=_ID, name=sa.Text(), configuration=_JSON, **_PIN_COLUMNS)
    trace = _table("trace", id=_ID, run_id=_ID, configuration=_JSON)
    runs = {
        row.id: FormerRun(row.name, row.configuration or {}, {name: getattr(row, name) for name in PINS})
        for row in connection.execute(sa.select(run))
    }
    askers: dict[Any, str] = {}
    for rows in _batches(connection, trace):
        for row in rows:
            if isinstance(asker := (row.configuration or {}).get("asked_by"), str):
                askers[row.run_id] = asker
        _update(
            connection,
            trace,
            "configuration",
            [(row.id, read_trace(row.configuration or {}, runs.get(row.run_id))) for row in rows],
        )
    _update(connection, run, "configuration", [(key, read_run(row, askers.get(key))) for key, row in runs.items()])
    op.execute("ALTER TABLE run RENAME COLUMN configuration TO spec")
    op.execute("ALTER TABLE trace RENAME COLUMN configuration TO result")
    for name in PINS:
        op.drop_column("run", name)


def downgrade() -> None:
    connection = op.get_bind()
    for name in ("model", "encoder", "world_hash", "code_version"):
        op.add_column("run", sa.Column(name, sa.Text()))
    op.add_column("run", sa.Column("tools", _JSON))
    op.add_column("run", sa.Column("options", _JSON, nullable=False, server_default="{}"))
    run = _table("run", id=_ID, name=sa.Text(), spec=_JSON)
    trace = _table("trace", id=_ID, run_id=_ID, result=_JSON)
    runs = {row.id: write_run(row.name, row.spec) for row in connection.execute(sa.select(run))}
    for rows in _batches(connection, trace):
        _update(connection, trace, "result", [(row.id, write_trace(row.result, runs.get(row.run_id))) for row in rows])
    _update(connection, run, "spec", [(key, dict(row.configuration)) for key, row in runs.items()])
    pins = _table("run", id=_ID, **_PIN_COLUMNS)
    for key, row in runs.items():
        connection.execute(pins.update().where(pins.c.id == key).values(**row.pins))
    op.execute("ALTER TABLE run RENAME COLUMN spec TO configuration")
    op.execute("ALTER TABLE trace RENAME COLUMN result TO configuration")


def _batches(connection: sa.Connection, trace: sa.TableClause) -> Iterator[list[Any]]:
    """All traces by their ids, some at a time."""
    last = None
    while True:
        rows = sa.select(trace).order_by(trace.c.id).limit(_BATCH_SIZE)
        batch = list(connection.execute(rows if last is None else rows.where(trace.c.id > last)))
        if not batch:
            return
        last = batch[-1].id
        yield batch


def _update(
    connection: sa.Connection, table: sa.TableClause, column: str, values: list[tuple[Any, dict[str, Any]]]
) -> None:
    if values:
        change = table.update().where(table.c.id == sa.bindparam("key"))
        change = change.values({column: sa.bindparam("value", type_=_JSON)})
        connection.execute(change, [{"key": key, "value": value} for key, value in values])
