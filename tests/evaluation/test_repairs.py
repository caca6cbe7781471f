"""The order of repairs, against the priority rule step by step."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from showhow.evaluation.verification.repairs import order_repairs, repair_priority

KINDS = st.lists(st.sampled_from("abcd"), max_size=25)
SHOWN = st.dictionaries(st.sampled_from("abcde"), st.integers(0, 6))


@given(KINDS, SHOWN)
def test_every_failure_occurs_once_with_the_highest_priority_at_its_turn(kinds, shown):
    order = order_repairs(kinds, shown)
    assert sorted(order) == list(range(len(kinds)))
    left, known = Counter(kinds), Counter(shown)
    for place in order:
        kind = kinds[place]
        assert repair_priority(left[kind], known[kind]) == max(
            repair_priority(left[other_kind], known[other_kind]) for other_kind in left if left[other_kind]
        )
        left[kind] -= 1
        known[kind] += 1


@given(KINDS, SHOWN)
def test_the_order_within_a_kind_is_kept(kinds, shown):
    order = order_repairs(kinds, shown)
    for kind in set(kinds):
        places = [place for place in order if kinds[place] == kind]
        assert places == sorted(places)


def test_a_kind_without_demonstrations_comes_before_one_that_fails_as_often():
    assert order_repairs(["shown", "new", "shown", "new"], {"shown": 9}) == [1, 3, 0, 2]
