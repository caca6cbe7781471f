"""The demonstrations that are looked at: a frozen version's, or all approved; what was read of them is kept until it
may have changed.
"""

from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from app.registry import registry
from app.resources import database
from db import libraries
from db.libraries import Choices, Demonstration, Version, Wanted
from db.projects import question_kinds
from fewshot_library.difference import Difference, difference
from fewshot_library.statistics import Statistics, statistics

Stamp = tuple[UUID | None, tuple[int, UUID | None]]
"""Which demonstrations, as they are now."""
MANY = 20_000
"""Approved traces from which on it would take seconds to look at all of them after every decision."""
_FROZEN: tuple[int, UUID | None] = (0, None)


@dataclass(frozen=True, slots=True)
class SelectedLibrary:
    """A version, or None for all approved traces."""

    version: Version | None

    @property
    def reference(self) -> str:
        """How the address and the verbs name it."""
        return f"{self.version.name}:{self.version.number}" if self.version is not None else ""

    @property
    def title(self) -> str:
        """How people name it."""
        return f"{self.version.name}, version {self.version.number}" if self.version else "All approved demonstrations"

    @property
    def id(self) -> UUID | None:
        """The version's key."""
        return self.version.id if self.version is not None else None

    def stamp(self) -> Stamp:
        """Another one when it may hold something else; of many, only after a thousand more were approved."""
        if self.version is not None:
            return self.version.id, _FROZEN
        approved, latest = self._approved()
        return None, ((approved, latest) if approved < MANY else (approved // 1000 * 1000, None))

    def _approved(self) -> tuple[int, UUID | None]:
        with database().read() as session:
            return libraries.approved_stamp(session)

    def count(self, wanted: Wanted) -> int:
        """How many of them fit."""
        if wanted == Wanted():
            return self.version.demonstrations if self.version is not None else self._approved()[0]
        return _count(self.stamp(), wanted)

    def page(self, wanted: Wanted, start: int, limit: int) -> list[Demonstration]:
        """Some of those that fit."""
        with database().read() as session:
            return libraries.page(session, wanted, version_id=self.id, start=start, limit=limit)

    def choices(self) -> Choices:
        """Their projects and kinds."""
        return _choices(self.stamp())

    def statistics(self) -> Statistics:
        """Their counts, and what they lack of what their projects ask."""
        return _statistics(self.stamp())

    def difference(self, earlier: "SelectedLibrary") -> Difference:
        """What came and went since the other."""
        return _difference(earlier.stamp(), self.stamp())


@lru_cache(maxsize=256)
def _count(stamp: Stamp, wanted: Wanted) -> int:
    with database().read() as session:
        return libraries.count(session, wanted, stamp[0])


@lru_cache(maxsize=64)
def _choices(stamp: Stamp) -> Choices:
    with database().read() as session:
        return libraries.choices(session, stamp[0])


@lru_cache(maxsize=64)
def _statistics(stamp: Stamp) -> Statistics:
    with database().read() as session:
        kinds = question_kinds(session, libraries.choices(session, stamp[0]).projects)
    return statistics(all_of(stamp), tools=registry().all(), kinds=kinds)


@lru_cache(maxsize=16)
def _difference(earlier: Stamp, later: Stamp) -> Difference:
    return difference(all_of(earlier), all_of(later))


def all_of(stamp: Stamp) -> list[Demonstration]:
    """The demonstrations themselves, read anew."""
    with database().read() as session:
        if stamp[0] is None:
            return libraries.candidates(session, Wanted())
        return libraries.demonstrations(session, stamp[0])
