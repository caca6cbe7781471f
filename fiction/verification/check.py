"""What a verification compared, and where stated and derived differ."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

MAX_DIFFERENCES = 10
"""Differences of a check that are kept in full; all are counted."""
_MAX_LENGTH = 300
"""Characters of a value that are shown."""


@dataclass(frozen=True, slots=True)
class VerificationDifference:
    """Something that is stated and what was derived instead."""

    what: str
    stated: str
    derived: str

    def __str__(self) -> str:
        return f"{self.what}: stated {self.stated or 'nothing'}, derived {self.derived or 'nothing'}"


@dataclass(slots=True)
class VerificationCheck:
    """One kind of thing that was compared, how many of them, and how many differ."""

    name: str
    checked: int = 0
    different: int = 0
    first: list[VerificationDifference] = field(default_factory=list)
    undecided: int = 0
    """Things that could not be compared within a limit; they count neither as equal nor as different."""

    def __str__(self) -> str:
        result = f"{self.different:,} differ" if self.different else "all equal"
        undecided = f", {self.undecided:,} undecided" if self.undecided else ""
        return f"{self.checked:,} {self.name}: {result if self.checked else 'nothing to compare'}{undecided}"

    def compare(self, what: str, stated: object, derived: object) -> None:
        """Count one comparison in; lists are shown with commas."""
        self.checked += 1
        self.require_equal(what, stated, derived)

    def require_equal(self, what: str, stated: object, derived: object) -> None:
        """Count a difference in, but nothing where both are equal, as for how many there are."""
        if stated != derived:
            self.add_difference(what, _format_value(stated), _format_value(derived))

    def compare_each(self, what: str, stated: Iterable[object], derived: Iterable[object]) -> None:
        """Count every member of both in; those that only one of them has differ."""
        left, right = Counter(map(str, stated)), Counter(map(str, derived))
        self.checked += (left | right).total()
        for item in sorted((left - right).elements()):
            self.add_difference(what, item, "")
        for item in sorted((right - left).elements()):
            self.add_difference(what, "", item)

    def add_unreadable(self, what: str, fault: Exception) -> None:
        """Count something in that cannot be read at all."""
        self.checked += 1
        self.add_difference(what, "what cannot be read", f"{type(fault).__name__} {fault}")

    def add_difference(self, what: str, stated: str, derived: str) -> None:
        """Count a difference in that was found otherwise."""
        self.different += 1
        if len(self.first) < MAX_DIFFERENCES:
            self.first.append(VerificationDifference(what, stated, derived))


def _format_value(value: object) -> str:
    text = ", ".join(str(item) for item in value) if isinstance(value, (list, tuple)) else str(value)
    return text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}…"
