"""A live world opened: its sources, each behind a door of its own, and one record of answers."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from worlds.live.access import Access
from worlds.live.answers import ANSWERS, Answers
from worlds.live.description import Description
from worlds.live.door import Door
from worlds.live.endpoint import Endpoint
from worlds.live.mediawiki import MediaWikiText
from worlds.live.request import host_of
from worlds.live.sparql import SparqlGraph
from worlds.live.sparql_protocol import SparqlProtocol
from worlds.live.wikibase import Wikibase
from worlds.source import SourceUnavailable, World


class _Opening:
    """What the sources of one world have in common while they are opened."""

    def __init__(self, folder: Path, description: Description, access: Access, environ: Mapping[str, str]) -> None:
        self._answers = Answers(folder / ANSWERS)
        self._limits = description.limits
        self._access = access
        self._environ = environ

    def door(self, address: str, headers: Mapping[str, str]) -> Door:
        """The door to one host, with the headers that only it is to see."""
        policy = replace(
            self._limits,
            hosts=frozenset({host_of(address)}),
            headers=tuple((name, self._value(name, variable)) for name, variable in headers.items()),
        )
        return Door(policy, self._answers, self._access)

    def _value(self, header: str, variable: str) -> str:
        value = self._environ.get(variable, "")
        if self._access.live and not (value.isascii() and value.isprintable() and value):
            raise SourceUnavailable(
                f"The header {header} takes its value from the environment variable {variable}, which is not set "
                "or holds more than one line; set it and start again."
            )
        return value


def open_live(
    folder: Path, description: Description, access: Access, environ: Mapping[str, str], about: dict[str, object]
) -> World:
    """The world of that folder; SourceUnavailable where a header's environment variable is missing."""
    opening = _Opening(folder, description, access, environ)
    site, endpoint = description.text, description.graph
    text = MediaWikiText(site.api, site.language, opening.door(site.api, dict(site.headers))) if site else None
    graph = _graph(endpoint, text, opening) if endpoint else None
    return World(folder.name, text=text, graph=graph, about=about)


def _graph(endpoint: Endpoint, text: MediaWikiText | None, opening: _Opening) -> SparqlGraph:
    protocol = SparqlProtocol(opening.door(endpoint.url, endpoint.headers), endpoint)
    # The wiki's own door: what the endpoint is told in headers is no business of the wiki.
    wiki = Wikibase(opening.door(endpoint.api, {}), endpoint) if endpoint.api else None
    return SparqlGraph(protocol, text, wiki)
