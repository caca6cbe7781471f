"""What changed from one library version to another."""

from collections.abc import Sequence
from dataclasses import dataclass

from db.libraries import Demonstration


@dataclass(frozen=True, slots=True)
class Difference:
    """Demonstrations that came and went, by trace, each in its version's order."""

    added: list[Demonstration]
    removed: list[Demonstration]
    kept: int


def difference(before: Sequence[Demonstration], after: Sequence[Demonstration]) -> Difference:
    """What the later version has and the earlier has not, and the other way round."""
    old, new = ({each.trace_id for each in version} for version in (before, after))
    return Difference(
        added=[each for each in after if each.trace_id not in old],
        removed=[each for each in before if each.trace_id not in new],
        kept=len(old & new),
    )
