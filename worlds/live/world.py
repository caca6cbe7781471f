"""Add and open live worlds: a description, its sources with an HTTP client each, and one response cache."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from worlds.folder import WORLD_FILE, WorldError, WorldExists, world_folder
from worlds.live.description import LiveWorldConfig, parse_live_config
from worlds.live.http.access import Access
from worlds.live.http.client import RecordingHttpClient
from worlds.live.http.endpoint import SparqlEndpoint
from worlds.live.http.request import get_host
from worlds.live.http.response_cache import RESPONSE_CACHE_FILE, ResponseCache
from worlds.live.sparql.graph import SparqlGraph
from worlds.live.sparql.protocol import SparqlClient
from worlds.live.wiki.mediawiki import MediaWikiText
from worlds.live.wiki.wikibase import WikibaseApi
from worlds.source import SourceUnavailable, World


def add_live_world(worlds: Path, name: str, written: str, file: str, *, replace: bool = False) -> LiveWorldConfig:
    """Add a live world with this description; `replace` replaces the description and keeps the recorded responses.

    InvalidLiveConfig for a wrong field, WorldExists if the name exists; neither leaves any files.
    """
    description = parse_live_config(written, file)
    folder = world_folder(worlds, name)
    about = folder / WORLD_FILE
    if about.is_file() and not (replace and _is_live_world(about)):
        again = ", or describe it anew with --replace" if _is_live_world(about) else ""
        raise WorldExists(f"There is a world {name!r} already; choose another name{again}.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        fresh = folder / f"{WORLD_FILE}.new"
        with fresh.open("w", encoding="utf-8") as stream:
            stream.write(written)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(about)
    except OSError as failed:
        raise WorldError(
            f"The world {name} cannot be written to {worlds} ({failed}); see that there is room and that you may write."
        ) from failed
    return description


def _is_live_world(about: Path) -> bool:
    try:
        parse_live_config(about.read_text(encoding="utf-8"))
    except (WorldError, ValueError):
        return False
    return True


class _SourceFactory:
    """What the sources of one world have in common while they are opened."""

    def __init__(self, folder: Path, description: LiveWorldConfig, access: Access, environ: Mapping[str, str]) -> None:
        self._answers = ResponseCache(folder / RESPONSE_CACHE_FILE)
        self._limits = description.limits
        self._access = access
        self._environ = environ

    def create_client(self, address: str, headers: Mapping[str, str]) -> RecordingHttpClient:
        """The HTTP client for one host, with the headers for that host only."""
        policy = replace(
            self._limits,
            hosts=frozenset({get_host(address)}),
            headers=tuple((name, self._header_value(name, variable)) for name, variable in headers.items()),
        )
        return RecordingHttpClient(policy, self._answers, self._access)

    def _header_value(self, header: str, variable: str) -> str:
        value = self._environ.get(variable, "")
        if self._access.network_allowed and not (value.isascii() and value.isprintable() and value):
            raise SourceUnavailable(
                f"The header {header} takes its value from the environment variable {variable}, which is not set "
                "or holds more than one line; set it and start again."
            )
        return value


def open_live_world(
    folder: Path, description: LiveWorldConfig, access: Access, environ: Mapping[str, str], about: dict[str, object]
) -> World:
    """The world of that folder; SourceUnavailable where a header's environment variable is missing."""
    opening = _SourceFactory(folder, description, access, environ)
    site, endpoint = description.text, description.graph
    text = MediaWikiText(site.api, site.language, opening.create_client(site.api, dict(site.headers))) if site else None
    graph = _open_graph(endpoint, text, opening) if endpoint else None
    return World(folder.name, text=text, graph=graph, metadata=about)


def _open_graph(endpoint: SparqlEndpoint, text: MediaWikiText | None, opening: _SourceFactory) -> SparqlGraph:
    protocol = SparqlClient(opening.create_client(endpoint.url, endpoint.headers), endpoint)
    # The wiki's own door: what the endpoint is told in headers is no business of the wiki.
    wiki = WikibaseApi(opening.create_client(endpoint.api, {}), endpoint) if endpoint.api else None
    return SparqlGraph(protocol, text, wiki)
