"""What a library version says of itself, and whether it may be frozen: not when it gives away what is tested."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from db.libraries import Demonstration, Wanted
from fewshot_library.leakage import Leak

_TOLD = 3


class Leaking(ValueError):
    """Demonstrations give away questions of the test split, in one sentence."""

    def __init__(self, found: Sequence[Leak], split: str) -> None:
        self.leaks = list(found)
        first = "; ".join(str(leak) for leak in self.leaks[:_TOLD])
        more = f"; and {len(self.leaks) - _TOLD} more" if len(self.leaks) > _TOLD else ""
        many = "1 demonstration gives" if len(self.leaks) == 1 else f"{len(self.leaks)} demonstrations give"
        super().__init__(
            f"{many} away questions of the split {split!r}, so that nothing was frozen: "
            f"{first}{more}. Leave them out by a condition, or force it"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """How a version is frozen, beside which traces it takes."""

    by: str
    """Who freezes it."""
    licence: str = ""
    note: str = ""
    test_split: str = "test"
    force: bool = False
    """Whether it is frozen although it leaks; the card then tells what."""


def card(chosen: Sequence[Demonstration], wanted: Wanted, terms: Terms, leaks: Sequence[Leak]) -> dict[str, Any]:
    """The card of a version that holds these; Leaking when there are leaks and it is not forced."""
    if leaks and not terms.force:
        raise Leaking(leaks, terms.test_split)
    told: dict[str, Any] = {
        "by": terms.by,
        "demonstrations": len(chosen),
        "conditions": wanted.told(),
        "projects": sorted({each.project for each in chosen}),
        "worlds": sorted({each.world for each in chosen}),
        "tools": sorted({tool for each in chosen for tool in each.tools}),
        "authors": sorted({each.author or each.reasoner for each in chosen}),
    }
    notes = {"licence": terms.licence, "note": terms.note, "leaks": [str(leak) for leak in leaks]}
    return told | {name: value for name, value in notes.items() if value}
