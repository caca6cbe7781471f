"""Builds the services of this process from its environment: where pages, verbs and the server get theirs."""

import os
from functools import cache
from pathlib import Path

from runs.services import Services
from settings import Settings


@cache
def services() -> Services:
    """The services of this process, built at the first call."""
    return Services(Settings.from_env(os.environ, Path.cwd() / ".env"), os.environ)
