"""The services of this process, built once from its environment.

Pages, verbs and the server call `services()` once and hand the value, or parts of it, on as parameters.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache
from pathlib import Path

from app.jobs import JobRegistry
from runs.services import Services
from settings import Settings

_override: ContextVar[Services | None] = ContextVar("services", default=None)


def services() -> Services:
    """The services in use: those of `use_services` inside its block, else those of the process."""
    return _override.get() or _process_services()


@contextmanager
def use_services(value: Services) -> Iterator[None]:
    """Use these services in this thread instead of the process's own until the block ends."""
    token = _override.set(value)
    try:
        yield
    finally:
        _override.reset(token)


@cache
def _process_services() -> Services:
    return Services(Settings.from_env(os.environ, Path.cwd() / ".env"), os.environ)


@cache
def jobs() -> JobRegistry:
    """The background jobs of this server; they outlive the page that started them."""
    return JobRegistry()
