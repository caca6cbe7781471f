"""Surveys question files in a bounded worker, so that a page can look at whatever was uploaded."""

import csv
from collections.abc import Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from showhow.db.questions.question_record import QuestionRecord
from showhow.evaluation.datasets import open_question_file
from showhow.evaluation.datasets.layouts import list_file_columns
from showhow.evaluation.datasets.reader import QuestionSurvey, UnreadCount, UnreadRecord
from showhow.guard.worker import WorkFailed, WorkLimits, run_bounded
from showhow.worlds.folder import WorldError

SURVEY_LIMITS = WorkLimits(seconds=120.0, megabytes=640)
"""Also a file of the largest size that can be uploaded is read within them."""


def survey_in_worker(file: Path, form: str, language: str, columns: Mapping[str, str] | None = None) -> QuestionSurvey:
    """What an import of the file would store; WorldError if it cannot be read, also within the limits."""
    try:
        outcome = run_bounded(survey_to_json, str(file), form, language, dict(columns or {}), limits=SURVEY_LIMITS)
    except WorkFailed as error:
        raise WorldError(f"{file} was not read: {error}.") from error
    if "error" in outcome:
        raise WorldError(outcome["error"])
    survey = QuestionSurvey(**{field.name: outcome[field.name] for field in fields(QuestionSurvey)})
    survey.preview = [QuestionRecord(**record) for record in outcome["preview"]]
    survey.unread = {
        reason: UnreadCount(UnreadRecord(**unread["first"]), unread["count"])
        for reason, unread in outcome["unread"].items()
    }
    return survey


def columns_in_worker(file: Path) -> list[str]:
    """The names of the columns, or fields, of the file; none if it cannot be read."""
    try:
        return list(run_bounded(columns_to_json, str(file), limits=SURVEY_LIMITS))
    except WorkFailed:
        return []


def columns_to_json(file: str) -> list[str]:
    """The names of the columns; called in the worker."""
    try:
        return list_file_columns(Path(file))
    except (WorldError, ValueError, OSError, csv.Error):
        return []


def survey_to_json(file: str, form: str, language: str, columns: dict[str, str]) -> dict[str, Any]:
    """The survey as JSON values, or the error as one sentence; called in the worker."""
    try:
        return asdict(open_question_file(Path(file), form, language, columns).survey())
    except WorldError as error:
        return {"error": str(error)}
    except RecursionError:
        return {"error": f"{file} is nested too deeply; flatten it."}
