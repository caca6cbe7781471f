"""The relations of an endpoint: those of an entity, those with a name, or all, each described once."""

from collections import Counter
from collections.abc import Iterable, Sequence
from threading import Lock

from showhow.worlds import terms
from showhow.worlds.live.sparql.entities import EntityDescriber, EntityIdMapping, iter_batches
from showhow.worlds.live.sparql.protocol import SparqlClient
from showhow.worlds.source import Cell, Relation, Relations
from showhow.worlds.sparql_syntax import quote_literal

_MAX_INCOMING = 20_000
"""Maximum incoming triples read of one entity; a country has millions."""
_SAMPLE_SIZE = 50
"""Values of a relation that are sampled to infer their kind."""
_SAMPLE_BATCH_SIZE = 20
_PAGE_SIZE = 2000
_MAX_PAGES = 100
"""Some servers answer every page with a full one."""
_NAME_BATCH_SIZE = 50
"""Names that are looked up in one query, each in several spellings and languages."""

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
    """The relations of an endpoint; each is described once and then cached."""

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
        """The outgoing and incoming relations of the entity."""
        namespace_filter = f'FILTER(STRSTARTS(STR(?p), "{self._ids.property}"))' if self._wikibase else ""
        outgoing = self._select_predicates(f"SELECT DISTINCT ?p WHERE {{ <{iri}> ?p ?o {namespace_filter} }}")
        incoming = self._select_predicates(
            f"SELECT DISTINCT ?p WHERE {{ {{ "
            f"SELECT ?p WHERE {{ ?s ?p <{iri}> {namespace_filter} }} LIMIT {_MAX_INCOMING} }} }}"
        )
        self._describe_predicates([*outgoing, *incoming])
        return Relations(tuple(self._sort_by_id(outgoing)), tuple(self._sort_by_id(incoming)))

    def find_by_name(self, names: Sequence[str], properties: Sequence[str] = ()) -> tuple[Relation, ...]:
        """The wiki's relations with one of these labels or aliases, and those of these IRIs of properties, by id."""
        iris = list(properties)
        for part in iter_batches(list(dict.fromkeys(filter(None, names))), _NAME_BATCH_SIZE):
            spellings = dict.fromkeys(
                spelling for name in part for spelling in (name, name.lower(), name[:1].upper() + name[1:])
            )
            texts = " ".join(
                f"{quote_literal(spelling)}@{language}"
                for spelling in spellings
                for language in (self._language, "mul")
            )
            branches = " UNION ".join(
                f"{{ VALUES ?name {{ {texts} }} ?s <{predicate}> ?name . ?s a wikibase:Property }}"
                for predicate in (terms.RDFS_LABEL, terms.SKOS_ALT_LABEL)
            )
            rows = self._protocol.select(f"SELECT DISTINCT ?s WHERE {{ {branches} }}").rows
            iris += [subject.value for (subject,) in rows if subject is not None]
        predicates = [str(self._ids.predicate_of(self._ids.id_of(iri))) for iri in dict.fromkeys(iris)]
        self._describe_predicates(predicates)
        return tuple(self._sort_by_id(predicates))

    def list_relations(self) -> tuple[Relation, ...]:
        """Every relation of the graph, sorted by id."""
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
        """The predicates of all properties that the wiki defines, read in pages; Wikidata has more than 12,000."""
        predicates: dict[str, None] = {}
        for page in range(_MAX_PAGES):
            rows = self._protocol.select(
                _PROPERTIES_QUERY.format(language=self._language, most=_PAGE_SIZE, start=page * _PAGE_SIZE)
            ).rows
            for subject, kind, label, aliases in rows:
                if subject is None or kind is None:
                    continue
                relation_id = self._ids.id_of(subject.value)
                names = [name for name in (aliases.value.split("\n") if aliases else []) if name]
                iri = str(self._ids.predicate_of(relation_id))
                predicates[iri] = None
                value_kind = _declared_value_kind(kind.value.rpartition("#")[2])
                self._known[iri] = Relation(
                    relation_id, label.value if label else relation_id, tuple(sorted(names)), value_kind
                )
            if len(rows) < _PAGE_SIZE:
                break
        return list(predicates)

    def _select_predicates(self, sparql: str) -> list[str]:
        iris = [predicate.value for (predicate,) in self._protocol.select(sparql).rows if predicate is not None]
        return [iri for iri in iris if iri not in terms.NAMING_PREDICATES]

    def _describe_predicates(self, predicates: Sequence[str]) -> None:
        new = [iri for iri in dict.fromkeys(predicates) if iri not in self._known]
        if not new:
            return
        # Wikidata labels the property's entity, not its predicate.
        items = {iri: str(self._ids.iri_of(self._ids.id_of(iri))) for iri in new}
        described = self._entities.describe(list(dict.fromkeys(items.values())))
        kinds = self._load_declared_kinds(items) if self._wikibase else self._sample_kinds(new)
        for iri in new:
            entity = described.get(items[iri])
            label = entity.label if entity is not None else terms.label_from_iri(iri)
            aliases = entity.aliases if entity is not None else ()
            self._known[iri] = Relation(self._ids.id_of(iri), label, aliases, kinds.get(iri, "entity"))

    def _load_declared_kinds(self, items: dict[str, str]) -> dict[str, str]:
        """The kinds of the predicates' values, as the wiki declares them."""
        by_item = {item: iri for iri, item in items.items()}
        kinds: dict[str, str] = {}
        for part in iter_batches(list(by_item), 10 * _SAMPLE_SIZE):
            nodes = " ".join(f"<{iri}>" for iri in part)
            query = f"SELECT ?s ?type WHERE {{ VALUES ?s {{ {nodes} }} ?s wikibase:propertyType ?type }}"
            for item, kind in self._protocol.select(query).rows:
                if item is not None and kind is not None and item.value in by_item:
                    kinds[by_item[item.value]] = _declared_value_kind(kind.value.rpartition("#")[2])
        return kinds

    def _sample_kinds(self, predicates: Sequence[str]) -> dict[str, str]:
        """The most frequent kind of each predicate's values, from a sample."""
        counts: dict[str, Counter[str]] = {iri: Counter() for iri in predicates}
        for part in iter_batches(list(predicates), _SAMPLE_BATCH_SIZE):
            branches = " UNION ".join(
                f"{{ SELECT ({number} AS ?n) ?o WHERE {{ ?s <{iri}> ?o }} LIMIT {_SAMPLE_SIZE} }}"
                for number, iri in enumerate(part)
            )
            for number, value in self._protocol.select(f"SELECT ?n ?o WHERE {{ {branches} }}").rows:
                if number is not None and value is not None:
                    counts[part[number.read_number(len(part))]][_cell_value_kind(value)] += 1
        return {iri: count.most_common(1)[0][0] for iri, count in counts.items() if count}


def _cell_value_kind(value: Cell) -> str:
    return terms.classify_datatype(value.datatype or "") if value.kind == "literal" else "entity"


def _declared_value_kind(kind: str) -> str:
    if kind == "Time":
        return "date"
    if kind == "Quantity":
        return "number"
    return "entity" if kind.startswith("Wikibase") else "text"
