"""The wiki behind a graph, asked through its api.php for names and labels; what Wikidata does faster than its graph."""

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlencode

from worlds import terms
from worlds.live.door import Door
from worlds.live.endpoint import Endpoint
from worlds.live.entities import parts_of
from worlds.live.ids import Ids
from worlds.live.request import Answer, NoAnswer, Request, host_of
from worlds.source import Entity

_AT_ONCE = 50
"""Entities in one request; the wiki takes no more of those who are not logged in."""
_MOST_ALIASES = 50


class Wikibase:
    """Entities by id and by name; safe to share between threads."""

    def __init__(self, door: Door, endpoint: Endpoint) -> None:
        self._door = door
        self._api = str(endpoint.api)
        self._articles = endpoint.articles
        self._language = endpoint.language
        self._ids = Ids.of(endpoint)

    def described(self, iris: Sequence[str]) -> dict[str, Entity]:
        """The entities of these IRIs by IRI; those that are no ids of the wiki, or that it lacks, are left out."""
        asked = {self._ids.id_of(iri): iri for iri in iris if self._ids.is_entity(iri)}
        found: dict[str, Entity] = {}
        for part in parts_of(list(asked), _AT_ONCE):
            told = self._ask(
                action="wbgetentities",
                ids="|".join(part),
                props="labels|aliases|descriptions|sitelinks/urls",
                languages=f"{self._language}|mul",
                languagefallback="1",
            )
            for entity, facts in told.get("entities", {}).items():
                # What was merged into another item comes with that one's facts, and stays what was asked for.
                meant = (facts.get("redirects") or {}).get("from", entity)
                if meant in asked and "missing" not in facts:
                    found[asked[meant]] = self._entity(meant, facts)
        return found

    def find(self, name: str, k: int) -> list[str]:
        """At most k IRIs of items called so, best first: by the beginnings of names, else by words."""
        language = self._language
        told = self._ask(
            action="wbsearchentities", search=name, language=language, uselang=language, type="item", limit=str(k)
        )
        ids = [str(hit["id"]) for hit in told.get("search", [])]
        if not ids:
            told = self._ask(action="query", list="search", srsearch=name, srlimit=str(k), srprop="")
            ids = [str(hit["title"]).rpartition(":")[2] for hit in told.get("query", {}).get("search", [])]
        return [iri for one in ids if (iri := self._ids.iri_of(one))][:k]

    def _entity(self, entity: str, facts: dict[str, Any]) -> Entity:
        label = self._text(facts.get("labels")) or entity
        listed = facts.get("aliases") or {}
        aliases = [str(one["value"]) for language in (self._language, "mul") for one in listed.get(language, [])]
        own = [name for name in dict.fromkeys(aliases) if name != label]
        return Entity(
            entity, label, self._text(facts.get("descriptions")), tuple(own[:_MOST_ALIASES]), self._title(facts)
        )

    def _text(self, texts: Any) -> str | None:
        # A wiki writes an empty object as an empty list.
        known = texts if isinstance(texts, dict) else {}
        chosen = known.get(self._language) or known.get("mul") or next(iter(known.values()), None)
        return str(chosen["value"]) if chosen else None

    def _title(self, facts: dict[str, Any]) -> str | None:
        links = facts.get("sitelinks")
        addresses = [str(link.get("url", "")) for link in links.values()] if isinstance(links, dict) else []
        own = (address for address in sorted(addresses) if address.startswith(self._articles))
        return next((title for address in own if (title := terms.title_of_page(address))), None)

    def _ask(self, **parameters: str) -> dict[str, Any]:
        asked = urlencode({**parameters, "format": "json", "formatversion": "2"})
        answer = self._door.send(Request(f"{self._api}?{asked}", check=_without_error))
        found: dict[str, Any] = json.loads(answer.body)
        return found


def _without_error(answer: Answer) -> None:
    """NoAnswer for an error, which wikis tell under status 200."""
    host = host_of(answer.url)
    try:
        told = json.loads(answer.body)
    except ValueError as broken:
        raise NoAnswer(f"{host} answered with JSON that is cut off or broken; try again in a minute.") from broken
    if not isinstance(told, dict):
        raise NoAnswer(f"{host} answered with JSON that is no answer of a wiki; check the graph's api in world.toml.")
    if "error" in told:
        error = told["error"] if isinstance(told["error"], dict) else {}
        raise NoAnswer(f"{host} did not answer: {error.get('info') or error.get('code') or told['error']}.")
