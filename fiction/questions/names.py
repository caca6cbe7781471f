"""Names and ids of what questions and gold answers speak of: people, places, jobs, hobbies, days, numbers, truths."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from typing import Any

from showhow.fiction.questions.evaluate import ExpressionEvaluator
from showhow.fiction.questions.expressions import Both, Having, Only, People, Related
from showhow.fiction.universe.items import FEMALE, ITEM_KINDS, MALE, ItemCatalog
from showhow.fiction.universe.relations import KinshipRelation, get_relation
from showhow.fiction.universe.universe import IdArray, Universe
from showhow.worlds.lexicon.english import pluralize

# The calendar module would use the locale of the machine.
MONTHS = "January February March April May June July August September October November December".split()


class NameFormatter:
    """Formats values of a universe; `plain` writes days as ISO dates, as the published articles do.

    `generator` is the version whose rules name people: 1, and `plain`, in the paper's nouns and in the singular.
    """

    def __init__(self, universe: Universe, *, plain: bool = False, generator: int = 1) -> None:
        self._universe = universe
        self._plain = plain
        self._generator = 1 if plain else generator
        self._evaluation = ExpressionEvaluator(universe)

    def relation_noun(self, relation: KinshipRelation, *, plural: bool = False) -> str:
        """The noun for a relation."""
        noun = relation.common_noun if self._generator > 2 else relation.singular
        return pluralize(noun) if plural else noun

    def is_plural(self, people: People) -> bool:
        """Whether an expression is named in the plural: it may denote several people, however many there are.

        By version 2, it denotes several.
        """
        if self._generator > 2:
            return _may_be_several(people)
        if self._generator == 1:
            return False
        if people not in self._evaluation.results:
            self._evaluation.evaluate(people)
        return len(self._evaluation.results[people][1]) > 1

    def person_title(self, row: int) -> str:
        """Title of the person's article: the name, for namesakes with the job in parentheses."""
        return self._universe.titles[row]

    def question_text(self, kind: str, number: int) -> str:
        """Format a value for a question: days as 5 March 1931."""
        if kind == "day" and not self._plain:
            return format_english_date(number)
        return self.answer_text(kind, number)

    def answer_text(self, kind: str, number: int) -> str:
        """Format a value for an answer: ISO dates, digits, yes or no, else the name."""
        places = self._universe.places
        match kind:
            case "person":
                return self._universe.titles[number]
            case "day":
                return date.fromordinal(number).isoformat()
            case "number":
                return str(number)
            case "truth":
                return "yes" if number else "no"
        texts = {
            "job": self._universe.jobs,
            "hobby": self._universe.hobbies,
            "town": places.towns,
            "region": places.regions,
            "country": places.countries,
        }
        return texts[kind][number]


def _may_be_several(people: People) -> bool:
    if isinstance(people, Related):
        return not get_relation(people.relation).is_single or _may_be_several(people.of)
    return isinstance(people, (Having, Only)) or (isinstance(people, Both) and isinstance(people.left, Having))


def format_english_date(day: int) -> str:
    """Format an ordinal as an English date: 5 March 1931."""
    when = date.fromordinal(day)
    return f"{when.day} {MONTHS[when.month - 1]} {when.year}"


MAX_ANSWERS_SHOWN = 20
"""Maximum answers, and maximum facts, that a gold solution lists for one step."""


@dataclass(frozen=True, slots=True)
class ThingCatalog:
    """Names and ids of the things that gold solutions mention; a thing is a kind and a number."""

    universe: Universe
    items: ItemCatalog
    names: NameFormatter

    def sentence_text(self, kind: str, number: int) -> str:
        """Name in a sentence; the kind "gender" gives female or male."""
        return _gender_name(number) if kind == "gender" else self.names.question_text(kind, number)

    def answer_text(self, kind: str, number: int) -> str:
        """Name in an answer: as in a sentence, but days as ISO dates."""
        return _gender_name(number) if kind == "gender" else self.names.answer_text(kind, number)

    def entity_id(self, kind: str, number: int) -> str | None:
        """Id in the graph; None if the thing is no item."""
        if kind == "gender":
            return FEMALE if number else MALE
        entity: str | None = getattr(self.items, kind)(number) if kind in ITEM_KINDS else None
        return entity

    def encode_answers(self, kind: str, values: IdArray) -> Iterator[dict[str, str | None]]:
        """Yield each value as {"text", "entity"}."""
        for number in values.tolist():
            yield {"text": self.answer_text(kind, number), "entity": self.entity_id(kind, number)}

    def encode_bounded_answers(self, kind: str, values: IdArray) -> dict[str, Any]:
        """Encode at most MAX_ANSWERS_SHOWN values: {"answers", "count"}, and "left_off" if some are left out."""
        encoded = {"answers": list(self.encode_answers(kind, values[:MAX_ANSWERS_SHOWN])), "count": len(values)}
        return encoded | {"left_off": len(values) - MAX_ANSWERS_SHOWN} if len(values) > MAX_ANSWERS_SHOWN else encoded


def _gender_name(number: int) -> str:
    return "female" if number else "male"
