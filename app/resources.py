"""The composition root: builds the parts from the settings, each once in a process."""

import os
from functools import cache
from pathlib import Path
from threading import Lock

from db.database import Database
from db.schema import upgrade
from fewshot_library.encoder import SentenceEncoder
from settings import Settings
from tools.chat import Chat, ModelSetup, build_chat
from tools.tool import Context
from tools.usage import Price
from worlds.graph import EmbeddedGraph
from worlds.live.access import Access
from worlds.open import about_world
from worlds.open import open_world as open_world_in
from worlds.source import World

_open: dict[str, World] = {}
_opening = Lock()


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
def chat() -> Chat | None:
    """The language model that is set up, which loads when it is first asked; None where none is."""
    found = settings()
    if found.model is None:
        return None
    return build_chat(
        ModelSetup(
            found.model,
            found.model_base_url,
            os.environ.get("OPENAI_API_KEY"),
            found.model_seconds,
            found.model_temperature,
            Price(*found.model_price) if found.model_price else None,
        )
    )


def _access() -> Access:
    found = settings()
    return Access(found.contact, offline=found.offline, as_of=found.as_of)


def open_world(name: str) -> World:
    """The world of that name, opened once, and again after it was built anew."""
    about = about_world(settings().worlds, name)
    with _opening:
        known = _open.get(name)
        if known is None or known.about != about:
            _open[name] = open_world_in(settings().worlds, name, _access(), os.environ)
        found = _open[name]
    if known is not None and known is not found and isinstance(known.graph, EmbeddedGraph):
        # Its processes hold a graph that is no longer there.
        known.graph.close()
    return found


def tool_context(world: str) -> Context:
    """What the tools work with in that world."""
    return Context(open_world(world), encoder(), chat())
