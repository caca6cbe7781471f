"""The error of a tool call; and arguments of built-in tools: normalize ids, and require a source of the world."""

import re

from pydantic import BeforeValidator

from worlds.source import ErrorKind, GraphSource, TextSource, WebSource, World
from worlds.terms import shorten_iri

_ENTITY_PREFIX = re.compile(r"(?:wd|wdt|p|ps|entity):(?=[QPL][1-9])")
_WRAPPING_CHARACTERS = "[](){}<>\"'"


class ToolError(Exception):
    """A tool call failed; the message is one sentence with the reason and what to do next."""

    def __init__(self, message: str, kind: ErrorKind = ErrorKind.OTHER) -> None:
        super().__init__(message)
        self.kind = kind


def split_ids(value: object) -> object:
    """Split a text of ids, "Q1, Q2", "[Q1, Q2]" or one per line, into a list; other values are returned unchanged."""
    if not isinstance(value, str):
        return value
    return [part for part in (part.strip(_WRAPPING_CHARACTERS) for part in re.split(r"[,\s]+", value)) if part]


SPLIT_IDS_VALIDATOR = BeforeValidator(split_ids)


def normalize_id(id_text: str) -> str:
    """Normalize an id: Q42 for wd:Q42 and for the full IRI; other IRIs are returned unchanged."""
    text = _ENTITY_PREFIX.sub("", id_text.strip().strip(_WRAPPING_CHARACTERS))
    return shorten_iri(text.replace("https://www.wikidata.org/", "http://www.wikidata.org/", 1))


def require_text(world: World, tool: str) -> TextSource:
    """Return the world's articles; ToolError if it has none."""
    if world.text is None:
        raise ToolError(
            f"{tool} needs articles, and the world {world.name} has none; query its graph with runQuery instead.",
            ErrorKind.UNAVAILABLE,
        )
    return world.text


def require_graph(world: World, tool: str) -> GraphSource:
    """Return the world's graph; ToolError if it has none."""
    if world.graph is None:
        raise ToolError(
            f"{tool} needs a graph, and the world {world.name} has none; use wikisearch and read instead.",
            ErrorKind.UNAVAILABLE,
        )
    return world.graph


def require_web(world: World, tool: str) -> WebSource:
    """Return the world's web pages; ToolError if it has none."""
    if world.web is None:
        raise ToolError(
            f"{tool} needs web pages, and the world {world.name} has none; use the other tools instead.",
            ErrorKind.UNAVAILABLE,
        )
    return world.web
