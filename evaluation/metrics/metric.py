"""The type of a metric: a named, versioned function from an answer and its gold answers to a score."""

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
    """Raised by every change that may change a score."""
    label: str
    """Its name in texts and tables."""
    purpose: str
    score: Callable[[str, Sequence[GoldAnswer]], float]
    """Of an answer and at least one gold answer; several gold answers are all asked for."""


def list_aliases(gold: GoldAnswer) -> list[str]:
    """The text of a gold answer and its other names."""
    return [str(gold["text"]), *map(str, gold.get("aliases") or ())]
