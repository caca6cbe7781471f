"""A world's graph: queries and look-ups in worker processes over an Oxigraph store that nobody writes."""

import atexit
import json
import queue
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from worlds import terms
from worlds.folder import GRAPH, NAMES, RELATIONS
from worlds.names import Names
from worlds.source import Cell, Entity, NotFound, Relation, Relations, SourceTimeout, SourceUnavailable, Table
from worlds.sparql_guard import check_query
from worlds.text import EmbeddedText
from worlds.worker import Limits, Worker

_QUEUE_SECONDS = 30.0
_AT_ONCE = 50
"""Entities asked for in one request to a worker."""
_MOST_ALIASES = 50


class EmbeddedGraph:
    """The graph of a world folder; safe to share between threads, each query within its limits."""

    def __init__(
        self, folder: Path, articles: EmbeddedText | None = None, limits: Limits | None = None, workers: int = 2
    ) -> None:
        if not (folder / GRAPH).is_dir():
            raise SourceUnavailable(f"There is no graph in {folder}; import the world again with --graph.")
        self._articles = articles
        self._names = Names(folder / NAMES)
        self._vocabulary = read_relations(folder / RELATIONS)
        self._workers = [Worker(folder / GRAPH, limits or Limits()) for _ in range(workers)]
        # Last in, first out: while one process keeps up, the others need not be started.
        self._idle: queue.LifoQueue[Worker] = queue.LifoQueue()
        for worker in self._workers:
            self._idle.put(worker)
        atexit.register(self.close)

    def close(self) -> None:
        """End the worker processes; a later query starts new ones."""
        for worker in self._workers:
            worker.close()

    def query(self, sparql: str) -> Table:
        """The result of a SELECT or ASK, stopped at its limits; usual prefixes need no declaration."""
        check_query(sparql)
        reply = self._ask({"sparql": sparql})
        if "boolean" in reply:
            return Table(boolean=reply["boolean"])
        rows = tuple(tuple(Cell(**cell) if cell else None for cell in row) for row in reply["rows"])
        return Table(tuple(reply["columns"]), rows, truncated=reply["truncated"])

    def vocabulary(self) -> tuple[Relation, ...]:
        """Every relation of the graph, by id."""
        return self._vocabulary

    def relations(self, entity: str) -> Relations:
        """The relations that the entity really has; NotFound when the graph does not know it."""
        self._known(entity)
        by_iri = {terms.predicate_of(relation.id): relation for relation in self._vocabulary}
        reply = self._ask({"relate": terms.iri_of(entity), "relations": list(by_iri)})
        return Relations(*(tuple(by_iri[iri] for iri in reply[way]) for way in ("outgoing", "incoming")))

    def entities(self, ids: Sequence[str]) -> list[Entity]:
        """The entities or properties of these ids, in their order; unknown ones are left out."""
        wanted = {entity: iri for entity in ids if (iri := terms.iri_of(entity.strip()))}
        found: dict[str, Entity] = {}
        iris = list(dict.fromkeys(wanted.values()))
        for start in range(0, len(iris), _AT_ONCE):
            for facts in self._ask({"describe": iris[start : start + _AT_ONCE]})["entities"]:
                entity = self._entity(facts)
                if entity is not None:
                    found[facts["iri"]] = entity
        return [found[wanted[entity]] for entity in ids if entity in wanted and wanted[entity] in found]

    def entity_of(self, title: str) -> Entity:
        """The entity that the article of that title is about; NotFound when there is none."""
        candidates = list(self._names.titled(title))
        if self._articles is not None:
            try:
                article = self._articles.article(title)
            except NotFound:
                if not candidates:
                    raise
            else:
                candidates = [article.entity, *candidates] if article.entity is not None else candidates
        for candidate in candidates:
            known = self.entities([candidate])
            return known[0] if known else Entity(candidate, title, title=title)
        raise NotFound(f"No entity of this world's graph is known for the article {title!r}; try searching its name.")

    def find(self, name: str, k: int = 5) -> list[Entity]:
        """Entities called so, by label, title or alias, best first; [] when none is."""
        return self.entities(self._names.find(name, k))

    def _known(self, entity: str) -> Entity:
        known = self.entities([entity])
        if not known:
            raise NotFound(f"This world's graph does not know {entity!r}; ids look like Q42, or are full IRIs.")
        return known[0]

    def _entity(self, facts: dict[str, Any]) -> Entity | None:
        entity = terms.id_of(facts["iri"])
        titles = [title for page in sorted(facts["pages"], key=_english_first) if (title := terms.title_of_page(page))]
        if self._articles is not None:
            titles += [article.title for article in self._articles.articles_of(entity)]
        if not (facts["known"] or titles):
            return None
        labels = _in_english(facts["labels"])
        label = next(iter([*labels, *titles]), None) or terms.local_label(facts["iri"])
        aliases = [name for name in dict.fromkeys([*_in_english(facts["aliases"])]) if name != label][:_MOST_ALIASES]
        description = next(iter(_in_english(facts["descriptions"])), None)
        return Entity(entity, label, description, tuple(aliases), next(iter(titles), None))

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        with self._worker() as worker:
            return worker.ask(request)

    @contextmanager
    def _worker(self) -> Iterator[Worker]:
        try:
            worker = self._idle.get(timeout=_QUEUE_SECONDS)
        except queue.Empty:
            raise SourceTimeout(f"Other queries kept the graph busy for {_QUEUE_SECONDS:g} s; ask again.") from None
        try:
            yield worker
        finally:
            self._idle.put(worker)


def _english_first(page: str) -> tuple[bool, str]:
    return not page.startswith("https://en."), page


def _in_english(literals: list[list[str]]) -> list[str]:
    """The English ones; without any, those without a language, else all in the order of their languages."""
    for wanted in ("en", ""):
        chosen = [text for text, language in literals if language == wanted]
        if chosen:
            return sorted(chosen, key=lambda text: (len(text), text)) if wanted == "" else chosen
    return [text for text, _ in sorted(literals, key=lambda literal: (literal[1], literal[0]))]


def read_relations(file: Path) -> tuple[Relation, ...]:
    """The relations that the import found in the graph."""
    try:
        rows = json.loads(file.read_text(encoding="utf-8"))
        return tuple(Relation(row["id"], row["label"], tuple(row["aliases"]), row["value"]) for row in rows)
    except (OSError, ValueError, KeyError, TypeError) as broken:
        raise SourceUnavailable(f"The relations {file} cannot be read ({broken}); make the world again.") from broken
