"""How often each demonstration of a library is chosen for many questions, and which never is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from db.libraries import Demonstration
from fewshot_library.dpp import IntArray
from fewshot_library.library import LoadedLibrary
from fewshot_library.selection import SelectionConfig

MAX_LISTED_UNUSED = 1000
"""Of the demonstrations that are never chosen, so many are named."""


@dataclass(frozen=True, slots=True)
class SelectionUsage:
    """What was chosen for a number of questions."""

    questions: int
    counts: IntArray
    """How often each demonstration of the library was chosen, in their order."""

    @property
    def selected(self) -> list[int]:
        """The places of those that were chosen, the most used first, of equal ones the first."""
        order = np.argsort(-self.counts, kind="stable")
        return [int(place) for place in order[: np.count_nonzero(self.counts)]]

    @property
    def never_selected(self) -> list[int]:
        """The places of those that were never chosen."""
        return [int(place) for place in np.flatnonzero(self.counts == 0)]

    def to_json(self, demonstrations: Sequence[Demonstration]) -> dict[str, Any]:
        """The counts for programs; of those that are never chosen at most MOST_TOLD are named."""
        never = self.never_selected
        return {
            "questions": self.questions,
            "demonstrations": len(demonstrations),
            "picks": int(self.counts.sum()),
            "used": [
                _demonstration_summary(demonstrations[place]) | {"times": int(self.counts[place])}
                for place in self.selected
            ],
            "never": len(never),
            "never_used": [_demonstration_summary(demonstrations[place]) for place in never[:MAX_LISTED_UNUSED]],
        }


def count_selections(
    library: LoadedLibrary,
    questions: Sequence[str],
    wish: SelectionConfig,
    *,
    leave_out_itself: bool = False,
    done: Callable[[int], None] = lambda _: None,
) -> SelectionUsage:
    """Choose for each question and count; `done` hears after each how many are done."""
    times = np.zeros(len(library.demonstrations), np.int64)
    chosen = library.select_each(questions, wish, leave_out_itself=leave_out_itself)
    for number, each in enumerate(chosen, start=1):
        times[[pick.item for pick in each.selection.picks]] += 1
        done(number)
    return SelectionUsage(len(questions), times)


def _demonstration_summary(each: Demonstration) -> dict[str, Any]:
    return {"id": str(each.trace_id), "question": each.question}
