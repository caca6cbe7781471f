"""Results of a verification, and the check of every answer.

A check counts the things that were compared and lists the first differences between what a world states and what is
derived from its universe.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from fiction.generator.items import ItemCatalog
from fiction.questions.evaluate import ExpressionAnswer, ExpressionEvaluator
from fiction.questions.expressions import Expression, decode_expression
from fiction.questions.names import NameFormatter
from fiction.universe.universe import Universe

MAX_DIFFERENCES = 10
"""Differences of a check that are kept in full; all are counted."""
_MAX_LENGTH = 300
"""Characters of a value that are shown."""


@dataclass(frozen=True, slots=True)
class VerificationDifference:
    """Something that is stated and what was derived instead."""

    what: str
    stated: str
    derived: str

    def __str__(self) -> str:
        return f"{self.what}: stated {self.stated or 'nothing'}, derived {self.derived or 'nothing'}"


@dataclass(slots=True)
class VerificationCheck:
    """One kind of thing that was compared, how many of them, and how many differ."""

    name: str
    checked: int = 0
    different: int = 0
    first: list[VerificationDifference] = field(default_factory=list)
    undecided: int = 0
    """Things that could not be compared within a limit; they count neither as equal nor as different."""

    def __str__(self) -> str:
        result = f"{self.different:,} differ" if self.different else "all equal"
        undecided = f", {self.undecided:,} undecided" if self.undecided else ""
        return f"{self.checked:,} {self.name}: {result if self.checked else 'nothing to compare'}{undecided}"

    def compare(self, what: str, stated: object, derived: object) -> None:
        """Count one comparison in; lists are shown with commas."""
        self.checked += 1
        self.require_equal(what, stated, derived)

    def require_equal(self, what: str, stated: object, derived: object) -> None:
        """Count a difference in, but nothing where both are equal, as for how many there are."""
        if stated != derived:
            self.add_difference(what, _format_value(stated), _format_value(derived))

    def compare_each(self, what: str, stated: Iterable[object], derived: Iterable[object]) -> None:
        """Count every member of both in; those that only one of them has differ."""
        left, right = Counter(map(str, stated)), Counter(map(str, derived))
        self.checked += (left | right).total()
        for item in sorted((left - right).elements()):
            self.add_difference(what, item, "")
        for item in sorted((right - left).elements()):
            self.add_difference(what, "", item)

    def add_unreadable(self, what: str, fault: Exception) -> None:
        """Count something in that cannot be read at all."""
        self.checked += 1
        self.add_difference(what, "what cannot be read", f"{type(fault).__name__} {fault}")

    def add_difference(self, what: str, stated: str, derived: str) -> None:
        """Count a difference in that was found otherwise."""
        self.different += 1
        if len(self.first) < MAX_DIFFERENCES:
            self.first.append(VerificationDifference(what, stated, derived))


def _format_value(value: object) -> str:
    text = ", ".join(str(item) for item in value) if isinstance(value, (list, tuple)) else str(value)
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}…"


ROW_ERRORS = (KeyError, TypeError, IndexError, ValueError, AttributeError)
"""What a row that is no question may raise."""


def check_answers(rows: Iterable[dict[str, Any]], universe: Universe) -> VerificationCheck:
    """Every answer of every question, text and entity."""
    check = VerificationCheck("answers")
    for row in rows:
        what = format_question_name(row)
        try:
            derived = format_answers(ExpressionEvaluator(universe).evaluate(parse_row_expression(row)), universe)
            stated = [(answer["text"], answer.get("entity")) for answer in row["answers"]]
            check.compare(what, sorted(map(_format_answer, stated)), sorted(map(_format_answer, derived)))
        except ROW_ERRORS as broken:
            check.add_unreadable(what, broken)
    return check


def format_question_name(row: dict[str, Any]) -> str:
    """What a difference calls a question."""
    return f"{row.get('text')} ({row.get('id')})"


def parse_row_expression(row: dict[str, Any]) -> Expression:
    """What a row of questions.jsonl asks; KeyError or TypeError for what is no question."""
    return decode_expression(row["expression"])


def format_answers(answer: ExpressionAnswer, universe: Universe) -> list[tuple[str, str | None]]:
    """Every answer as text, and its entity if it is one."""
    names, items = NameFormatter(universe), ItemCatalog(universe)
    item_of = {
        "person": items.person,
        "job": items.job,
        "hobby": items.hobby,
        "town": items.town,
        "region": items.region,
        "country": items.country,
    }.get(answer.kind)
    return [(names.answer_text(answer.kind, value), item_of(value) if item_of else None) for value in answer.values]


def _format_answer(answer: tuple[str, str | None]) -> str:
    text, entity = answer
    return f"{text} ({entity})" if entity else text
