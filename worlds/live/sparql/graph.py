"""A graph source over a SPARQL 1.1 endpoint, Wikidata's or any other."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import count
from threading import Lock
from typing import Protocol

from worlds import terms
from worlds.live.sparql.entities import EntityDescriber, SparqlEntityDescriber, filter_labelled, iter_batches
from worlds.live.sparql.entity_search import EntityFinder, SparqlNameSearch
from worlds.live.sparql.ids import EntityIdMapping
from worlds.live.sparql.protocol import SparqlClient
from worlds.live.sparql.rewrite import prepare_query
from worlds.source import Cell, Entity, NotFound, Relation, Relations, Table

_MAX_INCOMING = 20_000
"""What arrives at an entity is looked at so far; a country has millions of residents."""
_SAMPLE_SIZE = 50
"""Values of a relation that are looked at to tell what it leads to."""
_SAMPLE_BATCH_SIZE = 20
_PAGE_SIZE = 2000

_PROPERTIES_QUERY = """
SELECT ?s ?type ?label (GROUP_CONCAT(DISTINCT ?alias; separator="\\n") AS ?aliases) WHERE {{
  {{ SELECT ?s ?type WHERE {{ ?s a wikibase:Property ; wikibase:propertyType ?type }}
     ORDER BY ?s LIMIT {most} OFFSET {start} }}
  OPTIONAL {{ ?s rdfs:label ?own FILTER(LANG(?own) = "{language}") }}
  OPTIONAL {{ ?s rdfs:label ?any FILTER(LANG(?any) = "mul") }}
  OPTIONAL {{ ?s skos:altLabel ?alias FILTER(LANG(?alias) = "{language}") }}
  BIND(COALESCE(?own, ?any) AS ?label)
}} GROUP BY ?s ?type ?label
"""


class SparqlRelations:
    """The relations of an endpoint; each is described once and then remembered."""

    def __init__(self, protocol: SparqlClient, entities: EntityDescriber) -> None:
        self._protocol = protocol
        self._entities = entities
        self._ids = EntityIdMapping.from_endpoint(protocol.endpoint)
        self._language = protocol.endpoint.language
        self._wikibase = protocol.endpoint.vocabulary == "wikibase"
        self._known: dict[str, Relation] = {}
        self._all: tuple[Relation, ...] | None = None
        self._lock = Lock()

    def find_entity_relations(self, iri: str) -> Relations:
        """Those that leave it and those that arrive at it."""
        space = f'FILTER(STRSTARTS(STR(?p), "{self._ids.property}"))' if self._wikibase else ""
        outgoing = self._select_predicates(f"SELECT DISTINCT ?p WHERE {{ <{iri}> ?p ?o {space} }}")
        incoming = self._select_predicates(
            f"SELECT DISTINCT ?p WHERE {{ {{ SELECT ?p WHERE {{ ?s ?p <{iri}> {space} }} LIMIT {_MAX_INCOMING} }} }}"
        )
        self._describe_predicates([*outgoing, *incoming])
        return Relations(*(tuple(self._sort_by_id(way)) for way in (outgoing, incoming)))

    def list_relations(self) -> tuple[Relation, ...]:
        """Every one of the graph, by id."""
        with self._lock:
            if self._all is None:
                predicates = self._find_defined() if self._wikibase else self._find_used()
                self._describe_predicates(predicates)
                self._all = tuple(self._sort_by_id(predicates))
            return self._all

    def _sort_by_id(self, predicates: Iterable[str]) -> list[Relation]:
        return sorted((self._known[iri] for iri in dict.fromkeys(predicates)), key=lambda relation: relation.id)

    def _find_used(self) -> list[str]:
        return self._select_predicates("SELECT DISTINCT ?p WHERE { ?s ?p ?o }")

    def _find_defined(self) -> list[str]:
        """Every property that the wiki defines, described, a page at a time; Wikidata has more than 12,000."""
        labels: dict[str, None] = {}
        for page in count():
            rows = self._protocol.select(
                _PROPERTIES_QUERY.format(language=self._language, most=_PAGE_SIZE, start=page * _PAGE_SIZE)
            ).rows
            for one, kind, label, aliases in rows:
                if one is None or kind is None:
                    continue
                relation_id = self._ids.id_of(one.value)
                names = [name for name in (aliases.value.split("\n") if aliases else []) if name]
                iri = str(self._ids.predicate_of(relation_id))
                labels[iri] = None
                called = label.value if label else relation_id
                leads = _declared_value_kind(kind.value.rpartition("#")[2])
                self._known[iri] = Relation(relation_id, called, tuple(sorted(names)), leads)
            if len(rows) < _PAGE_SIZE:
                break
        return list(labels)

    def _select_predicates(self, sparql: str) -> list[str]:
        iris = [one.value for (one,) in self._protocol.select(sparql).rows if one is not None]
        return [iri for iri in iris if iri not in terms.NAMING_PREDICATES]

    def _describe_predicates(self, predicates: Sequence[str]) -> None:
        new = [iri for iri in dict.fromkeys(predicates) if iri not in self._known]
        if not new:
            return
        # Wikidata labels the property's item, not the predicate that leads to a value.
        items = {iri: str(self._ids.iri_of(self._ids.id_of(iri))) for iri in new}
        described = self._entities.describe(list(dict.fromkeys(items.values())))
        kinds = self._load_declared_kinds(items) if self._wikibase else self._sample_kinds(new)
        for iri in new:
            one = described.get(items[iri])
            label = one.label if one is not None else terms.label_from_iri(iri)
            aliases = one.aliases if one is not None else ()
            self._known[iri] = Relation(self._ids.id_of(iri), label, aliases, kinds.get(iri, "entity"))

    def _load_declared_kinds(self, items: dict[str, str]) -> dict[str, str]:
        """What they lead to, as the wiki declares it."""
        by_item = {item: iri for iri, item in items.items()}
        labels: dict[str, str] = {}
        for part in iter_batches(list(by_item), 10 * _SAMPLE_SIZE):
            nodes = " ".join(f"<{item}>" for item in part)
            query = f"SELECT ?s ?type WHERE {{ VALUES ?s {{ {nodes} }} ?s wikibase:propertyType ?type }}"
            for one, kind in self._protocol.select(query).rows:
                if one is not None and kind is not None:
                    labels[by_item[one.value]] = _declared_value_kind(kind.value.rpartition("#")[2])
        return labels

    def _sample_kinds(self, predicates: Sequence[str]) -> dict[str, str]:
        """What they lead to, by some of their values."""
        counts: dict[str, Counter[str]] = {iri: Counter() for iri in predicates}
        for part in iter_batches(list(predicates), _SAMPLE_BATCH_SIZE):
            ways = " UNION ".join(
                f"{{ SELECT ({number} AS ?n) ?o WHERE {{ ?s <{iri}> ?o }} LIMIT {_SAMPLE_SIZE} }}"
                for number, iri in enumerate(part)
            )
            for number, value in self._protocol.select(f"SELECT ?n ?o WHERE {{ {ways} }}").rows:
                if number is not None and value is not None:
                    counts[part[int(number.value)]][_cell_value_kind(value)] += 1
        return {iri: count.most_common(1)[0][0] for iri, count in counts.items() if count}


def _cell_value_kind(value: Cell) -> str:
    return terms.classify_datatype(value.datatype or "") if value.kind == "literal" else "entity"


def _declared_value_kind(kind: str) -> str:
    if kind == "Time":
        return "date"
    if kind == "Quantity":
        return "number"
    return "entity" if kind.startswith("Wikibase") else "text"


class ItemFinder(Protocol):
    def find_item(self, title: str) -> str | None:
        """The entity id of the article of that title; None if the wiki has none, NotFound without an article."""


class WikiEntitySource(EntityDescriber, EntityFinder, Protocol):
    """A wiki that knows its entities better than its graph does."""


class SparqlGraph:
    """The graph of an endpoint; safe to share between threads, each call within the endpoint's limits."""

    def __init__(
        self, protocol: SparqlClient, articles: ItemFinder | None = None, wiki: WikiEntitySource | None = None
    ) -> None:
        endpoint = protocol.endpoint
        self._protocol = protocol
        self._endpoint = endpoint
        self._articles = articles
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
        return replace(table, rows=tuple(rows))

    def vocabulary(self) -> tuple[Relation, ...]:
        """Every relation of the graph, by id; of Wikidata that takes a while, once."""
        return self._relations.list_relations()

    def relations(self, entity: str) -> Relations:
        """The relations that the entity really has; NotFound when the graph does not know it."""
        iri = self._ids.iri_of(entity)
        relations = self._relations.find_entity_relations(iri) if iri is not None else Relations()
        if iri is None or not (relations.outgoing or relations.incoming or self._entities.describe([iri])):
            raise NotFound(f"This world's graph does not know {entity!r}; ids look like Q42, or are full IRIs.")
        return relations

    def entities(self, ids: Sequence[str]) -> list[Entity]:
        """The entities or properties of these ids, in their order; unknown ones are left out."""
        iris = {entity: iri for entity in ids if (iri := self._ids.iri_of(entity.strip()))}
        if not iris:
            return []
        entities = self._entities.describe(list(dict.fromkeys(iris.values())))
        return [entities[iris[entity]] for entity in ids if entity in iris and iris[entity] in entities]

    def entity_of(self, title: str) -> Entity:
        """The entity that the article of that title is about; NotFound when there is none."""
        missing: NotFound | None = None
        candidates: list[str] = []
        if self._articles is not None:
            try:
                item = self._articles.find_item(title)
            except NotFound as none:
                missing = none
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
        """The IRIs of what an article of that title is about, else of the one thing that has it as its label."""
        titled = self._names.find_by_title(title)
        if titled:
            return titled
        called = self._names.find_by_label(title)
        return called if len(called) == 1 else []
