"""How often each demonstration of a library is chosen for many questions, and which never is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from db.libraries import Demonstration
from fewshot_library.dpp import Ints
from fewshot_library.library import OpenLibrary
from fewshot_library.selection import Wish

MOST_TOLD = 1000
"""Of the demonstrations that are never chosen, so many are named."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What was chosen for a number of questions."""

    questions: int
    times: Ints
    """How often each demonstration of the library was chosen, in their order."""

    @property
    def used(self) -> list[int]:
        """The places of those that were chosen, the most used first, of equal ones the first."""
        order = np.argsort(-self.times, kind="stable")
        return [int(place) for place in order[: np.count_nonzero(self.times)]]

    @property
    def never(self) -> list[int]:
        """The places of those that were never chosen."""
        return [int(place) for place in np.flatnonzero(self.times == 0)]

    def value(self, demonstrations: Sequence[Demonstration]) -> dict[str, Any]:
        """The counts for programs; of those that are never chosen at most MOST_TOLD are named."""
        never = self.never
        return {
            "questions": self.questions,
            "demonstrations": len(demonstrations),
            "picks": int(self.times.sum()),
            "used": [_told(demonstrations[place]) | {"times": int(self.times[place])} for place in self.used],
            "never": len(never),
            "never_used": [_told(demonstrations[place]) for place in never[:MOST_TOLD]],
        }


def usage(
    library: OpenLibrary,
    questions: Sequence[str],
    wish: Wish,
    *,
    leave_out_itself: bool = False,
    done: Callable[[int], None] = lambda _: None,
) -> Usage:
    """Choose for each question and count; `done` hears after each how many are done."""
    times = np.zeros(len(library.demonstrations), np.int64)
    chosen = library.choose_each(questions, wish, leave_out_itself=leave_out_itself)
    for number, each in enumerate(chosen, start=1):
        times[[pick.item for pick in each.selection.picks]] += 1
        done(number)
    return Usage(len(questions), times)


def _told(each: Demonstration) -> dict[str, Any]:
    return {"id": str(each.trace_id), "question": each.question}
