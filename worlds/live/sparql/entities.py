"""Entities of an endpoint: their short ids, and labels, aliases, descriptions and articles of many at once."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import pyoxigraph as ox

from showhow.worlds import terms
from showhow.worlds.live.description import SparqlEndpoint
from showhow.worlds.live.sparql.protocol import SparqlClient
from showhow.worlds.source import Entity
from showhow.worlds.sparql_syntax import tokenize_query

_MAX_IRI_LENGTH = 2000
"""Characters of an IRI."""


@dataclass(frozen=True, slots=True)
class EntityIdMapping:
    """The namespaces of an endpoint's items and relations."""

    entity: str = terms.ENTITY_NAMESPACE
    property: str = terms.DIRECT_NAMESPACE

    @classmethod
    def from_endpoint(cls, endpoint: SparqlEndpoint) -> "EntityIdMapping":
        """The namespaces of this endpoint."""
        return cls(endpoint.entity, endpoint.property)

    def id_of(self, iri: str) -> str:
        """The short id of an item's or a relation's IRI, else the IRI itself."""
        for namespace in (self.entity, self.property):
            if iri.startswith(namespace) and _is_short_id(iri[len(namespace) :]):
                return iri[len(namespace) :]
        return iri

    def is_entity(self, iri: str) -> bool:
        """Whether the IRI has a short id."""
        return self.id_of(iri) != iri

    def iri_of(self, entity: str) -> str | None:
        """The IRI of an id; None if it is neither an id nor an IRI."""
        return self.entity + entity if _is_short_id(entity) else _validate_iri(entity)

    def predicate_of(self, relation: str) -> str | None:
        """The predicate IRI of a relation's id; None if it is neither an id nor an IRI."""
        return self.property + relation if _is_short_id(relation) else _validate_iri(relation)


def _is_short_id(text: str) -> bool:
    return terms.expand_id(text) == terms.ENTITY_NAMESPACE + text


def _validate_iri(text: str) -> str | None:
    iri = terms.expand_id(text) if len(text) <= _MAX_IRI_LENGTH else None
    try:
        return ox.NamedNode(iri).value if iri is not None else None
    except ValueError:
        # An invalid IRI, such as x:%, for which a server would refuse the whole query.
        return None


def list_entities(sparql: str, endpoint: SparqlEndpoint) -> list[str]:
    """The IRIs in the endpoint's namespace of entities that the query names, each once."""
    query = tokenize_query(sparql)
    prefixes = {**terms.PREFIXES, "wd": endpoint.entity, **endpoint.prefixes, **query.declared_prefixes}
    iris = []
    for token in query.tokens:
        prefix, _, local = token.text.partition(":")
        if token.kind == "iri":
            iris.append(token.text[1:-1])
        elif token.kind == "name" and prefix in prefixes:
            iris.append(prefixes[prefix] + local)
    ids = EntityIdMapping.from_endpoint(endpoint)
    return [iri for iri in dict.fromkeys(iris) if iri.startswith(endpoint.entity) and ids.is_entity(iri)]


_BATCH_SIZE = 50
_UNNAMED_BATCH_SIZE = 20
_MAX_NAMES = 2000
"""Maximum labels read per query for entities without a label in the endpoint's language."""
_MAX_ALIASES = 50
_NAME_PREDICATES = (terms.RDFS_LABEL, terms.SKOS_ALT_LABEL, terms.SCHEMA_DESCRIPTION)


class EntityDescriber(Protocol):
    def describe(self, iris: Sequence[str]) -> dict[str, Entity]:
        """The entities of these IRIs by IRI; unknown ones are left out."""


@dataclass(slots=True)
class _EntityDescription:
    names: dict[str, list[tuple[str, str]]] = field(
        default_factory=lambda: {predicate: [] for predicate in _NAME_PREDICATES}
    )
    """Pairs of a text and its language, by predicate."""
    pages: list[str] = field(default_factory=list)
    exists: bool = False


class SparqlEntityDescriber:
    """Describes the entities of an endpoint from its own triples."""

    def __init__(self, protocol: SparqlClient) -> None:
        self._protocol = protocol
        self._ids = EntityIdMapping.from_endpoint(protocol.endpoint)
        self._languages = tuple(dict.fromkeys((protocol.endpoint.language, "mul", "")))

    def describe(self, iris: Sequence[str]) -> dict[str, Entity]:
        """The entities of these IRIs by IRI; unknown ones are left out."""
        entities: dict[str, Entity] = {}
        for part in iter_batches(iris, _BATCH_SIZE):
            facts = {iri: _EntityDescription() for iri in part}
            self._add_names(facts)
            unnamed = [iri for iri in part if not facts[iri].names[terms.RDFS_LABEL]]
            self._add_names_in_any_language({iri: facts[iri] for iri in unnamed})
            self._mark_existing({iri: facts[iri] for iri in unnamed if not facts[iri].exists})
            entities |= {
                iri: self._build_entity(iri, description) for iri, description in facts.items() if description.exists
            }
        return entities

    def _add_names(self, facts: dict[str, _EntityDescription]) -> None:
        languages = ", ".join(f'"{language}"' for language in self._languages)
        nodes = _format_iris(facts)
        predicates = _format_iris(_NAME_PREDICATES)
        articles = self._protocol.endpoint.articles
        page_filter = f'FILTER(STRSTARTS(STR(?o), "{articles}"))' if articles else ""
        rows = self._protocol.select(
            f"SELECT ?s ?p ?o WHERE {{ {{ VALUES ?s {{ {nodes} }} VALUES ?p {{ {predicates} }} ?s ?p ?o "
            f"FILTER(LANG(?o) IN ({languages})) }} UNION "
            f"{{ VALUES ?s {{ {nodes} }} ?o <{terms.SCHEMA_ABOUT}> ?s {page_filter} }} }}"
        ).rows
        for subject, predicate, value in rows:
            if subject is None or value is None or subject.value not in facts:
                continue
            description = facts[subject.value]
            description.exists = True
            if predicate is None:
                description.pages.append(value.value)
            elif value.kind == "literal":
                description.names[predicate.value].append((value.value, value.language or ""))

    def _add_names_in_any_language(self, facts: dict[str, _EntityDescription]) -> None:
        if not facts:
            return
        query = f"SELECT ?s ?o WHERE {{ VALUES ?s {{ {_format_iris(facts)} }} ?s rdfs:label ?o }} LIMIT {_MAX_NAMES}"
        for subject, value in self._protocol.select(query).rows:
            if subject is not None and value is not None and subject.value in facts and value.kind == "literal":
                facts[subject.value].names[terms.RDFS_LABEL].append((value.value, value.language or ""))
                facts[subject.value].exists = True

    def _mark_existing(self, facts: dict[str, _EntityDescription]) -> None:
        """Mark unnamed entities that occur in any triple."""
        iris = list(facts)
        for part in iter_batches(iris, _UNNAMED_BATCH_SIZE):
            branches = " UNION ".join(
                f"{{ SELECT ({iris.index(iri)} AS ?n) WHERE {{ {pattern} }} LIMIT 1 }}"
                for iri in part
                for pattern in self._usage_patterns(iri)
            )
            for (number,) in self._protocol.select(f"SELECT ?n WHERE {{ {branches} }}").rows:
                if number is not None:
                    facts[iris[number.read_number(len(iris))]].exists = True

    def _usage_patterns(self, iri: str) -> Iterator[str]:
        yield f"<{iri}> ?p ?o"
        yield f"?s ?p <{iri}>"
        predicate = self._ids.predicate_of(self._ids.id_of(iri))
        yield f"?s <{predicate}> ?o"

    def _build_entity(self, iri: str, facts: _EntityDescription) -> Entity:
        titles = [title for page in sorted(facts.pages) if (title := terms.title_from_page_iri(page))]
        labels = self._select_language(facts.names[terms.RDFS_LABEL])
        short_id = self._ids.id_of(iri)
        label = next(iter([*labels, *titles]), None) or (short_id if short_id != iri else terms.label_from_iri(iri))
        aliases = [
            name for name in dict.fromkeys(self._select_language(facts.names[terms.SKOS_ALT_LABEL])) if name != label
        ]
        description = next(iter(self._select_language(facts.names[terms.SCHEMA_DESCRIPTION])), None)
        return Entity(short_id, label, description, tuple(aliases[:_MAX_ALIASES]), next(iter(titles), None))

    def _select_language(self, names: list[tuple[str, str]]) -> list[str]:
        return terms.select_by_language(sorted(names), self._protocol.endpoint.language)


def filter_subjects(protocol: SparqlClient, iris: Sequence[str]) -> set[str]:
    """The IRIs that are the subject of a triple."""
    subjects: set[str] = set()
    for part in iter_batches(iris, _UNNAMED_BATCH_SIZE):
        branches = " UNION ".join(
            f"{{ SELECT ({number} AS ?n) WHERE {{ <{iri}> ?p ?o }} LIMIT 1 }}" for number, iri in enumerate(part)
        )
        rows = protocol.select(f"SELECT ?n WHERE {{ {branches} }}").rows
        subjects |= {part[number.read_number(len(part))] for (number,) in rows if number is not None}
    return subjects


def filter_labelled(protocol: SparqlClient, iris: Sequence[str]) -> set[str]:
    """The IRIs that have a label."""
    labelled: set[str] = set()
    for part in iter_batches(iris, _BATCH_SIZE):
        query = f"SELECT DISTINCT ?s WHERE {{ VALUES ?s {{ {_format_iris(part)} }} ?s rdfs:label ?o }}"
        labelled |= {subject.value for (subject,) in protocol.select(query).rows if subject is not None}
    return labelled


def _format_iris(iris: Sequence[str] | dict[str, _EntityDescription]) -> str:
    return " ".join(f"<{iri}>" for iri in iris)


def iter_batches(iris: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """The IRIs in batches of at most `size`."""
    for start in range(0, len(iris), size):
        yield iris[start : start + size]
