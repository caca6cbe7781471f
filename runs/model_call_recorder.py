"""Recorder of model calls: requests are stored before they are sent, and replies before they are used."""

import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import asdict, replace
from itertools import chain
from threading import Lock
from typing import Any
from uuid import UUID

from showhow.db.database import Database
from showhow.db.models import ModelCall
from showhow.db.runs.leases import CallPermission, Lease, open_call, settle_call
from showhow.db.traces.model_calls import (
    ModelReply,
    ModelRequest,
    begin_model_call,
    complete_model_call,
    fail_model_call,
    withdraw_model_call,
)
from showhow.llm.errors import ChatError
from showhow.llm.types import ChatReply, ModelToolCall, OutgoingRequest, TokenLogprob
from showhow.llm.usage import Usage
from showhow.runs.branch_workers import RequestNotSent
from showhow.runs.budget import STEP_PURPOSE_PREFIXES
from showhow.runs.recorders import StoreRecorder
from showhow.worlds.text_normalization import make_storable

_RESERVATION_POLL_SECONDS = 0.25
_current_step_id: ContextVar[UUID | None] = ContextVar("current_step_id", default=None)


@contextmanager
def working_on_step(step_id: UUID) -> Iterator[None]:
    """Link the model requests of this thread's tool or skill to its step."""
    token = _current_step_id.set(step_id)
    try:
        yield
    finally:
        _current_step_id.reset(token)


def current_step() -> UUID | None:
    """The step on whose tool or skill this thread works; None if it works on none."""
    return _current_step_id.get()


class StoreModelCallRecorder:
    """Stores the requests of a run's trace before they are sent, and the replies before they are used; thread-safe."""

    def __init__(self, database: Database, steps: StoreRecorder, lease: Lease | None = None) -> None:
        """With the lease of an attempt, a request is stored only while the lease and the limits of its run allow it."""
        self._database = database
        self._steps = steps
        self._lease = lease
        self._reserved: dict[UUID, tuple[float, int]] = {}
        """What was reserved for each open call of the lease: US dollars and tokens."""
        self._stored_pieces: set[str] = set()
        """The hashes of the pieces of all requests so far."""
        self._lock = Lock()
        self._unused_replies: dict[str, deque[ChatReply]] | None = None
        """By the hash of the request; None before the first request."""

    def take_unused_reply(self, request: OutgoingRequest) -> ChatReply | None:
        """Return the reply that an earlier process stored for this request and did not use, each once; else None."""
        with self._lock:
            if self._unused_replies is None:
                self._unused_replies = self._load_unused_replies()
            # The hash of a long prompt takes a while, and most runs have no unused reply.
            if not self._unused_replies:
                return None
            replies = self._unused_replies.get(to_model_request(request).redacted(self._database.redactor).hash)
            return replies.popleft() if replies else None

    def _load_unused_replies(self) -> dict[str, deque[ChatReply]]:
        replies: dict[str, deque[ChatReply]] = {}
        for call in self._steps.unused_replies:
            replies.setdefault(call.request_hash, deque()).append(to_chat_reply(call))
        return replies

    def begin(self, request: OutgoingRequest, most: Usage) -> UUID:
        """Store the request without secrets, and the most that it can use; return the id of its ModelCall.

        RequestNotSent if a limit of the run's workers is reached; while other requests hold what is left of it, wait.
        """
        stored = to_model_request(request)
        # Any other request decides the next step, and is linked to it when that step begins.
        step_id = current_step() if request.purpose.startswith(STEP_PURPOSE_PREFIXES) else None
        permission = CallPermission.GRANTED
        while permission != CallPermission.STOPPED:
            with self._database.begin() as session:
                if self._lease is not None:
                    permission = open_call(session, self._lease, most.max_cost, most.max_tokens)
                if permission == CallPermission.GRANTED:
                    call = begin_model_call(
                        session,
                        replace(stored, most=most.to_json()),
                        trace_id=self._steps.trace_id,
                        step_id=step_id,
                        stored_pieces=self._stored_pieces,
                    )
                    self._reserved[call.id] = _most_of(most)
            if permission == CallPermission.GRANTED:
                self._stored_pieces.update(chain.from_iterable(call.prompt))
                return call.id
            time.sleep(_RESERVATION_POLL_SECONDS)
        raise RequestNotSent

    def complete(self, handle: UUID, reply: ChatReply) -> None:
        """Store the reply; Conflict if the run was ended or resumed meanwhile, so that the reply is not used."""
        with self._database.begin() as session:
            if self._lease is not None:
                settle_call(session, self._lease, self._reserved.pop(handle), _most_of(reply.usage))
            complete_model_call(session, handle, to_model_reply(reply))

    def fail(self, handle: UUID, error: BaseException) -> None:
        """Store why there is no reply; a request that was not sent is no call."""
        reason, used = to_failure(error)
        usage = error.usage if isinstance(error, ChatError) else None
        with self._database.begin() as session:
            if self._lease is not None:
                settle_call(session, self._lease, self._reserved.pop(handle), _most_of(usage or Usage()))
            if isinstance(error, RequestNotSent):
                withdraw_model_call(session, handle)
            else:
                fail_model_call(session, handle, reason, used)


def _most_of(usage: Usage) -> tuple[float, int]:
    """US dollars and tokens that it can be at most; 0 if unknown, which no run with such a limit allows."""
    return usage.max_cost or 0.0, usage.max_tokens or 0


def to_model_request(request: OutgoingRequest) -> ModelRequest:
    """A request of a client as the ledger stores it."""
    messages, parameters = make_storable(request.messages), make_storable(request.parameters)
    return ModelRequest(request.purpose, request.model, messages, parameters)


def to_chat_reply(call: ModelCall) -> ChatReply:
    """The reply that the ledger stores of a call, as the client gave it."""
    content: dict[str, Any] = call.reply or {}
    calls = tuple(ModelToolCall(**stored) for stored in content["calls"])
    tokens = content.get("logprobs")
    return ChatReply(
        content["text"],
        calls,
        Usage(**(call.usage or {})),
        content["stopped"],
        content.get("thoughts", ""),
        logprobs=None if tokens is None else tuple(TokenLogprob(*token) for token in tokens),
    )


def to_model_reply(reply: ChatReply) -> ModelReply:
    """A reply of a client as the ledger stores it."""
    calls = [asdict(call) for call in reply.calls]
    content: dict[str, Any] = {"text": reply.text, "calls": calls, "stopped": str(reply.stopped)}
    if reply.thoughts:
        content["thoughts"] = reply.thoughts
    if reply.logprobs is not None:
        content["logprobs"] = [[token.start, token.end, token.logprob] for token in reply.logprobs]
    usage = reply.usage
    return ModelReply(make_storable(content), usage.to_json(), usage.cost, usage.seconds)


def to_failure(error: BaseException) -> tuple[str, ModelReply | None]:
    """Why a request has no reply, and what it used nevertheless, as the ledger stores it."""
    usage = error.usage if isinstance(error, ChatError) else None
    used = ModelReply(None, usage.to_json(), usage.cost, usage.seconds) if usage else None
    return make_storable(str(error) or type(error).__name__), used
