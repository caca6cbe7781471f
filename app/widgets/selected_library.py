"""The demonstrations of the Library page: a frozen version or all approved traces, cached until they may change."""

from dataclasses import dataclass
from functools import lru_cache
from uuid import UUID

from db import libraries
from db.database import Database
from db.libraries import Demonstration, DemonstrationFacets, DemonstrationFilter, LibraryVersion
from db.projects import list_question_kinds
from fewshot_library.statistics import LibraryDifference, LibraryStatistics, compare_versions, compute_statistics
from runs.services import Services
from tools.registry import ToolRegistry

LibraryStamp = tuple[UUID | None, tuple[int, UUID | None]]
"""Cache key: which demonstrations, in their present state."""
LARGE_LIBRARY_SIZE = 20_000
"""From so many approved traces on, the cache is refreshed after a thousand approvals instead of each."""
_FROZEN_STAMP: tuple[int, UUID | None] = (0, None)


@dataclass(frozen=True, slots=True)
class SelectedLibrary:
    """A library version, or all approved traces if `version` is None."""

    services: Services
    version: LibraryVersion | None

    @property
    def reference(self) -> str:
        """NAME:NUMBER, as in URLs and on the command line; empty for all approved traces."""
        return f"{self.version.name}:{self.version.number}" if self.version is not None else ""

    @property
    def title(self) -> str:
        """Its title on the page."""
        return f"{self.version.name}, version {self.version.number}" if self.version else "All approved demonstrations"

    @property
    def id(self) -> UUID | None:
        """The id of the version."""
        return self.version.id if self.version is not None else None

    def stamp(self) -> LibraryStamp:
        """A cache key that changes when the demonstrations may have changed."""
        if self.version is not None:
            return self.version.id, _FROZEN_STAMP
        approved, latest = self._approved_stamp()
        return None, ((approved, latest) if approved < LARGE_LIBRARY_SIZE else (approved // 1000 * 1000, None))

    def _approved_stamp(self) -> tuple[int, UUID | None]:
        with self.services.database.read() as session:
            return libraries.approval_fingerprint(session)

    def count(self, conditions: DemonstrationFilter) -> int:
        """Count the demonstrations that match."""
        if conditions == DemonstrationFilter():
            return self.version.demonstrations if self.version is not None else self._approved_stamp()[0]
        return _cached_count(self.services.database, self.stamp(), conditions)

    def page(self, conditions: DemonstrationFilter, start: int, limit: int) -> list[Demonstration]:
        """Return some of the demonstrations that match."""
        with self.services.database.read() as session:
            return libraries.list_demonstrations(session, conditions, version_id=self.id, start=start, limit=limit)

    def choices(self) -> DemonstrationFacets:
        """The projects and kinds to filter by."""
        return _cached_choices(self.services.database, self.stamp())

    def statistics(self) -> LibraryStatistics:
        """Counts, and the gaps compared with the questions of the projects."""
        return _cached_statistics(self.services.database, self.services.tool_registry(), self.stamp())

    def difference(self, earlier: "SelectedLibrary") -> LibraryDifference:
        """What was added and removed since the other one."""
        return _cached_difference(self.services.database, earlier.stamp(), self.stamp())


@lru_cache(maxsize=256)
def _cached_count(database: Database, stamp: LibraryStamp, conditions: DemonstrationFilter) -> int:
    with database.read() as session:
        return libraries.count_demonstrations(session, conditions, stamp[0])


@lru_cache(maxsize=64)
def _cached_choices(database: Database, stamp: LibraryStamp) -> DemonstrationFacets:
    with database.read() as session:
        return libraries.list_facets(session, stamp[0])


@lru_cache(maxsize=64)
def _cached_statistics(database: Database, registry: ToolRegistry, stamp: LibraryStamp) -> LibraryStatistics:
    with database.read() as session:
        kinds = list_question_kinds(session, libraries.list_facets(session, stamp[0]).projects)
    return compute_statistics(load_demonstrations(database, stamp), tools=registry.all_tools(), kinds=kinds)


@lru_cache(maxsize=16)
def _cached_difference(database: Database, earlier: LibraryStamp, later: LibraryStamp) -> LibraryDifference:
    return compare_versions(load_demonstrations(database, earlier), load_demonstrations(database, later))


def load_demonstrations(database: Database, stamp: LibraryStamp) -> list[Demonstration]:
    """Load all demonstrations, uncached."""
    with database.read() as session:
        if stamp[0] is None:
            return libraries.list_candidates(session, DemonstrationFilter())
        return libraries.load_demonstrations(session, stamp[0])
