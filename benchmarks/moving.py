"""A database of 100,000 steps moved from SQLite to PostgreSQL and back, and an upgrade while twenty people write."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from showhow.benchmarks.store_scale import fill_store
from showhow.db.database import Database
from showhow.db.storage.move import move_database
from showhow.db.storage.schema import upgrade
from tests.db.former_versions import fill, load_rows
from tests.servers.postgresql import PostgresqlServer
from tests.servers.writers import TABLES, Writers, long_transaction

TRACE_COUNT, STEPS = 10_000, 10
FORMER_REVISION, HELD_SECONDS = "0012", 5.0


def run_benchmark(home: Path, data: Path | None) -> Iterator[dict[str, Any]]:
    """Seconds of a move in each direction; the longest stall of a writer."""
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
        yield _measure_stall(server, home)


def _measure_stall(server: PostgresqlServer, home: Path) -> dict[str, Any]:
    store = Database(server.create_database("former"))
    fill(store, FORMER_REVISION, load_rows(home, FORMER_REVISION))
    writers = Writers(store.connection_string)
    with long_transaction(store.connection_string, TABLES[0], HELD_SECONDS), writers.at_work():
        upgrade(store)
    store.close()
    return {
        "name": "upgrade_longest_stall",
        "size": f"{writers.count} writers, another transaction open for {HELD_SECONDS:g} s",
        "value": round(writers.longest, 2),
        "unit": "s",
        "note": f"{writers.changes:,} writes acknowledged, from revision {FORMER_REVISION}",
    }
