"""Streams of random numbers: one a purpose, so that a change of one leaves the others as they were."""

from enum import IntEnum

import numpy as np
import numpy.typing as npt


class RandomStream(IntEnum):
    """What random numbers are drawn for; a number once given is never changed, or old seeds make other worlds."""

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
    """The generator of that stream, the same on every machine."""
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(stream,))))


def random_below(
    generator: np.random.Generator, limits: npt.ArrayLike, count: int | None = None
) -> npt.NDArray[np.int64]:
    """Numbers from 0 to below the limit: one a limit, or `count` of one limit."""
    # Products and cuts are the same on every machine, and faster than integers() with a limit for each.
    limits = np.asarray(limits)
    draws = generator.random(limits.shape if count is None else count)
    numbers: npt.NDArray[np.int64] = (draws * limits).astype(np.int64)
    return numbers
