"""Map the IRIs of an endpoint to short ids and back; Wikidata's namespaces by default."""

from dataclasses import dataclass

import pyoxigraph as ox

from worlds import terms
from worlds.live.http.endpoint import SparqlEndpoint

_MAX_IRI_LENGTH = 2000
"""Characters of an IRI."""


@dataclass(frozen=True, slots=True)
class EntityIdMapping:
    """The namespaces of an endpoint's items and relations."""

    entity: str = terms.ENTITY_NAMESPACE
    property: str = terms.DIRECT_NAMESPACE

    @classmethod
    def from_endpoint(cls, endpoint: SparqlEndpoint) -> "EntityIdMapping":
        """Those of that endpoint."""
        return cls(endpoint.entity, endpoint.property)

    def id_of(self, iri: str) -> str:
        """The short id of an item's or a relation's IRI, else the IRI itself."""
        for space in (self.entity, self.property):
            if iri.startswith(space) and _is_short_id(iri[len(space) :]):
                return iri[len(space) :]
        return iri

    def is_entity(self, iri: str) -> bool:
        """Whether the IRI has a short id."""
        return self.id_of(iri) != iri

    def iri_of(self, entity: str) -> str | None:
        """The IRI of an id; None if it is neither an id nor an IRI."""
        return self.entity + entity if _is_short_id(entity) else _validate_iri(entity)

    def predicate_of(self, relation: str) -> str | None:
        """The IRI that a relation's id has as a predicate; None if it is no id."""
        return self.property + relation if _is_short_id(relation) else _validate_iri(relation)


def _is_short_id(text: str) -> bool:
    return terms.expand_id(text) == terms.ENTITY_NAMESPACE + text


def _validate_iri(text: str) -> str | None:
    iri = terms.expand_id(text) if len(text) <= _MAX_IRI_LENGTH else None
    try:
        return ox.NamedNode(iri).value if iri is not None else None
    except ValueError:
        # No graph can hold it, such as x:%, and a server would refuse the whole query for it.
        return None
