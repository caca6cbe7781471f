"""A question as a file gives it."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """A question with every gold answer as {"text", "entity"}; `details` keeps what has no field of its own.

    A hop of the decomposition has "subject", "subject_id", "relation", "pid", "object", "object_id", perhaps more.
    """

    text: str
    source_id: str | None = None
    dataset: str | None = None
    split: str | None = None
    kind: str | None = None
    gold_answers: list[dict[str, Any]] = field(default_factory=list)
    decomposition: list[dict[str, Any]] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
