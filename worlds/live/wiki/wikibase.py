"""Names and labels from the api.php of the wiki behind a graph, which is faster than Wikidata's SPARQL endpoint."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlencode

from worlds import terms
from worlds.live.http.client import RecordingHttpClient
from worlds.live.http.endpoint import SparqlEndpoint
from worlds.live.http.request import HttpRequest
from worlds.live.sparql.entities import iter_batches
from worlds.live.sparql.ids import EntityIdMapping
from worlds.live.wiki.api_replies import (
    ResponseT,
    WikibaseEntitiesResponse,
    WikibaseEntityRecord,
    WikibaseSearchResponse,
    WikiSearchResponse,
    parse_response,
    response_validator,
)
from worlds.source import Entity

_BATCH_SIZE = 50
"""Entities in one request; the wiki takes no more of those who are not logged in."""
_MAX_ALIASES = 50
_MAX_ITEM_NUMBER = 2_147_483_647


class WikibaseApi:
    """Entities by id and by name; safe to share between threads."""

    def __init__(self, door: RecordingHttpClient, endpoint: SparqlEndpoint) -> None:
        self._door = door
        self._api = str(endpoint.api)
        self._articles = endpoint.articles
        self._language = endpoint.language
        self._ids = EntityIdMapping.from_endpoint(endpoint)

    def describe(self, iris: Sequence[str]) -> dict[str, Entity]:
        """The entities of these IRIs by IRI; those that are no ids of the wiki, or that it lacks, are left out."""
        ids = {self._ids.id_of(iri): iri for iri in iris if self._ids.is_entity(iri)}
        # For one id beyond its numbers the wiki would refuse all of them.
        valid_ids = {entity: iri for entity, iri in ids.items() if int(entity[1:]) <= _MAX_ITEM_NUMBER}
        entities: dict[str, Entity] = {}
        for part in iter_batches(list(valid_ids), _BATCH_SIZE):
            reply = self._request(
                WikibaseEntitiesResponse,
                action="wbgetentities",
                ids="|".join(part),
                props="labels|aliases|descriptions|sitelinks/urls",
                languages=f"{self._language}|mul",
                languagefallback="1",
            )
            for entity, facts in reply.entities.items():
                # What was merged into another item comes with that one's facts, and stays what was asked for.
                meant = facts.redirects.source if facts.redirects else entity
                if meant in valid_ids and facts.missing is None:
                    entities[valid_ids[meant]] = self._build_entity(meant, facts)
        return entities

    def find(self, name: str, k: int) -> list[str]:
        """At most k IRIs of items by name, best match first: by prefix, else by words."""
        language = self._language
        items = self._request(
            WikibaseSearchResponse,
            action="wbsearchentities",
            search=name,
            language=language,
            uselang=language,
            type="item",
            limit=str(k),
        )
        ids = [hit.id for hit in items.search]
        if not ids:
            reply = self._request(
                WikiSearchResponse, action="query", list="search", srsearch=name, srlimit=str(k), srprop=""
            )
            ids = [hit.title.rpartition(":")[2] for hit in reply.query.search]
        return [iri for one in ids if (iri := self._ids.iri_of(one))][:k]

    def _build_entity(self, entity: str, facts: WikibaseEntityRecord) -> Entity:
        labels = {language: text.value for language, text in facts.labels.items()}
        descriptions = {language: text.value for language, text in facts.descriptions.items()}
        label = self._select_text(labels) or entity
        aliases = [one.value for language in (self._language, "mul") for one in facts.aliases.get(language, [])]
        own = [name for name in dict.fromkeys(aliases) if name != label]
        return Entity(
            entity, label, self._select_text(descriptions), tuple(own[:_MAX_ALIASES]), self._article_title(facts)
        )

    def _select_text(self, texts: Mapping[str, str]) -> str | None:
        return texts.get(self._language) or texts.get("mul") or next(iter(texts.values()), None)

    def _article_title(self, facts: WikibaseEntityRecord) -> str | None:
        own = (link.url for link in sorted(facts.sitelinks.values(), key=lambda link: link.url))
        pages = (address for address in own if address.startswith(self._articles))
        return next((title for page in pages if (title := terms.title_from_page_iri(page))), None)

    def _request(self, response_type: type[ResponseT], **parameters: str) -> ResponseT:
        query = urlencode({**parameters, "format": "json", "formatversion": "2"})
        return parse_response(
            self._door.send(HttpRequest(f"{self._api}?{query}", validate_response=response_validator(response_type))),
            response_type,
        )
