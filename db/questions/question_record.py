"""A question as a file brings it or a world generates it, before it is stored."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class QuestionRecord:
    """A question with its gold answers {"text", "entity", "aliases"}; "aliases" may be missing.

    A correct answer names all gold answers; an answer is named by its text or by any alias. A hop of the decomposition
    has "subject", "subject_id", "relation", "pid", "object", "object_id" and possibly more. `details` holds fields of
    the file under their original names, unchanged.
    """

    text: str
    source_id: str | None = None
    dataset: str | None = None
    split: str | None = None
    kind: str | None = None
    gold_answers: list[dict[str, Any]] = field(default_factory=list)
    decomposition: list[dict[str, Any]] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
