"""What a library version says of itself, and whether it may be frozen: not when it gives away what is tested.

Whether demonstrations give away what is to be tested: the same question, or nearly the same, in a test split.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np

from db.libraries import Demonstration, DemonstrationFilter
from fewshot_library.embeddings import TextEncoding

NEAR_DUPLICATE_COSINE = 0.95
"""The cosine from which on two questions count as near duplicates."""
_ENCODING_BATCH_SIZE = 1024


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


def find_leaks(
    demonstrations: Sequence[Demonstration],
    tested: Sequence[tuple[UUID, str]],
    encode: TextEncoding,
    near: float = NEAR_DUPLICATE_COSINE,
) -> list[Leak]:
    """The demonstrations whose question is among the tested ones, by id or text, or near one by embedding."""
    ids, texts = dict(tested), {_normalize_question(text): text for _, text in tested}
    found: dict[UUID, Leak] = {}
    for each in demonstrations:
        same = ids.get(each.question_id) or texts.get(_normalize_question(each.question))
        if same is not None:
            found[each.trace_id] = Leak(each, same, 1.0)
    rest = [each for each in demonstrations if each.trace_id not in found]
    if rest and tested:
        for leak in _find_near_duplicates(rest, [text for _, text in tested], encode, near):
            found[leak.demonstration.trace_id] = leak
    return [found[each.trace_id] for each in demonstrations if each.trace_id in found]


def _find_near_duplicates(
    demonstrations: Sequence[Demonstration], tested: list[str], encode: TextEncoding, near: float
) -> list[Leak]:
    mine = encode([each.question for each in demonstrations])
    closest, which = np.full(len(demonstrations), -1.0), np.zeros(len(demonstrations), np.int64)
    for start in range(0, len(tested), _ENCODING_BATCH_SIZE):
        cosines = mine @ encode(tested[start : start + _ENCODING_BATCH_SIZE]).T
        best = cosines.argmax(axis=1)
        value = cosines[np.arange(len(mine)), best]
        which = np.where(value > closest, best + start, which)
        closest = np.maximum(closest, value)
    return [
        Leak(each, tested[int(which[place])], float(closest[place]))
        for place, each in enumerate(demonstrations)
        if closest[place] >= near
    ]


def _normalize_question(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(" ?.!")


_MAX_LISTED_LEAKS = 3


class LeakageError(ValueError):
    """Demonstrations give away questions of the test split, in one sentence."""

    def __init__(self, found: Sequence[Leak], split: str) -> None:
        self.leaks = list(found)
        first = "; ".join(str(leak) for leak in self.leaks[:_MAX_LISTED_LEAKS])
        more = f"; and {len(self.leaks) - _MAX_LISTED_LEAKS} more" if len(self.leaks) > _MAX_LISTED_LEAKS else ""
        many = "1 demonstration gives" if len(self.leaks) == 1 else f"{len(self.leaks)} demonstrations give"
        super().__init__(
            f"{many} away questions of the split {split!r}, so that nothing was frozen: "
            f"{first}{more}. Leave them out by a condition, or force it"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeOptions:
    """How a version is frozen, beside which traces it takes."""

    by: str
    """Who freezes it."""
    licence: str = ""
    note: str = ""
    test_split: str = "test"
    force: bool = False
    """Whether it is frozen although it leaks; the card then tells what."""


def build_card(
    chosen: Sequence[Demonstration], wanted: DemonstrationFilter, terms: FreezeOptions, leaks: Sequence[Leak]
) -> dict[str, Any]:
    """The card of a version that holds these; Leaking when there are leaks and it is not forced."""
    if leaks and not terms.force:
        raise LeakageError(leaks, terms.test_split)
    told: dict[str, Any] = {
        "by": terms.by,
        "demonstrations": len(chosen),
        "conditions": wanted.active_conditions(),
        "projects": sorted({each.project for each in chosen}),
        "worlds": sorted({each.world for each in chosen}),
        "tools": sorted({tool for each in chosen for tool in each.tools}),
        "authors": sorted({each.author or each.reasoner for each in chosen}),
    }
    notes = {"licence": terms.licence, "note": terms.note, "leaks": [str(leak) for leak in leaks]}
    return told | {name: value for name, value in notes.items() if value}
