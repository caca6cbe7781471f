"""Runs on which no process works any more, since it was killed, are ended at the next start."""

from datetime import timedelta

from db import runs
from db.database import Conflict
from db.model_calls import mark_lost_model_calls
from db.runs import ASK_RUN_NAME, RunOutcome, UnfinishedTrace
from db.trace_configuration import TraceConfiguration
from db.types import utc_now
from runs.process import is_worker_gone, is_worker_local
from runs.services import Services

IDLE_TIME = timedelta(days=1)
"""A process of another host cannot be seen; its run is ended once it has written nothing for as long."""
_SHOWN_CHARACTERS = 80


def end_interrupted_runs(services: Services) -> list[str]:
    """End the runs on which no process works any more, and return a sentence about each; they can be continued.

    Runs of living processes stay as they are, whichever process calls this.
    """
    with services.database.read() as session:
        unfinished = runs.list_unfinished_traces(session)
    ended = [trace for trace in unfinished if _is_abandoned(trace) and _end_run(services, trace)]
    with services.database.begin() as session:
        runs.finish_runs_without_drafts(session, ASK_RUN_NAME)
    return [
        f"Ended the run on {_shorten(trace.question)!r}, whose process was killed; continue it "
        + ("on the Ask page." if trace.run_name == ASK_RUN_NAME else "with `showhow verify`.")
        for trace in ended
    ]


def _is_abandoned(trace: UnfinishedTrace) -> bool:
    worker = TraceConfiguration.from_json(trace.configuration).worker
    if is_worker_local(worker):
        return is_worker_gone(worker)
    return utc_now() - trace.last_written_at > IDLE_TIME


def _end_run(services: Services, trace: UnfinishedTrace) -> bool:
    """End the run, unless another process has changed it since it was listed."""
    outcome = RunOutcome("interrupted", usage=trace.cost)
    try:
        with services.database.begin() as session:
            runs.finish_run_trace(session, trace.trace_id, outcome, seen=trace.version)
            mark_lost_model_calls(session, trace.trace_id)
    except Conflict:
        return False
    return True


def _shorten(question: str) -> str:
    return question if len(question) <= _SHOWN_CHARACTERS else f"{question[:_SHOWN_CHARACTERS]}…"
