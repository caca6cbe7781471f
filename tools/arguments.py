"""How tools take what people and models write for their arguments."""

import re

from pydantic import BeforeValidator

from tools.errors import ToolError
from worlds.source import ErrorKind, GraphSource, TextSource, WebSource, World
from worlds.terms import shorten_iri

_ENTITY_PREFIX = re.compile(r"(?:wd|wdt|p|ps|entity):(?=[QPL][1-9])")
_WRAPPING_CHARACTERS = "[](){}<>\"'"


def split_ids(given: object) -> object:
    """A list from one text: "Q1, Q2", "[Q1, Q2]" or one id a line; anything else is left to be checked."""
    if not isinstance(given, str):
        return given
    return [part for part in (part.strip(_WRAPPING_CHARACTERS) for part in re.split(r"[,\s]+", given)) if part]


SPLIT_IDS_VALIDATOR = BeforeValidator(split_ids)


def normalize_id(given: str) -> str:
    """The id as a graph knows it: Q42 for wd:Q42 and for the full IRI; other IRIs stay."""
    text = _ENTITY_PREFIX.sub("", given.strip().strip(_WRAPPING_CHARACTERS))
    return shorten_iri(text.replace("https://www.wikidata.org/", "http://www.wikidata.org/", 1))


def require_text(world: World, tool: str) -> TextSource:
    """The world's text; ToolError when it has none."""
    if world.text is None:
        raise ToolError(
            f"{tool} needs articles, and the world {world.name} has none; ask its graph with runQuery instead.",
            ErrorKind.UNAVAILABLE,
        )
    return world.text


def require_graph(world: World, tool: str) -> GraphSource:
    """The world's graph; ToolError when it has none."""
    if world.graph is None:
        raise ToolError(
            f"{tool} needs a graph, and the world {world.name} has none; use wikisearch and read instead.",
            ErrorKind.UNAVAILABLE,
        )
    return world.graph


def require_web(world: World, tool: str) -> WebSource:
    """The world's web pages; ToolError when it has none."""
    if world.web is None:
        raise ToolError(
            f"{tool} needs web pages, and the world {world.name} has none; use the other tools instead.",
            ErrorKind.UNAVAILABLE,
        )
    return world.web
