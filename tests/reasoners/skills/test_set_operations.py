"""Operations on answers, against plain Python over random people, and the cases without an answer."""

from datetime import date, timedelta
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.reasoners.pdrr.triples import Triple, join_values, name_owners, schedule_triples
from showhow.reasoners.skills.set_operations import OperationUndefined, combine_answers, compare_values
from showhow.reasoners.skills.values import AnswerValue

DAYS = st.integers(0, 30).map(lambda day: date(1920, 1, 1) + timedelta(days=400 * day))
PEOPLE = st.dictionaries(st.integers(1, 30), DAYS, max_size=12)


def person(number: int, of: str | None = None) -> AnswerValue:
    return AnswerValue(text=f"Person {number}", entity=f"Q{number}", of=of)


def day(value: date, of: int | None = None) -> AnswerValue:
    return AnswerValue(text=value.isoformat(), of=None if of is None else f"Q{of}")


def texts(values: list[AnswerValue]) -> list[str]:
    return [value.text for value in values]


@pytest.mark.parametrize(("operation", "choose"), [("earliest", min), ("latest", max)])
@given(people=PEOPLE)
def test_the_earliest_and_the_latest_are_those_of_a_plain_minimum(operation, choose, people):  # type: ignore[no-untyped-def]
    days = [day(born, number) for number, born in people.items()]
    extreme = combine_answers(operation, [[person(number) for number in people], days])
    expected = [n for n, born in people.items() if born == choose(people.values())]
    assert [value.entity for value in extreme] == [f"Q{number}" for number in expected]


@given(st.sets(st.integers(1, 20)), st.sets(st.integers(1, 20)))
def test_both_is_the_intersection_and_count_its_size(left: set[int], right: set[int]):
    common = combine_answers("both", [[person(n) for n in sorted(left)], [person(n) for n in sorted(right)]])
    assert {value.entity for value in common} == {f"Q{n}" for n in left & right}
    assert texts(combine_answers("count", [common])) == [str(len(left & right))]


@given(st.dictionaries(st.integers(1, 9), st.sets(st.integers(10, 30), max_size=6), min_size=1))
def test_counts_of_each_owner_are_a_set_with_zero_for_those_without(children: dict[int, set[int]]):
    owners = [person(owner) for owner in children]
    counted = [person(child, f"Q{owner}") for owner, born in children.items() for child in born]
    assert texts(combine_answers("count each", [owners, counted])) == sorted(
        {str(len(born)) for born in children.values()}, key=int
    )


@given(DAYS, DAYS)
def test_comparisons_have_one_winner_or_none(left: date, right: date):
    operands = [[person(1)], [day(left)], [person(2)], [day(right)]]
    winner = [] if left == right else ["Person 1"] if left < right else ["Person 2"]
    loser = [] if left == right else ["Person 2"] if left < right else ["Person 1"]
    assert texts(combine_answers("earlier", operands)) == winner
    assert texts(combine_answers("later", operands)) == loser
    assert texts(combine_answers("same", [[day(left)], [day(right)]])) == ["yes" if left == right else "no"]
    assert texts(combine_answers("different", [[day(left)], [day(right)]])) == ["no" if left == right else "yes"]


@given(DAYS, DAYS, st.none() | DAYS, st.none() | DAYS)
def test_lives_overlap_unless_one_ends_before_the_other_begins(
    birth: date, other_birth: date, death: date | None, other_death: date | None
):
    operands = [
        [day(birth)],
        [day(death)] if death else [],
        [day(other_birth)],
        [day(other_death)] if other_death else [],
    ]
    last_day = date(9999, 1, 1)
    expected = max(birth, other_birth) <= min(death or last_day, other_death or last_day)
    assert texts(combine_answers("overlap", operands)) == ["yes" if expected else "no"]
    within = combine_answers("within", [*operands[:2], [day(other_birth)]])
    assert texts(within) == ["yes" if birth <= other_birth <= (death or last_day) else "no"]


@pytest.mark.parametrize(("operation", "operands"), [
    ("earliest", [[person(1)], []]), ("earlier", [[person(1)], [], [person(2)], [day(date(1931, 1, 1))]]),
    ("same", [[], [person(1)]]), ("overlap", [[], [], [], []]), ("within", [[day(date(1931, 1, 1))], [], []]),
])  # fmt: skip
def test_what_is_not_known_has_no_answer(operation, operands):  # type: ignore[no-untyped-def]
    assert combine_answers(operation, operands) == []


@pytest.mark.parametrize("operation", ["earliest", "latest", "count each"])
def test_values_that_belong_to_nobody_who_is_asked_about_are_an_error(operation):  # type: ignore[no-untyped-def]
    for owner in (None, 9):
        with pytest.raises(OperationUndefined, match="it is not known to whom '1931-01-01' belongs"):
            combine_answers(operation, [[person(1), person(2)], [day(date(1931, 1, 1), owner)]])


def test_what_cannot_be_compared_is_an_error():
    with pytest.raises(OperationUndefined, match="'a while ago' is neither a date nor a number"):
        combine_answers("earliest", [[person(1)], [AnswerValue(text="a while ago", of="Q1")]])
    with pytest.raises(OperationUndefined, match="count takes 1 operands, not 2"):
        combine_answers("count", [[], []])


@pytest.mark.parametrize(("first", "second", "order"), [
    ("1931-03-05", "5 March 1931", "equal"), ("1930", "1931-03-05", "before"), ("12", "9", "after"),
    ("thirty", "30", "equal"), ("5 March 1931", "before", None), ("-3", "2", "before"),
    ("NaN", "1931", None), ("1931", "Infinity", None), ("sNaN", "sNaN", None), ("1e" + "9" * 30, "1", None),
])  # fmt: skip
def test_values_are_compared_as_dates_or_numbers(first: str, second: str, order: str | None):
    if order is None:
        with pytest.raises(OperationUndefined):
            compare_values(first, second)
    else:
        assert compare_values(first, second) == order


NAMES = {"Q1": "Ada Lind", "Q2": "Ada Lind", "Q3": "Bo Reed", "Q4": "Cy Voss"}
"""People, two of one name."""
MENTIONS = st.lists(
    st.sampled_from([*NAMES]).map(lambda id_: AnswerValue(text=NAMES[id_], entity=id_))
    | st.sampled_from(["Ada Lind", "ada  lind", "Bo Reed", "Cy Voss"]).map(lambda name: AnswerValue(text=name)),
    max_size=4,
)


def folded(name: str) -> str:
    return " ".join(name.casefold().split())


def list_possible(value: AnswerValue, at_hand: list[AnswerValue]) -> list[str]:
    """The things that a value may be: that of its id, else those at hand with its name, else what has the name."""
    if value.entity:
        return [value.entity]
    ids = {other.entity for other in at_hand if other.entity and folded(other.text) == folded(value.text)}
    return sorted(filter(None, ids)) or [folded(value.text)]


def list_all_results(operation: str, operands: list[list[AnswerValue]]) -> list[set[str]]:
    """What plain sets give for each way to choose one thing for each name that stands without an id."""
    at_hand = [value for operand in operands for value in operand]
    names = sorted({folded(value.text) for value in at_hand if not value.entity})
    results = []
    for chosen in product(*(list_possible(AnswerValue(text=name), at_hand) for name in names)):
        thing_of = dict(zip(names, chosen, strict=True))
        sets = [{value.entity or thing_of[folded(value.text)] for value in operand} for operand in operands]
        results.append(set.intersection(*sets) if operation == "both" else {str(len(sets[0]))})
    return results


@pytest.mark.parametrize(("operation", "count"), [("both", 2), ("both", 3), ("count", 1)])
@given(data=st.data())
def test_a_person_with_and_without_an_id_is_one_and_two_ids_are_two(operation, count, data):  # type: ignore[no-untyped-def]
    operands = [data.draw(MENTIONS) for _ in range(count)]
    results = list_all_results(operation, operands)
    if any(result != results[0] for result in results):
        with pytest.raises(OperationUndefined, match="it is not known which of several things 'Ada Lind' is"):
            combine_answers(operation, operands)
    else:
        combined = combine_answers(operation, operands)
        assert {value.entity or folded(value.text) for value in combined} == results[0]
        assert len({value.key for value in combined}) == len(results[0])


@given(MENTIONS, MENTIONS)
def test_a_join_keeps_whoever_may_be_meant_on_both_sides(left: list[AnswerValue], right: list[AnswerValue]):
    triples = [Triple(subject=name, relation="friend", object="person#1") for name in ("Dee Fox", "Eve Gray")]
    completed = list(zip(schedule_triples(triples), (left, right), strict=True))
    joined = join_values(completed)["person#1"]
    sides = [{thing for value in side for thing in list_possible(value, [*left, *right])} for side in (left, right)]
    assert {value.entity or folded(value.text) for value in joined} == sides[0] & sides[1]


@pytest.mark.parametrize(("operation", "expected"), [("earliest", "Q1"), ("latest", "Q3")])
@pytest.mark.parametrize("names_owner", [True, False])
def test_days_belong_to_people_whether_either_side_has_an_id(operation, expected, names_owner):  # type: ignore[no-untyped-def]
    people = [AnswerValue(text="Ada Lind", entity="Q1"), AnswerValue(text="Bo Reed", entity="Q3")]
    days = [AnswerValue(text=f"190{number}-01-01", of=person.key) for number, person in enumerate(people)]
    if names_owner:
        days = [day.model_copy(update={"of": person.text.lower()}) for day, person in zip(days, people, strict=True)]
    assert [value.entity for value in combine_answers(operation, [people, days])] == [expected]
    alone = [AnswerValue(text="ada lind"), AnswerValue(text="Bo Reed")]
    counted = [value.model_copy(update={"of": "Q1"}) for value in [*people, *people]]
    assert texts(combine_answers("count each", [alone, counted])) == ["0", "2"]


def test_two_people_of_one_name_are_different():
    adas = [[AnswerValue(text="Ada Lind", entity=id_)] for id_ in ("Q1", "Q2")]
    assert texts(combine_answers("same", adas)) == ["no"]
    assert texts(combine_answers("same", [adas[0], [AnswerValue(text="ada lind")]])) == ["yes"]
    shared = name_owners([AnswerValue(text="Rome", of="Ada Lind")], [adas[0][0], adas[1][0]])
    assert [value.of for value in shared] == [None]
