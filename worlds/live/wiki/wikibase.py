"""Entity labels and name search through the wiki's api.php, which is faster than Wikidata's SPARQL endpoint."""

import re
from collections.abc import Mapping, Sequence

from showhow.worlds import terms
from showhow.worlds.live.description import SparqlEndpoint
from showhow.worlds.live.http.client import RecordingHttpClient
from showhow.worlds.live.http.request import get_host
from showhow.worlds.live.sparql.entities import EntityIdMapping, iter_batches
from showhow.worlds.live.wiki.api import (
    ResponseT,
    WikibaseEntitiesResponse,
    WikibaseEntityRecord,
    WikibaseSearchResponse,
    WikiSearchResponse,
    request_json,
)
from showhow.worlds.source import Entity, SourceError

_BATCH_SIZE = 50
"""Entities in one request; the API's limit for anonymous clients."""
_MAX_ALIASES = 50
_MAX_ITEM_NUMBER = 2_147_483_647


_ARTICLES_PATTERN = re.compile(r"https://([a-z0-9-]+\.[a-z]+)\.org/wiki/")
_PROJECTS = {"wikipedia": "wiki"} | {
    project: project
    for project in ("wiktionary", "wikibooks", "wikinews", "wikiquote", "wikisource", "wikiversity", "wikivoyage")
}
_OTHER_SITES = {
    "be-tarask.wikipedia": "be_x_oldwiki",
    "nb.wikipedia": "nowiki",
    "commons.wikimedia": "commonswiki",
    "meta.wikimedia": "metawiki",
    "species.wikimedia": "specieswiki",
    "www.mediawiki": "mediawikiwiki",
    "www.wikidata": "wikidatawiki",
    "www.wikifunctions": "wikifunctionswiki",
}


def find_wikimedia_site(articles: str) -> str:
    """The site id of the Wikimedia wiki with this prefix of articles, such as enwiki; "" for any other."""
    match = _ARTICLES_PATTERN.fullmatch(articles)
    if match is None or match[1] in _OTHER_SITES:
        return _OTHER_SITES[match[1]] if match else ""
    language, _, project = match[1].partition(".")
    return language.replace("-", "_") + _PROJECTS[project] if project in _PROJECTS else ""


class WikibaseApi:
    """Describes and finds entities; thread-safe."""

    def __init__(self, http_client: RecordingHttpClient, endpoint: SparqlEndpoint) -> None:
        self._http_client = http_client
        self._api = str(endpoint.api)
        self.host = get_host(self._api)
        self._articles = endpoint.articles
        self._site = endpoint.site or find_wikimedia_site(endpoint.articles)
        self._language = endpoint.language
        self._ids = EntityIdMapping.from_endpoint(endpoint)

    def describe(self, iris: Sequence[str]) -> dict[str, Entity]:
        """The entities of these IRIs by IRI; unknown ones and IRIs outside the wiki's namespaces are left out."""
        ids = {self._ids.id_of(iri): iri for iri in iris if self._ids.is_entity(iri)}
        # The wiki refuses the whole request for one id out of range.
        valid_ids = {
            entity: iri for entity, iri in ids.items() if len(entity) < 12 and int(entity[1:]) <= _MAX_ITEM_NUMBER
        }
        entities: dict[str, Entity] = {}
        # A well-known item has links to 300 sites: 50 items without a filter are megabytes.
        site_filter = {"sitefilter": self._site} if self._site else {}
        for part in iter_batches(list(valid_ids), _BATCH_SIZE):
            reply = self._request(
                WikibaseEntitiesResponse,
                action="wbgetentities",
                ids="|".join(part),
                props="labels|aliases|descriptions|sitelinks/urls",
                languages=f"{self._language}|mul",
                languagefallback="1",
                **site_filter,
            )
            self._add_labels_in_any_language(reply)
            for entity, facts in reply.entities.items():
                # An entity merged into another has the other's facts and keeps the requested id.
                requested = facts.redirects.source if facts.redirects else entity
                if requested in valid_ids and facts.missing is None:
                    entities[valid_ids[requested]] = self._build_entity(requested, facts)
        return entities

    def _add_labels_in_any_language(self, reply: WikibaseEntitiesResponse) -> None:
        """Add all labels of the entities that have none in the endpoint's language, nor one for all languages."""
        unnamed = [entity for entity, facts in reply.entities.items() if facts.missing is None and not facts.labels]
        if not unnamed:
            return
        try:
            named = self._request(
                WikibaseEntitiesResponse, action="wbgetentities", ids="|".join(unnamed), props="labels"
            ).entities
        except SourceError:
            # Recordings of former versions lack this request; an id is a name as well.
            return
        for entity in unnamed:
            reply.entities[entity].labels = named[entity].labels if entity in named else {}

    def find(self, name: str, k: int) -> list[str]:
        """At most k IRIs of items by name, best match first: by prefix, else by words."""
        ids = self._search("item", name, k)
        if not ids:
            reply = self._request(
                WikiSearchResponse, action="query", list="search", srsearch=name, srlimit=str(k), srprop=""
            )
            ids = [hit.title.rpartition(":")[2] for hit in reply.query.search]
        return [iri for entity in ids if (iri := self._ids.iri_of(entity))][:k]

    def find_properties(self, name: str, k: int) -> list[str]:
        """At most k IRIs of properties whose label or alias begins with this name, best match first."""
        return [iri for entity in self._search("property", name, k) if (iri := self._ids.iri_of(entity))][:k]

    def _search(self, kind: str, name: str, k: int) -> list[str]:
        response = self._request(
            WikibaseSearchResponse,
            action="wbsearchentities",
            search=name,
            language=self._language,
            uselang=self._language,
            type=kind,
            limit=str(k),
        )
        return [match.id for match in response.search]

    def _build_entity(self, entity: str, facts: WikibaseEntityRecord) -> Entity:
        labels = {language: text.value for language, text in facts.labels.items()}
        descriptions = {language: text.value for language, text in facts.descriptions.items()}
        label = self._select_text(labels) or entity
        names = [alias.value for language in (self._language, "mul") for alias in facts.aliases.get(language, [])]
        aliases = [name for name in dict.fromkeys(names) if name != label]
        return Entity(
            entity, label, self._select_text(descriptions), tuple(aliases[:_MAX_ALIASES]), self._article_title(facts)
        )

    def _select_text(self, texts: Mapping[str, str]) -> str | None:
        literals = [(text, language) for language, text in texts.items()]
        return next(iter(terms.select_by_language(literals, self._language)), None)

    def _article_title(self, facts: WikibaseEntityRecord) -> str | None:
        if self._site in facts.sitelinks and facts.sitelinks[self._site].title:
            return facts.sitelinks[self._site].title
        urls = sorted(link.url for link in facts.sitelinks.values())
        pages = (url for url in urls if url.startswith(self._articles))
        return next((title for page in pages if (title := terms.title_from_page_iri(page))), None)

    def _request(self, response_type: type[ResponseT], **parameters: str) -> ResponseT:
        return request_json(self._http_client, self._api, parameters, response_type)
