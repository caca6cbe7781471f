"""The split of a universe's facts over text, graph and web."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from showhow.fiction.universe.options import SPLIT_MODES
from showhow.fiction.universe.universe import (
    ALL_SOURCES,
    FACTS,
    GRAPH,
    NONE,
    SOURCES,
    TEXT,
    FactSources,
    IdArray,
    Universe,
)
from showhow.worlds.folder import WorldError

Masks = npt.NDArray[np.uint8]
WEB_PERCENT = 20
"""Percentage of facts that web pages state when text and graph state everything."""
_STREAM = 100
_SPLIT_FACTS = (*FACTS, "friend")
_COUPLE_FACTS = ("spouse", "wedding")


@dataclass(frozen=True, slots=True)
class SourceSplit:
    """The percentages of facts assigned to text, graph and web, each fact to one source.

    With `shares` None, text and graph state everything and web pages state WEB_PERCENT of it.
    """

    shares: tuple[int, ...] | None = None
    by: str = "both"


def parse_split(text: str, by: str = "both") -> SourceSplit:
    """Parse "everywhere", or percentages that add up to 100 such as "text=50,graph=35,web=15"."""
    if by not in SPLIT_MODES:
        raise WorldError(f"A world is split by entity, by relation or by both, not by {by!r}.")
    if text.strip() == "everywhere":
        return SourceSplit(None, by)
    shares: dict[str, int] = {}
    for part in text.split(","):
        source, equals, share = (field.strip() for field in part.partition("="))
        if source not in SOURCES or not equals or not (share.isascii() and share.isdecimal()):
            raise WorldError(
                f"The split {text!r} cannot be read at {part.strip()!r}; write everywhere or text=50,graph=35,web=15."
            )
        if source in shares:
            raise WorldError(f"The split {text!r} names {source} twice; give each source one share.")
        shares[source] = int(share)
    if sum(shares.values()) != 100:
        raise WorldError(f"The shares of the split {text!r} add up to {sum(shares.values())}; make it 100.")
    return SourceSplit(tuple(shares.get(source, 0) for source in SOURCES), by)


def assign_sources(universe: Universe, split: SourceSplit, seed: int) -> FactSources:
    """Assign each fact to its sources; shares are exact up to rounding.

    Shares count people when split by entity, kinds of facts when split by relation, and facts of each kind when split
    by both. When split by entity, a marriage or friendship has the source of the lower row, and a father or mother that
    of the child. The job of a person with a namesake is always in ALL_SOURCES, since it is part of the title. A missing
    fact also has the mask ALL_SOURCES.
    """
    if split.shares is None:
        assigned = _assign_by_fact(universe, (100 - WEB_PERCENT, 0, WEB_PERCENT), seed)
        return _build_fact_sources(universe, {kind: masks | np.uint8(TEXT | GRAPH) for kind, masks in assigned.items()})
    assign_functions = {"entity": _assign_by_person, "relation": _assign_by_kind, "both": _assign_by_fact}
    return _build_fact_sources(universe, assign_functions[split.by](universe, split.shares, seed))


def _assign_by_person(universe: Universe, shares: tuple[int, ...], seed: int) -> dict[str, Masks]:
    of_person = _draw_masks(len(universe), shares, seed, 0)
    masks = dict.fromkeys(FACTS, of_person)
    return {**masks, "friend": of_person[universe.friends.pairs[:, 0]]}


def _assign_by_kind(universe: Universe, shares: tuple[int, ...], seed: int) -> dict[str, Masks]:
    of_kind = dict(zip(_SPLIT_FACTS, _draw_masks(len(_SPLIT_FACTS), shares, seed, 0), strict=True))
    masks = {fact: np.full(len(universe), of_kind[fact], np.uint8) for fact in FACTS}
    return {**masks, "friend": np.full(len(universe.friends.pairs), of_kind["friend"], np.uint8)}


def _assign_by_fact(universe: Universe, shares: tuple[int, ...], seed: int) -> dict[str, Masks]:
    masks = {}
    for number, fact in enumerate(FACTS):
        rows = np.flatnonzero(_rows_to_assign(universe, fact))
        masks[fact] = np.zeros(len(universe), np.uint8)
        masks[fact][rows] = _draw_masks(len(rows), shares, seed, number)
    return {**masks, "friend": _draw_masks(len(universe.friends.pairs), shares, seed, len(FACTS))}


def _rows_to_assign(universe: Universe, fact: str) -> npt.NDArray[np.bool_]:
    """Mask of the rows whose fact needs a source; for a couple, only the lower row."""
    values: IdArray = getattr(universe, fact)
    has: npt.NDArray[np.bool_] = values > NONE
    if fact == "job":
        return has & ~_has_namesake(universe)
    if fact not in _COUPLE_FACTS:
        return has
    return has & ((universe.spouse <= NONE) | (universe.spouse > np.arange(len(universe))))


def _has_namesake(universe: Universe) -> npt.NDArray[np.bool_]:
    named = zip(universe.names, universe.titles, strict=True)
    return np.fromiter((name != title for name, title in named), np.bool_, len(universe))


def _build_fact_sources(universe: Universe, assigned: dict[str, Masks]) -> FactSources:
    masks = {}
    for fact in FACTS:
        values: IdArray = getattr(universe, fact)
        masks[fact] = np.where(values > NONE, assigned[fact], np.uint8(ALL_SOURCES))
        if fact in _COUPLE_FACTS:
            lower = np.flatnonzero(_rows_to_assign(universe, fact) & (universe.spouse > NONE))
            masks[fact][universe.spouse[lower]] = masks[fact][lower]
    masks["job"][_has_namesake(universe)] = ALL_SOURCES
    return FactSources(masks, assigned["friend"])


def _draw_masks(count: int, shares: tuple[int, ...], seed: int, stream: int) -> Masks:
    """Draw one source for each of `count` facts, in the proportions of `shares`."""
    generator = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(_STREAM, stream))))
    order = np.argsort(generator.integers(0, 2**63, count), kind="stable")
    masks = np.empty(count, np.uint8)
    masks[order] = np.repeat(np.array(list(SOURCES.values()), np.uint8), _divide_by_shares(count, shares))
    return masks


def _divide_by_shares(count: int, shares: tuple[int, ...]) -> list[int]:
    """Divide `count` by percentages; the remainder goes to the largest fractions."""
    sizes = [count * share // 100 for share in shares]
    by_remainder = sorted(range(len(shares)), key=lambda index: -(count * shares[index] % 100))
    for index in by_remainder[: count - sum(sizes)]:
        sizes[index] += 1
    return sizes
