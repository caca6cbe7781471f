import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from showhow.fiction.universe.families import RandomStream, create_generator, random_below


def test_streams_are_distinct_and_reproducible():
    numbers = [
        create_generator(seed, stream).integers(0, 2**62) for seed in (0, 1, 2**63 - 1) for stream in RandomStream
    ]
    assert len(set(numbers)) == len(numbers)
    assert numbers[:3] == [create_generator(0, stream).integers(0, 2**62) for stream in list(RandomStream)[:3]]


@given(st.lists(st.integers(1, 2**44), min_size=1, max_size=50), st.integers(0, 2**32))
def test_numbers_are_below_their_limits(limits, seed):
    numbers = random_below(create_generator(seed, RandomStream.HOMES), limits)
    assert numbers.dtype == np.int64
    assert np.all((numbers >= 0) & (numbers < limits))


def test_even_the_largest_draw_stays_below_its_limit():
    largest = 1 - 2.0**-53
    limits = np.concatenate((np.arange(1, 100_000), 2 ** np.arange(45), 2 ** np.arange(1, 45) - 1))
    assert np.all((largest * limits).astype(np.int64) < limits)


def test_numbers_below_a_limit_are_uniform():
    counts = np.bincount(random_below(create_generator(1, RandomStream.JOBS), 7, 70_000), minlength=7)
    assert len(counts) == 7
    assert np.abs(counts - 10_000).max() < 500
