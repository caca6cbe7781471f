"""The table of people's answers: question, person, answer, gold, agreement, time and comment.

`list_person_answers` has one page of it; `write_answer_table` writes all of it in a format of TABLE_WRITERS.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from statistics import fmean
from typing import Any, BinaryIO
from uuid import UUID

from showhow.db.database import Database
from showhow.db.models import Project
from showhow.db.people.gold_visibility import is_gold_visible
from showhow.db.people.users import ADMIN, REVIEWER, acting_person, has_acting_role
from showhow.db.questions.answer_formats import AnswerFormat, AnswerKind
from showhow.db.questions.person_answers import (
    AnswerConditions,
    PersonAnswer,
    list_answer_ids,
    list_answers_by_person,
    load_answers,
)
from showhow.evaluation.comparison.project_agreement import read_answers
from showhow.evaluation.statistics import jaccard_index
from showhow.evaluation.value_format import TABLE_WRITERS, ColumnTypes

PERSON_ANSWER_COLUMNS: ColumnTypes = {
    "number": int,
    "question": str,
    "person": str,
    "status": str,
    "answer": str,
    "gold": str,
    "agreement": float,
    "minutes": float,
    "comment": str,
    "submitted": str,
    "kind": str,
    "tags": str,
    "trace": str,
}
"""The columns of a written table; a page shows the first ones."""
_BATCH_SIZE = 500


def restrict_to_own(session: Any, conditions: AnswerConditions) -> AnswerConditions:
    """The conditions as they hold for the person who acts: only reviewers and administrators see others' answers."""
    actor = acting_person(session)
    if actor is None or has_acting_role(session, REVIEWER, ADMIN):
        return conditions
    return replace(conditions, person=actor.name)


def list_person_answers(session: Any, project: Project, ids: Sequence[UUID]) -> list[dict[str, Any]]:
    """The rows of these traces by PERSON_ANSWER_COLUMNS, gold answers only where the person who acts sees them."""
    answers = load_answers(session, ids)
    others = list_answers_by_person(session, list({answer.question.id for answer in answers}))
    shows_gold = is_gold_visible(session, project)
    is_text = AnswerFormat.from_json(project.answer_format).kind == AnswerKind.TEXT
    return [
        _make_row(answer, others.get(answer.question.id, {}), is_text=is_text, shows_gold=shows_gold)
        for answer in answers
    ]


def _make_row(answer: PersonAnswer, of_people: Mapping[str, str], *, is_text: bool, shows_gold: bool) -> dict[str, Any]:
    question = answer.question
    gold = "; ".join(str(gold["text"]) for gold in question.gold_answers) if shows_gold else None
    return {
        "number": question.position,
        "question": question.summary,
        "person": answer.person,
        "status": answer.status,
        "answer": answer.answer,
        "gold": gold,
        "agreement": _measure_agreement(answer, of_people, is_text=is_text),
        "minutes": None if answer.seconds is None else round(answer.seconds / 60, 2),
        "comment": answer.comment,
        "submitted": None if answer.submitted_at is None else answer.submitted_at.isoformat(timespec="seconds"),
        "kind": question.kind,
        "tags": ", ".join(question.tags) or None,
        "trace": str(answer.trace_id),
    }


def _measure_agreement(answer: PersonAnswer, of_people: Mapping[str, str], *, is_text: bool) -> float | None:
    """The mean similarity to the other people's answers, from 0 to 1; None without any."""
    if answer.answer is None or not of_people.keys() - {answer.person}:
        return None
    sets = read_answers({**of_people, answer.person: answer.answer}, is_text=is_text)
    own = sets.pop(answer.person)
    return round(fmean(jaccard_index(own, other) for other in sets.values()), 3)


def iterate_person_answers(
    database: Database, project: Project, conditions: AnswerConditions
) -> Iterator[dict[str, Any]]:
    """Iterate over all rows that meet the conditions and that the person who acts may see."""
    with database.read() as session:
        ids = list_answer_ids(session, project.id, restrict_to_own(session, conditions))
    for start in range(0, len(ids), _BATCH_SIZE):
        with database.read() as session:
            rows = list_person_answers(session, project, ids[start : start + _BATCH_SIZE])
        yield from rows


def write_answer_table(
    database: Database, project: Project, conditions: AnswerConditions, format_name: str, stream: BinaryIO
) -> int:
    """Write all rows that meet the conditions in a format of TABLE_WRITERS; returns their number."""
    numbers = count(0)
    rows = (row for row, _ in zip(iterate_person_answers(database, project, conditions), numbers, strict=False))
    TABLE_WRITERS[format_name](PERSON_ANSWER_COLUMNS, rows, stream)
    return next(numbers)
