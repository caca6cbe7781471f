"""A universe: all true facts of a world as integer arrays with one row per person, and the sources of each fact."""

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

from showhow.worlds.folder import WorldError


def count_by_sources(universe: Path, fact_sources: Path) -> dict[str, dict[str, int]]:
    """Count the facts of each kind by set of sources, such as "text + graph"; reads only the columns that it needs.

    A marriage counts once per partner, a friendship once.
    """
    try:
        with np.load(universe) as facts, np.load(fact_sources) as masks:
            counts = {fact: _count_masks(masks[fact][facts[fact] > NONE]) for fact in FACTS}
            return {**counts, "friend": _count_masks(masks["friends"])}
    except (OSError, ValueError, KeyError, IndexError) as error:
        raise WorldError(f"The split {fact_sources} cannot be read ({error}); build the world again.") from error


def _count_masks(masks: np.ndarray) -> dict[str, int]:
    counts = np.bincount(masks, minlength=1)
    return {_format_sources(mask): int(count) for mask, count in enumerate(counts) if count}


def _format_sources(mask: int) -> str:
    return " + ".join(name for name, bit in SOURCES.items() if mask & bit) or "nowhere"


IdArray = npt.NDArray[np.int32]
"""Rows of people, numbers of places, jobs or hobbies, or days (`date.toordinal`)."""

NONE = -1
"""The fact does not exist: no father in the universe, no partner, no death yet."""
WITHHELD = -2
"""The fact exists, but this source does not state it."""

LONGEST_LIFE = 105 * 366
"""Days after which nobody is alive."""

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
"""Errors that reading a truncated or altered file may raise."""

FACTS = ("father", "mother", "spouse", "birth", "death", "wedding", "birthplace", "residence", "job", "hobby")
"""Facts that are assigned to sources; gender and name are in every source. A wedding and a spouse are one fact of two
people: both rows have the same mask."""


@dataclass(frozen=True, slots=True)
class Places:
    """Towns in regions in countries; `region[town]` and `country[region]` are indices of the other lists."""

    towns: tuple[str, ...] = ()
    regions: tuple[str, ...] = ()
    countries: tuple[str, ...] = ()
    region: IdArray = field(default_factory=lambda: np.zeros(0, np.int32))
    country: IdArray = field(default_factory=lambda: np.zeros(0, np.int32))


@dataclass(frozen=True, slots=True)
class Friendships:
    """Friendships as pairs of rows (a < b), each once, sorted."""

    pairs: IdArray
    """Shape (m, 2)."""


@dataclass(frozen=True, eq=False)
class Universe:
    """People and their facts; row i of every array is person i, and dates are ordinals.

    A universe that is restricted to some sources has WITHHELD in its arrays, and lacks the friendships that these
    sources do not state.
    """

    names: Sequence[str]
    titles: Sequence[str]
    """Unique titles of articles: the name, for namesakes with the job in parentheses."""
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
    """Current day of the world (ordinal); no event is later."""
    born_long_ago: npt.NDArray[np.bool_] | None = None
    """In a restricted universe, who was born too long ago to be alive, whatever its sources state."""

    def __len__(self) -> int:
        return len(self.female)

    @cached_property
    def children(self) -> "CompressedLists":
        """Children of each person, from the fathers and mothers that are not withheld."""
        return CompressedLists.from_columns(len(self), self.father, self.mother)

    @cached_property
    def friends_of(self) -> "CompressedLists":
        """Friends of each person."""
        pairs = self.friends.pairs
        return CompressedLists.from_pairs(
            len(self), np.concatenate((pairs[:, 0], pairs[:, 1])), np.concatenate((pairs[:, 1], pairs[:, 0]))
        )

    def find_born_long_ago(self) -> npt.NDArray[np.bool_]:
        """Who was born too long ago to be alive."""
        is_known = self.birth > NONE
        return is_known & (self.birth < self.today - LONGEST_LIFE) if self.born_long_ago is None else self.born_long_ago

    def find_people_with(self, fact: str, value: int) -> IdArray:
        """Rows of the people whose fact has this value, ascending."""
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
        """The universe as these sources (a mask of bits) state it together."""
        if sources == ALL_SOURCES:
            return self
        arrays: dict[str, Any] = {}
        for fact in FACTS:
            values: IdArray = getattr(self, fact)
            is_withheld = (values >= 0) & ((fact_sources.masks[fact] & sources) == 0)
            arrays[fact] = np.where(is_withheld, np.int32(WITHHELD), values)
        is_stated = (fact_sources.friends & sources) != 0
        arrays["born_long_ago"] = self.find_born_long_ago()
        return replace(self, **arrays, friends=Friendships(self.friends.pairs[is_stated]))

    def save(self, file: Path) -> None:
        """Write the universe to one .npz file; the same universe gives the same bytes of every array."""
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
        """Load a universe; WorldError if the file is missing or damaged."""
        try:
            with file.open("rb") as stream, np.load(stream) as arrays:
                universe = cls._from_arrays({name: arrays[name] for name in arrays.files})
            _check_ranges(universe)
        except _READ_ERRORS as error:
            raise WorldError(f"The universe {file} cannot be read ({error}); build the world again.") from error
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
    """Sources of each fact: a mask of source bits for every fact of every person, and for every friendship."""

    masks: dict[str, npt.NDArray[np.uint8]]
    """Keys: FACTS."""
    friends: npt.NDArray[np.uint8]
    """One mask per pair, in the order of Universe.friends."""

    def save(self, file: Path) -> None:
        """Write the masks to one .npz file."""
        np.savez(file, allow_pickle=False, friends=self.friends, **self.masks)

    @classmethod
    def load(cls, file: Path) -> "FactSources":
        """Load the masks; WorldError if the file is missing or damaged."""
        try:
            with file.open("rb") as stream, np.load(stream) as arrays:
                masks = {name: arrays[name] for name in FACTS}
                return cls(masks, arrays["friends"])
        except _READ_ERRORS as error:
            raise WorldError(f"The split {file} cannot be read ({error}); build the world again.") from error


@dataclass(frozen=True, slots=True)
class CompressedLists:
    """A list of integers for each key below n, in two arrays (compressed sparse rows)."""

    starts: npt.NDArray[np.int64]
    values: IdArray

    @classmethod
    def from_pairs(cls, n: int, keys: IdArray, values: IdArray) -> "CompressedLists":
        """Group values by key; the values of a key ascend."""
        order = _stable_argsort(values)
        order = order[_stable_argsort(keys[order])]
        starts = np.zeros(n + 1, np.int64)
        np.cumsum(np.bincount(keys, minlength=n)[:n], out=starts[1:])
        return cls(starts, values[order].astype(np.int32, copy=False))

    @classmethod
    def from_columns(cls, n: int, *columns: IdArray) -> "CompressedLists":
        """Group rows by the value that they have in a column, each row once per column."""
        rows = [np.flatnonzero(column >= 0).astype(np.int32) for column in columns]
        keys = np.concatenate([column[column_rows] for column, column_rows in zip(columns, rows, strict=True)])
        return cls.from_pairs(n, keys, np.concatenate(rows))

    def get_one(self, key: int) -> IdArray:
        """Values of one key; empty if the key is out of range."""
        if not 0 <= key < len(self.starts) - 1:
            return self.values[:0]
        return self.values[self.starts[key] : self.starts[key + 1]]

    def get_many(self, keys: IdArray) -> IdArray:
        """Values of all keys, concatenated."""
        if len(keys) == 1:
            return self.get_one(int(keys[0]))
        starts = self.starts[keys]
        sizes = self.starts[keys + 1] - starts
        ends = sizes.cumsum()
        total = int(ends[-1]) if len(ends) else 0
        values: IdArray = self.values[(starts - ends + sizes).repeat(sizes) + np.arange(total)]
        return values

    def list_sizes(self) -> npt.NDArray[np.int64]:
        """Length of each list."""
        return np.diff(self.starts)


def _check_ranges(universe: Universe) -> None:
    """Raise ValueError if array lengths differ or a value is out of range."""
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
        raise ValueError("the numbers of names and people differ")


def _check_array(name: str, values: IdArray, size: int, lowest: int, end: int) -> None:
    if values.shape != (size,) or values.min(initial=0) < lowest or values.max(initial=-1) >= end:
        raise ValueError(f"{name} has a wrong length or a value out of range")


def _pack_texts(texts: Sequence[str]) -> npt.NDArray[np.uint8]:
    # Names contain no line breaks; joined bytes take a tenth of the space of a numpy array of strings.
    return np.frombuffer("\n".join(texts).encode(), np.uint8)


def _unpack_texts(packed: npt.NDArray[np.uint8]) -> tuple[str, ...]:
    text = packed.tobytes().decode()
    return tuple(text.split("\n")) if text else ()


def _stable_argsort(numbers: IdArray) -> npt.NDArray[np.int64]:
    """Stable argsort of non-negative 32-bit integers."""
    if (numbers[1:] >= numbers[:-1]).all():
        return np.arange(len(numbers))
    # numpy sorts 16-bit integers by radix sort, ten times faster than 32-bit ones; so sort by each half.
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    if numbers.max(initial=0) >> 16:
        order = order[np.argsort((numbers[order] >> 16).astype(np.uint16), kind="stable")]
    return order
