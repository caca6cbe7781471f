"""A world's graph: built into an Oxigraph store with a name index, then read-only, queried in worker processes.

The index of entity names is Tantivy's, so that finding an entity by name never scans the graph.
"""

import atexit
import hashlib
import json
import queue
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import tantivy
from tantivy import Occur, Query

from showhow.guard.json_input import load_json
from showhow.worlds import terms
from showhow.worlds.embedded.graph_client import GraphWorker, QueryLimits
from showhow.worlds.embedded.text import EmbeddedText, IndexReader, IndexWriter
from showhow.worlds.embedded.triple_terms import require_shallow_triple_terms
from showhow.worlds.folder import GRAPH_FOLDER, NAMES_FOLDER, RELATIONS_FILE
from showhow.worlds.input_files import DECOMPRESSION_ERRORS, MalformedFile, open_bytes, reading
from showhow.worlds.source import Cell, Entity, NotFound, Relation, Relations, SourceTimeout, SourceUnavailable, Table
from showhow.worlds.sparql_syntax import check_query
from showhow.worlds.text_normalization import (
    ANALYZER_NAME,
    normalize_name,
    replace_surrogates,
)

NAME_KINDS = ("label", "title", "alias")
"""Kinds of names, best match first."""
_MAX_NAME_WORDS = 16
GRAPH_FORMATS = {
    ".ttl": ox.RdfFormat.TURTLE,
    ".turtle": ox.RdfFormat.TURTLE,
    ".nt": ox.RdfFormat.N_TRIPLES,
    ".ntriples": ox.RdfFormat.N_TRIPLES,
}
_TOO_LONG_REASON = "one of its literals, names or comments is longer than 16 MB, the limit of the graph's parser"
_SAMPLE_SIZE = 50
"""Values of a relation that are sampled to infer their kind."""
_LANGUAGE = "en"
"""The language of readers."""


def _build_name_schema() -> tantivy.Schema:
    builder = tantivy.SchemaBuilder()
    builder.add_text_field("key", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("words", tokenizer_name=ANALYZER_NAME)
    builder.add_text_field("entity", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_unsigned_field("kind", stored=True, indexed=True)
    return builder.build()


class NameIndexWriter(IndexWriter):
    """Writes a new index of names."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, _build_name_schema(), 32_000_000)

    def add(self, name: str, entity: str, kind: str) -> None:
        """Add one name of an entity; kind is one of NAME_KINDS."""
        document = tantivy.Document()
        document.add_text("key", normalize_name(name))
        document.add_text("words", name)
        document.add_text("entity", entity)
        document.add_unsigned("kind", NAME_KINDS.index(kind))
        self.add_document(document)


class NameIndex(IndexReader):
    """The names of a world folder; safe to share between threads."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "names")

    def find(self, name: str, k: int) -> list[str]:
        """Ids of entities by name, best match first: whole names, then prefixes, then names that contain the words."""
        ids: dict[str, None] = dict.fromkeys(self._find_exact(name, k))
        words = self._analyzer.analyze(replace_surrogates(name))[:_MAX_NAME_WORDS]
        if len(ids) < k and words:
            normalized = normalize_name(name)
            matches = self._run_query(self._containing_query(words), max(50, 4 * k))
            matches.sort(key=lambda match: (not match[1].startswith(normalized), match[2], len(match[1])))
            ids |= dict.fromkeys(entity for entity, _, _ in matches)
        return list(ids)[:k]

    def find_by_title(self, title: str) -> list[str]:
        """The ids of the entities whose article has this title, ignoring case."""
        title_query = Query.boolean_query(
            [
                (Occur.Must, self._exact_query(title)),
                (Occur.Must, Query.term_query(self._schema, "kind", NAME_KINDS.index("title"))),
            ]
        )
        return [entity for entity, _, _ in self._run_query(title_query, 5)]

    def has(self, name: str) -> bool:
        """Whether an entity has exactly this name, ignoring case."""
        return bool(self._run_query(self._exact_query(name), 1))

    def _find_exact(self, name: str, k: int) -> list[str]:
        matches = self._run_query(self._exact_query(name), max(20, 2 * k))
        return [entity for entity, _, _ in sorted(matches, key=lambda match: match[2])]

    def _exact_query(self, name: str) -> Query:
        return Query.term_query(self._schema, "key", normalize_name(name), "basic")

    def _containing_query(self, words: Sequence[str]) -> Query:
        *whole_words, prefix = words
        word_queries = [Query.term_query(self._schema, "words", word, "freq") for word in whole_words]
        prefix_query = Query.regex_query(self._schema, "words", f"{prefix}.*")
        return Query.boolean_query([(Occur.Must, query) for query in [*word_queries, prefix_query]])

    def _run_query(self, query: Query, limit: int) -> list[tuple[str, str, int]]:
        matches = []
        for _, address in self._searcher.search(query, limit, count=False).hits:
            document = self._searcher.doc(address)
            matches.append(
                (
                    str(document.get_first("entity")),
                    str(document.get_first("key")),
                    int(document.get_first("kind") or 0),
                )
            )
        return matches


_MODULUS = 1 << 256


class Fingerprint:
    """The sum of the SHA-256 of every part: equal for equal parts in any order, in constant memory."""

    def __init__(self) -> None:
        self._sum = 0
        self.count = 0

    def add(self, part: str) -> None:
        """Add one part."""
        self._sum = (self._sum + int.from_bytes(hashlib.sha256(part.encode()).digest())) % _MODULUS
        self.count += 1

    def hexdigest(self) -> str:
        """The fingerprint in hexadecimal."""
        return hashlib.sha256(f"{self.count} {self._sum:064x}".encode()).hexdigest()


class GraphWriter:
    """Loads triples into a new store, then writes its index of names and its list of relations."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._store = ox.Store(str(folder / GRAPH_FOLDER))
        self.triples = 0
        self.entities: set[str] = set()
        self.relations: list[Relation] = []

    def load(self, file: Path) -> None:
        """Load a Turtle or N-Triples file, plain or gzipped; MalformedFile names the malformed line."""
        suffixes = [suffix for suffix in file.suffixes if suffix != ".gz"]
        rdf = GRAPH_FORMATS.get(suffixes[-1].lower()) if suffixes else None
        if rdf is None:
            raise MalformedFile(file, None, f"its format is unknown; known formats are {', '.join(GRAPH_FORMATS)}")
        require_shallow_triple_terms(file)
        with open_bytes(file) as stream:
            with reading(file):
                # The parser takes a byte order mark for a part of the first name.
                if stream.peek(len(BOM_UTF8)).startswith(BOM_UTF8):
                    stream.read(len(BOM_UTF8))
            self.load_stream(stream, rdf, file)

    def load_stream(self, stream: Any, rdf: ox.RdfFormat, name: Path) -> None:
        """Load an open file of triples."""
        try:
            self._store.bulk_load(stream, format=rdf)
        except SyntaxError as error:
            raise MalformedFile(name, error.lineno, str(error.msg)) from error
        except MemoryError as error:
            raise MalformedFile(name, None, _TOO_LONG_REASON) from error
        except (*DECOMPRESSION_ERRORS, ValueError) as error:
            raise MalformedFile(name, None, str(error)) from error

    def finish(self, articles: Iterable[tuple[str, str]], fingerprint: Fingerprint) -> None:
        """Count the triples, and write the index of names and the list of relations.

        `articles` are pairs of an article's title and the entity that it is about.
        """
        self._count_triples(fingerprint)
        self._write_names(articles)
        self.relations = self._build_relations()
        relations_json = json.dumps([asdict(relation) for relation in self.relations], ensure_ascii=False, indent=1)
        (self._folder / RELATIONS_FILE).write_text(relations_json, encoding="utf-8")
        self._store.optimize()
        self._store.flush()

    def _count_triples(self, fingerprint: Fingerprint) -> None:
        for quad in self._store:
            self.triples += 1
            # The names of blank nodes differ between stores, so the fingerprint leaves them out.
            node_texts = ["_:" if isinstance(end, ox.BlankNode) else str(end) for end in (quad.subject, quad.object)]
            fingerprint.add(f"{node_texts[0]} {quad.predicate} {node_texts[1]}")
            subject = quad.subject
            if isinstance(subject, ox.NamedNode) and quad.predicate.value not in terms.NAMING_PREDICATES:
                self.entities.add(terms.shorten_iri(subject.value))
                if isinstance(quad.object, ox.NamedNode):
                    self.entities.add(terms.shorten_iri(quad.object.value))

    def _write_names(self, articles: Iterable[tuple[str, str]]) -> None:
        with closing(NameIndexWriter(self._folder / NAMES_FOLDER)) as names:
            for predicate, kind in ((terms.RDFS_LABEL, "label"), (terms.SKOS_ALT_LABEL, "alias")):
                for quad in self._store.quads_for_pattern(None, ox.NamedNode(predicate), None, None):
                    if isinstance(quad.subject, ox.NamedNode) and isinstance(quad.object, ox.Literal):
                        names.add(quad.object.value, terms.shorten_iri(quad.subject.value), kind)
            titles = dict.fromkeys(articles)
            for quad in self._store.quads_for_pattern(None, ox.NamedNode(terms.SCHEMA_ABOUT), None, None):
                if isinstance(quad.subject, ox.NamedNode) and isinstance(quad.object, ox.NamedNode):
                    title = terms.title_from_page_iri(quad.subject.value)
                    if title is not None:
                        titles[(title, terms.shorten_iri(quad.object.value))] = None
            for title, entity in titles:
                names.add(title, entity, "title")

    def _build_relations(self) -> list[Relation]:
        predicate_counts = Counter(quad.predicate.value for quad in self._store)
        relations = [
            self._build_relation(iri) for iri in sorted(predicate_counts) if iri not in terms.NAMING_PREDICATES
        ]
        return sorted(relations, key=lambda relation: relation.id)

    def _build_relation(self, iri: str) -> Relation:
        # Wikidata labels the property's entity, not the predicate that leads to a value.
        subjects = [ox.NamedNode(iri)]
        if terms.is_entity(iri):
            subjects.append(ox.NamedNode(terms.ENTITY_NAMESPACE + terms.shorten_iri(iri)))
        labels = self._select_texts(subjects, terms.RDFS_LABEL)
        aliases = self._select_texts(subjects, terms.SKOS_ALT_LABEL)
        label = labels[0] if labels else terms.label_from_iri(iri)
        other_names = tuple(name for name in dict.fromkeys([*labels[1:], *aliases]) if name != label)
        return Relation(terms.shorten_iri(iri), label, other_names, self._infer_value_kind(iri))

    def _select_texts(self, subjects: list[ox.NamedNode], predicate: str) -> list[str]:
        quads = (q for s in subjects for q in self._store.quads_for_pattern(s, ox.NamedNode(predicate), None, None))
        objects = {quad.object for quad in quads if isinstance(quad.object, ox.Literal)}
        return terms.select_by_language(sorted((text.value, text.language or "") for text in objects), _LANGUAGE)

    def _infer_value_kind(self, iri: str) -> str:
        kinds: Counter[str] = Counter()
        for quad in islice(self._store.quads_for_pattern(None, ox.NamedNode(iri), None, None), _SAMPLE_SIZE):
            kinds[_term_kind(quad.object)] += 1
        return kinds.most_common(1)[0][0]


def _term_kind(term: Any) -> str:
    return terms.classify_datatype(term.datatype.value) if isinstance(term, ox.Literal) else "entity"


_QUEUE_TIMEOUT = 30.0
_BATCH_SIZE = 50
"""Entities in one request to a worker."""
_MAX_ALIASES = 50


class EmbeddedGraph:
    """The graph of a world folder; safe to share between threads, each query within its limits."""

    def __init__(
        self, folder: Path, articles: EmbeddedText | None = None, limits: QueryLimits | None = None, workers: int = 2
    ) -> None:
        if not (folder / GRAPH_FOLDER).is_dir():
            raise SourceUnavailable(f"There is no graph in {folder}; import the world again with --graph.")
        self._articles = articles
        self._names = NameIndex(folder / NAMES_FOLDER)
        self._vocabulary = load_relations(folder / RELATIONS_FILE)
        self._workers = [GraphWorker(folder / GRAPH_FOLDER, limits or QueryLimits()) for _ in range(workers)]
        # Last in, first out: while one process is enough, the others are not started.
        self._idle: queue.LifoQueue[GraphWorker] = queue.LifoQueue()
        for worker in self._workers:
            self._idle.put(worker)
        atexit.register(self.close)

    def close(self) -> None:
        """Stop the worker processes; a later query starts new ones."""
        for worker in self._workers:
            worker.close()

    def query(self, sparql: str) -> Table:
        """The result of a SELECT or ASK, stopped at its limits; usual prefixes need no declaration."""
        check_query(sparql)
        reply = self._send_request({"sparql": sparql})
        if "boolean" in reply:
            return Table(boolean=reply["boolean"])
        rows = tuple(tuple(Cell(**cell) if cell else None for cell in row) for row in reply["rows"])
        return Table(tuple(reply["columns"]), rows, truncated=reply["truncated"])

    def vocabulary(self) -> tuple[Relation, ...]:
        """Every relation of the graph, by id."""
        return self._vocabulary

    def relations(self, entity: str) -> Relations:
        """The relations that occur with the entity; NotFound if the graph does not know it."""
        self._require_entity(entity)
        by_iri = {terms.expand_predicate(relation.id): relation for relation in self._vocabulary}
        reply = self._send_request({"relate": terms.expand_id(entity), "relations": list(by_iri)})
        return Relations(*(tuple(by_iri[iri] for iri in reply[direction]) for direction in ("outgoing", "incoming")))

    def entities(self, ids: Sequence[str]) -> list[Entity]:
        """The entities or properties of these ids, in their order; unknown ones are left out."""
        iris_by_id = {entity: iri for entity in ids if (iri := terms.expand_id(entity.strip()))}
        entities: dict[str, Entity] = {}
        iris = list(dict.fromkeys(iris_by_id.values()))
        for start in range(0, len(iris), _BATCH_SIZE):
            for facts in self._send_request({"describe": iris[start : start + _BATCH_SIZE]})["entities"]:
                entity = self._build_entity(facts)
                if entity is not None:
                    entities[facts["iri"]] = entity
        return [
            entities[iris_by_id[entity]] for entity in ids if entity in iris_by_id and iris_by_id[entity] in entities
        ]

    def entity_of(self, title: str) -> Entity:
        """The entity that the article with this title is about; NotFound if there is none."""
        candidates = list(self._names.find_by_title(title))
        if self._articles is not None:
            try:
                article = self._articles.article(title)
            except NotFound:
                if not candidates:
                    raise
            else:
                candidates = [article.entity, *candidates] if article.entity is not None else candidates
        for candidate in candidates:
            matches = self.entities([candidate])
            return matches[0] if matches else Entity(candidate, title, title=title)
        raise NotFound(f"No entity of this world's graph is known for the article {title!r}; try searching its name.")

    def find(self, name: str, k: int = 5) -> list[Entity]:
        """Entities by label, title or alias, best match first."""
        return self.entities(self._names.find(name, k))

    def has_name(self, name: str) -> bool:
        """Whether an entity has exactly this label, title or alias, ignoring case."""
        return self._names.has(name)

    def _require_entity(self, entity: str) -> Entity:
        matches = self.entities([entity])
        if not matches:
            raise NotFound(f"This world's graph does not know {entity!r}; ids look like Q42, or are full IRIs.")
        return matches[0]

    def _build_entity(self, facts: dict[str, Any]) -> Entity | None:
        entity = terms.shorten_iri(facts["iri"])
        titles = [
            title
            for page in sorted(facts["pages"], key=_english_sort_key)
            if (title := terms.title_from_page_iri(page))
        ]
        if self._articles is not None:
            titles += [article.title for article in self._articles.find_by_entity(entity)]
        if not (facts["known"] or titles):
            return None
        labels, other_names, descriptions = (
            terms.select_by_language(facts[name], _LANGUAGE) for name in ("labels", "aliases", "descriptions")
        )
        label = next(iter([*labels, *titles]), None) or terms.label_from_iri(facts["iri"])
        aliases = [name for name in other_names if name != label][:_MAX_ALIASES]
        return Entity(entity, label, next(iter(descriptions), None), tuple(aliases), next(iter(titles), None))

    def _send_request(self, request: dict[str, Any]) -> dict[str, Any]:
        with self._borrow_worker() as worker:
            return worker.request(request)

    @contextmanager
    def _borrow_worker(self) -> Iterator[GraphWorker]:
        try:
            worker = self._idle.get(timeout=_QUEUE_TIMEOUT)
        except queue.Empty:
            raise SourceTimeout(f"The graph was busy with other queries for {_QUEUE_TIMEOUT:g} s; try again.") from None
        try:
            yield worker
        finally:
            self._idle.put(worker)


def _english_sort_key(page: str) -> tuple[bool, str]:
    return not page.startswith("https://en."), page


def load_relations(file: Path) -> tuple[Relation, ...]:
    """The relations in a file that GraphWriter wrote."""
    try:
        rows = load_json(file.read_text(encoding="utf-8"))
        return tuple(Relation(row["id"], row["label"], tuple(row["aliases"]), row["value"]) for row in rows)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SourceUnavailable(f"The relations {file} cannot be read ({error}); build the world again.") from error
