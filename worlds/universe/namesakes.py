"""Namesakes: pairs of people of different families who are to share their full name."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from worlds.folder import WorldError
from worlds.universe.families import Families
from worlds.universe.universe import NONE, Ids

_Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Namesakes:
    """Who shares a surname, and who a full name."""

    line: Ids
    """Of each person a row that is the same for all who inherit one surname."""
    first: Ids
    """Of the second of two namesakes the row of the first; NONE for everybody else."""


def lines(people: Families) -> Ids:
    """Of each person the first known man of the line of fathers: oneself where no father is known."""
    rows = np.arange(len(people.father), dtype=np.int32)
    found = np.where(people.father < 0, rows, people.father)
    while True:
        further = found[found]
        if np.array_equal(further, found):
            return found
        found = further


def namesakes(people: Families, share: float, generator: np.random.Generator) -> Namesakes:
    """Pairs that are that share of all people, rounded down to whole pairs; WorldError when families are too few."""
    line = lines(people)
    first = np.full(len(line), NONE, np.int32)
    pairs = round(share * len(line)) // 2
    if not pairs:
        return Namesakes(line, first)
    line = _joined(people, line, generator)
    one, other = _candidates(people, line)
    if len(one) < pairs:
        raise WorldError(
            f"Only {2 * len(one):,} of these {len(line):,} people can share a name with somebody of another family; "
            "ask for fewer collisions, more people or smaller families."
        )
    chosen = np.sort(np.argsort(generator.random(len(one)), kind="stable")[:pairs])
    first[other[chosen]] = one[chosen]
    return Namesakes(line, first)


def _joined(people: Families, line: Ids, generator: np.random.Generator) -> Ids:
    """The lines, two of different families but with as many women and men made one wherever possible."""
    heads = np.flatnonzero(line == np.arange(len(line)))
    women, men = (np.bincount(line[of], minlength=len(line))[heads] for of in (people.female, ~people.female))
    tree = people.tree[heads]
    place = np.argsort(generator.random(int(tree[-1]) + 1), kind="stable")[tree]
    # The first lines of a kind of all families, then the second ones: neighbours are of different families.
    rank = _ranks(np.lexsort((women, men, tree)), (tree, men, women))
    order = np.lexsort((place, rank, men, women))
    one, other = order[: len(order) // 2 * 2].reshape(-1, 2).T
    apart = tree[one] != tree[other]
    joined = np.arange(len(line), dtype=np.int32)
    joined[heads[other[apart]]] = heads[one[apart]]
    return joined[line]


def _candidates(people: Families, line: Ids) -> tuple[_Rows, _Rows]:
    """Pairs of people of one line and gender but of two families, nobody in two of them."""
    keys = (line, people.female, people.tree)
    rank = _ranks(np.lexsort((people.tree, people.female, line)), keys)
    order = np.lexsort((people.tree, rank, people.female, line))
    one, other = order[:-1], order[1:]
    alike = (line[one] == line[other]) & (people.female[one] == people.female[other]) & (rank[one] == rank[other])
    return one[alike], other[alike]


def _ranks(order: _Rows, keys: tuple[npt.NDArray[np.generic], ...]) -> _Rows:
    """The number of each row among those of equal keys, from an order in which those lie together."""
    begins = np.ones(len(order), np.bool_)
    begins[1:] = np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0)
    places = np.arange(len(order))
    found = np.empty(len(order), np.int64)
    found[order] = places - np.maximum.accumulate(np.where(begins, places, 0))
    return found
