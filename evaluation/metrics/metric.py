"""The definition of a metric: a named, versioned function from an answer and its gold answers to a score."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

GoldAnswer = Mapping[str, Any]
"""A gold answer {"text", "entity", "aliases"}; the last two may be missing."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A score from 0 to 1 for an answer to a question with gold answers."""

    name: str
    """The key of its mean in reports, such as official_f1."""
    version: int
    """Incremented by every change that may change a score."""
    label: str
    """The name in texts and tables."""
    purpose: str
    score: Callable[[str, Sequence[GoldAnswer]], float]
    """Scores an answer against at least one gold answer; a correct answer names all of them."""


def list_aliases(gold: GoldAnswer) -> list[str]:
    """The text of a gold answer followed by its aliases."""
    return [str(gold["text"]), *map(str, gold.get("aliases") or ())]
