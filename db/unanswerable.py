"""The answer that a question cannot be answered, with its reason: a reserved text, so that every format carries it.

    write_unanswerable(UnanswerableReason.FALSE_PREMISE)  # This question cannot be answered: its premise is false.

People, reasoners and gold answers give it like any other answer. A run that refuses its question gives no answer.
"""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Text, cast, or_
from sqlalchemy.orm import InstrumentedAttribute

_OPENING = "This question cannot be answered"


class UnanswerableReason(StrEnum):
    """Why a question cannot be answered."""

    FALSE_PREMISE = "false premise"
    NOT_IN_SOURCES = "not in the sources"
    AMBIGUOUS = "ambiguous"
    UNSTATED = "no reason given"

    @property
    def is_stated(self) -> bool:
        """Whether it is a reason that can be chosen."""
        return self != UnanswerableReason.UNSTATED


CANNOT_BE_ANSWERED = "cannot be answered"
"""The group of the questions whose gold answer is this one, in place of their kind."""
_CLAUSES = {
    UnanswerableReason.FALSE_PREMISE: "its premise is false",
    UnanswerableReason.NOT_IN_SOURCES: "the sources do not say it",
    UnanswerableReason.AMBIGUOUS: "it has more than one meaning",
}
_REASONS = {text: reason for reason, clause in _CLAUSES.items() for text in (clause, str(reason))}


def write_unanswerable(reason: UnanswerableReason | str) -> str:
    """The answer for this reason; ValueError for a text that names none."""
    clause = _CLAUSES.get(UnanswerableReason(reason))
    return f"{_OPENING}: {clause}." if clause else f"{_OPENING}."


def read_unanswerable(answer: str | None) -> UnanswerableReason | None:
    """The reason that the answer gives; None if it is another answer."""
    words = " ".join((answer or "").split()).casefold()
    opening, rest = words[: len(_OPENING)], words[len(_OPENING) :]
    if opening != _OPENING.casefold() or rest[:1] not in ("", ".", ":"):
        return None
    return _REASONS.get(rest.strip(" .:"), UnanswerableReason.UNSTATED)


def normalize_unanswerable(answer: str) -> str | None:
    """The answer as it is stored, a reason in other words included; None if it is another answer."""
    reason = read_unanswerable(answer)
    if reason is None:
        return None
    rest = " ".join(answer.split())[len(_OPENING) :].strip(" .:")
    is_remark = reason == UnanswerableReason.UNSTATED and rest.casefold() != reason and rest
    return f"{_OPENING}: {rest}." if is_remark else write_unanswerable(reason)


def find_gold_reason(golds: Iterable[Mapping[str, Any]]) -> UnanswerableReason | None:
    """The reason that gold answers give; None if the question can be answered, or if that is unknown."""
    reasons = (read_unanswerable(str(gold.get("text", ""))) for gold in golds)
    return next(filter(None, reasons), None)


def group_of_question(kind: str | None, golds: Iterable[Mapping[str, Any]]) -> str | None:
    """The group that figures count a question in: its kind, or that it cannot be answered."""
    return CANNOT_BE_ANSWERED if find_gold_reason(golds) else kind


def says_unanswerable(answer: InstrumentedAttribute[str | None]) -> ColumnElement[bool]:
    """Condition: a stored answer says that its question cannot be answered."""
    return or_(answer.like(f"{_OPENING}.%"), answer.like(f"{_OPENING}:%"))


def gold_says_unanswerable(golds: InstrumentedAttribute[list[dict[str, Any]]]) -> ColumnElement[bool]:
    """Condition: stored gold answers say that their question cannot be answered."""
    return cast(golds, Text).contains(_OPENING)
