"""Writes the graph of a world: an Oxigraph store, the names in it, and its relations."""

import json
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import pyoxigraph as ox

from worlds import terms
from worlds.fingerprint import Fingerprint
from worlds.folder import GRAPH, NAMES, RELATIONS
from worlds.importers.files import DAMAGED, MalformedFile, open_bytes
from worlds.names import NamesWriter
from worlds.source import Relation

GRAPH_FORMATS = {
    ".ttl": ox.RdfFormat.TURTLE,
    ".turtle": ox.RdfFormat.TURTLE,
    ".nt": ox.RdfFormat.N_TRIPLES,
    ".ntriples": ox.RdfFormat.N_TRIPLES,
}
_SAMPLE = 50
"""Values of a relation that are looked at to tell what it leads to."""


class GraphWriter:
    """A new store that files are loaded into and that is then described beside itself."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._store = ox.Store(str(folder / GRAPH))
        self.triples = 0
        self.entities: set[str] = set()
        self.relations: list[Relation] = []

    def load(self, file: Path) -> None:
        """Load a Turtle or N-Triples file, plain or gzipped; MalformedFile names the line that is wrong."""
        suffixes = [suffix for suffix in file.suffixes if suffix != ".gz"]
        rdf = GRAPH_FORMATS.get(suffixes[-1].lower()) if suffixes else None
        if rdf is None:
            raise MalformedFile(file, None, f"it is no graph that is known here; known are {', '.join(GRAPH_FORMATS)}")
        with open_bytes(file) as stream:
            self.load_stream(stream, rdf, file)

    def load_stream(self, stream: Any, rdf: ox.RdfFormat, name: Path) -> None:
        """Load an open file of triples."""
        try:
            self._store.bulk_load(stream, format=rdf)
        except SyntaxError as wrong:
            raise MalformedFile(name, wrong.lineno, str(wrong.msg)) from wrong
        except (*DAMAGED, ValueError) as broken:
            raise MalformedFile(name, None, str(broken)) from broken

    def finish(self, articles: Iterable[tuple[str, str]], fingerprint: Fingerprint) -> None:
        """Describe the store beside itself: its names (with the articles' titles by entity), relations and counts."""
        self._count(fingerprint)
        self._write_names(articles)
        self.relations = self._relations()
        described = json.dumps([asdict(relation) for relation in self.relations], ensure_ascii=False, indent=1)
        (self._folder / RELATIONS).write_text(described, encoding="utf-8")
        self._store.optimize()
        self._store.flush()

    def _count(self, fingerprint: Fingerprint) -> None:
        for quad in self._store:
            self.triples += 1
            # A blank node has another name in every store, so that it counts without one.
            ends = ["_:" if isinstance(end, ox.BlankNode) else str(end) for end in (quad.subject, quad.object)]
            fingerprint.add(f"{ends[0]} {quad.predicate} {ends[1]}")
            subject = quad.subject
            if isinstance(subject, ox.NamedNode) and quad.predicate.value not in terms.NOT_RELATIONS:
                self.entities.add(terms.id_of(subject.value))
                if isinstance(quad.object, ox.NamedNode):
                    self.entities.add(terms.id_of(quad.object.value))

    def _write_names(self, articles: Iterable[tuple[str, str]]) -> None:
        with closing(NamesWriter(self._folder / NAMES)) as names:
            for predicate, kind in ((terms.RDFS_LABEL, "label"), (terms.SKOS_ALT_LABEL, "alias")):
                for quad in self._store.quads_for_pattern(None, ox.NamedNode(predicate), None, None):
                    if isinstance(quad.subject, ox.NamedNode) and isinstance(quad.object, ox.Literal):
                        names.add(quad.object.value, terms.id_of(quad.subject.value), kind)
            titles = dict.fromkeys(articles)
            for quad in self._store.quads_for_pattern(None, ox.NamedNode(terms.SCHEMA_ABOUT), None, None):
                if isinstance(quad.subject, ox.NamedNode) and isinstance(quad.object, ox.NamedNode):
                    title = terms.title_of_page(quad.subject.value)
                    if title is not None:
                        titles[(title, terms.id_of(quad.object.value))] = None
            for title, entity in titles:
                names.add(title, entity, "title")

    def _relations(self) -> list[Relation]:
        used = Counter(quad.predicate.value for quad in self._store)
        found = [self._relation(iri) for iri in sorted(used) if iri not in terms.NOT_RELATIONS]
        return sorted(found, key=lambda relation: relation.id)

    def _relation(self, iri: str) -> Relation:
        # Wikidata labels the property's entity, not the predicate that leads to a value.
        subjects = [ox.NamedNode(iri)]
        if terms.is_entity(iri):
            subjects.append(ox.NamedNode(terms.ENTITY + terms.id_of(iri)))
        labels = self._texts(subjects, terms.RDFS_LABEL)
        aliases = self._texts(subjects, terms.SKOS_ALT_LABEL)
        label = labels[0] if labels else terms.local_label(iri)
        others = tuple(name for name in dict.fromkeys([*labels[1:], *aliases]) if name != label)
        return Relation(terms.id_of(iri), label, others, self._leads_to(iri))

    def _texts(self, subjects: list[ox.NamedNode], predicate: str) -> list[str]:
        quads = (q for s in subjects for q in self._store.quads_for_pattern(s, ox.NamedNode(predicate), None, None))
        terms_found = (quad.object for quad in quads)
        return sorted({t.value for t in terms_found if isinstance(t, ox.Literal) and t.language in (None, "en")})

    def _leads_to(self, iri: str) -> str:
        kinds: Counter[str] = Counter()
        for quad in islice(self._store.quads_for_pattern(None, ox.NamedNode(iri), None, None), _SAMPLE):
            kinds[_kind(quad.object)] += 1
        return kinds.most_common(1)[0][0]


def _kind(term: Any) -> str:
    return terms.value_kind(term.datatype.value) if isinstance(term, ox.Literal) else "entity"
