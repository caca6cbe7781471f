"""Labels, aliases, descriptions and articles of many entities at once, from the graph itself."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from worlds import terms
from worlds.live.sparql.ids import EntityIdMapping
from worlds.live.sparql.protocol import SparqlClient
from worlds.source import Entity

_BATCH_SIZE = 50
_UNNAMED_BATCH_SIZE = 20
_MAX_NAMES = 2000
"""Names in any language that are looked at for those that have none in ours."""
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
    """Texts with their languages, by predicate."""
    pages: list[str] = field(default_factory=list)
    exists: bool = False


class SparqlEntityDescriber:
    """The entities of an endpoint, described by its own triples."""

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
            entities |= {iri: self._build_entity(iri, one) for iri, one in facts.items() if one.exists}
        return entities

    def _add_names(self, facts: dict[str, _EntityDescription]) -> None:
        languages = ", ".join(f'"{one}"' for one in self._languages)
        nodes = _format_iris(facts)
        predicates = _format_iris(_NAME_PREDICATES)
        articles = self._protocol.endpoint.articles
        page = f'FILTER(STRSTARTS(STR(?o), "{articles}"))' if articles else ""
        rows = self._protocol.select(
            f"SELECT ?s ?p ?o WHERE {{ {{ VALUES ?s {{ {nodes} }} VALUES ?p {{ {predicates} }} ?s ?p ?o "
            f"FILTER(LANG(?o) IN ({languages})) }} UNION "
            f"{{ VALUES ?s {{ {nodes} }} ?o <{terms.SCHEMA_ABOUT}> ?s {page} }} }}"
        ).rows
        for one, predicate, value in rows:
            if one is None or value is None or one.value not in facts:
                continue
            facts_of_iri = facts[one.value]
            facts_of_iri.exists = True
            if predicate is None:
                facts_of_iri.pages.append(value.value)
            elif value.kind == "literal":
                facts_of_iri.names[predicate.value].append((value.value, value.language or ""))

    def _add_names_in_any_language(self, facts: dict[str, _EntityDescription]) -> None:
        if not facts:
            return
        query = f"SELECT ?s ?o WHERE {{ VALUES ?s {{ {_format_iris(facts)} }} ?s rdfs:label ?o }} LIMIT {_MAX_NAMES}"
        for one, value in self._protocol.select(query).rows:
            if one is not None and value is not None and one.value in facts and value.kind == "literal":
                facts[one.value].names[terms.RDFS_LABEL].append((value.value, value.language or ""))
                facts[one.value].exists = True

    def _mark_existing(self, facts: dict[str, _EntityDescription]) -> None:
        """Mark unnamed entities that occur in any triple."""
        iris = list(facts)
        for part in iter_batches(iris, _UNNAMED_BATCH_SIZE):
            ways = " UNION ".join(
                f"{{ SELECT ({iris.index(iri)} AS ?n) WHERE {{ {pattern} }} LIMIT 1 }}"
                for iri in part
                for pattern in self._usage_patterns(iri)
            )
            for (number,) in self._protocol.select(f"SELECT ?n WHERE {{ {ways} }}").rows:
                if number is not None:
                    facts[iris[int(number.value)]].exists = True

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
        """Those in the language; without any, those that have none or all, else every one by its language."""
        for preferred in self._languages:
            chosen = [text for text, language in names if language == preferred]
            if chosen:
                return sorted(chosen, key=lambda text: (len(text), text)) if preferred == "" else sorted(chosen)
        return [text for text, _ in sorted(names, key=lambda name: (name[1], name[0]))]


def filter_labelled(protocol: SparqlClient, iris: Sequence[str]) -> set[str]:
    """Those of the IRIs that have a label, and so stand for something with a name."""
    property_iris: set[str] = set()
    for part in iter_batches(iris, _BATCH_SIZE):
        query = f"SELECT DISTINCT ?s WHERE {{ VALUES ?s {{ {_format_iris(part)} }} ?s rdfs:label ?o }}"
        property_iris |= {one.value for (one,) in protocol.select(query).rows if one is not None}
    return property_iris


def _format_iris(iris: Sequence[str] | dict[str, _EntityDescription]) -> str:
    return " ".join(f"<{iri}>" for iri in iris)


def iter_batches(iris: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """The IRIs, so many at once."""
    for start in range(0, len(iris), size):
        yield iris[start : start + size]
