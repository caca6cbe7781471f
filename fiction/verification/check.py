"""Results of a verification, and the check of every answer.

A check counts the things that were compared and lists the first differences between what a world states and what is
derived from its universe.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from fiction.questions.evaluate import ExpressionAnswer, ExpressionEvaluator
from fiction.questions.expressions import Expression, decode_expression
from fiction.questions.names import NameFormatter
from fiction.universe.items import ItemCatalog
from fiction.universe.universe import Universe

MAX_DIFFERENCES = 10
"""Differences listed per check; all are counted."""
_MAX_LENGTH = 300
"""Maximum characters of a value in a difference."""


@dataclass(frozen=True, slots=True)
class VerificationDifference:
    """A stated value that differs from the derived one; "" if there is none."""

    what: str
    stated: str
    derived: str

    def __str__(self) -> str:
        return f"{self.what}: stated {self.stated or 'nothing'}, derived {self.derived or 'nothing'}"


@dataclass(slots=True)
class VerificationCheck:
    """Result of comparing one kind of thing: numbers compared and different, and the first differences."""

    name: str
    checked: int = 0
    different: int = 0
    first: list[VerificationDifference] = field(default_factory=list)
    undecided: int = 0
    """Things that could not be compared within the limits, neither equal nor different."""

    def __str__(self) -> str:
        result = f"{self.different:,} differ" if self.different else "all equal"
        undecided = f", {self.undecided:,} undecided" if self.undecided else ""
        return f"{self.checked:,} {self.name}: {result if self.checked else 'nothing to compare'}{undecided}"

    def compare(self, name: str, stated: object, derived: object) -> None:
        """Compare two values and count the comparison."""
        self.checked += 1
        self.require_equal(name, stated, derived)

    def require_equal(self, name: str, stated: object, derived: object) -> None:
        """Add a difference if the values differ, without counting a comparison."""
        if stated != derived:
            self.add_difference(name, _format_value(stated), _format_value(derived))

    def compare_each(self, name: str, stated: Iterable[object], derived: Iterable[object]) -> None:
        """Compare two multisets; each member that only one of them has is a difference."""
        left, right = Counter(map(str, stated)), Counter(map(str, derived))
        self.checked += (left | right).total()
        for item in sorted((left - right).elements()):
            self.add_difference(name, item, "")
        for item in sorted((right - left).elements()):
            self.add_difference(name, "", item)

    def add_unreadable(self, name: str, error: Exception) -> None:
        """Count a malformed thing as compared and different."""
        self.checked += 1
        self.add_difference(name, "an unreadable value", f"{type(error).__name__} {error}")

    def add_difference(self, name: str, stated: str, derived: str) -> None:
        """Add a difference."""
        self.different += 1
        if len(self.first) < MAX_DIFFERENCES:
            self.first.append(VerificationDifference(name, stated, derived))


def _format_value(value: object) -> str:
    text = ", ".join(str(item) for item in value) if isinstance(value, (list, tuple)) else str(value)
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}…"


ROW_ERRORS = (KeyError, TypeError, IndexError, ValueError, AttributeError)
"""Errors that a malformed question row may raise."""


def check_answers(rows: Iterable[dict[str, Any]], universe: Universe) -> VerificationCheck:
    """Check the text and entity of all answers of all questions."""
    check = VerificationCheck("answers")
    for row in rows:
        name = format_question_name(row)
        try:
            derived = format_answers(ExpressionEvaluator(universe).evaluate(parse_row_expression(row)), universe)
            stated = [(answer["text"], answer.get("entity")) for answer in row["answers"]]
            check.compare(name, sorted(map(_format_answer, stated)), sorted(map(_format_answer, derived)))
        except ROW_ERRORS as error:
            check.add_unreadable(name, error)
    return check


def format_question_name(row: dict[str, Any]) -> str:
    """Name of a question in a difference."""
    return f"{row.get('text')} ({row.get('id')})"


def parse_row_expression(row: dict[str, Any]) -> Expression:
    """Expression of a row of questions.jsonl; KeyError or TypeError if it is malformed."""
    return decode_expression(row["expression"])


def format_answers(answer: ExpressionAnswer, universe: Universe) -> list[tuple[str, str | None]]:
    """Answers as (text, entity); the entity is None if the answer is no item."""
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
