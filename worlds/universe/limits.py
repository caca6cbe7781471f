"""What a universe of given options must keep to: its size, its trees, its names, its friendships."""

from collections import Counter, defaultdict
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from worlds.universe.options import Options
from worlds.universe.universe import NONE, Ids, Universe

_SPREAD = 6
"""Standard deviations that the number of friendships may be away from its mean."""


def beyond(universe: Universe, options: Options) -> Iterator[str]:
    """A sentence for everything that goes beyond the options."""
    yield from _people(universe, options)
    yield from _trees(universe, options)
    yield from _friendships(universe, options)
    yield from _names(universe, options)


def family_trees(universe: Universe) -> tuple[Ids, Ids]:
    """Of each person the lowest row of the family tree, and the generation counted from that person's, downwards."""
    edges = _edges(universe)
    rows = np.arange(len(universe), dtype=np.int32)
    tree = rows.copy()
    while True:
        lowest = tree.copy()
        for one, other, _ in edges:
            np.minimum.at(lowest, one, tree[other])
            np.minimum.at(lowest, other, tree[one])
        lowest = lowest[lowest]
        if np.array_equal(lowest, tree):
            return tree, _generations(len(universe), edges, tree == rows)
        tree = lowest


_Edges = list[tuple[Ids, Ids, int]]


def _edges(universe: Universe) -> _Edges:
    """Pairs of people, and how many generations the second is below the first."""
    found = []
    for values, deeper in ((universe.father, -1), (universe.mother, -1), (universe.spouse, 0)):
        rows = np.flatnonzero(values >= 0).astype(np.int32)
        found.append((rows, values[rows], deeper))
    return found


def _generations(people: int, edges: _Edges, first: npt.NDArray[np.bool_]) -> Ids:
    known, generation = first.copy(), np.zeros(people, np.int32)
    while not known.all():
        for one, other, deeper in edges:
            down, up = known[one] & ~known[other], ~known[one] & known[other]
            generation[other[down]] = generation[one[down]] + deeper
            generation[one[up]] = generation[other[up]] - deeper
            known[other[down]] = known[one[up]] = True
    return generation


def _people(universe: Universe, options: Options) -> Iterator[str]:
    if len(universe) != options.people:
        yield f"There are {len(universe):,} people, and {options.people:,} were asked for."


def _trees(universe: Universe, options: Options) -> Iterator[str]:
    who = universe.titles
    children = universe.children.sizes()
    for row in np.flatnonzero(children > options.branching).tolist():
        yield f"{who[row]} has {children[row]} children, more than {options.branching}."
    tree, generation = family_trees(universe)
    sizes = np.bincount(tree)
    for row in np.flatnonzero(sizes > options.family_size).tolist():
        yield f"The family of {who[row]} has {sizes[row]} people, more than {options.family_size}."
    lowest, highest = (np.zeros(len(universe), np.int32) for _ in range(2))
    np.minimum.at(lowest, tree, generation)
    np.maximum.at(highest, tree, generation)
    levels = highest - lowest + 1
    for row in np.flatnonzero(levels > options.generations).tolist():
        yield f"The family of {who[row]} has {levels[row]} generations, more than {options.generations}."


def _friendships(universe: Universe, options: Options) -> Iterator[str]:
    people = len(universe)
    share = min(1.0, options.friends / people)
    mean = people * (people - 1) / 2 * share
    # A count of few has a longer tail: some more are allowed for.
    if abs(len(universe.friends.pairs) - mean) > _SPREAD * (1 + float(np.sqrt(mean * (1 - share)))):
        yield f"There are {len(universe.friends.pairs):,} friendships, and about {round(mean):,} were asked for."


def _names(universe: Universe, options: Options) -> Iterator[str]:
    names, who = universe.names, universe.titles
    for row in np.flatnonzero(universe.father > NONE).tolist():
        if names[row].rpartition(" ")[2] != names[universe.father[row]].rpartition(" ")[2]:
            yield f"{who[row]} does not bear the surname of {who[universe.father[row]]}, the father."
    sharing: defaultdict[str, list[int]] = defaultdict(list)
    often = {name for name, count in Counter(names).items() if count > 1}
    for row, name in enumerate(names):
        title = name
        if name in often:
            sharing[name].append(row)
            title = f"{name} ({universe.jobs[universe.job[row]]})"
        if title != who[row]:
            yield f"The article of {name} is called {who[row]}, and should be {title}."
    for name, rows in sharing.items():
        if len(set(universe.job[rows].tolist())) < len(rows):
            yield f"Two of those called {name} have the same job."
    found, wanted = sum(map(len, sharing.values())), round(options.collisions * len(names)) // 2 * 2
    if found != wanted:
        yield f"{found:,} people have a namesake, and {wanted:,} were asked for."
