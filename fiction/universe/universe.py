"""A universe: everything that is true in a world, as integer arrays with one row a person.

How the facts of a built world are spread over its sources.
"""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import numpy.typing as npt

from worlds.folder import WorldError


def count_by_sources(universe: Path, fact_sources: Path) -> dict[str, dict[str, int]]:
    """For every kind of fact how many each set of sources tells, as "text + graph"; only the columns needed are read.

    A marriage counts once for each of the two, a friendship once.
    """
    try:
        with np.load(universe) as facts, np.load(fact_sources) as masks:
            counts = {fact: _count_masks(masks[fact][facts[fact] > NONE]) for fact in FACTS}
            return {**counts, "friend": _count_masks(masks["friends"])}
    except (OSError, ValueError, KeyError, IndexError) as broken:
        raise WorldError(f"The split {fact_sources} cannot be read ({broken}); make the world again.") from broken


def _count_masks(masks: np.ndarray) -> dict[str, int]:
    counts = np.bincount(masks, minlength=1)
    return {_format_sources(mask): int(count) for mask, count in enumerate(counts) if count}


def _format_sources(mask: int) -> str:
    return " + ".join(name for name, bit in SOURCES.items() if mask & bit) or "nowhere"


IdArray = npt.NDArray[np.int32]
"""Row numbers of people, or numbers of places, jobs, hobbies; or days (`date.toordinal`)."""

NONE = -1
"""There is none: no father in the universe, no partner, no death yet."""
WITHHELD = -2
"""There is one, but this source does not tell it."""

TEXT, GRAPH, WEB = 1, 2, 4
"""The sources as bits of a mask."""
ALL_SOURCES = TEXT | GRAPH | WEB
SOURCES = {"text": TEXT, "graph": GRAPH, "web": WEB}

_READ_ERRORS = (
    OSError,
    ValueError,
    KeyError,
    TypeError,
    AttributeError,
    EOFError,
    RuntimeError,
    SyntaxError,
    BadZipFile,
    zlib.error,
    struct.error,
)
"""What reading a file that was cut off or altered may raise."""

FACTS = ("father", "mother", "spouse", "birth", "death", "wedding", "birthplace", "residence", "job", "hobby")
"""The facts that a source may tell of a person or not; gender and name are told everywhere. A wedding is one fact of
two people: both rows have the same mask, as have both rows of a spouse."""


@dataclass(frozen=True, slots=True)
class Places:
    """Towns in regions in countries; `region[town]` and `country[region]` are numbers of the other lists."""

    towns: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    countries: tuple[str, ...] = ()
    region: IdArray = field(default_factory=lambda: np.zeros(0, np.int32))
    country: IdArray = field(default_factory=lambda: np.zeros(0, np.int32))


@dataclass(frozen=True, slots=True)
class Friendships:
    """Who is whose friend, as rows of pairs (a < b), each pair once, sorted."""

    pairs: IdArray
    """Shape (m, 2)."""


@dataclass(frozen=True)
class Universe:
    """People and all that is true of them; row i of every array is person i.

    Dates are ordinals; a universe that a source tells only in part has WITHHELD in its arrays and lacks the friendships
    that the source does not tell.
    """

    names: Sequence[str]
    titles: Sequence[str]
    """Of the articles: the name, or the name with what tells namesakes apart in parentheses; no two are the same."""
    female: npt.NDArray[np.bool_]
    father: IdArray
    mother: IdArray
    spouse: IdArray
    birth: IdArray
    death: IdArray
    wedding: IdArray
    birthplace: IdArray
    residence: IdArray
    job: IdArray
    hobby: IdArray
    friends: Friendships
    places: Places
    jobs: tuple[str, ...]
    hobbies: tuple[str, ...]
    today: int = 0
    """The day on which the world stands still; nobody was born, died or married after it."""

    def __len__(self) -> int:
        return len(self.female)

    @cached_property
    def children(self) -> "CompressedLists":
        """The children of each person by birth of row, from the fathers and mothers that are told."""
        return CompressedLists.from_columns(len(self), self.father, self.mother)

    @cached_property
    def friends_of(self) -> "CompressedLists":
        """The friends of each person."""
        pairs = self.friends.pairs
        return CompressedLists.from_pairs(
            len(self), np.concatenate((pairs[:, 0], pairs[:, 1])), np.concatenate((pairs[:, 1], pairs[:, 0]))
        )

    def find_people_with(self, fact: str, value: int) -> IdArray:
        """The rows whose job, hobby, birthplace, residence or day is that value, ascending."""
        return self._index_by_value(fact).get_one(value)

    def _index_by_value(self, fact: str) -> "CompressedLists":
        lists_by_fact = self.__dict__.setdefault("_lists_by_value", {})
        if fact not in lists_by_fact:
            values = getattr(self, fact)
            rows = np.flatnonzero(values >= 0).astype(np.int32)
            size = int(values.max(initial=-1)) + 1
            lists_by_fact[fact] = CompressedLists.from_pairs(size, values[rows], rows)
        lists: CompressedLists = lists_by_fact[fact]
        return lists

    def restrict_to_sources(self, fact_sources: "FactSources", sources: int) -> "Universe":
        """The universe as these sources (bits) together tell it."""
        if sources == ALL_SOURCES:
            return self
        changed: dict[str, Any] = {}
        for fact in FACTS:
            values: IdArray = getattr(self, fact)
            hidden = (values >= 0) & ((fact_sources.masks[fact] & sources) == 0)
            changed[fact] = np.where(hidden, np.int32(WITHHELD), values)
        visible = (fact_sources.friends & sources) != 0
        return replace(self, **changed, friends=Friendships(self.friends.pairs[visible]))

    def save(self, file: Path) -> None:
        """Write the universe to one file; the same universe gives the same bytes of every array."""
        arrays: dict[str, Any] = {"friends": self.friends.pairs, "today": np.int32(self.today)}
        for attribute in fields(self):
            value = getattr(self, attribute.name)
            if isinstance(value, np.ndarray):
                arrays[attribute.name] = value
        for name in ("names", "titles", "jobs", "hobbies"):
            arrays[name] = _pack_texts(getattr(self, name))
        for attribute in fields(self.places):
            value = getattr(self.places, attribute.name)
            arrays[f"places.{attribute.name}"] = value if isinstance(value, np.ndarray) else _pack_texts(value)
        np.savez(file, **arrays)

    @classmethod
    def load(cls, file: Path) -> "Universe":
        """The universe of a file; WorldError when there is none or it is damaged."""
        try:
            with file.open("rb") as stream, np.load(stream) as arrays:
                universe = cls._from_arrays({name: arrays[name] for name in arrays.files})
            _check_ranges(universe)
        except _READ_ERRORS as broken:
            raise WorldError(f"The universe {file} cannot be read ({broken}); make the world again.") from broken
        return universe

    @classmethod
    def _from_arrays(cls, arrays: dict[str, Any]) -> "Universe":
        texts = ("names", "titles", "jobs", "hobbies", "places.towns", "places.regions", "places.countries")
        values: dict[str, Any] = {n: _unpack_texts(a) if n in texts else a for n, a in arrays.items()}
        places = {name.removeprefix("places."): values.pop(name) for name in list(values) if name.startswith("places.")}
        values |= {"places": Places(**places), "friends": Friendships(values["friends"]), "today": int(values["today"])}
        return cls(**values)


@dataclass(frozen=True, slots=True)
class FactSources:
    """Which sources tell which fact: for every fact and person, and for every friendship, a mask of source bits."""

    masks: dict[str, npt.NDArray[np.uint8]]
    """Keys: FACTS."""
    friends: npt.NDArray[np.uint8]
    """One a pair, in the order of Universe.friends."""

    def save(self, file: Path) -> None:
        """Write the masks to one file."""
        np.savez(file, allow_pickle=False, friends=self.friends, **self.masks)

    @classmethod
    def load(cls, file: Path) -> "FactSources":
        """The masks of a file; WorldError when there is none or it is damaged."""
        try:
            with file.open("rb") as stream, np.load(stream) as arrays:
                masks = {name: arrays[name] for name in FACTS}
                return cls(masks, arrays["friends"])
        except _READ_ERRORS as broken:
            raise WorldError(f"The split {file} cannot be read ({broken}); make the world again.") from broken


@dataclass(frozen=True, slots=True)
class CompressedLists:
    """A list of numbers for each number below n, in two arrays (compressed sparse rows)."""

    starts: npt.NDArray[np.int64]
    values: IdArray

    @classmethod
    def from_pairs(cls, n: int, keys: IdArray, values: IdArray) -> "CompressedLists":
        """For every key below n its values, ascending."""
        order = _stable_argsort(values)
        order = order[_stable_argsort(keys[order])]
        starts = np.zeros(n + 1, np.int64)
        np.cumsum(np.bincount(keys, minlength=n)[:n], out=starts[1:])
        return cls(starts, values[order].astype(np.int32, copy=False))

    @classmethod
    def from_columns(cls, n: int, *columns: IdArray) -> "CompressedLists":
        """For every value below n the rows that have it in one of the columns, each row once a column."""
        rows = [np.flatnonzero(column >= 0).astype(np.int32) for column in columns]
        keys = np.concatenate([column[column_rows] for column, column_rows in zip(columns, rows, strict=True)])
        return cls.from_pairs(n, keys, np.concatenate(rows))

    def get_one(self, key: int) -> IdArray:
        """The values of one key; none for a key that is out of range."""
        if not 0 <= key < len(self.starts) - 1:
            return self.values[:0]
        return self.values[self.starts[key] : self.starts[key + 1]]

    def get_many(self, keys: IdArray) -> IdArray:
        """The values of all the keys, one list after the other."""
        if len(keys) == 1:
            return self.get_one(int(keys[0]))
        starts = self.starts[keys]
        sizes = self.starts[keys + 1] - starts
        ends = sizes.cumsum()
        total = int(ends[-1]) if len(ends) else 0
        values: IdArray = self.values[(starts - ends + sizes).repeat(sizes) + np.arange(total)]
        return values

    def list_sizes(self) -> npt.NDArray[np.int64]:
        """How long each list is."""
        return np.diff(self.starts)


def _check_ranges(universe: Universe) -> None:
    """ValueError for arrays that do not belong together or lead to what there is not."""
    people, places = len(universe), universe.places
    towns, regions, countries = len(places.towns), len(places.regions), len(places.countries)
    last = {"birthplace": towns, "residence": towns, "job": len(universe.jobs), "hobby": len(universe.hobbies)}
    last |= dict.fromkeys(("father", "mother", "spouse"), people)
    for fact in FACTS:
        _check_array(fact, getattr(universe, fact), people, WITHHELD, last.get(fact, date.max.toordinal() + 1))
    _check_array("friends", universe.friends.pairs.ravel(), 2 * len(universe.friends.pairs), 0, people)
    _check_array("region", places.region, towns, 0, regions)
    _check_array("country", places.country, regions, 0, countries)
    if not len(universe.names) == len(universe.titles) == people:
        raise ValueError("there are not as many names as people")


def _check_array(name: str, values: IdArray, size: int, lowest: int, end: int) -> None:
    if values.shape != (size,) or values.min(initial=0) < lowest or values.max(initial=-1) >= end:
        raise ValueError(f"{name} does not fit the rest")


def _pack_texts(texts: Sequence[str]) -> npt.NDArray[np.uint8]:
    # No name has a line break in it; one run of bytes is a tenth of numpy's own array of texts.
    return np.frombuffer("\n".join(texts).encode(), np.uint8)


def _unpack_texts(packed: npt.NDArray[np.uint8]) -> tuple[str, ...]:
    text = packed.tobytes().decode()
    return tuple(text.split("\n")) if text else ()


def _stable_argsort(numbers: IdArray) -> npt.NDArray[np.int64]:
    """The order, stable, that makes numbers from 0 ascend."""
    if (numbers[1:] >= numbers[:-1]).all():
        return np.arange(len(numbers))
    # numpy sorts 16 bits by counting, ten times faster than it compares 32; numbers have two halves of them.
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    if numbers.max(initial=0) >> 16:
        order = order[np.argsort((numbers[order] >> 16).astype(np.uint16), kind="stable")]
    return order
