"""Requests to language models: each is committed before it is sent, and its reply before the reply is used.

    with database.begin() as session:
        call = begin_model_call(session, ModelRequest("step", model, messages), trace_id=trace.id)
    reply = ...  # the request itself, outside any transaction
    with database.begin() as session:
        complete_model_call(session, call.id, ModelReply(reply, usage, price, seconds))

A call that is still open when its run is resumed was sent by a process that ended: it becomes "lost", and a late reply
to it is refused. Messages are stored by their content, so that a prefix of a thousand prompts is stored once.
Model calls stay in the database in which they were made and are not exported: a trace contains their decisions.
"""

import json
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import chain
from typing import Any, NamedTuple
from uuid import UUID

from sqlalchemy import Select, Table, bindparam, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Mapped, Session, mapped_column

from showhow.db.database import Conflict, RowNotFound
from showhow.db.models import UNFINISHED_ENDINGS, Attempt, Edit, ModelCall, Step, Trace
from showhow.db.serialization import insert_row
from showhow.db.types import Base, dump_json, redactor_of_dialect, utc_now
from showhow.guard.redaction import Redactor


class PromptMessage(Base):
    """A piece of a message that was sent to a model; equal pieces of several prompts are stored once."""

    __tablename__ = "prompt_message"

    hash: Mapped[str] = mapped_column(primary_key=True)
    """SHA-256 of the content in hexadecimal."""
    content: Mapped[str]


PIECE_CHARACTERS = 4096
"""Messages are stored in pieces of this length, so that a message that grows from call to call shares its beginning."""
_QUERY_BATCH_SIZE = 500
# Statements of every step of a run are built once.
_CALLS: Table = ModelCall.__table__  # type: ignore[assignment]
_COMPLETION = (
    update(_CALLS)
    .where(_CALLS.c.id == bindparam("call"), _CALLS.c.state == "open")
    .values(
        state="answered",
        **{name: bindparam(name) for name in ("reply", "usage", "price", "seconds", "answered_at")},
    )
)
_PIECES: Table = PromptMessage.__table__  # type: ignore[assignment]
_PIECE_INSERTS = {
    "sqlite": sqlite.insert(_PIECES).on_conflict_do_nothing(),
    "postgresql": postgresql.insert(_PIECES).on_conflict_do_nothing(),
}
_LINK = (
    update(_CALLS)
    .where(_CALLS.c.trace_id == bindparam("trace"), _CALLS.c.step_id.is_(None))
    .values(step_id=bindparam("step"))
)


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """A request as it is sent; `parameters` are all other values that determine the reply, never a key."""

    purpose: str
    model: str
    messages: Sequence[Mapping[str, Any]]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    most: Mapping[str, Any] | None = None
    """The most that it can use; its usage until it is answered."""

    @property
    def hash(self) -> str:
        """SHA-256 of the model, the messages and the parameters; the purpose does not count."""
        content = {"model": self.model, "messages": list(self.messages), "parameters": self.parameters}
        return _hash_text(json.dumps(content, sort_keys=True, ensure_ascii=False))

    def redacted(self, redactor: Redactor) -> "ModelRequest":
        """The request without secrets, as it is stored; a resumed run, which reads the store, has the same hash."""
        return replace(self, messages=redactor.redact_json(self.messages))


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A reply as it is stored; `reply` is None if it was not usable, `price` is in US dollars or None if unknown."""

    reply: dict[str, Any] | None
    usage: dict[str, Any] | None = None
    price: float | None = None
    seconds: float | None = None


def begin_model_call(
    session: Session,
    request: ModelRequest,
    *,
    trace_id: UUID | None = None,
    step_id: UUID | None = None,
    stored_pieces: Container[str] = (),
) -> ModelCall:
    """Store a request before it is sent, without secrets: one may lie across two pieces.

    A call for a trace without `step_id` is linked to the next step that the run begins. `stored_pieces` are hashes of
    pieces that are known to be stored, since earlier requests have them.
    """
    redactor = redactor_of_dialect(session.connection().dialect)
    texts = [dump_json(dict(message)) for message in request.messages]
    if any(map(redactor.finds, texts)):
        request = request.redacted(redactor)
        texts = [dump_json(dict(message)) for message in request.messages]
    pieces = [
        [text[start : start + PIECE_CHARACTERS] for start in range(0, len(text), PIECE_CHARACTERS)] for text in texts
    ]
    hashes = [[_hash_text(piece) for piece in message] for message in pieces]
    contents = dict(zip(chain.from_iterable(hashes), chain.from_iterable(pieces), strict=True))
    _insert_pieces(session, {key: piece for key, piece in contents.items() if key not in stored_pieces})
    call = ModelCall(
        purpose=request.purpose,
        model=request.model,
        request_hash=request.hash,
        prompt=hashes,
        trace_id=trace_id,
        step_id=step_id,
        usage=None if request.most is None else dict(request.most),
    )
    insert_row(session, call)
    return call


def complete_model_call(session: Session, call_id: UUID, reply: ModelReply) -> None:
    """Store the reply; Conflict if the call was completed or lost, and then the reply must not be used."""
    values = {"reply": reply.reply, "usage": reply.usage, "price": reply.price, "seconds": reply.seconds}
    completed = session.connection().execute(_COMPLETION, {"call": call_id, "answered_at": utc_now(), **values})
    if not completed.rowcount:
        # A call that is not open raises the Conflict.
        _lock_open_call(session, call_id)


def fail_model_call(session: Session, call_id: UUID, error: str, reply: ModelReply | None = None) -> ModelCall:
    """Store the error of a request, and the reply and usage that it had nevertheless."""
    call = _lock_open_call(session, call_id)
    call.state, call.error, call.usage, call.answered_at = "failed", error, None, utc_now()
    if reply is not None:
        call.reply, call.usage, call.price, call.seconds = reply.reply, reply.usage, reply.price, reply.seconds
    session.flush()
    return call


def withdraw_model_call(session: Session, call_id: UUID) -> None:
    """Delete a call whose request was never sent."""
    session.delete(_lock_open_call(session, call_id))
    session.flush()


def mark_lost_model_calls(session: Session, trace_id: UUID) -> int:
    """Mark the trace's open calls as lost and return their number; no process may work on the trace any more."""
    open_calls = update(ModelCall).where(ModelCall.trace_id == trace_id, ModelCall.state == "open")
    return int(session.execute(open_calls.values(state="lost")).rowcount)  # type: ignore[attr-defined]


def link_model_calls(session: Session, step: Step) -> None:
    """Link the trace's calls without a step to this step, which they decided."""
    session.connection().execute(_LINK, {"trace": step.trace_id, "step": step.id})


def load_prompt(session: Session, call_id: UUID) -> list[dict[str, Any]]:
    """Load the messages of a call exactly as they were sent, except for redacted secrets."""
    call = session.get(ModelCall, call_id)
    if call is None:
        raise RowNotFound(f"there is no model call {call_id} here; it may be in another database")
    hashes = sorted({piece for message in call.prompt for piece in message})
    contents: dict[str, str] = {}
    for start in range(0, len(hashes), _QUERY_BATCH_SIZE):
        batch = hashes[start : start + _QUERY_BATCH_SIZE]
        rows = session.execute(select(PromptMessage.hash, PromptMessage.content).where(PromptMessage.hash.in_(batch)))
        contents.update((row.hash, row.content) for row in rows)
    return [json.loads("".join(contents[piece] for piece in message)) for message in call.prompt]


def load_skill_prompt(session: Session, step_id: UUID) -> list[dict[str, Any]] | None:
    """Load the messages that were first sent for a step that calls a skill, as `load_prompt`; None if none are stored.

    Later messages of the step repeat them with replies that were not usable.
    """
    calls = select(ModelCall.id).where(ModelCall.step_id == step_id, ModelCall.purpose.startswith("skill:"))
    first = session.scalars(calls.order_by(ModelCall.created_at, ModelCall.id).limit(1)).first()
    return None if first is None else load_prompt(session, first)


class StoredExchange(NamedTuple):
    """A request of a run that decides its next step or its answer, and the reply, as they were sent."""

    prompt: list[dict[str, Any]]
    reply: dict[str, Any]
    """With text, calls and thoughts."""
    step_id: UUID | None
    """The step that it decided; None for the answer."""


def load_exchanges(session: Session, trace_id: UUID) -> list[StoredExchange]:
    """Load the answered requests for the steps and the answer of a trace, in the order they were sent."""
    calls = select(ModelCall).where(ModelCall.trace_id == trace_id, ModelCall.state == "answered")
    decisions = calls.where(ModelCall.purpose == "step").order_by(ModelCall.created_at, ModelCall.id)
    return [
        StoredExchange(load_prompt(session, call.id), call.reply, call.step_id)
        for call in session.scalars(decisions)
        if call.reply is not None
    ]


def list_model_calls(session: Session, trace_id: UUID) -> list[ModelCall]:
    """List the trace's calls in the order they were sent."""
    calls = select(ModelCall).where(ModelCall.trace_id == trace_id).order_by(ModelCall.created_at, ModelCall.id)
    return list(session.scalars(calls))


class UnfinishedUsage(NamedTuple):
    """The usage of a model call in a trace that has not ended, with the kind of its question."""

    kind: str | None
    usage: dict[str, Any]


def list_unfinished_usages(session: Session, run_id: UUID) -> list[UnfinishedUsage]:
    """List the usages of the model calls in traces of the run that have not ended, or were stopped."""
    rows = session.execute(
        select(Attempt.kind, ModelCall.usage)
        .join(Trace, Trace.id == ModelCall.trace_id)
        .outerjoin(Attempt, Attempt.trace_id == Trace.id)
        .where(Trace.run_id == run_id, ModelCall.usage.is_not(None))
        .where(Trace.ending.is_(None) | Trace.ending.in_(UNFINISHED_ENDINGS))
    )
    return [UnfinishedUsage(kind, usage) for kind, usage in rows if usage]


def list_call_usages(session: Session, trace_id: UUID) -> dict[UUID, dict[str, Any]]:
    """The usages of the trace's model calls that were answered, or failed with a known usage, by the id of the call."""
    ended = ModelCall.state.in_(("answered", "failed"))
    rows = session.execute(select(ModelCall.id, ModelCall.usage).where(ModelCall.trace_id == trace_id, ended))
    return {id_: usage for id_, usage in rows if usage}


def list_unused_replies(session: Session, trace_id: UUID) -> list[ModelCall]:
    """List the trace's answered calls without a step, or with an unfinished one, in the order they were sent.

    A process that was killed or stopped between storing a reply and using it leaves such a call. Replies of a run that
    failed do not count, since they may be why it failed.
    """
    edits = session.scalars(select(Edit).where(Edit.trace_id == trace_id, Edit.action == "status"))
    failures = [edit.at for edit in edits if (edit.before or {}).get("ending") == "failed"]
    calls = session.scalars(
        select(ModelCall)
        .outerjoin(Step, ModelCall.step_id == Step.id)
        .where(ModelCall.trace_id == trace_id, ModelCall.state == "answered", Step.finished_at.is_(None))
        .order_by(ModelCall.created_at, ModelCall.id)
    )
    return [
        call for call in calls if not failures or (call.answered_at is not None and call.answered_at > max(failures))
    ]


def list_answered_calls(session: Session, purpose: str) -> list[ModelCall]:
    """List the answered calls of no trace with this purpose, in the order they were sent."""
    calls = _calls_of_no_trace(purpose, "answered").order_by(ModelCall.created_at, ModelCall.id)
    return list(session.scalars(calls))


def mark_calls_lost(session: Session, purpose: str) -> None:
    """Mark the open calls of no trace with this purpose as lost; no process may wait for their replies any more."""
    for call in session.scalars(_calls_of_no_trace(purpose, "open")):
        call.state = "lost"


def _calls_of_no_trace(purpose: str, state: str) -> Select[ModelCall]:
    return select(ModelCall).where(ModelCall.trace_id.is_(None), ModelCall.state == state, ModelCall.purpose == purpose)


def _lock_open_call(session: Session, call_id: UUID) -> ModelCall:
    call = session.get(ModelCall, call_id, with_for_update=True, populate_existing=True)
    if call is None:
        raise RowNotFound(f"there is no model call {call_id} here; it may be in another database")
    if call.state != "open":
        raise Conflict(f"this model call is already {call.state}; its reply came too late and is not used")
    return call


def _insert_pieces(session: Session, pieces: Mapping[str, str]) -> None:
    """Store the pieces that are not stored yet, ordered by hash, so that two writers cannot deadlock."""
    if pieces:
        rows = [{"hash": key, "content": pieces[key]} for key in sorted(pieces)]
        connection = session.connection()
        connection.execute(_PIECE_INSERTS[connection.dialect.name], rows)


def _hash_text(text: str) -> str:
    # A lone surrogate is hashed as well; the column then refuses it with a clear message.
    return sha256(text.encode(errors="surrogatepass")).hexdigest()
