from hypothesis import given
from hypothesis import strategies as st

from llm.usage import TokenPrice, Usage


def test_a_price_is_per_million_tokens_and_needs_both_counts():
    assert TokenPrice(2.5, 10.0).cost_of(1_000_000, 100_000) == 3.5
    assert TokenPrice(2.5, 10.0).cost_of(None, 3) is None
    assert TokenPrice(2.5, 10.0).cost_of(3, None) is None
    assert TokenPrice(0.0, 0.0).cost_of(3, 3) == 0.0


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
