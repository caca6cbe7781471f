"""Answers that follow from earlier answers without a source: counts, comparisons, intersections.

    combine_answers("earliest", [people, birthdays])  # people whose birthday is the earliest

Values of the second operand name the value of the first that they belong to (`AnswerValue.of`). Which values are one
thing, some of which may have no id, is said in named_things.py.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal, InvalidOperation
from itertools import chain
from typing import Literal

from showhow.reasoners.answers.dates_and_numbers import normalize_quantities
from showhow.reasoners.answers.normalization import answers_equal
from showhow.reasoners.skills.named_things import NamedThings
from showhow.reasoners.skills.values import AnswerValue, distinct_values

Operation = Literal[
    "both",
    "count",
    "count each",
    "earliest",
    "latest",
    "earlier",
    "later",
    "same",
    "different",
    "overlap",
    "within",
]
"""The operations by name, as the gold trees of generated worlds name them (fiction/questions/decomposition.py)."""
Operand = Sequence[AnswerValue]
Number = tuple[Decimal, ...]
"""A number, or a date as year, month and day."""


class OperationUndefined(ValueError):
    """The operands do not fit the operation; the message says why in one sentence."""


def combine_answers(operation: Operation, operands: Sequence[Operand]) -> list[AnswerValue]:
    """Apply the operation; [] where the operands have no answer to it, such as a comparison of equal days.

    OperationUndefined if the number of operands is wrong, if a value is neither a date nor a number, or if the answer
    depends on which of several things a name without an id stands for.
    """
    counts, function = _OPERATIONS[operation]
    if len(operands) not in counts:
        raise OperationUndefined(f"{operation} takes {' or '.join(map(str, counts))} operands, not {len(operands)}")
    things = NamedThings(chain.from_iterable(operands))
    readings = things.list_readings()
    results = [
        function([[thing for value in operand for thing in reading.identify(value)] for operand in operands])
        for reading in readings
    ]
    if not results or any({value.key for value in result} != {value.key for value in results[0]} for result in results):
        raise OperationUndefined(f"it is not known which of several things {things.ambiguous_name!r} is")
    return results[0]


def operand_counts(operation: Operation) -> tuple[int, ...]:
    """The numbers of operands that an operation takes."""
    return _OPERATIONS[operation][0]


def _intersect(operands: Sequence[Operand]) -> list[AnswerValue]:
    common = set.intersection(*({value.key for value in operand} for operand in operands))
    return [value for value in distinct_values(operands[0]) if value.key in common]


def _count(operands: Sequence[Operand]) -> list[AnswerValue]:
    return [_number(len(distinct_values(operands[0])))]


def _count_each(operands: Sequence[Operand]) -> list[AnswerValue]:
    owners, counted = operands
    _check_owners(owners, counted)
    counts = {len({value.key for value in counted if value.of == owner.key}) for owner in owners}
    return [_number(count) for count in sorted(counts)]


def _extreme(
    operands: Sequence[Operand], choose: Callable[[Sequence[tuple[Decimal, ...]]], object]
) -> list[AnswerValue]:
    people, days = operands
    _check_owners(people, days)
    day_by_owner = {day.of: _comparable(day) for day in days}
    owners = [(person, day_by_owner.get(person.key)) for person in distinct_values(people)]
    dated = [(person, day) for person, day in owners if day is not None]
    if not dated:
        return []
    extreme = choose([day for _, day in dated])
    return [person for person, day in dated if day == extreme]


def _check_owners(owners: Operand, values: Operand) -> None:
    """Raise OperationUndefined for values of which none says to which of the owners it belongs."""
    keys = {owner.key for owner in owners}
    if owners and values and not any(value.of in keys for value in values):
        raise OperationUndefined(f"it is not known to whom {values[0].text!r} belongs")


def _compare(operands: Sequence[Operand], *, first: bool) -> list[AnswerValue]:
    left, left_days, right, right_days = map(distinct_values, operands)
    if any(len(side) != 1 for side in (left, left_days, right, right_days)):
        return []
    left_day, right_day = _comparable(left_days[0]), _comparable(right_days[0])
    if left_day == right_day:
        return []
    return left if (left_day < right_day) == first else right


def _same(operands: Sequence[Operand], *, expected: bool) -> list[AnswerValue]:
    left, right = map(distinct_values, operands)
    if len(left) != 1 or len(right) != 1:
        return []
    have_ids = left[0].entity is not None and right[0].entity is not None
    equal = left[0].key == right[0].key or (not have_ids and answers_equal(left[0].text, right[0].text))
    return [_truth(equal == expected)]


def _overlap(operands: Sequence[Operand]) -> list[AnswerValue]:
    """Whether two lives overlap; somebody without a day of death is alive."""
    births = [operands[0], operands[2]]
    if any(len(distinct_values(birth)) != 1 for birth in births):
        return []
    last_birth = max(_comparable(birth[0]) for birth in births)
    deaths = [_comparable(death[0]) for death in (operands[1], operands[3]) if death]
    return [_truth(all(last_birth <= death for death in deaths))]


def _within(operands: Sequence[Operand]) -> list[AnswerValue]:
    """Whether a day is within a life; somebody without a day of death is alive."""
    birth, death, day = map(distinct_values, operands)
    if len(birth) != 1 or len(day) != 1:
        return []
    moment = _comparable(day[0])
    return [_truth(_comparable(birth[0]) <= moment and (not death or moment <= _comparable(death[0])))]


def compare_values(first: str, second: str) -> Literal["before", "equal", "after"]:
    """Compare two dates or numbers; OperationUndefined for any other text."""
    one, other = _comparable(AnswerValue(text=first)), _comparable(AnswerValue(text=second))
    return "equal" if one == other else "before" if one < other else "after"


def _comparable(value: AnswerValue) -> Number:
    """A date or number in a form that can be compared."""
    parts = normalize_quantities(value.text).strip().split("-") if not value.text.startswith("-") else [value.text]
    try:
        numbers = tuple(map(Decimal, parts))
    except InvalidOperation:
        numbers = (Decimal("NaN"),)
    # "NaN" and "Infinity" are numbers to the library too.
    if not all(number.is_finite() for number in numbers):
        raise OperationUndefined(f"{value.text!r} is neither a date nor a number, so it cannot be compared")
    return numbers


def _number(count: int) -> AnswerValue:
    return AnswerValue(text=str(count))


def _truth(value: bool) -> AnswerValue:  # noqa: FBT001 - the truth is the value itself
    return AnswerValue(text="yes" if value else "no")


_OPERATIONS: dict[str, tuple[tuple[int, ...], Callable[[Sequence[Operand]], list[AnswerValue]]]] = {
    "both": ((2, 3, 4), _intersect),
    "count": ((1,), _count),
    "count each": ((2,), _count_each),
    "earliest": ((2,), lambda operands: _extreme(operands, min)),
    "latest": ((2,), lambda operands: _extreme(operands, max)),
    "earlier": ((4,), lambda operands: _compare(operands, first=True)),
    "later": ((4,), lambda operands: _compare(operands, first=False)),
    "same": ((2,), lambda operands: _same(operands, expected=True)),
    "different": ((2,), lambda operands: _same(operands, expected=False)),
    "overlap": ((4,), _overlap),
    "within": ((3,), _within),
}
