"""A graph behind a SPARQL 1.1 endpoint: Wikidata's, or any other's."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from worlds.live.entities import Describes, GraphEntities, labelled
from worlds.live.find import Finds, NameSearch
from worlds.live.ids import Ids
from worlds.live.relations import GraphRelations
from worlds.live.sparql_protocol import SparqlProtocol
from worlds.live.sparql_rewrite import prepare
from worlds.source import Cell, Entity, NotFound, Relation, Relations, Table


class KnowsItems(Protocol):
    def item_of(self, title: str) -> str | None:
        """The id of what the article of that title is about; None where nobody tells, NotFound without an article."""


class Wiki(Describes, Finds, Protocol):
    """A wiki that knows its entities better than its graph does."""


class SparqlGraph:
    """The graph of an endpoint; safe to share between threads, each call within the endpoint's limits."""

    def __init__(self, protocol: SparqlProtocol, articles: KnowsItems | None = None, wiki: Wiki | None = None) -> None:
        endpoint = protocol.endpoint
        self._protocol = protocol
        self._endpoint = endpoint
        self._articles = articles
        self._ids = Ids.of(endpoint)
        self._entities: Describes = wiki if wiki and endpoint.labels == "api" else GraphEntities(protocol)
        self._names = NameSearch(protocol)
        self._finder: Finds = wiki if wiki and endpoint.search == "api" else self._names
        self._relations = GraphRelations(protocol, self._entities)

    def query(self, sparql: str) -> Table:
        """The result of a SELECT or ASK within the endpoint's limits; usual prefixes need no declaration."""
        table = self._protocol.ask(prepare(sparql, self._endpoint))
        iris = dict.fromkeys(cell.value for row in table.rows for cell in row if cell and cell.kind == "iri")
        entities = {iri for iri in iris if self._ids.is_entity(iri)}
        if self._endpoint.labels == "rdfs:label":
            entities |= labelled(self._protocol, [iri for iri in iris if iri not in entities])
        cells = {iri: Cell("entity" if iri in entities else "iri", self._ids.id_of(iri)) for iri in iris}
        rows = (tuple(cells[c.value] if c and c.kind == "iri" else c for c in row) for row in table.rows)
        return replace(table, rows=tuple(rows))

    def vocabulary(self) -> tuple[Relation, ...]:
        """Every relation of the graph, by id; of Wikidata that takes a while, once."""
        return self._relations.all()

    def relations(self, entity: str) -> Relations:
        """The relations that the entity really has; NotFound when the graph does not know it."""
        iri = self._ids.iri_of(entity)
        found = self._relations.of_entity(iri) if iri is not None else Relations()
        if iri is None or not (found.outgoing or found.incoming or self._entities.described([iri])):
            raise NotFound(f"This world's graph does not know {entity!r}; ids look like Q42, or are full IRIs.")
        return found

    def entities(self, ids: Sequence[str]) -> list[Entity]:
        """The entities or properties of these ids, in their order; unknown ones are left out."""
        wanted = {entity: iri for entity in ids if (iri := self._ids.iri_of(entity.strip()))}
        if not wanted:
            return []
        found = self._entities.described(list(dict.fromkeys(wanted.values())))
        return [found[wanted[entity]] for entity in ids if entity in wanted and wanted[entity] in found]

    def entity_of(self, title: str) -> Entity:
        """The entity that the article of that title is about; NotFound when there is none."""
        missing: NotFound | None = None
        candidates: list[str] = []
        if self._articles is not None:
            try:
                item = self._articles.item_of(title)
            except NotFound as none:
                missing = none
            else:
                candidates = [item] if item is not None else []
        candidates = candidates or [self._ids.id_of(iri) for iri in self._about(title)]
        for candidate in candidates:
            known = self.entities([candidate])
            return known[0] if known else Entity(candidate, title, title=title)
        raise missing or NotFound(
            f"No entity of this world's graph is known for the article {title!r}; try searching its name."
        )

    def find(self, name: str, k: int = 5) -> list[Entity]:
        """Entities called so, by label or alias, best first; [] when none is."""
        found = self._finder.find(name, k) if name.strip() and k > 0 else []
        described = self._entities.described(found) if found else {}
        return [described[iri] for iri in found if iri in described]

    def _about(self, title: str) -> list[str]:
        """The IRIs of what an article of that title is about, else of the one thing that has it as its label."""
        titled = self._names.titled(title)
        if titled:
            return titled
        called = self._names.called(title)
        return called if len(called) == 1 else []
