"""A database of 100,000 steps moved from SQLite to PostgreSQL and back, every row compared."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from showhow.benchmarks.store_scale import fill_store
from showhow.db.database import Database
from showhow.db.storage.move import move_database
from showhow.db.storage.schema import upgrade
from tests.servers.postgresql import PostgresqlServer

TRACE_COUNT, STEPS = 10_000, 10


def run_benchmark(home: Path, data: Path | None) -> Iterator[dict[str, Any]]:
    """Seconds of a move in each direction."""
    del data  # generated rows suffice
    with PostgresqlServer(durable=True) as server:
        stores = [
            Database(address)
            for address in (
                f"sqlite:///{home / 'from.db'}",
                server.create_database("moved"),
                f"sqlite:///{home / 'to.db'}",
            )
        ]
        upgrade(stores[0])
        fill_store(stores[0], TRACE_COUNT, STEPS)
        for number, name in enumerate(("to_postgresql", "to_sqlite")):
            started = time.perf_counter()
            moved = move_database(stores[number], stores[number + 1])
            yield {
                "name": f"move_{name}",
                "size": f"{moved.rows:,} rows, {moved.tables['step'].rows:,} steps",
                "value": round(time.perf_counter() - started, 1),
                "unit": "s",
                "note": "digests of all tables are equal",
            }
        for store in stores:
            store.close()
