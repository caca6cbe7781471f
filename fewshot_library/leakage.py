"""Whether demonstrations give away what is to be tested: the same question, or nearly the same, in a test split."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from db.libraries import Demonstration
from fewshot_library.embeddings import Encode

NEAR = 0.95
"""The cosine from which on two questions count as near duplicates."""
_BLOCK = 1024


@dataclass(frozen=True, slots=True)
class Leak:
    """A demonstration and the tested question that it gives away."""

    demonstration: Demonstration
    tested: str
    cosine: float
    """1 for the question itself."""

    def __str__(self) -> str:
        same = self.tested == self.demonstration.question
        which = "is a question" if same else f"is near ({self.cosine:.3f}) the question {self.tested!r}"
        return f"{self.demonstration.question!r} {which} of a test split"


def leaks(
    demonstrations: Sequence[Demonstration], tested: Sequence[tuple[UUID, str]], encode: Encode, near: float = NEAR
) -> list[Leak]:
    """The demonstrations whose question is among the tested ones, by id or text, or near one by embedding."""
    ids, texts = dict(tested), {_plain(text): text for _, text in tested}
    found: dict[UUID, Leak] = {}
    for each in demonstrations:
        same = ids.get(each.question_id) or texts.get(_plain(each.question))
        if same is not None:
            found[each.trace_id] = Leak(each, same, 1.0)
    rest = [each for each in demonstrations if each.trace_id not in found]
    if rest and tested:
        for leak in _near(rest, [text for _, text in tested], encode, near):
            found[leak.demonstration.trace_id] = leak
    return [found[each.trace_id] for each in demonstrations if each.trace_id in found]


def _near(demonstrations: Sequence[Demonstration], tested: list[str], encode: Encode, near: float) -> list[Leak]:
    mine = encode([each.question for each in demonstrations])
    closest, which = np.full(len(demonstrations), -1.0), np.zeros(len(demonstrations), np.int64)
    for start in range(0, len(tested), _BLOCK):
        cosines = mine @ encode(tested[start : start + _BLOCK]).T
        best = cosines.argmax(axis=1)
        value = cosines[np.arange(len(mine)), best]
        which = np.where(value > closest, best + start, which)
        closest = np.maximum(closest, value)
    return [
        Leak(each, tested[int(which[place])], float(closest[place]))
        for place, each in enumerate(demonstrations)
        if closest[place] >= near
    ]


def _plain(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(" ?.!")
