"""One event loop in a thread of its own, in which the sessions with MCP servers live."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from functools import cache
from typing import Any, TypeVar

Done = TypeVar("Done")


@cache
def _loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="sessions with tools", daemon=True).start()
    return loop


def submit(work: Coroutine[Any, Any, Done]) -> Future[Done]:
    """Have the work done in the loop; cancelling what is given back ends it there."""
    return asyncio.run_coroutine_threadsafe(work, _loop())
