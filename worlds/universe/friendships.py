"""Friendships: every pair of people is one with the same chance, whoever they are."""

import numpy as np
import numpy.typing as npt

from worlds.universe.chance import below
from worlds.universe.universe import Friends

_FEW = 2000
"""Up to so many people every pair is drawn for; beyond, blocks of pairs are."""
_MEAN = 8
"""Friendships of a block, about."""


def friendships(people: int, mean: float, generator: np.random.Generator) -> Friends:
    """The random graph G(people, mean / people)."""
    share = min(1.0, mean / people)
    pairs = people * (people - 1) // 2
    every = people <= _FEW
    found = np.flatnonzero(generator.random(pairs) < share) if every else _drawn(pairs, share, generator)
    first, second = _ends(found, people)
    lower, upper = np.minimum(first, second), np.maximum(first, second)
    keys = np.sort(lower * people + upper)
    return Friends(np.stack((keys // people, keys % people), axis=1).astype(np.int32))


def _ends(pair: npt.NDArray[np.int64], people: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """The two people of a pair's number: an odd number of people stands in a circle, an even one has one apart."""
    circle = people - 1 + people % 2
    if circle < 2:
        return pair * 0, pair * 0 + 1
    columns = people * (people - 1) // 2 // circle
    first, step = pair // columns, pair % columns + 1
    apart = step > (circle - 1) // 2
    return first, np.where(apart, people - 1, (first + step) % circle)


def _drawn(pairs: int, share: float, generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """The numbers of the pairs that are friends, each pair with that chance."""
    if share == 0:
        return np.zeros(0, np.int64)
    doublings = int(min(_MEAN / share, pairs)).bit_length()
    blocks = (pairs >> doublings) + 1
    sizes = np.searchsorted(_counts(share, doublings), generator.random(blocks), side="right")
    found = _distinct(np.repeat(np.arange(blocks), sizes), 1 << doublings, generator)
    # The last block goes beyond the pairs there are.
    return found[found < pairs]


def _counts(share: float, doublings: int) -> npt.NDArray[np.float64]:
    """The chance of at most 0, 1, 2 ... friendships in a block of 2 ** doublings pairs, as far as it is below one."""
    # Only products, sums and quotients: powers and logarithms are not the same to the last bit on every machine.
    none = 1.0 - share
    for _ in range(doublings):
        none *= none
    chances, size = [none], 1 << doublings
    while len(chances) < min(20 * _MEAN, size):
        done = len(chances) - 1
        chances.append(chances[-1] * (size - done) / (done + 1) * share / (1.0 - share))
    return np.cumsum(chances)


def _distinct(blocks: npt.NDArray[np.int64], size: int, generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """For each entry another number of its block; a number drawn before is drawn again."""
    found = blocks * size + below(generator, size, len(blocks))
    while True:
        order = np.argsort(found, kind="stable")
        again = order[1:][found[order][1:] == found[order][:-1]]
        if not len(again):
            return found
        found[again] = blocks[again] * size + below(generator, size, len(again))
