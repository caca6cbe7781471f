"""The category of the error that a failed answer of a run shows, as people set it (HumanIQ's RQ9)."""

from collections.abc import Collection
from uuid import UUID

from sqlalchemy import delete, or_, select
from sqlalchemy.orm import Session

from showhow.db.database import Conflict
from showhow.db.models import UNFINISHED_ENDINGS, Attempt, Judgement, Score
from showhow.db.people.users import ADMIN, REVIEWER, require_acting_role
from showhow.db.runs.attempts import CORRECT_SCORE
from showhow.db.runs.verifications import CORRECTNESS_METRIC
from showhow.db.types import MAX_TAG_CHARACTERS

ERROR_CATEGORY_ASPECT = "error category"
"""The aspect of the judgements whose value is a category."""
ERROR_CATEGORIES = (
    *("tables", "query", "entity", "step limit", "final answer"),
    *("wrong document", "not found in document"),
)
"""Suggestions: the categories of HumanIQ's Table 9, in its order. Any other may be set."""
UNCATEGORIZED = "no category"


def set_error_category(
    session: Session, run_id: UUID, question_ids: Collection[UUID], category: str, *, by: UUID | None
) -> int:
    """Set the category of the run's failed answers to these questions, "" for none; returns how many answers have it.

    It replaces the one that the same person set; of several people's, the latest counts.
    """
    require_acting_role(session, REVIEWER, ADMIN)
    category = " ".join(category.split())
    if len(category) > MAX_TAG_CHARACTERS:
        raise Conflict(f"a category has at most {MAX_TAG_CHARACTERS} characters; write the rest as a comment of a step")
    is_scored = (Score.attempt_id == Attempt.id) & (Score.metric == CORRECTNESS_METRIC)
    failed = (
        select(Attempt.trace_id)
        .outerjoin(Score, is_scored)
        .where(Attempt.run_id == run_id, Attempt.question_id.in_(question_ids), Attempt.trace_id.is_not(None))
        .where(Attempt.ending.not_in(UNFINISHED_ENDINGS), or_(Score.value < CORRECT_SCORE, Score.value.is_(None)))
    )
    traces = [trace_id for trace_id in session.scalars(failed) if trace_id is not None]
    is_own = Judgement.judge_id.is_(None) if by is None else Judgement.judge_id == by
    session.execute(
        delete(Judgement).where(Judgement.trace_id.in_(traces), Judgement.aspect == ERROR_CATEGORY_ASPECT, is_own)
    )
    if category and category != UNCATEGORIZED:
        session.add_all(
            Judgement(trace_id=trace_id, aspect=ERROR_CATEGORY_ASPECT, value=category, judge_id=by)
            for trace_id in traces
        )
    session.flush()
    return len(traces)


def load_error_categories(session: Session, run_id: UUID) -> dict[UUID, str]:
    """The latest category of each question of the run that has one."""
    rows = (
        select(Attempt.question_id, Judgement.value)
        .join(Judgement, Judgement.trace_id == Attempt.trace_id)
        .where(Attempt.run_id == run_id, Judgement.aspect == ERROR_CATEGORY_ASPECT)
        .order_by(Judgement.created_at, Judgement.id)
    )
    return {question_id: category for question_id, category in session.execute(rows)}  # noqa: C416 - rows are no pairs to mypy
