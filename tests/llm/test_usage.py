from hypothesis import given
from hypothesis import strategies as st

from showhow.llm.usage import TokenPrice, Usage


def test_a_price_is_per_million_tokens_and_needs_both_counts():
    assert TokenPrice(2.5, 10.0).cost_of(Usage("m", 1, 1_000_000, 100_000)) == 3.5
    assert TokenPrice(2.5, 10.0).cost_of(Usage("m", 1, None, 3)) is None
    assert TokenPrice(2.5, 10.0).cost_of(Usage("m", 1, 3, None)) is None
    assert TokenPrice(0.0, 0.0).cost_of(Usage("m", 1, 3, 3)) == 0.0


def test_input_from_and_to_the_cache_has_prices_of_its_own():
    usage = Usage("m", 1, 1_000_000, 0, cached_tokens=500_000, cache_written_tokens=200_000)
    assert TokenPrice(4.0, 1.0).cost_of(usage) == 4.0
    assert TokenPrice(4.0, 1.0, cached=0.4, cache_write=5.0).cost_of(usage) == 1.2 + 0.2 + 1.0
    assert TokenPrice(4.0, 1.0, cached=0.0).cost_of(usage) == 2.0
    assert TokenPrice(4.0, 1.0, cache_write=5.0).max_cost_of(1_000_000, 1_000_000) == 6.0


def test_bounds_remain_known_if_the_usage_of_one_call_is_not():
    reported = Usage("m", 1, 10, 5, cost=0.5)
    unreported = Usage("m", 1, None, None, cost=None, unreported_calls=1, token_bound=100, cost_bound=2.0)
    total = reported + unreported + reported
    assert (total.input_tokens, total.cost, total.unreported_calls) == (None, None, 1)
    assert (total.max_tokens, total.max_cost) == (130, 3.0)
    assert Usage(**total.to_json()) == total
    assert (reported.max_tokens, reported.max_cost) == (15, 0.5)
    assert Usage("m", 1, None, None, cost=None).max_tokens is None


COUNT = st.none() | st.integers(0, 10**6)
USAGE = st.builds(
    Usage, st.sampled_from("ab"), st.integers(1, 9), COUNT, COUNT, st.integers(0, 9).map(float), COUNT.map(lambda n: n)
)


@given(st.lists(USAGE, min_size=1, max_size=5))
def test_usages_add_up_and_an_unknown_value_makes_the_sum_unknown(usages: list[Usage]):
    total = sum(usages, Usage())
    assert total.calls == sum(one.calls for one in usages)
    for name in ("input_tokens", "output_tokens", "cost"):
        values = [getattr(one, name) for one in usages]
        assert getattr(total, name) == (None if None in values else sum(values))
    assert total.seconds == sum(one.seconds for one in usages)


def test_adding_an_empty_usage_changes_nothing():
    used = Usage("m", 2, None, 3, 0.123456, None)
    assert Usage() + used == used == used + Usage()
    assert used.to_json() == {
        "model": "m",
        "calls": 2,
        "input_tokens": None,
        "output_tokens": 3,
        "seconds": 0.1235,
        "cost": None,
    }


def test_usages_of_several_models_name_them():
    assert (Usage("a", 1) + Usage("b", 1)).model == "a, b"
