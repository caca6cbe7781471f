"""Names of gold answers that are ids, as QALD's are: an import keeps those of the world's graph with them.

    names = GoldNames.of_world(services, "wikidata")
    records = names.add_to(reader.iter_records())

Questions that were stored without them get the names when they are scored, and stay as they are.

A gold answer is then named by its label, its aliases and the title of its article, and still by its id, which the
official metrics compare.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

from showhow.db.database import StoreError
from showhow.db.questions.question_record import QuestionRecord
from showhow.evaluation.datasets.record import make_gold
from showhow.runs.services import Services
from showhow.worlds import terms
from showhow.worlds.folder import WorldError
from showhow.worlds.source import Entity, GraphSource, SourceError

_RECORDS_AT_ONCE = 100
"""The records whose ids are looked up together."""


_WIKIDATA_ID = re.compile(
    r"(?:wdt?:|https?://(?:www\.)?wikidata\.org/(?:entity|wiki|prop/direct)/(?:Property:|Lexeme:)?)?([QPL][1-9]\d*)"
)
"""An item, a property or a lexeme: alone, with a prefix, or at one of its addresses."""


def find_bare_id(gold: dict[str, Any]) -> str | None:
    """The id or IRI that is the whole text of a gold answer; None for one with a name in words."""
    bare, entity = _read_id(gold["text"]), gold.get("entity")
    if entity:
        return entity if gold["text"] == entity or bare in (entity, _read_id(entity)) else None
    return bare


def _read_id(text: str) -> str | None:
    plain = terms.strip_marks(text).removeprefix("<").removesuffix(">")
    if match := _WIKIDATA_ID.fullmatch(plain):
        return match[1]
    return plain if "://" in plain and terms.expand_id(plain) else None


def open_world_graph(services: Services, world: str | None) -> GraphSource | None:
    """The graph of a world; None if there is no such world, or if it has none."""
    try:
        return services.open_world(world).graph if world else None
    except WorldError:
        return None


def open_gold_names(services: Services, world: str) -> "GoldNames":
    """The names that the graph of a world has; WorldError if there is no such world, or if it has no graph."""
    graph = services.open_world(world).graph
    if graph is None:
        raise WorldError(f"The world {world} has no graph, which names of gold answers are taken from.")
    return GoldNames(lambda: graph)


class GoldNames:
    """Adds the names that a graph has to gold answers that are ids, and counts those whose ids it does not know."""

    def __init__(self, open_graph: Callable[[], GraphSource | None]) -> None:
        self._open_graph = open_graph
        self._entities: dict[str, Entity | None] = {}
        self.named = self.unnamed = 0
        self.first_unnamed = ""

    @property
    def summary(self) -> str:
        """The numbers of gold answers that were ids, as a sentence."""
        without = f", {self.unnamed:,} have none there (first {self.first_unnamed})" if self.unnamed else ""
        return f"{self.named:,} gold answers that are ids have names from the world's graph{without}"

    @classmethod
    def of_world(cls, services: Services, world: str | None) -> "GoldNames":
        """The names that the graph of a world has, which is opened when the first of them is looked for."""
        return cls(partial(open_world_graph, services, world))

    def add_to(self, records: Iterable[QuestionRecord]) -> Iterator[QuestionRecord]:
        """The records with named gold answers; StoreError if the graph gives no answer."""
        source = iter(records)
        while part := list(islice(source, _RECORDS_AT_ONCE)):
            self.look_up(record.gold_answers for record in part)
            yield from (replace(record, gold_answers=self.name_all(record.gold_answers)) for record in part)

    def name_all(self, golds: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """The gold answers of a question with their names; StoreError if the graph gives no answer."""
        self.look_up([golds])
        return list(map(self._name, golds))

    def look_up(self, golds: Iterable[Sequence[dict[str, Any]]]) -> None:
        """Look up the ids among the gold answers of many questions at once; StoreError if the graph gives no answer."""
        ids = dict.fromkeys(bare for some in golds for gold in some if (bare := find_bare_id(gold)) is not None)
        self._look_up([one for one in ids if one not in self._entities])

    def _look_up(self, ids: Sequence[str]) -> None:
        graph = self._open_graph() if ids else None
        try:
            entities = graph.entities(ids) if graph is not None else []
        except SourceError as error:
            raise StoreError(
                f"the gold answers are ids, and the graph of the world could not be asked for their names ({error})"
            ) from error
        by_id = {entity.id: entity for entity in entities}
        # A graph with a namespace of its own has short ids for IRIs in it.
        self._entities |= {one: by_id.get(one) or by_id.get(one.rsplit("/", 1)[-1]) for one in ids}

    def _name(self, gold: dict[str, Any]) -> dict[str, Any]:
        bare = find_bare_id(gold)
        if bare is None:
            return gold
        entity = self._entities[bare]
        if entity is None or entity.label in (entity.id, bare):
            # An address that the graph does not know is an answer itself, such as that of a web site.
            if gold.get("entity") or _WIKIDATA_ID.fullmatch(bare):
                self.unnamed += 1
                self.first_unnamed = self.first_unnamed or bare
            return gold
        self.named += 1
        title = [entity.title] if entity.title else []
        return make_gold(entity.label, entity.id, [*entity.aliases, *title, gold["text"]])
