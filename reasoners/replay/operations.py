"""How an answer follows from what was found: a few ways, of which a demonstration shows one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from reasoners.replay.english import OPPOSITES, YEAR, as_day, plain

ALL, COUNT, EQUAL, BEFORE, AFTER = "all", "count", "equal", "before", "after"
FIRST, LAST, OVERLAP, WITHIN = "first", "last", "overlap", "within"
YES, NO = "yes", "no"
FLIPPED = {BEFORE: AFTER, AFTER: BEFORE, FIRST: LAST, LAST: FIRST}


class UndecidedAnswer(Exception):
    """What was found does not decide the answer; the message says why."""


@dataclass(frozen=True, slots=True)
class LookupValues:
    """What was found for one hole of a question: the things, and for each of them the values of every ask."""

    things: tuple[str, ...]
    values: tuple[tuple[tuple[str, ...], ...], ...] = ()
    """values[i][j]: of thing i, by ask j."""


def apply_operation(operation: str, holes: Sequence[LookupValues], value: str = "") -> list[str]:
    """The answers; [] where there are none; Undecided where more would have to be known."""
    return _OPERATIONS[operation](holes, value)


def _all(holes: Sequence[LookupValues], _value: str) -> list[str]:
    if any(hole.values for hole in holes):
        results = [text for hole in holes for item in hole.values for text in item[-1]]
    else:
        results = [thing for hole in holes for thing in hole.things]
    return list(dict.fromkeys(results))


def _count(holes: Sequence[LookupValues], value: str) -> list[str]:
    return [str(len(_all(holes, value)))]


def _equal(holes: Sequence[LookupValues], value: str) -> list[str]:
    return [thing for hole in holes for thing, results in _pair_values(hole) if plain(value) in map(plain, results)]


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
        raise UndecidedAnswer("one of the two is not one thing but several or none")
    dated = _collect_days(holes)
    if len(holes) > 1 and len(dated) < len(holes):
        known = {thing for thing, _ in dated}
        missing = [thing for hole in holes for thing in hole.things if thing not in known]
        raise UndecidedAnswer(f"no date is found for {' and '.join(missing)}")
    if not dated:
        return []
    expected = end([day for _, day in dated])
    return [thing for thing, day in dated if day == expected]


def _overlap(holes: Sequence[LookupValues], _value: str) -> list[str]:
    spans = [_span(hole) for hole in holes if len(hole.values[0]) > 1]
    if len(spans) != 2:
        raise UndecidedAnswer("there are no two spans of time")
    return [YES if max(spans[0][0], spans[1][0]) <= min(spans[0][1], spans[1][1]) else NO]


def _within(holes: Sequence[LookupValues], _value: str) -> list[str]:
    spans = [_span(hole) for hole in holes if hole.values and len(hole.values[0]) > 1]
    days = [_one_day(hole) for hole in holes if not hole.values or len(hole.values[0]) == 1]
    if len(spans) != 1 or len(days) != 1:
        raise UndecidedAnswer("there are no span of time and no day")
    return [YES if spans[0][0] <= days[0] <= spans[0][1] else NO]


def _span(hole: LookupValues) -> tuple[str, str]:
    """From the first day to the last; what nobody knows the end of goes on."""
    if len(hole.things) != 1:
        raise UndecidedAnswer("one of them is not one thing but several or none")
    starts, ends = hole.values[0][0], hole.values[0][1]
    if len(starts) != 1 or len(ends) > 1 or not all(map(as_day, (*starts, *ends))):
        raise UndecidedAnswer(f"no single date is found for {hole.things[0]}")
    return starts[0], ends[0] if ends else "9999-12-31"


def _one_day(hole: LookupValues) -> str:
    results = _all([hole], "")
    if len(results) != 1 or not as_day(results[0]):
        raise UndecidedAnswer(f"no single date is found for {' and '.join(hole.things) or 'one of them'}")
    return results[0]


def _pair_values(hole: LookupValues) -> list[tuple[str, tuple[str, ...]]]:
    return [(thing, values[-1]) for thing, values in zip(hole.things, hole.values, strict=True)]


def _collect_days(holes: Sequence[LookupValues]) -> list[tuple[str, str]]:
    results = []
    for thing, values in (pair for hole in holes for pair in _pair_values(hole)):
        if len(values) > 1 or not all(map(as_day, values)):
            raise UndecidedAnswer(f"what was found of {thing} is no single day")
        results += [(thing, day) for day in values]
    return results


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


def infer_operation(holes: Sequence[LookupValues], value: str, given: str, words: set[str]) -> str | None:
    """The operation that a demonstration shows: that which leads from what it found to the answer that it gave."""
    expected = sorted(map(plain, given.split(", ")))
    for operation in _candidates(value, given, words):
        try:
            results = apply_operation(operation, holes, value)
        except (UndecidedAnswer, IndexError):
            continue
        if sorted(map(plain, results)) == expected:
            return operation
    # What was read may not be spoken of again; then the word for it must stand in the question.
    stated = [_OPERATION_WORDS[word] for word in words if word in _OPERATION_WORDS]
    return stated[0] if value and stated else None


def _candidates(value: str, given: str, words: set[str]) -> list[str]:
    if value:
        return [BEFORE, AFTER, EQUAL]
    if plain(given) in (YES, NO):
        return [OVERLAP, WITHIN]
    if words & OPPOSITES.keys():
        return [FIRST, LAST]
    return [COUNT] if given.isdecimal() else [ALL]
