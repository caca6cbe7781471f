"""What gold solutions speak of, with its name and its id: people, places, jobs, hobbies, days, numbers, truths."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from fiction.generator.items import FEMALE, ITEM_KINDS, MALE, ItemCatalog
from fiction.questions.names import NameFormatter
from fiction.universe.universe import IdArray, Universe

MAX_ANSWERS_SHOWN = 20
"""Names of one step's answers, and facts of one step, that a gold solution writes out."""


@dataclass(frozen=True, slots=True)
class ThingCatalog:
    """The names and ids of everything in one universe."""

    universe: Universe
    items: ItemCatalog
    names: NameFormatter

    def sentence_text(self, kind: str, number: int) -> str:
        """What a sentence calls it; female and male of the kind gender."""
        return _gender_name(number) if kind == "gender" else self.names.question_text(kind, number)

    def answer_text(self, kind: str, number: int) -> str:
        """What an answer calls it: as in a sentence, but a day as an ISO date."""
        return _gender_name(number) if kind == "gender" else self.names.answer_text(kind, number)

    def entity_id(self, kind: str, number: int) -> str | None:
        """Its id in the graph; None for what is no item there."""
        if kind == "gender":
            return FEMALE if number else MALE
        entity: str | None = getattr(self.items, kind)(number) if kind in ITEM_KINDS else None
        return entity

    def encode_answers(self, kind: str, values: IdArray) -> Iterator[dict[str, str | None]]:
        """Every value as {"text", "entity"}."""
        for number in values.tolist():
            yield {"text": self.answer_text(kind, number), "entity": self.entity_id(kind, number)}

    def encode_bounded_answers(self, kind: str, values: IdArray) -> dict[str, Any]:
        """The first values and how many there are: {"answers", "count"}, with "left_off" when not all are written."""
        encoded = {"answers": list(self.encode_answers(kind, values[:MAX_ANSWERS_SHOWN])), "count": len(values)}
        return encoded | {"left_off": len(values) - MAX_ANSWERS_SHOWN} if len(values) > MAX_ANSWERS_SHOWN else encoded


def _gender_name(number: int) -> str:
    return "female" if number else "male"
