"""How an answer follows from observations: a closed set of derivations, recognized in demonstrations and applied.

    all          every value of the last look-up
    count        the number of these values
    same         "yes" if two subjects share a value, else "no"; `different` the reverse
    least        the subject with the earliest or smallest value; `greatest` the reverse
    shortest     the subject whose two values are the least apart; `longest` the reverse
    not after    "yes" if the first value is not after the second
    within       "yes" if the only value of one subject is not outside the two values of the other
    overlap      "yes" if two spans of time, of two values each, have a common point
    equal        the subjects with a value that the question names; `before` and `after` compare it
    count of ... the number of these subjects
    common       the values that two subjects share
    none         the words for no answer, where a look-up has no value

A comparison of values that are not known exactly enough is no answer.

The values and words that replay compares stand here too: names, dates and numbers of questions and observations.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from reasoners.answers.normalization import parse_answer
from reasoners.provenance import DATE_PATTERN, MONTHS
from tools.tool import EncodeFunction
from worlds.text_normalization import STOP_WORDS, normalize_name

MIN_RELATION_COSINE, MIN_RELATION_LEAD = 0.84, 0.15
"""A word names a relation if its cosine with the label is so high, and so much higher than with any other label."""
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
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


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
        return NUMBER if _NUMBER.fullmatch(self.text) else TEXT

    @property
    def key(self) -> str:
        """What is compared: the id, or else the date or the name in one notation."""
        date = parse_date(self.text)
        return self.id or ("-".join(map(str, date)) if date else normalize_name(self.text))


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
    word = re.sub(r"(?<=[^s]{2})s(?=-in-)", "", word)
    if word.endswith(("ches", "shes", "sses", "xes")):
        return word[:-2]
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def is_form(singular: str, word: str) -> bool:
    """Whether a word is this one or a plural of it."""
    name, other = normalize_name(singular), normalize_name(word)
    return name in (other, stem(other)) or (len(name) > 3 and other.startswith(name) and len(other) - len(name) <= 3)


def find_similar(text: str, others: Sequence[str], encode: EncodeFunction) -> int | None:
    """The index of the one text that clearly resembles this one more than the others do; None without such a text."""
    if not others:
        return None
    cosines = encode(list(others)) @ encode([text])[0]
    order = cosines.argsort()[::-1]
    runner_up = cosines[order[1]] if len(order) > 1 else 0.0
    is_clear = cosines[order[0]] >= MIN_RELATION_COSINE and cosines[order[0]] - runner_up >= MIN_RELATION_LEAD
    return int(order[0]) if is_clear else None


_FULL_NAME = re.compile(r"[^\W\d_a-z][\w'-]+(?: [^\W\d_a-z][\w'-]+)+")
_NAME_RUN = re.compile(r"[^\W\d_a-z][\w'’.-]*(?: (?:(?:of|the|de|von|van) )?[^\W\d_a-z][\w'’.-]*)*")


def read_context(sentence: str, start: int, end: int, subject: str) -> tuple[str, str]:
    """The two words before a span, with the subject's place; or the mark before a date, and what stands after it."""
    before = sentence[:start].replace(subject, "\x00").split()
    after = re.match(r"\s*([^\w\s]|\w+|$)", sentence[end:])
    is_marked = bool(before) and not before[-1][-1].isalnum()
    if parse_date(sentence[start:end]) is None or not is_marked:
        return " ".join(before[-2:]), ""
    return before[-1][-1], after[1] if after else ""


def read_values(
    sentences: Sequence[str], subject: str, contexts: Sequence[tuple[str, str]], *, dates: bool
) -> list[ReplayValue]:
    """The values that stand in one of these contexts: dates, or else names."""
    pattern, values = DATE_PATTERN if dates else _NAME_RUN, {}
    for sentence in sentences:
        for match in pattern.finditer(sentence):
            end = match.start() + len(match.group().rstrip("."))
            if re.match(r", [^\W\d_a-z]", sentence[end:]) and not dates:
                # The name may go on: Mendon, Massachusetts.
                continue
            if _FULL_NAME.search(sentence[: match.start()].replace(subject, "")):
                # The sentence may tell it of somebody else.
                continue
            if read_context(sentence, match.start(), end, subject) in contexts:
                value = ReplayValue(sentence[match.start() : end])
                values[value.key] = value
    return list(values.values())


def iterate_runs(text: str) -> Iterator[str]:
    """Yield the runs of up to four words that neither begin nor end with a function word, the longest first."""
    tokens = tokenize(text)
    for count in range(4, 0, -1):
        for first in range(len(tokens) - count + 1):
            run = tokens[first : first + count]
            if not {run[0][0], run[-1][0]} & UNREMARKABLE_WORDS:
                yield text[run[0][1] : run[-1][2]]


def is_unremarkable(text: str) -> bool:
    """Whether a text has no word with a meaning of its own."""
    return all(word in UNREMARKABLE_WORDS for word, _, _ in tokenize(text))


ALL, COUNT, NONE = "all", "count", "none"
YES, NO = "yes", "no"
COMPARISONS_OF_VALUES = frozenset({"same", "different"})
SEPARATOR = ", "
Values = Sequence[ReplayValue]


class UndecidedAnswer(Exception):
    """The observations do not decide the answer; the message is a clause that says why."""


class NoValue(UndecidedAnswer):
    """There is nothing that could be the answer."""


@dataclass(frozen=True, slots=True)
class LookUpResult:
    """The values of one look-up by subject; `root` is the slot that its chain of look-ups begins with."""

    root: int
    rows: tuple[tuple[ReplayValue, tuple[ReplayValue, ...]], ...]

    @property
    def values(self) -> list[ReplayValue]:
        """All values, each once."""
        return list({value.key: value for _, values in self.rows for value in values}.values())


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
        """The values as a list."""
        return SEPARATOR.join(f"{v.text} ({v.id})" if self.shows_ids and v.id else v.text for v in values)


def recognize_derivation(evidence: Evidence, answer: str) -> str | None:
    """The derivation by which the answer follows; None if there is none, or two that would differ elsewhere."""
    matching = [name for name in _candidates(evidence) if _gives(name, evidence, answer)]
    return matching[0] if len(matching) == 1 else None


def _candidates(evidence: Evidence) -> list[str]:
    roots = {result.root for result in evidence.results}
    if len(roots) == 1 and len(evidence.results) == 1:
        if evidence.given is not None:
            return [*_FILTERS, *(f"count of {name}" for name in _FILTERS)]
        rows = evidence.results[0].rows
        return [ALL, COUNT, NONE, *(("least", "greatest") if len(rows) > 1 else ())]
    if len(roots) != 2:
        return []
    return list({2: [*_COMPARISONS], 3: ["within"]}.get(len(evidence.results), ["shortest", "longest", "overlap"]))


def _gives(name: str, evidence: Evidence, answer: str) -> bool:
    try:
        derived = derive_answer(name, evidence)
    except UndecidedAnswer:
        return name == NONE and is_no_answer(answer) and not any(result.values for result in evidence.results)
    if name in (ALL, "common", *_FILTERS):
        stated = sorted(normalize_name(text) for text in answer.split(SEPARATOR))
        parts = [derived] if normalize_name(derived) == normalize_name(answer) else derived.split(SEPARATOR)
        return sorted(map(normalize_name, parts)) in (stated, [normalize_name(answer)])
    return normalize_name(derived) == normalize_name(answer)


def is_no_answer(answer: str) -> bool:
    """Whether a text states that there is no answer."""
    return parse_answer(answer).words == ("none",)


def derive_answer(name: str, evidence: Evidence) -> str:
    """Apply a derivation; UndecidedAnswer if the values do not decide the answer."""
    results = evidence.results
    may_lack = name == "overlap" and evidence.allows_missing
    if name == NONE or not (may_lack or all(result.values for result in results)):
        raise NoValue("no value was observed")
    if name == ALL:
        return evidence.format(results[0].values)
    if name == COUNT:
        return str(len(results[0].values))
    if name.startswith("count of "):
        return str(len(_filter(name.removeprefix("count of "), evidence)))
    if name in _FILTERS:
        subjects = _filter(name, evidence)
        if not subjects:
            raise NoValue("no subject meets the condition")
        return evidence.format(subjects)
    if name in ("least", "greatest") and len(results) == 1:
        shown = [row for row in results[0].rows if row[1] or not evidence.allows_missing]
        rows = [(subject.text, _single(values)) for subject, values in shown]
        return rows[_extreme([value for _, value in rows], greatest=name == "greatest")][0]
    return (_COMPARISONS.get(name) or _SPAN_COMPARISONS[name])(evidence)


def _filter(name: str, evidence: Evidence) -> list[ReplayValue]:
    given = evidence.given
    if given is None:
        raise UndecidedAnswer("the question names no value to compare with")
    rows = evidence.results[0].rows
    if not all(values for _, values in rows) and not evidence.allows_missing:
        raise UndecidedAnswer("a subject has no value to compare")
    return [subject for subject, values in rows if values and _FILTERS[name](values, given)]


def _single(values: Values) -> ReplayValue:
    if len({value.key for value in values}) != 1:  # none, or several
        raise UndecidedAnswer(f"there are {len(values)} values where one is compared")
    return values[0]


def _compare(one: ReplayValue, other: ReplayValue) -> int:
    """-1, 0 or 1; UndecidedAnswer if the two are not of one kind, or are not known exactly enough."""
    if one.kind == other.kind == NUMBER and not parse_date(one.text):
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


def _round(value: ReplayValue, given: ReplayValue) -> ReplayValue:
    """The year of a date if only a year is given."""
    date, limit = parse_date(value.text), parse_date(given.text)
    return ReplayValue(str(date[0])) if date and limit and limit[1:] == (0, 0) else value


def _extreme(values: Values, *, greatest: bool) -> int:
    """The index of the only least or greatest value."""
    sign = -1 if greatest else 1
    for index, value in enumerate(values):
        if all(_compare(value, other) * sign < 0 for place, other in enumerate(values) if place != index):
            return index
    raise UndecidedAnswer("two values are equal")


def _compare_subjects(evidence: Evidence, *, greatest: bool) -> str:
    values = [_single(result.values) for result in evidence.results]
    return evidence.slots[evidence.results[_extreme(values, greatest=greatest)].root]


def _compare_spans(evidence: Evidence, *, greatest: bool) -> str:
    """The subject whose span of time is the shortest or longest; years decide if they differ by more than one."""
    lengths: dict[int, int] = {}
    tolerance = 0
    for root, values in _by_root(evidence):
        if len(values) != 2:
            raise UndecidedAnswer("a span of time has two dates")
        days, is_exact = [], True
        for value in values:
            year, month, day = parse_date(value.text) or (0, 0, 0)
            if not year:
                raise UndecidedAnswer(f"{value.text} is no date")
            is_exact &= bool(month and day)
            days.append(date(year, month or 7, day or 1).toordinal())
        tolerance = max(tolerance, 0 if is_exact else 366)
        lengths[root] = abs(days[1] - days[0])
    (one, first), (other, second) = lengths.items()
    if abs(first - second) <= tolerance:
        raise UndecidedAnswer("the two spans of time are not known exactly enough to compare")
    return evidence.slots[one if (first > second) == greatest else other]


def _by_root(evidence: Evidence) -> list[tuple[int, list[ReplayValue]]]:
    roots = dict.fromkeys(result.root for result in evidence.results)
    pairs = [(root, [_single(one.values) for one in evidence.results if one.root == root]) for root in roots]
    return sorted(pairs, key=lambda pair: len(pair[1]))


def _overlap(evidence: Evidence) -> str:
    roots = dict.fromkeys(result.root for result in evidence.results)
    spans = [[one.values for one in evidence.results if one.root == root] for root in roots]
    for (begin, _), (_, end) in (spans, spans[::-1]):
        # A span without an end is not over.
        if (end or not evidence.allows_missing) and _compare(_single(begin), _single(end)) > 0:
            return NO
    return YES


def _within(evidence: Evidence) -> str:
    (_, (point,)), (_, (begin, end)) = _by_root(evidence)
    return YES if _compare(begin, point) <= 0 <= _compare(end, point) else NO


def _share(evidence: Evidence) -> bool:
    first, second = ({value.key for value in result.values} for result in evidence.results)
    return bool(first & second)


def _not_after(evidence: Evidence) -> str:
    one, other = (_single(result.values) for result in evidence.results)
    if DATE not in (one.kind, other.kind):
        raise UndecidedAnswer(f"{one.text} and {other.text} are no dates")
    return YES if _compare(one, other) <= 0 else NO


def _common(evidence: Evidence) -> list[ReplayValue]:
    keys = {value.key for value in evidence.results[1].values}
    shared = [value for value in evidence.results[0].values if value.key in keys]
    if not shared:
        raise UndecidedAnswer("the two have no value in common")
    return shared


def _truth(*, holds: bool) -> str:
    return YES if holds else NO


_COMPARISONS: dict[str, Callable[[Evidence], str]] = {
    "least": lambda evidence: _compare_subjects(evidence, greatest=False),
    "greatest": lambda evidence: _compare_subjects(evidence, greatest=True),
    "same": lambda evidence: _truth(holds=_share(evidence)),
    "different": lambda evidence: _truth(holds=not _share(evidence)),
    "not after": _not_after,
    "common": lambda evidence: evidence.format(_common(evidence)),
}
_SPAN_COMPARISONS: dict[str, Callable[[Evidence], str]] = {
    "shortest": lambda evidence: _compare_spans(evidence, greatest=False),
    "longest": lambda evidence: _compare_spans(evidence, greatest=True),
    "overlap": _overlap,
    "within": _within,
}
_FILTERS: dict[str, Callable[[Values, ReplayValue], bool]] = {
    "equal": lambda values, given: any(given.key in (value.key, normalize_name(value.text)) for value in values),
    "before": lambda values, given: _compare(_round(_single(values), given), given) < 0,
    "after": lambda values, given: _compare(_round(_single(values), given), given) > 0,
}

SYMMETRIC = (frozenset(_COMPARISONS) | frozenset(_SPAN_COMPARISONS)) - {"not after", "within"}
"""Derivations to which the order of the subjects does not matter."""
OPPOSITES = {
    one: other
    for pair in (("least", "greatest"), ("shortest", "longest"), ("before", "after"))
    for one, other in (pair, pair[::-1])
}
"""Derivations that differ only in their direction."""
