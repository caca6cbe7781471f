"""Values and words, and how an answer follows from observed values: a closed set of derivations.

    all              the values of the last look-up; `count` is their number
    none             the words for no answer, where a look-up has no value
    equal            the subjects with the value that the question names; `before` and `after` compare it
    count of ...     the number of these subjects
    least            the subject with the least value, or the least span between its two values; `greatest` the reverse
    same             "yes" if two subjects share a value, else "no"; `different` the reverse
    common           the values that two subjects share
    not after        "yes" if the first of two dates is not after the second
    overlap          "yes" if two spans of time have a common point; a single date is a span, too

Values that are not known exactly enough for a comparison decide no answer.
"""

import calendar
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any

from reasoners.answers.dates_and_numbers import normalize_quantities
from reasoners.answers.normalization import parse_answer
from reasoners.provenance import DATE_PATTERN, compile_name_pattern
from worlds.lexicon.english import stem_word
from worlds.text_normalization import STOP_WORDS, normalize_name

ENTITY, DATE, NUMBER, TEXT = "entity", "date", "number", "text"
DECISIVE_WORDS = frozenset(
    (
        "after before during ever every how last many more most much no nor not only over same under until "
        "when where why"
    ).split()
)
FUNCTION_WORDS = (STOP_WORDS | {"than", "there", "doe"}) - DECISIVE_WORDS
"""Words that may differ between two questions with the same meaning; decisive words are no content either."""
Words = list[tuple[str, int, int]]
_WORD = re.compile(r"[^\W_]+(?:[-.][^\W_]+)*(?:['’][^\W_]+)?")
_ISO_DATE = re.compile(r"(-\d{4,}(?=-)|\d{4}(?=-)|[12]\d{3})(?:-(\d\d))?(?:-(\d\d))?(?:T.*)?")
_BEFORE_CHRIST = re.compile(r"(?P<day>(?:.*\D)?)(?P<year>[1-9]\d{0,3}) ?b\.? ?c\.?(?: ?e\.?)?", re.IGNORECASE)
_LEAP_YEAR = "2000"
_DAYS_OF_CYCLE = 146_097
_NAME = compile_name_pattern("of|the|de|von|van", numbers=False)
_FULL_NAME = re.compile(r"[^\W\d_a-z][\w'-]+(?: [^\W\d_a-z][\w'-]+)+")


@lru_cache(maxsize=100_000)
def read_days(text: str) -> tuple[int, int] | None:
    """The first and the last day that a date may stand for, as ordinals; None for any other text, such as 31 June.

    Years are those of ISO 8601 and XML Schema: 0 is 1 BC, -43 is 44 BC. The ordinals of days before the year 1 are not
    positive.
    """
    match = _ISO_DATE.fullmatch(_normalize_date(text)) if re.search(r"\d", text) else None
    year, month, day = (int(part or 0) for part in match.groups()) if match else (0, 0, 0)
    if not year and not month:
        return None
    if (month, day) == (1, 1):
        # A date that is known to the year only is stored as its first day.
        month = day = 0
    # The calendar repeats after 400 years; `date` has the years from 1 on.
    cycles = (year - 1) // 400
    year, shift = year - 400 * cycles, cycles * _DAYS_OF_CYCLE
    try:
        last = day or calendar.monthrange(year, month or 12)[1]
        first_day, last_day = date(year, month or 1, day or 1), date(year, month or 12, last)
    except ValueError:
        return None
    return first_day.toordinal() + shift, last_day.toordinal() + shift


def _normalize_date(text: str) -> str:
    """The text with a date as ISO 8601 writes it: 15 March 44 BC as -0043-03-15, and 44 BC as the first day of -43."""
    match = _BEFORE_CHRIST.fullmatch(text.strip())
    if match is None:
        return normalize_quantities(text.strip())
    # Days and months are read as those of a year of the common era.
    day = normalize_quantities(f"{match['day']}{_LEAP_YEAR}")
    year = 1 - int(match["year"])
    rest = "-01-01" if day == _LEAP_YEAR else day.removeprefix(_LEAP_YEAR)
    return f"{year:0{5 if year else 4}}{rest}" if day.startswith(_LEAP_YEAR) else text


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
        return DATE if read_days(self.text) else NUMBER if re.fullmatch(r"-?\d+(?:\.\d+)?", self.text) else TEXT

    @property
    def key(self) -> str:
        """What is compared: the id, or else the days or the name."""
        return self.id or str(read_days(self.text) or normalize_name(self.text))

    @property
    def bounds(self) -> tuple[float, float]:
        """The least and the greatest number that it may stand for; UndecidedAnswer if it is no date and no number."""
        if self.kind == NUMBER:
            return float(self.text), float(self.text)
        days = read_days(self.text) if self.kind == DATE else None
        if days is None:
            raise UndecidedAnswer(f"{self.text} cannot be compared")
        return days


Values = Sequence[ReplayValue]
LookUpRows = Sequence[tuple[ReplayValue, tuple[ReplayValue, ...]]]
"""Subjects, each with its values."""


def unique_values(values: Iterable[ReplayValue]) -> list[ReplayValue]:
    """The values, each once."""
    return list({value.key: value for value in values}.values())


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
        return ReplayValue(literal.partition("T")[0] if _ISO_DATE.fullmatch(literal) else literal)
    identifier = cell.get("id") or cell.get("entity") or (cell.get("value") if cell.get("kind") == ENTITY else None)
    text = cell.get("label") or cell.get("title") or identifier
    return ReplayValue(str(text), identifier) if text else None


def tokenize(text: str) -> Words:
    """The words of a text in lower case, each with its span; a possessive s is a word of its own."""
    tokens = []
    for match in _WORD.finditer(text):
        word, start, end = match.group().casefold().replace("’", "'"), *match.span()
        is_possessive = word.endswith("'s") and len(word) > 2
        tokens.append((word.removesuffix("'s"), start, end - 2) if is_possessive else (word, start, end))
        tokens += [("s", end - 1, end)] if is_possessive else []
    return tokens


def stem(word: str) -> str:
    """The word in the singular, also within hyphens: sister-in-law."""
    return "-".join(map(stem_word, word.split("-")))


def list_stems(text: str) -> list[str]:
    """The stems of the words of a text."""
    return [stem(word) for word, _, _ in tokenize(text)]


def has_content(text: str) -> bool:
    """Whether a text has a word with a meaning of its own."""
    return any(word not in FUNCTION_WORDS | DECISIVE_WORDS for word, _, _ in tokenize(text))


def iterate_runs(text: str) -> Iterator[str]:
    """Yield the runs of up to four words that begin and end with a word of content, the longest first."""
    tokens = tokenize(text)
    for count in range(4, 0, -1):
        for run in (tokens[first : first + count] for first in range(len(tokens) - count + 1)):
            if not {run[0][0], run[-1][0]} & (FUNCTION_WORDS | DECISIVE_WORDS):
                yield text[run[0][1] : run[-1][2]]


def read_context(sentence: str, start: int, end: int, subject: str) -> tuple[str, str]:
    """The two words before a span, with the subject's place; or the mark before a date, and what stands after it."""
    before = sentence[:start].replace(subject, "\x00").split()
    if not before or before[-1][-1].isalnum() or read_days(sentence[start:end]) is None:
        return " ".join(before[-2:]), ""
    after = re.match(r"\s*([^\w\s]|\w+)", sentence[end:])
    return before[-1][-1], after[1] if after else ""


def read_values(
    sentences: Iterable[str], subject: str, contexts: Container[tuple[str, str]], *, dates: bool
) -> list[ReplayValue]:
    """The values that stand in one of these contexts: dates, or else names."""
    values = []
    for sentence in sentences:
        for match in (DATE_PATTERN if dates else _NAME).finditer(sentence):
            text = match.group() if match.group().endswith(("Jr.", "Sr.")) else match.group().rstrip(".")
            start, end = match.start(), match.start() + len(text)
            # The name may go on, as in Mendon, Massachusetts; or the sentence may tell it of somebody else.
            goes_on = not dates and re.match(r", [^\W\d_a-z]", sentence[end:])
            is_of_other = _FULL_NAME.search(sentence[:start].replace(subject, ""))
            if not goes_on and not is_of_other and read_context(sentence, start, end, subject) in contexts:
                values.append(ReplayValue(text))
    return unique_values(values)


def list_names(sentence: str, subject: str) -> list[str]:
    """The dates of a sentence if there is one, else its names, but not the subject's."""
    dates = DATE_PATTERN.findall(sentence)
    names = [name.rstrip(".") for name in _NAME.findall(sentence)]
    return dates if len(dates) == 1 else [name for name in names if normalize_name(name) != normalize_name(subject)]


ALL, COUNT, NONE = "all", "count", "none"
FILTERS, ORDERS, SHARED = ("equal", "before", "after"), ("least", "greatest"), ("same", "different", "common")
NOT_AFTER, OVERLAP = "not after", "overlap"
SEPARATOR, COUNT_OF = ", ", "count of "


class UndecidedAnswer(Exception):
    """The observations do not decide the answer; the message is a clause that says why."""


class NoValue(UndecidedAnswer):
    """There is nothing that could be the answer."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What an answer is derived from."""

    results: tuple[tuple[str, LookUpRows], ...]
    """The look-ups whose values no other look-up takes, each with the text of the slot that it begins with."""
    given: ReplayValue | None = None
    """The value that the question names beside its subjects."""
    shows_ids: bool = False
    """Whether the answer has the id of each entity after its name."""
    allows_missing: bool = False
    """Whether a subject may have no value: it then meets no condition, and is not compared."""

    @property
    def subjects(self) -> list[tuple[str, list[Values]]]:
        """What is compared, each with the values of its look-ups."""
        if len(self.results) == 1:
            rows = self.results[0][1]
            return [(name.text, [values]) for name, values in rows if values or not self.allows_missing]
        by_root: dict[str, list[Values]] = {}
        for root, rows in self.results:
            by_root.setdefault(root, []).append(unique_values(value for _, values in rows for value in values))
        return list(by_root.items())

    def format(self, values: Values) -> str:
        """The values as a list; NoValue for none."""
        if not values:
            raise NoValue("no value was observed that could be the answer")
        return SEPARATOR.join(f"{v.text} ({v.id})" if self.shows_ids and v.id else v.text for v in values)


def recognize_derivation(evidence: Evidence, answer: str) -> str | None:
    """The derivation by which the answer follows; None if there is none, or two that would differ elsewhere."""
    names: Iterable[str] = (ALL, COUNT, NONE, *ORDERS)
    if evidence.given is not None:
        names = [prefix + name for prefix in ("", COUNT_OF) for name in FILTERS]
    elif len(evidence.results) > 1:
        names = (*ORDERS, *SHARED, NOT_AFTER, OVERLAP)
    matching = [name for name in names if _gives(name, evidence, answer)]
    return matching[0] if len(matching) == 1 else None


def _gives(name: str, evidence: Evidence, answer: str) -> bool:
    try:
        derived = derive_answer(name, evidence)
    except UndecidedAnswer:
        has_values = any(values for _, rows in evidence.results for _, values in rows)
        return name == NONE and parse_answer(answer).words == ("none",) and not has_values
    own, other = (sorted(ReplayValue(part).key for part in text.split(SEPARATOR)) for text in (derived, answer))
    return normalize_name(derived) == normalize_name(answer) or own == other


def derive_answer(name: str, evidence: Evidence) -> str:
    """Apply a derivation; UndecidedAnswer if the values do not decide the answer."""
    rows, subjects = evidence.results[0][1], evidence.subjects
    values = unique_values(value for _, own in rows for value in own)
    if name == COUNT and (values or (rows and evidence.allows_missing)):
        return str(len(values))
    if name in (ALL, COUNT, NONE) and len(evidence.results) == 1:
        return evidence.format(values if name == ALL else ())
    if (condition := name.removeprefix(COUNT_OF)) in FILTERS:
        meeting = [subject for subject, own in rows if _meets(condition, own, evidence)]
        return evidence.format(meeting) if name == condition else str(len(meeting))
    if len(subjects) < 2:
        raise UndecidedAnswer("there is only one to compare")
    if name in ORDERS:
        return _find_extreme(subjects, -1 if name == "greatest" else 1)
    one, other = [lists for _, lists in subjects] if len(subjects) == 2 else [[], []]
    if name == OVERLAP and len(one) + len(other) > 2:
        pairs = (one[0], other[-1]), (other[0], one[-1])
        return _yes_or_no(all(_is_not_after(begin, end, evidence) for begin, end in pairs))
    if name == OVERLAP or not len(one) == len(other) == 1:
        raise UndecidedAnswer("these values are not compared so")
    return _compare_pair(name, one[0], other[0], evidence)


def _compare_pair(name: str, one: Values, other: Values, evidence: Evidence) -> str:
    """Compare the values of two subjects: dates by their order, all others by what they share."""
    if not one or not other:
        raise NoValue("no value was observed")
    if ({value.kind for value in (*one, *other)} == {DATE}) != (name == NOT_AFTER):
        raise UndecidedAnswer("these values are not compared so")
    if name == NOT_AFTER:
        return _yes_or_no(_is_not_after(one, other, evidence))
    common = [value for value in one if value.key in {own.key for own in other}]
    return evidence.format(common) if name == "common" else _yes_or_no(bool(common) == (name == "same"))


def _yes_or_no(holds: bool) -> str:  # noqa: FBT001 - the answer itself
    return "yes" if holds else "no"


def _meets(condition: str, values: Values, evidence: Evidence) -> bool:
    """Whether the values of a subject compare with the given one so."""
    if evidence.given is None or (not values and not evidence.allows_missing):
        raise UndecidedAnswer("a subject has no value to compare")
    if condition == "equal" or not values:
        given = evidence.given.key
        return any(given in (value.key, normalize_name(value.text)) for value in values)
    (low, high), (least, greatest) = _single(values).bounds, evidence.given.bounds
    if low < least <= high or low <= greatest < high:
        raise UndecidedAnswer(f"{values[0].text} is not exact enough to compare")
    return high < least if condition == "before" else low > greatest


def _single(values: Values) -> ReplayValue:
    if len(unique_values(values)) != 1:
        raise UndecidedAnswer(f"there are {len(values)} values where one is compared")
    return values[0]


def _is_not_after(one: Values, other: Values, evidence: Evidence) -> bool:
    if not other and evidence.allows_missing:
        # A span without an end is not over.
        return True
    (low, high), (least, greatest) = _single(one).bounds, _single(other).bounds
    if high > least and low <= greatest:
        raise UndecidedAnswer(f"{one[0].text} and {other[0].text} are not exact enough to compare")
    return high <= least


def _find_extreme(subjects: Sequence[tuple[str, list[Values]]], sign: int) -> str:
    """The only subject with the least value, or span between two values, times the sign."""
    spans: list[tuple[str, float, float]] = []
    if len({value.kind for _, lists in subjects for values in lists for value in values}) > 1:
        raise UndecidedAnswer("the values are of different kinds")
    for name, lists in subjects:
        bounds = [_single(values).bounds for values in lists]
        low, high = bounds[-1]
        for begin in bounds[:-1]:
            low, high = low - begin[1], high - begin[0]
        spans.append((name, min(low * sign, high * sign), max(low * sign, high * sign)))
    for name, _, high in spans:
        if all(high < low for other, low, _ in spans if other != name):
            return name
    raise UndecidedAnswer("the values are equal, or not exact enough to compare")
