"""The questions of a project by their texts, for imports that look up many of them."""

import json
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any
from uuid import UUID

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from showhow.db.models import Question
from showhow.db.removed_rows import WITH_REMOVED
from showhow.db.types import join_attachments, redactor_of_dialect
from showhow.db.unanswerable import find_gold_reason
from showhow.guard.redaction import NOTHING_SECRET

FULL_TEXT_COLUMNS = (Question.text, Question.details["attachments"])
"""The arguments of `join_attachments` for the text of a question with its attachments."""


class QuestionIndex:
    """Digests of a project's questions, some 300 bytes each; `refresh` reads those that were appended since.

    They are digests of what the store writes, which is the text without secrets.
    """

    def __init__(self, project_id: UUID) -> None:
        self._project_id = project_id
        self._by_text: dict[bytes, UUID] = {}
        self._gold: dict[bytes, bytes] = {}
        self._redactor = NOTHING_SECRET
        self.last_position = 0
        """The position of the last question."""

    def refresh(self, session: Session) -> None:
        """Read the questions after the last position."""
        self._redactor = redactor_of_dialect(session.connection().dialect)
        columns = select(
            Question.id, Question.position, Question.source_id, Question.gold_answers, *FULL_TEXT_COLUMNS
        ).where(Question.project_id == self._project_id, Question.position > self.last_position)
        rows = session.execute(columns.order_by(Question.position).execution_options(yield_per=1_000))
        for key, position, source_id, gold, *texts in rows:
            self.add(key, position, source_id, join_attachments(*texts), gold)
        # A removed question is not one of the project's, and keeps its position.
        last = select(func.max(Question.position)).where(Question.project_id == self._project_id)
        self.last_position = max(self.last_position, session.scalar(last, execution_options=WITH_REMOVED) or 0)

    def add(self, key: UUID, position: int, source_id: str | None, text: str, gold: list[dict[str, Any]]) -> None:
        """Add one question."""
        self._by_text.setdefault(self._digest(text), key)
        # Of equal questions the last one counts, as for has_questions.
        self._gold[self._digest([source_id, text])] = self._digest_gold(gold)
        self.last_position = max(self.last_position, position)

    def find_text(self, text: str) -> UUID | None:
        """The id of the first question with this text and these attachments."""
        return self._by_text.get(self._digest(text))

    def has_other_gold(self, source_id: str | None, text: str, gold: list[dict[str, Any]]) -> bool | None:
        """Whether the question with this source id and text has other gold answers; None if there is no such one."""
        stored = self._gold.get(self._digest([source_id, text]))
        return None if stored is None else stored != self._digest_gold(gold)

    def has_exactly(self, questions: Iterable[tuple[str | None, str, list[dict[str, Any]]]]) -> bool:
        """Whether the questions are these: each with its source id, text and gold answers."""
        return self._gold == {self._digest([source, text]): self._digest_gold(gold) for source, text, gold in questions}

    def _digest_gold(self, gold: list[dict[str, Any]]) -> bytes:
        # A question that cannot be answered was stored without gold answers by former versions.
        return self._digest([] if find_gold_reason(gold) else gold)

    def _digest(self, value: Any) -> bytes:
        text = value if isinstance(value, str) else json.dumps(value, sort_keys=True, ensure_ascii=False)
        return blake2b(self._redactor.redact(text).encode("utf-8", "surrogatepass"), digest_size=16).digest()
