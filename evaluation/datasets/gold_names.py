"""Names of gold answers that are ids, as QALD's are: an import keeps those of the world's graph with them.

    names = GoldNames(lambda: world.graph)
    records = names.add_to(reader.iter_records())

A gold answer is then named by its label, its aliases and the title of its article, and still by its id, which the
official metrics compare.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from db.database import StoreError
from evaluation.datasets.graph_answers import find_qid
from evaluation.datasets.record import QuestionRecord, make_gold
from worlds import terms
from worlds.source import Entity, GraphSource, SourceError

_RECORDS_AT_ONCE = 100
"""The records whose ids are looked up together."""


def find_bare_id(gold: dict[str, Any]) -> str | None:
    """The id or IRI that is the whole text of a gold answer; None for one with a name in words."""
    text, entity = terms.strip_marks(gold["text"]), gold.get("entity")
    if entity:
        return entity if text == entity else None
    short = terms.shorten_iri(text.removeprefix("wd:"))
    return find_qid(short) or (text if "://" in text and terms.expand_id(text) else None)


class GoldNames:
    """Adds the names that a graph has to gold answers that are ids, and counts those whose ids it does not know."""

    def __init__(self, open_graph: Callable[[], GraphSource | None]) -> None:
        self._open_graph = open_graph
        self._entities: dict[str, Entity | None] = {}
        self.named = self.unnamed = 0
        self.first_unnamed = ""

    def add_to(self, records: Iterable[QuestionRecord]) -> Iterator[QuestionRecord]:
        """The records with named gold answers; StoreError if the graph gives no answer."""
        source = iter(records)
        while part := list(islice(source, _RECORDS_AT_ONCE)):
            ids = (find_bare_id(gold) for record in part for gold in record.gold_answers)
            self._look_up([one for one in dict.fromkeys(ids) if one and one not in self._entities])
            yield from (replace(record, gold_answers=list(map(self._name, record.gold_answers))) for record in part)

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
            if gold.get("entity") or find_qid(bare):
                self.unnamed += 1
                self.first_unnamed = self.first_unnamed or bare
            return gold
        self.named += 1
        title = [entity.title] if entity.title else []
        return make_gold(entity.label, entity.id, [*entity.aliases, *title, gold["text"]])
