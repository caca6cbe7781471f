"""A library version, opened: its demonstrations, and what is chosen of them for a question."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from db.libraries import Demonstration
from fewshot_library.dpp import Ints, Kernel, Pick
from fewshot_library.embeddings import embedded
from fewshot_library.kernel import actions
from fewshot_library.selection import Pool, Selection, Wish, kernel_for, select

SAME = 0.999
"""Of two questions with a cosine above this, one is the other up to a space or a full stop."""
_BLOCK = 256
"""Questions that are encoded at once."""


class Encoder(Protocol):
    """Texts as rows of unit length."""

    name: str

    def __call__(self, texts: Sequence[str]) -> npt.NDArray[np.float32]: ...


@dataclass(frozen=True, slots=True)
class Chosen:
    """What was chosen for a question, with the demonstrations themselves."""

    question: str
    selection: Selection
    demonstrations: list[Demonstration]
    """Of the picks, in their order."""
    left_out: list[Demonstration]
    """The question itself, where it is in the library and was to be left out."""

    def value(self, library: "OpenLibrary") -> dict[str, Any]:
        """The choice for programs."""
        return {
            "question": self.question,
            "mode": self.selection.wish.mode,
            "log_det": _finite(self.selection.log_det),
            "filled": self.selection.filled,
            "left_out": [str(each.trace_id) for each in self.left_out],
            "picks": [
                _told(pick, each, self.selection, library)
                for pick, each in zip(self.selection.picks, self.demonstrations, strict=True)
            ],
        }


class OpenLibrary:
    """The demonstrations of one version with their embeddings; made once, asked often."""

    def __init__(self, demonstrations: Sequence[Demonstration], encoder: Encoder, kept: Path) -> None:
        self.demonstrations = list(demonstrations)
        self._encoder = encoder
        texts = [each.question for each in self.demonstrations]
        rows = embedded(kept, encoder.name, texts, encoder)
        self.pool = Pool(rows, actions([each.tools for each in self.demonstrations]))

    def choose(self, question: str, wish: Wish, *, leave_out_itself: bool = False) -> Chosen:
        """The demonstrations for a question; without those that ask the very same, when asked."""
        return next(self.choose_each([question], wish, leave_out_itself=leave_out_itself))

    def choose_each(self, questions: Sequence[str], wish: Wish, *, leave_out_itself: bool = False) -> Iterator[Chosen]:
        """The demonstrations for each question in turn; the questions are encoded a block at a time."""
        for start in range(0, len(questions), _BLOCK):
            block = questions[start : start + _BLOCK]
            for question, row in zip(block, self._encoder(block), strict=True):
                itself = np.flatnonzero(self.pool.embeddings @ row > SAME).tolist() if leave_out_itself else []
                found = select(self.pool, row, replace(wish, left_out=wish.left_out | frozenset(itself)))
                picked = [self.demonstrations[pick.item] for pick in found.picks]
                yield Chosen(question, found, picked, [self.demonstrations[item] for item in itself])

    def sequences(self) -> list[tuple[tuple[str, ...], Ints]]:
        """The different sequences of actions, in the order of the pool, each with the places of those that have it."""
        groups = self.pool.actions.groups
        members = [groups.order[groups.span(group)] for group in range(len(groups))]
        return [(self.demonstrations[int(places[0])].tools, places) for places in members]

    def kernel(self, chosen: Chosen) -> Kernel:
        """What the determinantal point process weighs by for that question."""
        return kernel_for(self.pool, self._encoder([chosen.question])[0], chosen.selection.wish)


def _told(pick: Pick, each: Demonstration, selection: Selection, library: OpenLibrary) -> dict[str, Any]:
    second = None if pick.runner_up is None else library.demonstrations[pick.runner_up]
    return {
        "id": str(each.trace_id),
        "question": each.question,
        "tools": list(each.tools),
        "relevance": round(float(selection.cosines[pick.item]), 6),
        "novelty": round(pick.novelty, 6),
        "gain": _finite(pick.gain),
        "filled": pick.filled,
        "runner_up": None if second is None else {"id": str(second.trace_id), "question": second.question},
        "lead": None if pick.lead is None else _finite(pick.lead),
    }


def _finite(number: float) -> float | None:
    # JSON has no infinity: a determinant that vanishes has no logarithm.
    return round(number, 6) if np.isfinite(number) else None
