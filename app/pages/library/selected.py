"""The demonstrations that are looked at: a frozen version's, or all approved; what was read of them is kept until it
may have changed.
"""

from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from app.services import services
from db import libraries
from db.libraries import Demonstration, DemonstrationFacets, DemonstrationFilter, LibraryVersion
from db.projects import list_question_kinds
from fewshot_library.statistics import LibraryDifference, LibraryStatistics, compare_versions, compute_statistics

LibraryStamp = tuple[UUID | None, tuple[int, UUID | None]]
"""Which demonstrations, as they are now."""
LARGE_LIBRARY_SIZE = 20_000
"""Approved traces from which on it would take seconds to look at all of them after every decision."""
_FROZEN_STAMP: tuple[int, UUID | None] = (0, None)


@dataclass(frozen=True, slots=True)
class SelectedLibrary:
    """A version, or None for all approved traces."""

    version: LibraryVersion | None

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

    def stamp(self) -> LibraryStamp:
        """Another one when it may hold something else; of many, only after a thousand more were approved."""
        if self.version is not None:
            return self.version.id, _FROZEN_STAMP
        approved, latest = self._approved_stamp()
        return None, ((approved, latest) if approved < LARGE_LIBRARY_SIZE else (approved // 1000 * 1000, None))

    def _approved_stamp(self) -> tuple[int, UUID | None]:
        with services().database.read() as session:
            return libraries.approval_fingerprint(session)

    def count(self, wanted: DemonstrationFilter) -> int:
        """How many of them fit."""
        if wanted == DemonstrationFilter():
            return self.version.demonstrations if self.version is not None else self._approved_stamp()[0]
        return _cached_count(self.stamp(), wanted)

    def page(self, wanted: DemonstrationFilter, start: int, limit: int) -> list[Demonstration]:
        """Some of those that fit."""
        with services().database.read() as session:
            return libraries.list_demonstrations(session, wanted, version_id=self.id, start=start, limit=limit)

    def choices(self) -> DemonstrationFacets:
        """Their projects and kinds."""
        return _cached_choices(self.stamp())

    def statistics(self) -> LibraryStatistics:
        """Their counts, and what they lack of what their projects ask."""
        return _cached_statistics(self.stamp())

    def difference(self, earlier: "SelectedLibrary") -> LibraryDifference:
        """What came and went since the other."""
        return _cached_difference(earlier.stamp(), self.stamp())


@lru_cache(maxsize=256)
def _cached_count(stamp: LibraryStamp, wanted: DemonstrationFilter) -> int:
    with services().database.read() as session:
        return libraries.count_demonstrations(session, wanted, stamp[0])


@lru_cache(maxsize=64)
def _cached_choices(stamp: LibraryStamp) -> DemonstrationFacets:
    with services().database.read() as session:
        return libraries.list_facets(session, stamp[0])


@lru_cache(maxsize=64)
def _cached_statistics(stamp: LibraryStamp) -> LibraryStatistics:
    with services().database.read() as session:
        kinds = list_question_kinds(session, libraries.list_facets(session, stamp[0]).projects)
    return compute_statistics(load_demonstrations(stamp), tools=services().tool_registry().all_tools(), kinds=kinds)


@lru_cache(maxsize=16)
def _cached_difference(earlier: LibraryStamp, later: LibraryStamp) -> LibraryDifference:
    return compare_versions(load_demonstrations(earlier), load_demonstrations(later))


def load_demonstrations(stamp: LibraryStamp) -> list[Demonstration]:
    """The demonstrations themselves, read anew."""
    with services().database.read() as session:
        if stamp[0] is None:
            return libraries.list_candidates(session, DemonstrationFilter())
        return libraries.load_demonstrations(session, stamp[0])
