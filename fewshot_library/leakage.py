"""Leakage detection: demonstrations whose questions are, or nearly are, questions of a test split."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from db.libraries import Demonstration
from fewshot_library.encoder import TextEncoding

NEAR_DUPLICATE_COSINE = 0.95
"""Questions with at least this cosine similarity are near duplicates."""
_ENCODING_BATCH_SIZE = 1024
_MAX_LISTED_LEAKS = 3


@dataclass(frozen=True, slots=True)
class Leak:
    """A demonstration whose question is, or nearly is, a question of the test split."""

    demonstration: Demonstration
    tested: str
    cosine: float
    """The similarity of the two questions; 1 if they are the same question."""

    def __str__(self) -> str:
        same = self.tested == self.demonstration.question
        which = "is a question" if same else f"is near ({self.cosine:.3f}) the question {self.tested!r}"
        return f"{self.demonstration.question!r} {which} of a test split"


def find_leaks(
    demonstrations: Sequence[Demonstration],
    tested: Sequence[tuple[UUID, str]],
    encode: TextEncoding,
    near: float = NEAR_DUPLICATE_COSINE,
) -> list[Leak]:
    """Find the demonstrations whose question is a test question, by id or text, or a near duplicate of one.

    `tested` holds the id and text of each test question; `near` is the least cosine of a near duplicate.
    """
    ids, texts = dict(tested), {_normalize_question(text): text for _, text in tested}
    leaks: dict[UUID, Leak] = {}
    for demonstration in demonstrations:
        same_question = ids.get(demonstration.question_id) or texts.get(_normalize_question(demonstration.question))
        if same_question is not None:
            leaks[demonstration.trace_id] = Leak(demonstration, same_question, 1.0)
    rest = [demonstration for demonstration in demonstrations if demonstration.trace_id not in leaks]
    if rest and tested:
        for leak in _find_near_duplicates(rest, [text for _, text in tested], encode, near):
            leaks[leak.demonstration.trace_id] = leak
    return [leaks[demonstration.trace_id] for demonstration in demonstrations if demonstration.trace_id in leaks]


def _find_near_duplicates(
    demonstrations: Sequence[Demonstration], tested: list[str], encode: TextEncoding, near: float
) -> list[Leak]:
    embeddings = encode([demonstration.question for demonstration in demonstrations])
    closest, closest_index = np.full(len(demonstrations), -1.0), np.zeros(len(demonstrations), np.int64)
    for start in range(0, len(tested), _ENCODING_BATCH_SIZE):
        cosines = embeddings @ encode(tested[start : start + _ENCODING_BATCH_SIZE]).T
        best = cosines.argmax(axis=1)
        highest = cosines[np.arange(len(embeddings)), best]
        closest_index = np.where(highest > closest, best + start, closest_index)
        closest = np.maximum(closest, highest)
    return [
        Leak(demonstration, tested[int(closest_index[row])], float(closest[row]))
        for row, demonstration in enumerate(demonstrations)
        if closest[row] >= near
    ]


def _normalize_question(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(" ?.!")


class LeakageError(ValueError):
    """Demonstrations leak questions of the test split; the message names the first leaks."""

    def __init__(self, leaks: Sequence[Leak], split: str) -> None:
        self.leaks = list(leaks)
        first = "; ".join(str(leak) for leak in self.leaks[:_MAX_LISTED_LEAKS])
        more = f"; and {len(self.leaks) - _MAX_LISTED_LEAKS} more" if len(self.leaks) > _MAX_LISTED_LEAKS else ""
        count = "1 demonstration leaks" if len(self.leaks) == 1 else f"{len(self.leaks)} demonstrations leak"
        super().__init__(
            f"{count} questions of the split {split!r}, so nothing was frozen: "
            f"{first}{more}. Exclude them with a filter, or force the freeze"
        )
