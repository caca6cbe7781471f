"""How an answer follows from observations: a closed set of derivations, recognized in demonstrations and applied.

    all            every value of the last look-up
    count          the number of these values
    none           the words for no answer, where a look-up has no value
    equal          the subjects with a value that the question names; `before` and `after` compare it
    count of ...   the number of these subjects
    least          the subject with the earliest or smallest value; `greatest` the reverse
    same           "yes" if two subjects share a value, else "no"; `different` the reverse
    common         the values that two subjects share
    not after      "yes" if the first of two dates is not after the second
    shortest       the subject whose two values are the least apart; `longest` the reverse
    overlap        "yes" if two spans of time, of two values each, have a common point
    within         "yes" if the only value of one subject is not outside the two values of the other

A comparison of values that are not known exactly enough is no answer.

The values and words that replay compares stand here too: names, dates and numbers of questions and observations.
"""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from reasoners.answers.normalization import parse_answer
from reasoners.provenance import DATE_PATTERN, MONTHS, compile_name_pattern
from worlds.text_normalization import STOP_WORDS, normalize_name

ENTITY, DATE, NUMBER, TEXT = "entity", "date", "number", "text"
_DISTINGUISHING_WORDS = frozenset(
    (
        "after before during ever every how last many more most much no nor not only over same under until "
        "when where why"
    ).split()
)
FUNCTION_WORDS = (STOP_WORDS | {"than", "there", "doe"}) - _DISTINGUISHING_WORDS
"""Words that may differ between two questions with the same meaning."""
UNREMARKABLE_WORDS = FUNCTION_WORDS | _DISTINGUISHING_WORDS
"""Words that name no relation."""
_TOKEN = re.compile(r"[^\W_]+(?:[-.][^\W_]+)*(?:['’][^\W_]+)?\.?|\S")
_ISO_DATE = re.compile(r"(-?\d{4,})-(\d\d)-(\d\d)(?:T.*)?")


@dataclass(frozen=True, slots=True)
class ReplayValue:
    """A value of the question or of an observation: its text, and its id if it is an entity."""

    text: str
    id: str | None = None

    @property
    def kind(self) -> str:
        """entity, date, number or text."""
        if self.id is not None:
            return ENTITY
        if parse_date(self.text):
            return DATE
        return NUMBER if re.fullmatch(r"-?\d+(?:\.\d+)?", self.text) else TEXT

    @property
    def key(self) -> str:
        """What is compared: the id, or else the date or the name in one notation."""
        date = parse_date(self.text)
        return self.id or ("-".join(map(str, date)) if date else normalize_name(self.text))


Values = Sequence[ReplayValue]
LookUpRows = Sequence[tuple[ReplayValue, tuple[ReplayValue, ...]]]
"""Subjects, each with its values."""


def unique_values(values: Iterator[ReplayValue]) -> list[ReplayValue]:
    """The values, each once."""
    return list({value.key: value for value in values}.values())


def parse_date(text: str) -> tuple[int, int, int] | None:
    """Year, month and day of a text that is one date, 0 where it does not tell; None for any other text."""
    if match := _ISO_DATE.fullmatch(text.strip()):
        parts = (int(match[1]), int(match[2]), int(match[3]))
        # A date that is known to the year only is stored as its first day.
        return (parts[0], 0, 0) if parts[1:] == (1, 1) else parts
    if not DATE_PATTERN.fullmatch(text.strip()):
        return (int(text), 0, 0) if re.fullmatch(r"[12]\d{3}", text.strip()) else None
    month = next((index for index, name in enumerate(MONTHS, 1) if name in text), 0)
    numbers = [int(number) for number in re.findall(r"\d+", text)]
    year = next((number for number in numbers if number > 31), None)
    return None if year is None else (year, month, next((number for number in numbers if number <= 31), 0))


def tokenize(text: str) -> list[tuple[str, int, int]]:
    """The words of a text in lower case, each with its span; a possessive s is a word of its own."""
    tokens = []
    for match in _TOKEN.finditer(text):
        word, start = match.group().casefold().replace("’", "'"), match.start()
        if word.endswith("'s") and len(word) > 2:
            tokens += [(word[:-2], start, match.end() - 2), ("s", match.end() - 1, match.end())]
        elif any(map(str.isalnum, word)):
            tokens.append((word.rstrip("."), start, match.end()))
    return tokens


def list_values(data: Mapping[str, Any] | None) -> dict[str, list[ReplayValue]]:
    """The values in each list of an observation by its path; rows give their first column, search results nothing."""
    lists: dict[str, list[ReplayValue]] = {}
    for name, items in (data or {}).items():
        if isinstance(items, list):
            cells = [item[0] if isinstance(item, list) and len(item) == 1 else item for item in items]
            if all(isinstance(cell, Mapping) and "snippet" not in cell for cell in cells):
                lists[f"/{name}"] = [value for cell in cells if (value := _parse_value(cell)) is not None]
    return lists


def _parse_value(cell: Mapping[str, Any]) -> ReplayValue | None:
    literal = cell.get("literal", cell.get("value") if cell.get("kind") == "literal" else None)
    if isinstance(literal, str):
        return ReplayValue(literal.partition("T")[0] if _ISO_DATE.fullmatch(literal) else literal)
    identifier = cell.get("id") or cell.get("entity") or (cell.get("value") if cell.get("kind") == ENTITY else None)
    text = cell.get("label") or cell.get("title") or identifier
    return ReplayValue(str(text), identifier) if text else None


def stem(word: str) -> str:
    """The word without the ending of a plural."""
    word = re.sub(r"(?<=[^s]{2})s(?=-in-)|(?<=child)ren$", "", word)
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


FULL_NAME = re.compile(r"[^\W\d_a-z][\w'-]+(?: [^\W\d_a-z][\w'-]+)+")
_NAME_RUN = compile_name_pattern("of|the|de|von|van", numbers=False)


def read_context(sentence: str, start: int, end: int, subject: str) -> tuple[str, str]:
    """The two words before a span, with the subject's place; or the mark before a date, and what stands after it."""
    before = sentence[:start].replace(subject, "\x00").split()
    after = re.match(r"\s*([^\w\s]|\w+|$)", sentence[end:])
    is_marked = bool(before) and not before[-1][-1].isalnum()
    if parse_date(sentence[start:end]) is None or not is_marked:
        return " ".join(before[-2:]), ""
    return before[-1][-1], after[1] if after else ""


def read_values(
    sentences: Sequence[str], subject: str, contexts: Container[tuple[str, str]], *, dates: bool
) -> list[ReplayValue]:
    """The values that stand in one of these contexts: dates, or else names."""
    pattern, values = DATE_PATTERN if dates else _NAME_RUN, {}
    for sentence in sentences:
        for match in pattern.finditer(sentence):
            name = match.group()
            end = match.start() + len(name if name.endswith(("Jr.", "Sr.")) else name.rstrip("."))
            if re.match(r", [^\W\d_a-z]", sentence[end:]) and not dates:
                # The name may go on: Mendon, Massachusetts.
                continue
            if FULL_NAME.search(sentence[: match.start()].replace(subject, "")):
                # The sentence may tell it of somebody else.
                continue
            if read_context(sentence, match.start(), end, subject) in contexts:
                value = ReplayValue(sentence[match.start() : end])
                values[value.key] = value
    return list(values.values())


def iterate_runs(text: str) -> Iterator[tuple[int, int]]:
    """Yield the spans of up to four words that neither begin nor end with a function word, the longest first."""
    tokens = tokenize(text)
    for count in range(4, 0, -1):
        for first in range(len(tokens) - count + 1):
            run = tokens[first : first + count]
            if not {run[0][0], run[-1][0]} & UNREMARKABLE_WORDS:
                yield run[0][1], run[-1][2]


def is_unremarkable(text: str) -> bool:
    """Whether a text has no word with a meaning of its own."""
    return all(word in UNREMARKABLE_WORDS for word, _, _ in tokenize(text))


ALL, COUNT, NONE = "all", "count", "none"
COMPARISONS_OF_VALUES = frozenset({"same", "different"})
SEPARATOR = ", "


class UndecidedAnswer(Exception):
    """The observations do not decide the answer; the message is a clause that says why."""


class NoValue(UndecidedAnswer):
    """There is nothing that could be the answer."""


@dataclass(frozen=True, slots=True)
class LookUpResult:
    """The values of one look-up by subject; `root` is the slot that its chain of look-ups begins with."""

    root: int
    rows: LookUpRows

    @property
    def values(self) -> list[ReplayValue]:
        """All values, each once."""
        return unique_values(value for _, values in self.rows for value in values)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What an answer is derived from."""

    results: tuple[LookUpResult, ...]
    """The look-ups whose values no other look-up takes, in order."""
    slots: tuple[str, ...]
    """The texts of the slots that are subjects, by their index; "" for others."""
    given: ReplayValue | None = None
    """The value that the question names beside its subjects."""
    shows_ids: bool = False
    """Whether the answer has the id of each entity after its name."""
    allows_missing: bool = False
    """Whether a subject may have no value: it then meets no condition, and is not compared."""

    def format(self, values: Values) -> str:
        """The values as a list; NoValue for none."""
        if not values:
            raise NoValue("no value was observed that could be the answer")
        return SEPARATOR.join(f"{v.text} ({v.id})" if self.shows_ids and v.id else v.text for v in values)

    @property
    def subjects(self) -> list[tuple[str, list[Values]]]:
        """What is compared, each with its values from one or two look-ups; the one with fewer look-ups first."""
        if len(self.results) == 1:
            rows = self.results[0].rows
            return [(name.text, [values]) for name, values in rows if values or not self.allows_missing]
        roots = dict.fromkeys(result.root for result in self.results)
        subjects: list[tuple[str, list[Values]]] = [
            (self.slots[root], [o.values for o in self.results if o.root == root]) for root in roots
        ]
        return sorted(subjects, key=lambda subject: len(subject[1]))


def recognize_derivation(evidence: Evidence, answer: str) -> str | None:
    """The derivation by which the answer follows; None if there is none, or two that would differ elsewhere."""
    shape = [len(lists) for _, lists in evidence.subjects]
    if len({result.root for result in evidence.results}) == 1:
        is_compared = len(evidence.results) == 1 and len(shape) > 1
        names = [ALL, COUNT, NONE, *(("least", "greatest") if is_compared else ())]
        names = (
            names if evidence.given is None else [prefix + name for prefix in ("", "count of ") for name in _FILTERS]
        )
        names = names if len(evidence.results) == 1 else []
    else:
        pairs: dict[tuple[int, ...], Iterable[str]] = {
            (1, 1): _COMPARISONS,
            (1, 2): ("within",),
            (2, 2): ("shortest", "longest", "overlap"),
        }
        names = list(pairs.get(tuple(shape), ()))
    matching = [name for name in names if _gives(name, evidence, answer)]
    return matching[0] if len(matching) == 1 else None


def _gives(name: str, evidence: Evidence, answer: str) -> bool:
    try:
        derived = derive_answer(name, evidence)
    except UndecidedAnswer:
        is_no_answer = parse_answer(answer).words == ("none",)
        return name == NONE and is_no_answer and not any(result.values for result in evidence.results)
    keys = (sorted(ReplayValue(part).key for part in text.split(SEPARATOR)) for text in (derived, answer))
    return normalize_name(derived) == normalize_name(answer) or next(keys) == next(keys)


def derive_answer(name: str, evidence: Evidence) -> str:
    """Apply a derivation; UndecidedAnswer if the values do not decide the answer."""
    results = evidence.results
    may_lack = name == "overlap" and evidence.allows_missing
    if name == COUNT and evidence.allows_missing and results[0].rows:
        return str(len(results[0].values))
    if name == NONE or not (may_lack or all(result.values for result in results)):
        raise NoValue("no value was observed")
    if name in (ALL, COUNT):
        return evidence.format(results[0].values) if name == ALL else str(len(results[0].values))
    if name.removeprefix("count of ") in _FILTERS:
        subjects = _filter(_FILTERS[name.removeprefix("count of ")], evidence)
        return evidence.format(subjects) if name in _FILTERS else str(len(subjects))
    return {**_COMPARISONS, **_SPAN_COMPARISONS}[name](evidence)


def _filter(holds: Callable[[Values, ReplayValue], bool], evidence: Evidence) -> list[ReplayValue]:
    given = evidence.given
    if given is None:
        raise UndecidedAnswer("the question names no value to compare with")
    rows = evidence.results[0].rows
    if not all(values for _, values in rows) and not evidence.allows_missing:
        raise UndecidedAnswer("a subject has no value to compare")
    return [subject for subject, values in rows if values and holds(values, given)]


def _single(values: Values) -> ReplayValue:
    if len({value.key for value in values}) != 1:  # none, or several
        raise UndecidedAnswer(f"there are {len(values)} values where one is compared")
    return values[0]


def _compare(one: ReplayValue, other: ReplayValue) -> int:
    """-1, 0 or 1; UndecidedAnswer if the two are not of one kind, or are not known exactly enough."""
    if one.kind == other.kind == NUMBER:
        return (float(one.text) > float(other.text)) - (float(one.text) < float(other.text))
    first, second = parse_date(one.text), parse_date(other.text)
    if first is None or second is None:
        raise UndecidedAnswer(f"{one.text} and {other.text} cannot be compared")
    for part, counterpart in zip(first, second, strict=True):
        if 0 in (part, counterpart) and part != counterpart:
            raise UndecidedAnswer(f"{one.text} and {other.text} are not exact enough to compare")
        if part != counterpart:
            return 1 if part > counterpart else -1
    return 0


def _compare_with_year(values: Values, given: ReplayValue) -> int:
    """Compare the only value with the one that the question names; by years if that is a year."""
    value, limit = parse_date(_single(values).text), parse_date(given.text)
    is_year = value is not None and limit is not None and limit[1:] == (0, 0)
    return _compare(ReplayValue(str(value[0])) if value and is_year else values[0], given)


def _extreme(evidence: Evidence, sign: int) -> str:
    """The only subject with the least value times the sign."""
    values = [(name, _single(lists[0])) for name, lists in evidence.subjects]
    for name, value in values:
        if all(_compare(value, other) * sign < 0 for _, other in values if other is not value):
            return name
    raise UndecidedAnswer("two values are equal")


def _extreme_span(evidence: Evidence, sign: int) -> str:
    """The subject with the least span of time times the sign; years decide if they differ by more than one."""
    (one, first), (other, second) = [
        (name, [parse_date(_single(values).text) for values in lists]) for name, lists in evidence.subjects
    ]
    dates = [date for date in (*first, *second) if date is not None]
    if len(dates) < len(first) + len(second):
        raise UndecidedAnswer("a span of time has two dates")
    days = [date(year, month or 7, day or 1).toordinal() for year, month, day in dates]
    difference = abs(days[1] - days[0]) - abs(days[3] - days[2])
    if abs(difference) <= (0 if all(month and day for _, month, day in dates) else 366):
        raise UndecidedAnswer("the two spans of time are not known exactly enough to compare")
    return one if difference * sign < 0 else other


def _is_not_after(evidence: Evidence) -> bool:
    (_, (one,)), (_, (other,)) = evidence.subjects
    if DATE not in (_single(one).kind, _single(other).kind):
        raise UndecidedAnswer("only dates are compared in this way")
    return _compare(one[0], other[0]) <= 0


def _overlaps(evidence: Evidence) -> bool:
    (_, one), (_, other) = evidence.subjects
    # A span without an end is not over.
    return not any(
        (end or not evidence.allows_missing) and _compare(_single(begin), _single(end)) > 0
        for begin, end in ((one[0], other[1]), (other[0], one[1]))
    )


def _is_within(evidence: Evidence) -> bool:
    (_, (point,)), (_, (begin, end)) = evidence.subjects
    return _compare(_single(begin), _single(point)) <= 0 <= _compare(_single(end), _single(point))


def _common(evidence: Evidence) -> list[ReplayValue]:
    keys = {value.key for value in evidence.results[1].values}
    return [value for value in evidence.results[0].values if value.key in keys]


def _yes_or_no(*, holds: bool) -> str:
    return "yes" if holds else "no"


_COMPARISONS: dict[str, Callable[[Evidence], str]] = {
    "least": lambda evidence: _extreme(evidence, 1),
    "greatest": lambda evidence: _extreme(evidence, -1),
    "same": lambda evidence: _yes_or_no(holds=bool(_common(evidence))),
    "different": lambda evidence: _yes_or_no(holds=not _common(evidence)),
    "common": lambda evidence: evidence.format(_common(evidence)),
    "not after": lambda evidence: _yes_or_no(holds=_is_not_after(evidence)),
}
_SPAN_COMPARISONS: dict[str, Callable[[Evidence], str]] = {
    "shortest": lambda evidence: _extreme_span(evidence, 1),
    "longest": lambda evidence: _extreme_span(evidence, -1),
    "overlap": lambda evidence: _yes_or_no(holds=_overlaps(evidence)),
    "within": lambda evidence: _yes_or_no(holds=_is_within(evidence)),
}
_FILTERS: dict[str, Callable[[Values, ReplayValue], bool]] = {
    "equal": lambda values, given: any(given.key in (value.key, normalize_name(value.text)) for value in values),
    "before": lambda values, given: _compare_with_year(values, given) < 0,
    "after": lambda values, given: _compare_with_year(values, given) > 0,
}

DERIVATIONS = {
    ALL: "all values of the last look-up",
    COUNT: "their number",
    NONE: "that there is none",
    "least": "the one with the least value",
    "greatest": "the one with the greatest value",
    "same": "whether the values are the same",
    "different": "whether the values differ",
    "common": "the values that all have",
    "not after": "whether the first value is not after the second",
    "shortest": "the one with the shortest time",
    "longest": "the one with the longest time",
    "overlap": "whether the times overlap",
    "within": "whether the time is within the other",
    "equal": "those with the given value",
    "before": "those before the given time",
    "after": "those after the given time",
}
"""The ways in which an answer follows from what was looked up, each with what the answer is."""
SYMMETRIC = (frozenset(_COMPARISONS) | frozenset(_SPAN_COMPARISONS)) - {"not after", "within"}
"""Derivations to which the order of the subjects does not matter."""
OPPOSITES = {
    one: other
    for pair in (("least", "greatest"), ("shortest", "longest"), ("before", "after"))
    for one, other in (pair, pair[::-1])
}
"""Derivations that differ only in their direction."""
