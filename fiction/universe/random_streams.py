"""Random streams: one per purpose, so that a change to one leaves the others unchanged."""

from enum import IntEnum

import numpy as np
import numpy.typing as npt


class RandomStream(IntEnum):
    """Purposes of random streams; numbers never change, or old seeds would generate different worlds."""

    FAMILIES = 1
    BIRTHS = 2
    WEDDINGS = 3
    DEATHS = 4
    FRIENDSHIPS = 5
    SURNAMES = 6
    GIVEN_NAMES = 7
    NAMESAKES = 8
    PLACES = 9
    HOMES = 10
    JOBS = 11
    HOBBIES = 12


def create_generator(seed: int, stream: RandomStream) -> np.random.Generator:
    """Create the random generator of a stream, the same on every machine."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(stream,))))


def random_below(
    generator: np.random.Generator, limits: npt.ArrayLike, count: int | None = None
) -> npt.NDArray[np.int64]:
    """Draw integers in [0, limit): one per limit, or `count` for a single limit."""
    # Multiplication and truncation give the same result on every machine, faster than integers() with many limits.
    limits = np.asarray(limits)
    draws = generator.random(limits.shape if count is None else count)
    numbers: npt.NDArray[np.int64] = (draws * limits).astype(np.int64)
    return numbers
