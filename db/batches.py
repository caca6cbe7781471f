"""Long writes in short transactions, so that no other writer waits for them."""

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from sqlalchemy.orm import Session

from showhow.db.database import Database

HOLD_SECONDS = 0.2
"""A transaction takes no further item after as long."""
PAUSE_SECONDS = 0.12
"""Between two transactions on SQLite: waiting writers ask for the lock every 0.1 s, and are not queued."""
ItemType = TypeVar("ItemType")


def write_in_batches(  # noqa: PLR0913 - the callbacks are the parts of a batch
    database: Database,
    items: Iterable[ItemType],
    write: Callable[[Session, ItemType], None],
    *,
    prepare: Callable[[Session, list[ItemType]], None] | None = None,
    end_batch: Callable[[Session], None] | None = None,
    committed: Callable[[int], None] | None = None,
) -> None:
    """Write the items in order, in transactions that each last HOLD_SECONDS and one item at most.

    The items are made outside of transactions, and `prepare` reads for them outside, too. `end_batch` is called before
    each commit, `committed` after it with the number of items so far. An error undoes the last batch only.
    """
    source = iter(items)
    count = 0
    while waiting := _read_ahead(source):
        if prepare is not None:
            with database.read() as session:
                prepare(session, list(waiting))
        while waiting:
            if count and database.is_sqlite:
                time.sleep(PAUSE_SECONDS)
            with database.begin() as session:
                started = time.monotonic()
                is_time_left = True
                while waiting and is_time_left:
                    write(session, waiting.popleft())
                    count += 1
                    is_time_left = time.monotonic() - started < HOLD_SECONDS
                if end_batch is not None:
                    end_batch(session)
            if committed is not None:
                committed(count)


def _read_ahead(source: Iterator[ItemType]) -> deque[ItemType]:
    """Make items for about as long as a transaction takes, before it begins."""
    started = time.monotonic()
    items: deque[ItemType] = deque()
    for item in source:
        items.append(item)
        if time.monotonic() - started >= HOLD_SECONDS:
            break
    return items
