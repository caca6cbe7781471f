"""How often each demonstration of a library is selected over many questions."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from db.libraries import Demonstration
from fewshot_library.dpp import IntArray
from fewshot_library.library import LoadedLibrary
from fewshot_library.selection import SelectionConfig

MAX_LISTED_UNUSED = 1000
"""Of the demonstrations that are never selected, this many are listed."""


@dataclass(frozen=True, slots=True)
class SelectionUsage:
    """The selections for a number of questions, counted."""

    questions: int
    counts: IntArray
    """Times that each demonstration was selected, in the order of the library."""

    @property
    def selected(self) -> list[int]:
        """The indexes of the selected demonstrations, the most frequent first, then in order."""
        order = np.argsort(-self.counts, kind="stable")
        return [int(place) for place in order[: np.count_nonzero(self.counts)]]

    @property
    def never_selected(self) -> list[int]:
        """The indexes of the demonstrations that were never selected."""
        return [int(place) for place in np.flatnonzero(self.counts == 0)]

    def to_json(self, demonstrations: Sequence[Demonstration]) -> dict[str, Any]:
        """The counts as JSON; of those never selected at most MAX_LISTED_UNUSED are listed."""
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
    """Select for each question and count; `done` is called with the number of questions done."""
    times = np.zeros(len(library.demonstrations), np.int64)
    chosen = library.select_each(questions, wish, leave_out_itself=leave_out_itself)
    for number, choice in enumerate(chosen, start=1):
        times[[pick.item for pick in choice.selection.picks]] += 1
        done(number)
    return SelectionUsage(len(questions), times)


def _demonstration_summary(demonstration: Demonstration) -> dict[str, Any]:
    return {"id": str(demonstration.trace_id), "question": demonstration.question}
