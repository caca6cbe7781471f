"""Which values are one thing, in set operations and joins.

Two values with ids are one thing if the ids are equal, whatever their names: two people of one name stay two. A value
without an id is one of the things at hand that have its name; where none has an id, all values of the name are one
thing. Where several things have the name, an operation has an answer only if it is the same for each of them; a join
keeps what holds for any of them.
"""

from collections.abc import Iterable, Sequence
from copy import copy
from itertools import product
from math import prod

from showhow.reasoners.skills.values import AnswerValue
from showhow.worlds.text_normalization import normalize_name

MAX_READINGS = 64
"""Ways to understand names that several things have, which are tried."""


class NamedThings:
    """The things that these values name, by name."""

    def __init__(self, values: Iterable[AnswerValue]) -> None:
        self._ids: set[str] = set()
        things: dict[str, dict[str, AnswerValue]] = {}
        unnamed: dict[str, AnswerValue] = {}
        owners: set[str] = set()
        for value in values:
            name = normalize_name(value.text)
            if value.entity is None:
                unnamed.setdefault(name, value)
            else:
                self._ids.add(value.entity)
                things.setdefault(name, {}).setdefault(value.entity, value)
            if value.of is not None:
                owners.add(value.of)
        self._used = unnamed.keys() | {normalize_name(owner) for owner in owners - self._ids}
        """The names of values and owners that have no id."""
        self._things = {name: [value] for name, value in unnamed.items()}
        self._things |= {name: list(named.values()) for name, named in things.items()}

    def identify(self, value: AnswerValue) -> list[AnswerValue]:
        """The value as each thing that it may be, with the key of each owner that it may belong to."""
        things = [value] if value.entity is not None else self._things[normalize_name(value.text)]
        owners = self._find_owners(value.of)
        if things == [value] and owners == [value.of]:
            return [value]
        changes = ({"text": thing.text, "entity": thing.entity, "of": owner} for thing in things for owner in owners)
        return [value.model_copy(update=change) for change in changes]

    def _find_owners(self, owner: str | None) -> Sequence[str | None]:
        if owner is None or owner in self._ids:
            return [owner]
        return [thing.key for thing in self._things.get(normalize_name(owner), ())] or [owner]

    @property
    def _ambiguous_names(self) -> list[str]:
        """The names, used without an id, that several things have."""
        return [name for name in sorted(self._used) if len(self._things.get(name, ())) > 1]

    @property
    def ambiguous_name(self) -> str:
        """One of the names that several things have."""
        return self._things[self._ambiguous_names[0]][0].text

    def list_readings(self) -> "list[NamedThings]":
        """These things with one for each name that is used without an id; none if there are too many ways to choose."""
        names = self._ambiguous_names
        if not names:
            return [self]
        if prod(len(self._things[name]) for name in names) > MAX_READINGS:
            return []
        readings = []
        for chosen in product(*(self._things[name] for name in names)):
            reading = copy(self)
            reading._things = self._things | {name: [thing] for name, thing in zip(names, chosen, strict=True)}
            readings.append(reading)
        return readings
