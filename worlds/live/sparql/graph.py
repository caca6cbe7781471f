"""A graph source over a SPARQL 1.1 endpoint, Wikidata's or any other, and its search of entities by name."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from showhow.worlds import terms
from showhow.worlds.live.sparql.entities import (
    EntityDescriber,
    EntityIdMapping,
    SparqlEntityDescriber,
    filter_labelled,
    filter_subjects,
    list_entities,
)
from showhow.worlds.live.sparql.protocol import SparqlClient
from showhow.worlds.live.sparql.relations import SparqlRelations
from showhow.worlds.live.sparql.rewrite import prepare_query
from showhow.worlds.source import Cell, Entity, NotFound, Relation, Relations, SourceError, Table
from showhow.worlds.sparql_syntax import quote_literal
from showhow.worlds.text_normalization import normalize_name, replace_surrogates

_MAX_MATCHES = 200
"""Maximum names read per query, the shortest first."""
_WORD = re.compile(r"\w+")
_MAX_NAME_WORDS = 16
_MAX_NAME_LENGTH = 500
"""Maximum length of a name; longer text would not fit into a query."""
_CONTROL_CHARACTERS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""Names do not contain them, and some servers end the query at the first NUL."""
_MAX_PROPERTIES = 5
"""Maximum properties that the wiki's search returns for a phrase."""
_NAME_PREDICATES = ((terms.RDFS_LABEL, 0), (terms.SKOS_ALT_LABEL, 2))


class EntityFinder(Protocol):
    def find(self, name: str, k: int) -> list[str]:
        """At most k IRIs by name, best match first."""


@dataclass(frozen=True, slots=True)
class _NameMatch:
    iri: str
    text: str
    kind: int


class SparqlNameSearch:
    """Finds IRIs by name: first by exact match, then by words, ignoring case."""

    def __init__(self, protocol: SparqlClient) -> None:
        self._protocol = protocol
        self._endpoint = protocol.endpoint

    def find(self, name: str, k: int) -> list[str]:
        """At most k IRIs by name, best match first."""
        name = _clean_name(name)
        words = _WORD.findall(normalize_name(name))[:_MAX_NAME_WORDS]
        if not name or k < 1:
            return []
        iris = dict.fromkeys(self._rank_matches(name, self._match_exactly(name)))
        if len(iris) < k and words and self._endpoint.search == "scan":
            iris |= dict.fromkeys(self._rank_matches(name, self._match_words(words)))
        return list(iris)[:k]

    def find_by_title(self, title: str) -> list[str]:
        """The IRIs of the entities that the article with this title is about."""
        title = _clean_name(title)
        if not title:
            return []
        rows = self._select_rows(
            f"SELECT ?s WHERE {{ VALUES ?page {{ {' '.join(self._page_iris(title))} }} ?page {_ABOUT_PREDICATE} ?s }}"
        )
        if not rows and self._endpoint.search == "scan":
            suffix = quote_literal(
                f"/wiki/{terms.page_iri_from_title(normalize_name(title)).removeprefix(terms.ARTICLE_NAMESPACE)}".casefold()
            )
            rows = self._select_rows(
                f"SELECT ?s WHERE {{ ?page {_ABOUT_PREDICATE} ?s "
                f"FILTER(STRENDS(LCASE(STR(?page)), {suffix})) }} LIMIT 5"
            )
        return list(dict.fromkeys(row[0] for row in rows))

    def find_by_label(self, name: str) -> list[str]:
        """The IRIs with exactly this label."""
        name = _clean_name(name)
        matches = self._match_exactly(name) if name else []
        return list(dict.fromkeys(match.iri for match in matches if match.kind == 0))

    def _page_iris(self, title: str) -> Iterator[str]:
        spaced = " ".join(title.replace("_", " ").split())
        for variant in dict.fromkeys((spaced, spaced[:1].upper() + spaced[1:])):
            name = terms.page_iri_from_title(variant).removeprefix(terms.ARTICLE_NAMESPACE)
            yield f"<{self._endpoint.articles or terms.ARTICLE_NAMESPACE}{name}>"

    def _match_exactly(self, name: str) -> list[_NameMatch]:
        texts = " ".join(quote_literal(name) + tag for tag in self._language_tags())
        branches = " UNION ".join(
            f"{{ VALUES ?name {{ {texts} }} ?s <{predicate}> ?name BIND({kind} AS ?kind) }}"
            for predicate, kind in _NAME_PREDICATES
        )
        pages = " ".join(self._page_iris(name))
        title_branch = (
            f"{{ VALUES ?page {{ {pages} }} ?page {_ABOUT_PREDICATE} ?s "
            f"BIND({quote_literal(name)} AS ?name) BIND(1 AS ?kind) }}"
        )
        return self._select_names(
            f"SELECT ?s ?name ?kind WHERE {{ {branches} UNION {title_branch} }} LIMIT {_MAX_MATCHES}"
        )

    def _language_tags(self) -> Iterator[str]:
        for language in dict.fromkeys((self._endpoint.language, "mul", "")):
            yield f"@{language}" if language else ""

    def _match_words(self, words: list[str]) -> list[_NameMatch]:
        conditions = " && ".join(f"CONTAINS(LCASE(STR(?name)), {quote_literal(word)})" for word in words)
        branches = " UNION ".join(
            f"{{ ?s <{predicate}> ?name BIND({kind} AS ?kind) }}" for predicate, kind in _NAME_PREDICATES
        )
        names = self._select_names(
            f"SELECT ?s ?name ?kind WHERE {{ {branches} FILTER({conditions}) }} "
            f"ORDER BY STRLEN(STR(?name)) LIMIT {_MAX_MATCHES}"
        )
        return [match for match in names if _contains_words(match.text, words)]

    def _select_names(self, sparql: str) -> list[_NameMatch]:
        return [
            _NameMatch(iri.value, name.value, kind.read_number())
            for iri, name, kind in self._protocol.select(sparql).rows
            if iri is not None and iri.kind == "iri" and name is not None and kind is not None
        ]

    def _select_rows(self, sparql: str) -> list[tuple[str, ...]]:
        rows = self._protocol.select(sparql).rows
        return [
            tuple(cell.value for cell in row if cell is not None)
            for row in rows
            if row[0] is not None and row[0].kind == "iri" and None not in row
        ]

    def _rank_matches(self, name: str, matches: list[_NameMatch]) -> list[str]:
        normalized = normalize_name(name)

        def sort_key(match: _NameMatch) -> tuple[bool, bool, int, int, str]:
            text = normalize_name(match.text)
            return text != normalized, not text.startswith(normalized), match.kind, len(text), match.iri

        return [match.iri for match in sorted(matches, key=sort_key)]


_ABOUT_PREDICATE = f"<{terms.SCHEMA_ABOUT}>"


def _clean_name(name: str) -> str:
    """The name without control characters; "" if it is longer than _MAX_NAME_LENGTH."""
    name = _CONTROL_CHARACTERS.sub(" ", replace_surrogates(name)).strip()
    return name if len(name) <= _MAX_NAME_LENGTH else ""


def _contains_words(text: str, words: list[str]) -> bool:
    """Whether the text contains these words; the last one may be a prefix."""
    text_words = _WORD.findall(normalize_name(text))
    return set(words[:-1]) <= set(text_words) and any(word.startswith(words[-1]) for word in text_words)


def _has_values(table: Table) -> bool:
    """Whether the result says anything: a row with a value other than a count of 0, or yes."""
    return bool(table.boolean) or any(cell.value != "0" for row in table.rows for cell in row if cell is not None)


class ItemFinder(Protocol):
    def find_item(self, title: str) -> str | None:
        """The entity id of the article with this title; None if the wiki has none, NotFound without an article."""


class WikiEntitySource(EntityDescriber, EntityFinder, Protocol):
    """A wiki whose API describes and finds entities in place of the endpoint."""

    host: str

    def find_properties(self, name: str, k: int) -> list[str]:
        """At most k IRIs of properties by name, best match first."""


class SparqlGraph:
    """The graph of an endpoint; thread-safe, each call within the endpoint's limits."""

    def __init__(
        self, protocol: SparqlClient, articles: ItemFinder | None = None, wiki: WikiEntitySource | None = None
    ) -> None:
        endpoint = protocol.endpoint
        self._protocol = protocol
        self._endpoint = endpoint
        self._articles = articles
        self._wiki = wiki
        self._ids = EntityIdMapping.from_endpoint(endpoint)
        self._entities: EntityDescriber = wiki if wiki and endpoint.labels == "api" else SparqlEntityDescriber(protocol)
        self._names = SparqlNameSearch(protocol)
        self._finder: EntityFinder = wiki if wiki and endpoint.search == "api" else self._names
        self._relations = SparqlRelations(protocol, self._entities)

    def query(self, sparql: str) -> Table:
        """The result of a SELECT or ASK within the endpoint's limits; usual prefixes need no declaration."""
        table = self._protocol.execute(prepare_query(sparql, self._endpoint))
        iris = dict.fromkeys(cell.value for row in table.rows for cell in row if cell and cell.kind == "iri")
        entities = {iri for iri in iris if self._ids.is_entity(iri)}
        if self._endpoint.labels == "rdfs:label":
            entities |= filter_labelled(self._protocol, [iri for iri in iris if iri not in entities])
        cells = {iri: Cell("entity" if iri in entities else "iri", self._ids.id_of(iri)) for iri in iris}
        rows = (tuple(cells[c.value] if c and c.kind == "iri" else c for c in row) for row in table.rows)
        note = (
            table.note
            if table.note or _has_values(table)
            else self._explain_missing_triples(list_entities(sparql, self._endpoint))
        )
        return replace(table, rows=tuple(rows), note=note)

    def vocabulary(self) -> tuple[Relation, ...]:
        """Every relation of the graph, by id; Wikidata's takes several requests the first time."""
        return self._relations.list_relations()

    @property
    def has_large_vocabulary(self) -> bool:
        """Whether the relations are those that a wiki defines, thousands on Wikidata, and not those in use."""
        return self._endpoint.vocabulary == "wikibase"

    @property
    def is_wikidata(self) -> bool:
        """Whether the endpoint has Wikidata's statements, and not only items with ids of that form."""
        return self._endpoint.vocabulary == "wikibase" and self._ids == EntityIdMapping()

    def find_relations(self, names: Sequence[str], phrases: Sequence[str]) -> tuple[Relation, ...]:
        """The relations with one of these names, and those that the wiki's search finds for the phrases, by id."""
        wiki = self._wiki if self._endpoint.search == "api" else None
        properties = [iri for phrase in phrases if wiki for iri in wiki.find_properties(phrase, _MAX_PROPERTIES)]
        return self._relations.find_by_name(names, properties)

    def relations(self, entity: str) -> Relations:
        """The relations that occur with the entity; NotFound if the graph does not know it."""
        iri = self._ids.iri_of(entity)
        relations = self._relations.find_entity_relations(iri) if iri is not None else Relations()
        if iri is None or not (relations.outgoing or relations.incoming or self._entities.describe([iri])):
            raise NotFound(f"This world's graph does not know {entity!r}; ids look like Q42, or are full IRIs.")
        if relations == Relations() and (note := self._explain_missing_triples([iri])):
            raise NotFound(note)
        return relations

    def _explain_missing_triples(self, iris: Sequence[str]) -> str:
        """One sentence about those that the wiki has and the endpoint does not, as parts of Wikidata; "" for none."""
        if self._wiki is None or not iris:
            return ""
        try:
            present = filter_subjects(self._protocol, iris)
            entities = self._wiki.describe([iri for iri in iris if iri not in present])
        except SourceError:
            # The result is right without its explanation.
            return ""
        if not entities:
            return ""
        names = ", ".join(f"{entity.label} ({entity.id})" for entity in entities.values())
        reason = f": {self._endpoint.left_out}" if self._endpoint.left_out else ""
        return f"{self._wiki.host} has {names}, but the graph of {self._protocol.host} has no triples of it{reason}."

    def entities(self, ids: Sequence[str]) -> list[Entity]:
        """The entities or properties of these ids, in their order; unknown ones are left out."""
        iris = {entity: iri for entity in ids if (iri := self._ids.iri_of(entity.strip()))}
        if not iris:
            return []
        entities = self._entities.describe(list(dict.fromkeys(iris.values())))
        return [entities[iris[entity]] for entity in ids if entity in iris and iris[entity] in entities]

    def entity_of(self, title: str) -> Entity:
        """The entity that the article with this title is about; NotFound if there is none."""
        missing: NotFound | None = None
        candidates: list[str] = []
        if self._articles is not None:
            try:
                item = self._articles.find_item(title)
            except NotFound as error:
                missing = error
            else:
                candidates = [item] if item is not None else []
        candidates = candidates or [self._ids.id_of(iri) for iri in self._find_by_article(title)]
        for candidate in candidates:
            matches = self.entities([candidate])
            return matches[0] if matches else Entity(candidate, title, title=title)
        raise missing or NotFound(
            f"No entity of this world's graph is known for the article {title!r}; try searching its name."
        )

    def find(self, name: str, k: int = 5) -> list[Entity]:
        """Entities by label or alias, best match first."""
        iris = self._finder.find(name, k) if name.strip() and k > 0 else []
        described = self._entities.describe(iris) if iris else {}
        return [described[iri] for iri in iris if iri in described]

    def _find_by_article(self, title: str) -> list[str]:
        """The IRIs of the entities that the article is about, else of the only entity with the title as its label."""
        by_title = self._names.find_by_title(title)
        if by_title:
            return by_title
        by_label = self._names.find_by_label(title)
        return by_label if len(by_label) == 1 else []
