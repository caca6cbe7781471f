"""The card of a library version, and the check that its demonstrations do not leak questions of a test split."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np

from db.libraries import Demonstration, DemonstrationFilter
from fewshot_library.embeddings import TextEncoding

NEAR_DUPLICATE_COSINE = 0.95
"""The least cosine of two questions that count as near duplicates."""
_ENCODING_BATCH_SIZE = 1024


@dataclass(frozen=True, slots=True)
class Leak:
    """A demonstration whose question is, or is nearly, a question of the test split."""

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
    """The demonstrations whose question is a tested one, by id or text, or near one by the cosine of embeddings."""
    ids, texts = dict(tested), {_normalize_question(text): text for _, text in tested}
    leaks: dict[UUID, Leak] = {}
    for demonstration in demonstrations:
        same = ids.get(demonstration.question_id) or texts.get(_normalize_question(demonstration.question))
        if same is not None:
            leaks[demonstration.trace_id] = Leak(demonstration, same, 1.0)
    rest = [demonstration for demonstration in demonstrations if demonstration.trace_id not in leaks]
    if rest and tested:
        for leak in _find_near_duplicates(rest, [text for _, text in tested], encode, near):
            leaks[leak.demonstration.trace_id] = leak
    return [leaks[demonstration.trace_id] for demonstration in demonstrations if demonstration.trace_id in leaks]


def _find_near_duplicates(
    demonstrations: Sequence[Demonstration], tested: list[str], encode: TextEncoding, near: float
) -> list[Leak]:
    embeddings = encode([demonstration.question for demonstration in demonstrations])
    closest, which = np.full(len(demonstrations), -1.0), np.zeros(len(demonstrations), np.int64)
    for start in range(0, len(tested), _ENCODING_BATCH_SIZE):
        cosines = embeddings @ encode(tested[start : start + _ENCODING_BATCH_SIZE]).T
        best = cosines.argmax(axis=1)
        value = cosines[np.arange(len(embeddings)), best]
        which = np.where(value > closest, best + start, which)
        closest = np.maximum(closest, value)
    return [
        Leak(demonstration, tested[int(which[place])], float(closest[place]))
        for place, demonstration in enumerate(demonstrations)
        if closest[place] >= near
    ]


def _normalize_question(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(" ?.!")


_MAX_LISTED_LEAKS = 3


class LeakageError(ValueError):
    """Demonstrations leak questions of the test split; the message names the first of them."""

    def __init__(self, leaks: Sequence[Leak], split: str) -> None:
        self.leaks = list(leaks)
        first = "; ".join(str(leak) for leak in self.leaks[:_MAX_LISTED_LEAKS])
        more = f"; and {len(self.leaks) - _MAX_LISTED_LEAKS} more" if len(self.leaks) > _MAX_LISTED_LEAKS else ""
        many = "1 demonstration gives" if len(self.leaks) == 1 else f"{len(self.leaks)} demonstrations give"
        super().__init__(
            f"{many} away questions of the split {split!r}, so that nothing was frozen: "
            f"{first}{more}. Leave them out by a condition, or force it"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class FreezeOptions:
    """How a version is frozen; which traces it has is decided elsewhere."""

    by: str
    """Who freezes it."""
    licence: str = ""
    note: str = ""
    test_split: str = "test"
    force: bool = False
    """Whether it is frozen in spite of leaks, which the card then lists."""


def build_card(
    chosen: Sequence[Demonstration], conditions: DemonstrationFilter, options: FreezeOptions, leaks: Sequence[Leak]
) -> dict[str, Any]:
    """The card of a version of these demonstrations; LeakageError for leaks, unless forced."""
    if leaks and not options.force:
        raise LeakageError(leaks, options.test_split)
    card: dict[str, Any] = {
        "by": options.by,
        "demonstrations": len(chosen),
        "conditions": conditions.active_conditions(),
        "projects": sorted({demonstration.project for demonstration in chosen}),
        "worlds": sorted({demonstration.world for demonstration in chosen}),
        "tools": sorted({tool for demonstration in chosen for tool in demonstration.tools}),
        "authors": sorted({demonstration.author or demonstration.reasoner for demonstration in chosen}),
    }
    notes = {"licence": options.licence, "note": options.note, "leaks": [str(leak) for leak in leaks]}
    return card | {name: value for name, value in notes.items() if value}
