"""The operations that give an answer from looked-up values, and which of them a demonstration shows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reasoners.replay.english import OPPOSITES, YEAR, as_day, plain

ALL, COUNT, EQUAL, BEFORE, AFTER = "all", "count", "equal", "before", "after"
FIRST, LAST, OVERLAP, WITHIN = "first", "last", "overlap", "within"
YES, NO = "yes", "no"
FLIPPED = {BEFORE: AFTER, AFTER: BEFORE, FIRST: LAST, LAST: FIRST}


class UndecidedAnswer(Exception):
    """The values do not decide the answer; the message says why."""


@dataclass(frozen=True, slots=True)
class LookupValues:
    """The values found for one hole: its things, and for each of them the values of every template."""

    things: tuple[str, ...]
    values: tuple[tuple[tuple[str, ...], ...], ...] = ()
    """values[i][j] holds the values of things[i] for template j."""


def apply_operation(operation: str, holes: Sequence[LookupValues], value: str = "") -> list[str]:
    """Return the answers, [] if there are none; UndecidedAnswer if the values are not sufficient."""
    return _OPERATIONS[operation](holes, value)


def _all(holes: Sequence[LookupValues], _value: str) -> list[str]:
    if any(hole.values for hole in holes):
        texts = [text for hole in holes for values_by_template in hole.values for text in values_by_template[-1]]
    else:
        texts = [thing for hole in holes for thing in hole.things]
    return list(dict.fromkeys(texts))


def _count(holes: Sequence[LookupValues], value: str) -> list[str]:
    return [str(len(_all(holes, value)))]


def _equal(holes: Sequence[LookupValues], value: str) -> list[str]:
    return [thing for hole in holes for thing, values in _pair_values(hole) if plain(value) in map(plain, values)]


def _before(holes: Sequence[LookupValues], value: str) -> list[str]:
    bound = f"{value}-01-01" if YEAR.fullmatch(value) else as_day(value) or value
    return [thing for thing, day in _collect_days(holes) if day < bound]


def _after(holes: Sequence[LookupValues], value: str) -> list[str]:
    bound = f"{value}-12-31" if YEAR.fullmatch(value) else as_day(value) or value
    return [thing for thing, day in _collect_days(holes) if day > bound]


def _first(holes: Sequence[LookupValues], _value: str) -> list[str]:
    return _at_end(holes, min)


def _last(holes: Sequence[LookupValues], _value: str) -> list[str]:
    return _at_end(holes, max)


def _at_end(holes: Sequence[LookupValues], end: Callable[[list[str]], str]) -> list[str]:
    if len(holes) > 1 and any(len(hole.things) != 1 for hole in holes):
        raise UndecidedAnswer("one side of the comparison has several entities or none")
    dated = _collect_days(holes)
    if len(holes) > 1 and len(dated) < len(holes):
        known = {thing for thing, _ in dated}
        missing = [thing for hole in holes for thing in hole.things if thing not in known]
        raise UndecidedAnswer(f"there is no date for {' and '.join(missing)}")
    if not dated:
        return []
    extreme = end([day for _, day in dated])
    return [thing for thing, day in dated if day == extreme]


def _overlap(holes: Sequence[LookupValues], _value: str) -> list[str]:
    spans = [_span(hole) for hole in holes if len(hole.values[0]) > 1]
    if len(spans) != 2:
        raise UndecidedAnswer("there are not two periods to compare")
    return [YES if max(spans[0][0], spans[1][0]) <= min(spans[0][1], spans[1][1]) else NO]


def _within(holes: Sequence[LookupValues], _value: str) -> list[str]:
    spans = [_span(hole) for hole in holes if hole.values and len(hole.values[0]) > 1]
    days = [_one_day(hole) for hole in holes if not hole.values or len(hole.values[0]) == 1]
    if len(spans) != 1 or len(days) != 1:
        raise UndecidedAnswer("there are not a period and a date to compare")
    return [YES if spans[0][0] <= days[0] <= spans[0][1] else NO]


def _span(hole: LookupValues) -> tuple[str, str]:
    """The first and the last day of a period; without a known end it is open."""
    if len(hole.things) != 1:
        raise UndecidedAnswer("one side of the comparison has several entities or none")
    starts, ends = hole.values[0][0], hole.values[0][1]
    if len(starts) != 1 or len(ends) > 1 or not all(map(as_day, (*starts, *ends))):
        raise UndecidedAnswer(f"there is no single date for {hole.things[0]}")
    return starts[0], ends[0] if ends else "9999-12-31"


def _one_day(hole: LookupValues) -> str:
    texts = _all([hole], "")
    if len(texts) != 1 or not as_day(texts[0]):
        raise UndecidedAnswer(f"there is no single date for {' and '.join(hole.things) or 'one of them'}")
    return texts[0]


def _pair_values(hole: LookupValues) -> list[tuple[str, tuple[str, ...]]]:
    return [(thing, values[-1]) for thing, values in zip(hole.things, hole.values, strict=True)]


def _collect_days(holes: Sequence[LookupValues]) -> list[tuple[str, str]]:
    days = []
    for thing, values in (pair for hole in holes for pair in _pair_values(hole)):
        if len(values) > 1 or not all(map(as_day, values)):
            raise UndecidedAnswer(f"there is no single date for {thing}")
        days += [(thing, day) for day in values]
    return days


_OPERATIONS: dict[str, Callable[[Sequence[LookupValues], str], list[str]]] = {
    ALL: _all,
    COUNT: _count,
    EQUAL: _equal,
    BEFORE: _before,
    AFTER: _after,
    FIRST: _first,
    LAST: _last,
    OVERLAP: _overlap,
    WITHIN: _within,
}
_OPERATION_WORDS = {"before": BEFORE, "after": AFTER}


def infer_operation(holes: Sequence[LookupValues], value: str, answer: str, words: set[str]) -> str | None:
    """Infer the operation that leads from the values of a demonstration to its answer; None if there is none."""
    expected = sorted(map(plain, answer.split(", ")))
    for operation in _candidates(value, answer, words):
        try:
            answers = apply_operation(operation, holes, value)
        except (UndecidedAnswer, IndexError):
            continue
        if sorted(map(plain, answers)) == expected:
            return operation
    # The values may be incomplete; then a word such as before or after in the question decides.
    word_operations = [_OPERATION_WORDS[word] for word in words if word in _OPERATION_WORDS]
    return word_operations[0] if value and word_operations else None


def _candidates(value: str, answer: str, words: set[str]) -> list[str]:
    if value:
        return [BEFORE, AFTER, EQUAL]
    if plain(answer) in (YES, NO):
        return [OVERLAP, WITHIN]
    if words & OPPOSITES.keys():
        return [FIRST, LAST]
    return [COUNT] if answer.isdecimal() else [ALL]
