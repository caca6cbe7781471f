"""The relations of a graph and of one entity, as the endpoint's own triples have them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import count
from threading import Lock

from worlds import terms
from worlds.live.entities import Describes, parts_of
from worlds.live.ids import Ids
from worlds.live.sparql_protocol import SparqlProtocol
from worlds.source import Cell, Relation, Relations

_INCOMING = 20_000
"""What arrives at an entity is looked at so far; a country has millions of residents."""
_SAMPLE = 50
"""Values of a relation that are looked at to tell what it leads to."""
_SAMPLED_AT_ONCE = 20
_PAGE = 2000

_DEFINED = """
SELECT ?s ?type ?label (GROUP_CONCAT(DISTINCT ?alias; separator="\\n") AS ?aliases) WHERE {{
  {{ SELECT ?s ?type WHERE {{ ?s a wikibase:Property ; wikibase:propertyType ?type }}
     ORDER BY ?s LIMIT {most} OFFSET {start} }}
  OPTIONAL {{ ?s rdfs:label ?own FILTER(LANG(?own) = "{language}") }}
  OPTIONAL {{ ?s rdfs:label ?any FILTER(LANG(?any) = "mul") }}
  OPTIONAL {{ ?s skos:altLabel ?alias FILTER(LANG(?alias) = "{language}") }}
  BIND(COALESCE(?own, ?any) AS ?label)
}} GROUP BY ?s ?type ?label
"""


class GraphRelations:
    """The relations of an endpoint; each is described once and then remembered."""

    def __init__(self, protocol: SparqlProtocol, entities: Describes) -> None:
        self._protocol = protocol
        self._entities = entities
        self._ids = Ids.of(protocol.endpoint)
        self._language = protocol.endpoint.language
        self._wikibase = protocol.endpoint.vocabulary == "wikibase"
        self._known: dict[str, Relation] = {}
        self._all: tuple[Relation, ...] | None = None
        self._lock = Lock()

    def of_entity(self, iri: str) -> Relations:
        """Those that leave it and those that arrive at it."""
        space = f'FILTER(STRSTARTS(STR(?p), "{self._ids.property}"))' if self._wikibase else ""
        outgoing = self._predicates(f"SELECT DISTINCT ?p WHERE {{ <{iri}> ?p ?o {space} }}")
        incoming = self._predicates(
            f"SELECT DISTINCT ?p WHERE {{ {{ SELECT ?p WHERE {{ ?s ?p <{iri}> {space} }} LIMIT {_INCOMING} }} }}"
        )
        self._describe([*outgoing, *incoming])
        return Relations(*(tuple(self._sorted(way)) for way in (outgoing, incoming)))

    def all(self) -> tuple[Relation, ...]:
        """Every one of the graph, by id."""
        with self._lock:
            if self._all is None:
                predicates = self._defined() if self._wikibase else self._in_use()
                self._describe(predicates)
                self._all = tuple(self._sorted(predicates))
            return self._all

    def _sorted(self, predicates: Iterable[str]) -> list[Relation]:
        return sorted((self._known[iri] for iri in dict.fromkeys(predicates)), key=lambda relation: relation.id)

    def _in_use(self) -> list[str]:
        return self._predicates("SELECT DISTINCT ?p WHERE { ?s ?p ?o }")

    def _defined(self) -> list[str]:
        """Every property that the wiki defines, described, a page at a time; Wikidata has more than 12,000."""
        found: dict[str, None] = {}
        for page in count():
            rows = self._protocol.select(_DEFINED.format(language=self._language, most=_PAGE, start=page * _PAGE)).rows
            for one, kind, label, aliases in rows:
                if one is None or kind is None:
                    continue
                known = self._ids.id_of(one.value)
                names = [name for name in (aliases.value.split("\n") if aliases else []) if name]
                iri = str(self._ids.predicate_of(known))
                found[iri] = None
                called = label.value if label else known
                leads = _declared(kind.value.rpartition("#")[2])
                self._known[iri] = Relation(known, called, tuple(sorted(names)), leads)
            if len(rows) < _PAGE:
                break
        return list(found)

    def _predicates(self, sparql: str) -> list[str]:
        found = [one.value for (one,) in self._protocol.select(sparql).rows if one is not None]
        return [iri for iri in found if iri not in terms.NOT_RELATIONS]

    def _describe(self, predicates: Sequence[str]) -> None:
        new = [iri for iri in dict.fromkeys(predicates) if iri not in self._known]
        if not new:
            return
        # Wikidata labels the property's item, not the predicate that leads to a value.
        items = {iri: str(self._ids.iri_of(self._ids.id_of(iri))) for iri in new}
        described = self._entities.described(list(dict.fromkeys(items.values())))
        kinds = self._types(items) if self._wikibase else self._sampled(new)
        for iri in new:
            one = described.get(items[iri])
            label = one.label if one is not None else terms.local_label(iri)
            aliases = one.aliases if one is not None else ()
            self._known[iri] = Relation(self._ids.id_of(iri), label, aliases, kinds.get(iri, "entity"))

    def _types(self, items: dict[str, str]) -> dict[str, str]:
        """What they lead to, as the wiki declares it."""
        by_item = {item: iri for iri, item in items.items()}
        found: dict[str, str] = {}
        for part in parts_of(list(by_item), 10 * _SAMPLE):
            nodes = " ".join(f"<{item}>" for item in part)
            query = f"SELECT ?s ?type WHERE {{ VALUES ?s {{ {nodes} }} ?s wikibase:propertyType ?type }}"
            for one, kind in self._protocol.select(query).rows:
                if one is not None and kind is not None:
                    found[by_item[one.value]] = _declared(kind.value.rpartition("#")[2])
        return found

    def _sampled(self, predicates: Sequence[str]) -> dict[str, str]:
        """What they lead to, by some of their values."""
        counts: dict[str, Counter[str]] = {iri: Counter() for iri in predicates}
        for part in parts_of(list(predicates), _SAMPLED_AT_ONCE):
            ways = " UNION ".join(
                f"{{ SELECT ({number} AS ?n) ?o WHERE {{ ?s <{iri}> ?o }} LIMIT {_SAMPLE} }}"
                for number, iri in enumerate(part)
            )
            for number, value in self._protocol.select(f"SELECT ?n ?o WHERE {{ {ways} }}").rows:
                if number is not None and value is not None:
                    counts[part[int(number.value)]][_kind(value)] += 1
        return {iri: count.most_common(1)[0][0] for iri, count in counts.items() if count}


def _kind(value: Cell) -> str:
    return terms.value_kind(value.datatype or "") if value.kind == "literal" else "entity"


def _declared(kind: str) -> str:
    if kind == "Time":
        return "date"
    if kind == "Quantity":
        return "number"
    return "entity" if kind.startswith("Wikibase") else "text"
