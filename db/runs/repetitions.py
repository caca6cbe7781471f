"""Whether traces can be repeated, as it was found out last; and links of arguments that people add to recorded steps.

What was found out is a judgement of the trace. It holds until a call or the answer changes.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any
from uuid import UUID

from sqlalchemy import delete, exists, select
from sqlalchemy.orm import Session

from showhow.db.database import Conflict
from showhow.db.models import Judgement, Step, Trace
from showhow.db.people.users import ADMIN, REVIEWER, require_acting_role, require_role
from showhow.db.traces.libraries import LibraryItem
from showhow.db.traces.trace_record import REPETITION_ASPECT, TraceRecord
from showhow.db.traces.traces import increment_version, lock_draft, lock_step, record_edit
from showhow.db.types import dump_json, load_json

OTHER_NAMES, OWN_QUESTION, NEEDS_LINK, FAILS = "other names", "own question", "needs a link", "fails"
REPETITION_STATES = (OTHER_NAMES, OWN_QUESTION, NEEDS_LINK, FAILS)
"""Works for other names; runs again on its own question; an argument stays the same for other names; does not run."""


@dataclass(frozen=True, slots=True)
class Trial:
    """A question that replay was asked with the demonstration alone: its answer, or why there is none."""

    question: str
    answer: str | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Repetition:
    """Whether a trace can be repeated, and what was tried."""

    state: str
    trials: tuple[Trial, ...] = ()
    why: str = ""
    """Why it was not tried, or does not run; empty if it was and does."""


def _digest(record: TraceRecord, answer: str) -> str:
    """Changes with the calls, their results and the answer."""
    steps = [[s.position, s.tool, s.arguments, s.origins, s.observation, s.error] for s in record.steps]
    return sha256(json.dumps([steps, answer], sort_keys=True).encode()).hexdigest()[:16]


def store_repetition(session: Session, record: TraceRecord, answer: str, repetition: Repetition) -> None:
    """Keep with a trace with this answer whether it can be repeated, in place of what was known; any role may."""
    require_acting_role(session)
    if session.get(Trace, record.trace.id) is None:
        return
    forget_repetition(session, record.trace.id)
    comment = dump_json({"of": _digest(record, answer), **asdict(repetition)})
    session.add(Judgement(trace_id=record.trace.id, aspect=REPETITION_ASPECT, value=repetition.state, comment=comment))


def forget_repetition(session: Session, trace_id: UUID) -> None:
    """Remove what is known of a trace."""
    session.execute(delete(Judgement).where(Judgement.trace_id == trace_id, Judgement.aspect == REPETITION_ASPECT))


def read_repetition(record: TraceRecord, answer: str) -> Repetition | None:
    """What is known of a trace with this answer; None if nothing is, or if it has changed."""
    for judgement in record.judgements:
        if judgement.aspect == REPETITION_ASPECT and judgement.value in REPETITION_STATES:
            try:
                match load_json(judgement.comment):
                    case {"of": digest, "trials": [*trials], "why": str(why)} if digest == _digest(record, answer):
                        return Repetition(judgement.value, tuple(Trial(**trial) for trial in trials), why)
            except (ValueError, TypeError):
                # An import may bring anything.
                continue
    return None


def list_repetition_states(session: Session, ids: Sequence[UUID]) -> dict[UUID, str]:
    """The state of each of these traces of which it is known."""
    known = select(Judgement.trace_id, Judgement.value).where(
        Judgement.trace_id.in_(ids), Judgement.aspect == REPETITION_ASPECT
    )
    return {trace_id: value for trace_id, value in session.execute(known) if value in REPETITION_STATES}


def link_arguments(session: Session, step_id: UUID, links: dict[str, Any], *, seen: int, by: UUID) -> Step:
    """Store where the values of arguments come from, by their names.

    The author links arguments of a draft; a reviewer those of other traces, unless a version of a library has them.
    """
    step, trace = lock_step(session, step_id)
    if trace.status == "draft":
        lock_draft(session, trace.id, seen, by)
    else:
        require_role(session, by, REVIEWER, ADMIN)
        if trace.version != seen:
            raise Conflict("this trace was changed since this page was loaded; look at the newer state, then link it")
        if session.scalar(select(exists().where(LibraryItem.trace_id == trace.id))):
            raise Conflict(
                "a version of a library has this trace, and versions never change; fork it to link arguments"
            )
    if unknown := links.keys() - step.arguments.keys():
        raise Conflict(f"step {step.position} has no argument {min(unknown)}")
    record_edit(session, step, "origins", {"origins": step.origins}, by)
    step.origins = {**step.origins, **links}
    increment_version(trace)
    forget_repetition(session, trace.id)
    session.flush()
    return step
