"""The composition root: builds the parts from the settings, each once in a process."""

import os
from functools import cache
from pathlib import Path

from db.database import Database
from db.schema import upgrade
from fewshot_library.encoder import SentenceEncoder
from settings import Settings
from tools.tool import Context
from worlds.open import open_world as open_world_in
from worlds.source import World


@cache
def settings() -> Settings:
    """The settings of this process."""
    return Settings.from_env(os.environ, Path.cwd() / ".env")


@cache
def database() -> Database:
    """The store, brought to the program's own schema."""
    found = Database(settings().database_url)
    upgrade(found)
    return found


@cache
def encoder() -> SentenceEncoder:
    """The encoder of texts; its model loads when the first text is encoded."""
    return SentenceEncoder(settings().encoder)


@cache
def open_world(name: str) -> World:
    """The world of that name, opened once."""
    return open_world_in(settings().worlds, name)


def tool_context(world: str) -> Context:
    """What the tools work with in that world."""
    return Context(open_world(world), encoder())
