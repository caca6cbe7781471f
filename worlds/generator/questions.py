"""Questions over the universe, each with every right answer and the hops that lead to it."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from worlds.generator.graph import Items
from worlds.generator.people import Universe
from worlds.generator.templates import KINDS, Template
from worlds.generator.walk import Answer, Asked, Hop, Walk

EASY = ("one hop", "date", "count")
PER_KIND = 10
EASY_FIRST = 3
"""Questions of each easy kind before the others begin."""
DRAWS = 300
"""Tries to find a question before its kind counts as exhausted."""


@dataclass(frozen=True, slots=True)
class GeneratedQuestion:
    """A question as the store takes it; `details.needs` is "either": each source holds every fact."""

    text: str
    kind: str
    gold_answers: list[Answer]
    decomposition: list[Hop]
    source_id: str
    details: dict[str, Any]
    dataset: str = "generated"
    split: str = "train"


def questions(universe: Universe, items: Items, seed: int) -> Iterator[GeneratedQuestion]:
    """Ten questions of each kind, no text twice: some easy ones first, then all kinds in turn."""
    walk = Walk(universe, items, random.Random(seed))  # noqa: S311 - the same questions for the same seed
    seen: set[str] = set()
    for kind, number in _order():
        templates = list(KINDS[kind].items())
        name, template = templates[number % len(templates)]
        asked = _ask(walk, template, seen)
        if asked is not None:
            seen.add(asked.text)
            details = {"needs": "either", "template": name, "seed": seed}
            source = f"{len(universe.people)}-{seed}-{kind.replace(' ', '-')}-{number + 1}"
            yield GeneratedQuestion(asked.text, kind, asked.answers, asked.hops, source, details)


def _order() -> Iterator[tuple[str, int]]:
    for number in range(EASY_FIRST):
        yield from ((kind, number) for kind in EASY)
    for number in range(PER_KIND):
        yield from ((kind, number) for kind in KINDS if kind not in EASY or number >= EASY_FIRST)


def _ask(walk: Walk, template: Template, seen: set[str]) -> Asked | None:
    """A question that was not asked before; None when the draws give none."""
    for _ in range(DRAWS):
        asked = template(walk)
        if asked is not None and asked.text not in seen:
            return asked
    return None
