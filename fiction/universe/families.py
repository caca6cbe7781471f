"""Family trees, grown person by person as in the PhantomWiki paper, all trees in parallel."""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from showhow.fiction.universe.options import GenerationOptions
from showhow.fiction.universe.universe import NONE, IdArray


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
    ABSENCES = 13


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


_PARTNER_ONLY_SHARE = 0.06
"""Probability that a step adds a partner without a child."""

_Slots = npt.NDArray[np.int16]
_Trees = npt.NDArray[np.int64]
_Coins = npt.NDArray[np.float64]
_Masks = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class FamilyTrees:
    """Parents, partners and levels of all people; the rows of a tree are contiguous, in the order of growth."""

    size: int
    """People per tree; the last tree has the remainder."""
    female: npt.NDArray[np.bool_]
    father: IdArray
    mother: IdArray
    spouse: IdArray
    level: IdArray
    """Generation; partners share a level, and their children have the next."""
    origin: IdArray
    """The earlier row to which this person was added; NONE for the first person of a tree."""

    @property
    def tree_numbers(self) -> IdArray:
        """Tree number of each person."""
        return np.arange(len(self.female), dtype=np.int32) // np.int32(self.size)


def grow_families(options: GenerationOptions, generator: np.random.Generator) -> FamilyTrees:
    """Grow trees with `options.people` people in total."""
    size = options.family_size
    trees = -(-options.people // size)
    sizes = np.full(trees, size, np.int64)
    sizes[-1] = options.people - (trees - 1) * size
    growth = _TreeGrower(sizes, options, generator)
    growth.grow()
    first = np.arange(trees, dtype=np.int32)[:, None] * np.int32(size)

    def rows(slots: _Slots) -> IdArray:
        return np.where(slots < 0, np.int32(NONE), slots + first).ravel()[: options.people]

    return FamilyTrees(
        size=size,
        female=growth.female.ravel()[: options.people],
        father=rows(growth.father),
        mother=rows(growth.mother),
        spouse=rows(growth.spouse),
        level=growth.level.ravel()[: options.people].astype(np.int32),
        origin=rows(growth.origin),
    )


class _TreeGrower:
    """Grows all trees in parallel: one row per tree, one slot per person; each step adds to every unfinished tree."""

    def __init__(self, sizes: _Trees, options: GenerationOptions, generator: np.random.Generator) -> None:
        shape = (len(sizes), options.family_size)
        self._generator, self._target_sizes = generator, sizes
        self._generations, self._branching = options.generations, options.branching
        # The gender of partners and parents is overwritten when they are added.
        self.female = generator.random(shape) < 0.5
        self.father, self.mother, self.spouse, self.origin = (np.full(shape, NONE, np.int16) for _ in range(4))
        self.level, self._children = (np.zeros(shape, np.int16) for _ in range(2))
        self._size = np.ones(len(sizes), np.int64)
        self._lowest, self._highest = (np.zeros(len(sizes), np.int64) for _ in range(2))

    def grow(self) -> None:
        """Grow every tree to its size."""
        growing = np.flatnonzero(self._size < self._target_sizes)
        while len(growing):
            self._grow_step(growing)
            growing = growing[self._size[growing] < self._target_sizes[growing]]

    def _grow_step(self, trees: _Trees) -> None:
        """Pick one person of each tree and add parents, a child or a partner."""
        coin = self._generator.random(len(trees))
        member = random_below(self._generator, self._size[trees])
        weds, up, down = self._choose_growth(trees, member, coin)
        stuck = ~(weds | up | down)
        member[stuck] = self._pick_member(trees[stuck])
        full = member < 0
        self._restart_trees(trees[full])
        trees, member, coin = trees[~full], member[~full], coin[~full]
        _, up, down = self._choose_growth(trees, member, coin)
        single = ~up & (self.spouse[trees, member] < 0)
        self._add_partners(trees[single], member[single])
        self._add_children(trees[down], member[down])
        self._add_parents(trees[up], member[up])

    def _choose_growth(self, trees: _Trees, member: _Trees, coin: _Coins) -> tuple[_Masks, _Masks, _Masks]:
        """Masks of members that get a partner only, parents, or a child; the masks are disjoint."""
        room = self._target_sizes[trees] - self._size[trees]
        single = self.spouse[trees, member] < 0
        weds = single & ((room == 1) | (coin < _PARTNER_ONLY_SHARE))
        up = ~weds & self._may_have_parents(trees, member, room)
        down = ~weds & self._may_have_child(trees, member, room - single)
        up &= ~down | (coin < (1 + _PARTNER_ONLY_SHARE) / 2)
        return weds, up, down & ~up

    def _pick_member(self, trees: _Trees) -> _Trees:
        """Pick a member of each tree that may get parents or a child, else a single one; NONE if the tree is full."""
        slots = np.arange(self.level.shape[1])
        weds, up, down = self._choose_growth(trees[:, None], slots, np.ones(1))
        exists: _Masks = np.less(slots, self._size[trees][:, None])
        can_grow: _Masks = exists & (weds | up | down)
        can_grow = np.where(np.any(can_grow, axis=1)[:, None], can_grow, exists & (self.spouse[trees] < 0))
        counts = np.cumsum(can_grow, axis=1)
        slot = np.argmax(counts > random_below(self._generator, counts[:, -1])[:, None], axis=1)
        return np.where(counts[:, -1] > 0, slot, NONE)

    def _may_have_parents(self, trees: _Trees, member: _Trees, room: _Trees) -> _Masks:
        inside = (self.level[trees, member] > self._lowest[trees]) | self._may_deepen(trees)
        return (self.father[trees, member] < 0) & inside & (room >= 2)

    def _may_have_child(self, trees: _Trees, member: _Trees, room: _Trees) -> _Masks:
        inside = (self.level[trees, member] < self._highest[trees]) | self._may_deepen(trees)
        return (self._children[trees, member] < self._branching) & inside & (room >= 1)

    def _may_deepen(self, trees: _Trees) -> _Masks:
        return self._highest[trees] - self._lowest[trees] + 1 < self._generations

    def _add_partners(self, trees: _Trees, member: _Trees) -> None:
        partner = self._take_slot(trees, member, 0)
        self.female[trees, partner] = ~self.female[trees, member]
        self.spouse[trees, partner], self.spouse[trees, member] = member, partner

    def _add_children(self, trees: _Trees, member: _Trees) -> None:
        child = self._take_slot(trees, member, 1)
        partner = self.spouse[trees, member]
        woman = self.female[trees, member]
        self.mother[trees, child] = np.where(woman, member, partner)
        self.father[trees, child] = np.where(woman, partner, member)
        for parent in (member, partner):
            self._children[trees, parent] += 1

    def _add_parents(self, trees: _Trees, member: _Trees) -> None:
        father, mother = self._take_slot(trees, member, -1), self._take_slot(trees, member, -1)
        self.female[trees, father], self.female[trees, mother] = False, True
        self.spouse[trees, father], self.spouse[trees, mother] = mother, father
        self.father[trees, member], self.mother[trees, member] = father, mother
        for parent in (father, mother):
            self._children[trees, parent] = 1

    def _take_slot(self, trees: _Trees, origin: _Trees, deeper: int) -> _Trees:
        """Take the next free slot of each tree for a person `deeper` levels below the origin."""
        slot = self._size[trees]
        self._size[trees] += 1
        self.origin[trees, slot] = origin
        level = self.level[trees, origin] + deeper
        self.level[trees, slot] = level
        self._lowest[trees] = np.minimum(self._lowest[trees], level)
        self._highest[trees] = np.maximum(self._highest[trees], level)
        return slot

    def _restart_trees(self, trees: _Trees) -> None:
        # Rare: one person is missing, but every couple has the maximum number of children.
        for slots in (self.father, self.mother, self.spouse, self.origin):
            slots[trees] = NONE
        for numbers in (self.level, self._children, self._lowest, self._highest):
            numbers[trees] = 0
        self._size[trees] = 1
