"""Surveys trace files in a bounded worker, so that a page can look at whatever was uploaded."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

from showhow.fewshot_library.formats import read_traces
from showhow.fewshot_library.formats.format import FormatError, RecordRemark, RefusedRecord
from showhow.guard.worker import WorkFailed, WorkLimits, run_bounded

SURVEY_LIMITS = WorkLimits(seconds=120.0, megabytes=640)
"""Also a file of the largest size that can be uploaded is read within them."""
MAX_LISTED_RECORDS = 100


@dataclass(slots=True)
class TraceSurvey:
    """What a file of traces holds."""

    ids: list[UUID] = field(default_factory=list)
    """The traces that can be read, each once."""
    repeated: int = 0
    """The records with the id of an earlier one."""
    refused: int = 0
    places: list[RefusedRecord] = field(default_factory=list)
    """The first records that are refused."""
    remarks: list[RecordRemark] = field(default_factory=list)
    """The first remarks."""


def survey_in_worker(file: Path) -> TraceSurvey:
    """What the file holds; FormatError if it cannot be read, also within the limits."""
    try:
        outcome = run_bounded(survey_to_json, str(file), limits=SURVEY_LIMITS)
    except WorkFailed as error:
        raise FormatError(f"{file} was not read: {error}") from error
    if "error" in outcome:
        raise FormatError(outcome["error"])
    return TraceSurvey(
        [UUID(key) for key in outcome["ids"]],
        outcome["repeated"],
        outcome["refused"],
        [RefusedRecord(**place) for place in outcome["places"]],
        [RecordRemark(**remark) for remark in outcome["remarks"]],
    )


def survey_to_json(file: str) -> dict[str, Any]:
    """The survey as JSON values, or the error as one sentence; called in the worker."""
    ids: dict[str, None] = {}
    survey = TraceSurvey()
    try:
        for record in read_traces(Path(file)):
            if isinstance(record, RefusedRecord):
                survey.refused += 1
                survey.places += [record] if len(survey.places) < MAX_LISTED_RECORDS else []
            elif isinstance(record, RecordRemark):
                survey.remarks += [record] if len(survey.remarks) < MAX_LISTED_RECORDS else []
            else:
                key = str(record.trace.id)
                survey.repeated += key in ids
                ids[key] = None
    except FormatError as error:
        return {"error": str(error)}
    except RecursionError:
        return {"error": f"{file} is nested too deeply; flatten it"}
    return asdict(survey) | {"ids": list(ids)}
