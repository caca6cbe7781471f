"""Values, and how an answer follows from observed values: by one of a closed set of derivations, DERIVATIONS.

Values that are not known exactly enough for a comparison decide no answer.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from showhow.reasoners.answers.dates_and_numbers import ISO_DATE, read_days
from showhow.reasoners.answers.normalization import parse_answer
from showhow.worlds.text_normalization import normalize_name

ENTITY, DATE, NUMBER, TEXT = "entity", "date", "number", "text"


class Mismatch(Exception):
    """A trace, a question or an observation does not fit; the message is a clause that says why."""


class NoValue(Mismatch):
    """There is nothing that could be the answer."""


class ReplayValue(NamedTuple):
    """A value of the question or of an observation: its text, and its id if it is an entity."""

    text: str
    id: str | None = None

    @property
    def kind(self) -> str:
        """entity, date, number or text."""
        if self.id is not None:
            return ENTITY
        return DATE if read_days(self.text) else NUMBER if re.fullmatch(r"-?\d+(?:\.\d+)?", self.text) else TEXT

    @property
    def key(self) -> str:
        """What is compared: the id, or else the days or the name."""
        return self.id or str(read_days(self.text) or normalize_name(self.text))

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the greatest number that it may stand for; Mismatch if it is no date and no number."""
        if self.kind not in (DATE, NUMBER):
            raise Mismatch(f"{self.text} cannot be compared")
        return read_days(self.text) or (float(self.text), float(self.text))


Values = Sequence[ReplayValue]
LookUpRows = Sequence[tuple[ReplayValue, Values]]
"""Subjects, each with its values."""


def unique_values(rows: LookUpRows) -> list[ReplayValue]:
    """The values of all subjects, each once."""
    return list({value.key: value for _, values in rows for value in values}.values())


def list_values(data: Mapping[str, Any] | None) -> dict[str, list[ReplayValue]]:
    """The values in each list of an observation by its path; rows give their first column, search results nothing."""
    lists: dict[str, list[ReplayValue]] = {}
    for name, items in ((name, items) for name, items in (data or {}).items() if isinstance(items, list)):
        cells = [item[0] if isinstance(item, list) and len(item) == 1 else item for item in items]
        if all(isinstance(cell, Mapping) and "snippet" not in cell for cell in cells):
            lists[f"/{name}"] = [value for value in map(_parse_value, cells) if value is not None]
    return lists


def _parse_value(cell: Mapping[str, Any]) -> ReplayValue | None:
    literal = cell.get("literal", cell.get("value") if cell.get("kind") == "literal" else None)
    if isinstance(literal, str):
        # Graphs such as Wikidata write a year of which no day is known as the start of its first day.
        year, is_start, _ = literal.partition("-01-01T00:00:00Z")
        day = year.lstrip("0") if is_start else literal.partition("T")[0]
        return ReplayValue(day if ISO_DATE.fullmatch(literal) else literal)
    identifier = cell.get("id") or cell.get("entity") or (cell.get("value") if cell.get("kind") == ENTITY else None)
    text = cell.get("label") or cell.get("title") or identifier
    return ReplayValue(str(text), identifier) if text else None


ALL, COUNT, NONE, COMMON, OVERLAP, NOT_AFTER = "all", "count", "none", "common", "overlap", "not after"
FILTERS, ORDERS, SHARED = ("equal", "before", "after"), ("least", "greatest"), ("same", "different")
SEPARATOR, COUNT_OF = ", ", "count of "
YES_OR_NO = {True: "yes", False: "no"}
DERIVATIONS = {
    ALL: "all values of the last look-up",
    COUNT: "their number",
    NONE: "that there is none",
    "least": "the one with the least value",
    "greatest": "the one with the greatest value",
    "same": "whether the values are the same",
    "different": "whether the values differ",
    COMMON: "the values that both have",
    NOT_AFTER: "whether the first value is not after the second",
    OVERLAP: "whether the times overlap",
    "equal": "those with the given value",
    "before": "those before the given time",
    "after": "those after the given time",
    f"{COUNT_OF}equal": "the number of those with the given value",
    f"{COUNT_OF}before": "the number of those before the given time",
    f"{COUNT_OF}after": "the number of those after the given time",
}
"""The ways in which an answer follows from what was looked up, each with what the answer is."""
OPPOSITES = {"least": "greatest", "greatest": "least", "before": "after", "after": "before"}


@dataclass(frozen=True, slots=True)
class Evidence:
    """What an answer is derived from."""

    results: Sequence[tuple[str, LookUpRows]]
    """The look-ups whose values no other look-up takes, each with the text of the slot that it begins with."""
    given: ReplayValue | None = None
    """The value that the question names beside its subjects."""
    shows_ids: bool = False
    """Whether the answer has the id of each entity after its name."""
    allows_missing: bool = False
    """Whether a subject may have no value: it then meets no condition, and is not compared."""

    @property
    def subjects(self) -> dict[str, list[Values]]:
        """What is compared, each with the values of its look-ups."""
        if len(self.results) == 1:
            return {name.text: [own] for name, own in self.results[0][1] if own or not self.allows_missing}
        subjects: dict[str, list[Values]] = {}
        for root, rows in self.results:
            subjects.setdefault(root, []).append(unique_values(rows))
        return subjects

    def format(self, values: Values) -> str:
        """The values as a list; NoValue for none."""
        if not values:
            raise NoValue("no value was observed that could be the answer")
        return SEPARATOR.join(f"{v.text} ({v.id})" if self.shows_ids and v.id else v.text for v in values)


def recognize_derivation(evidence: Evidence, answer: str) -> str | None:
    """The derivation by which the answer follows; None if there is none, or two that would differ elsewhere."""
    names: tuple[str, ...] = (ALL, COUNT, NONE, *ORDERS)
    if evidence.given is not None:
        names = (*FILTERS, *(COUNT_OF + name for name in FILTERS))
    elif len(evidence.results) > 1:
        names = (*ORDERS, *SHARED, COMMON, NOT_AFTER, OVERLAP)
    matching = [name for name in names if _gives(name, evidence, answer)]
    return matching[0] if len(matching) == 1 else None


def _gives(name: str, evidence: Evidence, answer: str) -> bool:
    try:
        derived = derive_answer(name, evidence)
    except Mismatch:
        has_values = any(unique_values(rows) for _, rows in evidence.results)
        return name == NONE and parse_answer(answer).words == ("none",) and not has_values
    own, other = (sorted(ReplayValue(part).key for part in text.split(SEPARATOR)) for text in (derived, answer))
    return normalize_name(derived) == normalize_name(answer) or own == other


def derive_answer(name: str, evidence: Evidence) -> str:
    """Apply a derivation; Mismatch if the values do not decide the answer."""
    rows, condition = evidence.results[0][1], name.removeprefix(COUNT_OF)
    values = unique_values(rows)
    if condition in FILTERS:
        values = [subject for subject, own in rows if _meets(condition, own, evidence)]
    if name == COUNT_OF + condition or (name == COUNT and (values or (rows and evidence.allows_missing))):
        return str(len(values))
    if name in (ALL, COUNT, NONE, *FILTERS):
        return evidence.format(() if name in (COUNT, NONE) else values)
    if name in ORDERS:
        return _find_extreme(evidence.subjects, -1 if name == "greatest" else 1)
    pairs = list(evidence.subjects.values())
    if len(pairs) != 2 or (name == OVERLAP) == (len(pairs[0]) == len(pairs[1]) == 1):
        raise Mismatch("these values are not compared so")
    one, other = pairs
    if name in (OVERLAP, NOT_AFTER):
        orders = [(one[0], other[-1]), *([(other[0], one[-1])] if name == OVERLAP else [])]
        return YES_OR_NO[all(_is_not_after(begin, end, evidence) for begin, end in orders)]
    common = [value for value in one[0] if value.key in {own.key for own in other[0]}]
    if not one[0] or not other[0] or {value.kind for value in (*one[0], *other[0])} == {DATE}:
        raise Mismatch("there are not two values to compare, or they are dates")
    return evidence.format(common) if name == COMMON else YES_OR_NO[bool(common) == (name == "same")]


def _single(values: Values) -> ReplayValue:
    if not values:
        raise Mismatch("nothing was observed of one that is compared")
    if len({value.key for value in values}) != 1:
        raise Mismatch(f"there are {len(values)} values where one is compared")
    return values[0]


def _compare(values: Values, other: ReplayValue) -> int:
    """-1, 0 or 1 as a value is before, within or after another one; Mismatch if it is not known exactly enough."""
    (low, high), (least, greatest) = _single(values).bounds, other.bounds
    if low < least <= high or low <= greatest < high:
        raise Mismatch(f"{values[0].text} is not exact enough to compare with {other.text}")
    return (low > greatest) - (high < least)


def _meets(condition: str, values: Values, evidence: Evidence) -> bool:
    """Whether the values of a subject compare with the given one so."""
    given = evidence.given
    if given is None or (not values and not evidence.allows_missing):
        raise Mismatch("a subject has no value to compare")
    if condition == "equal" or not values:
        return any(given.key in (value.key, normalize_name(value.text)) for value in values)
    return _compare(values, given) == (-1 if condition == "before" else 1)


def _is_not_after(one: Values, other: Values, evidence: Evidence) -> bool:
    if not other and evidence.allows_missing:
        # A span without an end is not over.
        return True
    order = _compare(one, _single(other))
    if {one[0].kind, other[0].kind} != {DATE} or (order == 0 and one[0].bounds != other[0].bounds):
        raise Mismatch(f"{one[0].text} and {other[0].text} are no dates that are exact enough to compare")
    return order < 1


def _find_extreme(subjects: Mapping[str, list[Values]], sign: int) -> str:
    """The only subject with the least value, or span between two values, times the sign."""
    if unknown := [name for name, lists in subjects.items() if not all(lists)]:
        raise Mismatch(f"nothing was observed of {unknown[0]}")
    if len(subjects) < 2 or len({value.kind for lists in subjects.values() for own in lists for value in own}) > 1:
        raise Mismatch("there are not two values of one kind to compare")
    spans: dict[str, list[float]] = {}
    for name, lists in subjects.items():
        (low, high), *begin = [_single(values).bounds for values in reversed(lists)]
        for least, greatest in begin:
            low, high = low - greatest, high - least
        spans[name] = sorted((low * sign, high * sign))
    for name, (_, high) in spans.items():
        if all(high < low for other, (low, _) in spans.items() if other != name):
            return name
    raise Mismatch("the values are equal, or not exact enough to compare")
