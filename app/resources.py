"""The composition root: builds the parts from the settings, each once in a process."""

import os
from functools import cache
from pathlib import Path

from db.database import Database
from fewshot_library.encoder import SentenceEncoder
from settings import Settings
from worlds.open import open_world as open_world_in
from worlds.source import World


@cache
def settings() -> Settings:
    """The settings of this process."""
    return Settings.from_env(os.environ, Path.cwd() / ".env")


@cache
def database() -> Database:
    """The store, which must have been migrated."""
    return Database(settings().database_url)


@cache
def encoder() -> SentenceEncoder:
    """The encoder of texts; its model loads when the first text is encoded."""
    return SentenceEncoder(settings().encoder)


@cache
def open_world(name: str) -> World:
    """The world of that name, opened once."""
    return open_world_in(settings().worlds, name)
