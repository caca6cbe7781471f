"""Add and open live worlds: a description, its sources with an HTTP client each, and one response cache."""

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from showhow.guard.destinations import SecretTable
from showhow.worlds.folder import WORLD_FILE, WorldError, WorldExists, new_world_folder
from showhow.worlds.live.consent import load_former_consent, variables_sent_to
from showhow.worlds.live.description import LiveWorldConfig, SparqlEndpoint, WebTable, parse_live_config
from showhow.worlds.live.http.client import RecordingHttpClient
from showhow.worlds.live.http.request import Access, get_host
from showhow.worlds.live.http.response_cache import RESPONSE_CACHE_FILE, ResponseCache
from showhow.worlds.live.sparql.graph import SparqlGraph
from showhow.worlds.live.sparql.protocol import SparqlClient
from showhow.worlds.live.web_search import LiveWeb
from showhow.worlds.live.wiki.mediawiki import MediaWikiText
from showhow.worlds.live.wiki.wikibase import WikibaseApi
from showhow.worlds.source import SourceUnavailable, World

LIMITS_FOLDER = ".requests"
"""In the folder of all worlds: where the processes of one home count their requests together."""
MAX_CONCURRENT_PAGES = 3
"""Concurrent requests to a host that the operator of the world did not name: that of a web page."""


def add_live_world(worlds: Path, name: str, toml: str, file: str, *, replace: bool = False) -> LiveWorldConfig:
    """Add a live world with this world.toml; `replace` replaces the file and keeps the recorded responses.

    `file` names the source of `toml` in error messages.

    InvalidLiveConfig for a wrong field, WorldExists if the name exists; neither leaves any files.
    """
    config = parse_live_config(toml, file)
    folder = new_world_folder(worlds, name)
    world_file = folder / WORLD_FILE
    if world_file.is_file() and not (replace and _is_live_world(world_file)):
        replace_advice = ", or replace its description with --replace" if _is_live_world(world_file) else ""
        raise WorldExists(f"There is a world {name!r} already; choose another name{replace_advice}.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        new_file = folder / f"{WORLD_FILE}.new"
        with new_file.open("w", encoding="utf-8") as stream:
            stream.write(toml)
            stream.flush()
            os.fsync(stream.fileno())
        new_file.replace(world_file)
    except OSError as error:
        raise WorldError(
            f"The world {name} cannot be written to {worlds} ({error}); check free space and write permission."
        ) from error
    return config


def _is_live_world(world_file: Path) -> bool:
    try:
        parse_live_config(world_file.read_text(encoding="utf-8"))
    except (WorldError, ValueError):
        return False
    return True


class _SourceFactory:
    """Creates the HTTP clients of one world, which share its response cache and limits."""

    def __init__(self, folder: Path, config: LiveWorldConfig, access: Access, secrets: SecretTable) -> None:
        self._folder = folder
        self.cache = ResponseCache(folder / RESPONSE_CACHE_FILE)
        self._limits = config.limits
        self._access = access
        self._secrets = secrets

    def create_client(self, address: str, headers: Mapping[str, str]) -> RecordingHttpClient:
        """The HTTP client for one host, with the headers for that host only."""
        if headers and self._access.network_allowed:
            self._check_destinations(address, headers)
        policy = replace(
            self._limits,
            hosts=frozenset({get_host(address)}),
            headers=tuple((name, self._header_value(name, variable)) for name, variable in headers.items()),
            limits_folder=self._folder.parent / LIMITS_FOLDER,
        )
        return RecordingHttpClient(policy, self.cache, self._access)

    def create_page_client(self, *, allow_private: bool) -> RecordingHttpClient:
        """The HTTP client for pages of any host, without headers of ours; `allow_private` for an intranet."""
        policy = replace(
            self._limits,
            hosts=None,
            public_only=not allow_private,
            max_concurrent=min(self._limits.max_concurrent, MAX_CONCURRENT_PAGES),
            limits_folder=self._folder.parent / LIMITS_FOLDER,
        )
        return RecordingHttpClient(policy, self.cache, self._access)

    def _check_destinations(self, address: str, headers: Mapping[str, str]) -> None:
        former = load_former_consent(self._folder)
        advice = f"allow it with `showhow world add {self._folder.name} --replace --file {self._folder / WORLD_FILE}`"
        for grant in variables_sent_to(address, headers):
            refusal = self._secrets.find_refusal(grant.variable, address, advice, former)
            if refusal is not None:
                raise SourceUnavailable(refusal)

    def _header_value(self, header: str, variable: str) -> str:
        value = self._secrets.environ.get(variable, "")
        if self._access.network_allowed and not (value.isascii() and value.isprintable() and value):
            raise SourceUnavailable(
                f"The header {header} takes its value from the environment variable {variable}, which is not set "
                "or has characters other than printable ASCII; set it and start again."
            )
        return value


def open_live_world(
    folder: Path, config: LiveWorldConfig, access: Access, secrets: SecretTable, metadata: dict[str, object]
) -> World:
    """The world in this folder; SourceUnavailable if a header's environment variable is missing or not allowed."""
    factory = _SourceFactory(folder, config, access, secrets)
    site, endpoint = config.text, config.graph
    text = MediaWikiText(site.api, site.language, factory.create_client(site.api, site.headers)) if site else None
    graph = _open_graph(endpoint, text, factory) if endpoint else None
    web = _open_web(config.web, factory) if config.web else None
    return World(folder.name, text=text, graph=graph, web=web, metadata=metadata)


def _open_web(table: WebTable, factory: _SourceFactory) -> LiveWeb:
    search_client = factory.create_client(table.search, table.headers)
    return LiveWeb(
        table, search_client, factory.create_page_client(allow_private=table.allow_private_pages), factory.cache
    )


def _open_graph(endpoint: SparqlEndpoint, text: MediaWikiText | None, factory: _SourceFactory) -> SparqlGraph:
    client = SparqlClient(factory.create_client(endpoint.url, endpoint.headers), endpoint)
    # The wiki has its own client, because the endpoint's headers, which may contain a key, are not for the wiki.
    wiki = WikibaseApi(factory.create_client(endpoint.api, {}), endpoint) if endpoint.api else None
    return SparqlGraph(client, text, wiki)
