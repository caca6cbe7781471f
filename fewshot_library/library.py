"""A library version, opened: its demonstrations, and what is chosen of them for a question."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from db.libraries import Demonstration
from fewshot_library.dpp import IntArray, Kernel, Pick
from fewshot_library.embeddings import load_or_encode
from fewshot_library.kernel import encode_actions
from fewshot_library.selection import CandidatePool, Selection, SelectionConfig, build_kernel, select_demonstrations

SAME_QUESTION_COSINE = 0.999
"""Of two questions with a cosine above this, one is the other up to a space or a full stop."""
_ENCODING_BATCH_SIZE = 256
"""Questions that are encoded at once."""


class TextEncoder(Protocol):
    """Texts as rows of unit length."""

    name: str

    def __call__(self, texts: Sequence[str]) -> npt.NDArray[np.float32]: ...


@dataclass(frozen=True, slots=True)
class SelectedDemonstrations:
    """What was chosen for a question, with the demonstrations themselves."""

    question: str
    selection: Selection
    demonstrations: list[Demonstration]
    """Of the picks, in their order."""
    excluded: list[Demonstration]
    """The question itself, where it is in the library and was to be left out."""

    def to_json(self, library: "LoadedLibrary") -> dict[str, Any]:
        """The choice for programs."""
        return {
            "question": self.question,
            "mode": self.selection.config.mode,
            "log_det": _round_finite(self.selection.log_det),
            "filled": self.selection.filler_count,
            "left_out": [str(demonstration.trace_id) for demonstration in self.excluded],
            "picks": [
                _pick_to_json(pick, demonstration, self.selection, library)
                for pick, demonstration in zip(self.selection.picks, self.demonstrations, strict=True)
            ],
        }


class LoadedLibrary:
    """The demonstrations of one version with their embeddings; made once, asked often."""

    def __init__(self, demonstrations: Sequence[Demonstration], encoder: TextEncoder, cache_file: Path) -> None:
        self.demonstrations = list(demonstrations)
        self._encoder = encoder
        texts = [demonstration.question for demonstration in self.demonstrations]
        rows = load_or_encode(cache_file, encoder.name, texts, encoder)
        self.pool = CandidatePool(rows, encode_actions([demonstration.tools for demonstration in self.demonstrations]))

    def select(self, question: str, wish: SelectionConfig, *, leave_out_itself: bool = False) -> SelectedDemonstrations:
        """The demonstrations for a question; without those that ask the very same, when asked."""
        return next(self.select_each([question], wish, leave_out_itself=leave_out_itself))

    def select_each(
        self, questions: Sequence[str], wish: SelectionConfig, *, leave_out_itself: bool = False
    ) -> Iterator[SelectedDemonstrations]:
        """The demonstrations for each question in turn; the questions are encoded a block at a time."""
        for start in range(0, len(questions), _ENCODING_BATCH_SIZE):
            block = questions[start : start + _ENCODING_BATCH_SIZE]
            for question, row in zip(block, self._encoder(block), strict=True):
                itself = (
                    np.flatnonzero(self.pool.embeddings @ row > SAME_QUESTION_COSINE).tolist()
                    if leave_out_itself
                    else []
                )
                selection = select_demonstrations(
                    self.pool, row, replace(wish, left_out=wish.left_out | frozenset(itself))
                )
                picked = [self.demonstrations[pick.item] for pick in selection.picks]
                yield SelectedDemonstrations(
                    question, selection, picked, [self.demonstrations[item] for item in itself]
                )

    def list_sequences(self) -> list[tuple[tuple[str, ...], IntArray]]:
        """The different sequences of actions, in the order of the pool, each with the places of those that have it."""
        groups = self.pool.actions.groups
        members = [groups.order[groups.group_slice(group)] for group in range(len(groups))]
        return [(self.demonstrations[int(places[0])].tools, places) for places in members]

    def build_kernel(self, chosen: SelectedDemonstrations) -> Kernel:
        """What the determinantal point process weighs by for that question."""
        return build_kernel(self.pool, self._encoder([chosen.question])[0], chosen.selection.config)


def _pick_to_json(
    pick: Pick, demonstration: Demonstration, selection: Selection, library: LoadedLibrary
) -> dict[str, Any]:
    second = None if pick.runner_up is None else library.demonstrations[pick.runner_up]
    return {
        "id": str(demonstration.trace_id),
        "question": demonstration.question,
        "tools": list(demonstration.tools),
        "relevance": round(float(selection.cosines[pick.item]), 6),
        "novelty": round(pick.novelty, 6),
        "gain": _round_finite(pick.gain),
        "filled": pick.is_filler,
        "runner_up": None if second is None else {"id": str(second.trace_id), "question": second.question},
        "lead": None if pick.lead is None else _round_finite(pick.lead),
    }


def _round_finite(number: float) -> float | None:
    # JSON has no infinity: a determinant that vanishes has no logarithm.
    return round(number, 6) if np.isfinite(number) else None
