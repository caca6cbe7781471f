"""The client of a language model: deadline, retries within a rate limit, usage, and a recorder for every request.

    chat = build_chat_client(ModelProfile("openai:gpt-4.1"))
    reply = chat.with_purpose("step").ask([Message("user", "Which city?")])

The model itself is LangChain's (llm/langchain_model.py); it loads with the first request. Every failure is a ChatError
with a message of one sentence (llm/errors.py).
"""

import logging
import random
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from math import inf
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from showhow.guard.redaction import RedactingStream, Redactor, redactor_of
from showhow.llm.errors import (
    MAX_ATTEMPTS,
    ChatEmptyReply,
    ChatError,
    ChatInterrupted,
    ChatInvalidReply,
    ChatRateLimited,
    ChatServerError,
    ChatTimeout,
    ChatUnreachable,
)
from showhow.llm.limitations import AdaptingModel, ServerLimitations
from showhow.llm.rate_limit_headers import parse_budgets
from showhow.llm.rate_limiter import (
    LimitsBackend,
    ModelRateLimiter,
    RequestLimits,
    StartedRequest,
    get_rate_limiter_of_model,
)
from showhow.llm.types import (
    ChatModel,
    ChatReply,
    ChatRequest,
    FinishReason,
    Message,
    ModelProfile,
    ModelToolCall,
    OutgoingRequest,
    ToolSpec,
)
from showhow.llm.usage import Usage
from showhow.llm.usage_bounds import bound_prompt_tokens, price_usage
from showhow.worlds.text_normalization import make_storable, replace_unstorable

if TYPE_CHECKING:
    from showhow.llm.telemetry import Telemetry

_log = logging.getLogger(__name__)
DEFAULT_PURPOSE = "request"
_INITIAL_BACKOFF_SECONDS = 0.5
_MAX_BACKOFF_SECONDS = 8.0
_REPETITION_SECONDS = 60.0
"""How long a failure that a server repeated is not about to end."""


class ModelCallRecorder(Protocol):
    """Stores each request before it is sent, and its reply before the caller gets it; called from any thread.

    Retries of a request belong to one call. An exception of `begin` stops the request, one of `complete` withholds the
    reply; both reach the caller of `ask`.
    """

    def take_unused_reply(self, request: OutgoingRequest) -> ChatReply | None:
        """Return a reply to this request that was stored and paid but never used, and each only once; else None."""

    def begin(self, request: OutgoingRequest, most: Usage) -> Any:
        """Store the request with the most that it can use, and return a handle for `complete` or `fail`."""

    def complete(self, handle: Any, reply: ChatReply) -> None:
        """Store the reply, which has the usage and the seconds of the call."""

    def fail(self, handle: Any, error: BaseException) -> None:
        """Store that there is no reply; a ChatError has the usage of the call."""


class CallGate(Protocol):
    """Is asked before each request, and gets the usage of each, also of a failed one; called from any thread."""

    def begin(self, purpose: str) -> None:
        """Note that a request is about to be sent; an exception stops it and reaches the caller of `ask`."""

    def end(self, purpose: str, usage: Usage) -> None:
        """Note what a request used."""


class ChatClient:
    """A client of a language model; thread-safe.

    `redactor` removes secrets from replies, also from streamed ones, and from errors; by default the profile's key.
    """

    def __init__(
        self,
        profile: ModelProfile,
        load: Callable[[], ChatModel],
        redactor: Redactor | None = None,
        limitations: ServerLimitations | None = None,
    ) -> None:
        self.profile = profile
        self.name = profile.model
        self.seconds = profile.seconds
        """The time limit of a request without a deadline, including retries."""
        self.price = profile.price
        self.parameters: Mapping[str, Any] = profile.parameters
        """What determines a reply besides the request: address and temperature, never a key."""
        self.known_limitations = ServerLimitations(profile) if limitations is None else limitations
        """What the server is known to refuse; shared by all clients derived from this one."""
        self.redactor = redactor or redactor_of((profile.api_key,) if profile.api_key else ())
        self._load = load
        self._deadline: float | None = None
        self._purpose = DEFAULT_PURPOSE
        self._recorder: ModelCallRecorder | None = None
        self._telemetry: Telemetry | None = None
        self._gate: CallGate | None = None
        self._meter = _UsageMeter()

    def with_new_meter(self) -> "ChatClient":
        """Return a client of the same model whose usage starts at zero."""
        derived = copy(self)
        derived._meter = _UsageMeter()
        return derived

    def with_purpose(self, purpose: str) -> "ChatClient":
        """Return a client with the same meter whose requests are recorded with this purpose, such as "step"."""
        derived = copy(self)
        derived._purpose = purpose
        return derived

    def with_deadline(self, deadline: float) -> "ChatClient":
        """Return a client with the same meter that retries its requests until this moment (of time.monotonic)."""
        derived = copy(self)
        derived._deadline = deadline
        return derived

    def with_gate(self, gate: CallGate) -> "ChatClient":
        """Return a client with the same meter whose requests this gate counts and may stop."""
        derived = copy(self)
        derived._gate = gate
        return derived

    def with_model_wrapper(self, wrap: Callable[[ChatModel], ChatModel]) -> "ChatClient":
        """Return a client whose usage starts at zero and whose model is `wrap(model)`, called once."""
        derived = self.with_new_meter()
        derived._load = _load_once(lambda: wrap(self._load()))
        return derived

    def recording(self, recorder: ModelCallRecorder) -> "ChatClient":
        """Return a client whose usage starts at zero and whose requests are stored by the recorder.

        Requests of clients derived from it are stored as well.
        """
        derived = self.with_new_meter()
        derived._recorder = recorder
        return derived

    def tracing(self, telemetry: "Telemetry | None") -> "ChatClient":
        """Return a client with the same meter that writes a span of each request; None writes none."""
        derived = copy(self)
        derived._telemetry = telemetry
        return derived

    @property
    def total_usage(self) -> Usage:
        """The usage of all requests of this client, including failed ones."""
        return self._meter.total_usage

    def ask(  # noqa: PLR0913 - each is an option of the request
        self,
        messages: Sequence[Message],
        *,
        stop: Sequence[str] = (),
        tools: Sequence[ToolSpec] = (),
        on_text: Callable[[str], None] | None = None,
        reply_schema: Mapping[str, Any] | None = None,
        temperature: float | None = None,
        logprobs: bool = False,
    ) -> ChatReply:
        """Return the model's reply before the client's deadline, or within `seconds`; `on_text` streams its text.

        A failed request is retried if the error is retryable and no text was streamed yet. The text ends before the
        first stop sequence, and all texts can be stored. ChatError if there is no reply; its `usage` is that of the
        failed request. A reply with the finish reason LENGTH is cut off. With a `reply_schema` (JSON Schema) the server
        holds the reply to that form; ChatBadRequest if it cannot. A `temperature` replaces that of the profile;
        ChatBadRequest if the model accepts no other. With `logprobs` the reply has the log-probabilities of its tokens,
        as far as the server gives them; ChatBadRequest if it refuses.
        """
        streamed = RedactingStream(self.redactor)
        request = ChatRequest(
            messages,
            stop,
            tools,
            None if on_text is None else lambda text: _pass_on(streamed.feed(text), on_text),
            reply_schema=reply_schema,
            temperature=temperature,
            logprobs=logprobs,
        )
        if self._telemetry is None:
            reply = self._record_reply(request)
        else:
            with self._telemetry.model_call(self.name, self._purpose, self.parameters, request) as span:
                reply = self._record_reply(request)
                span.set_reply(reply)
        if on_text is not None:
            _pass_on(streamed.finish(), on_text)
        return reply

    def _record_reply(self, request: ChatRequest) -> ChatReply:
        if self._gate is not None:
            self._gate.begin(self._purpose)
        if self._recorder is None:
            return self._request_reply(request)
        recorder = self._recorder
        outgoing = OutgoingRequest.from_request(self._purpose, self.name, request, self.parameters)
        unused = recorder.take_unused_reply(outgoing)
        if unused is not None:
            self._add_usage(unused.usage)
            if request.on_text is not None and unused.text:
                request.on_text(unused.text)
            return unused
        unreported = Usage(self.name, 1, unreported_calls=1)
        most = price_usage(unreported, self.price, request, None, self.parameters.get("reply_limit"))
        handle = recorder.begin(outgoing, most)
        try:
            reply = self._request_reply(request)
        # Every exception, also KeyboardInterrupt, is recorded, because the call must not stay open, and raised again.
        except BaseException as error:
            recorder.fail(handle, error)
            raise
        recorder.complete(handle, reply)
        return reply

    def _request_reply(self, request: ChatRequest) -> ChatReply:
        model = self._load()
        started = time.monotonic()
        seconds = self.seconds if self._deadline is None else max(0.0, self._deadline - started)
        try:
            reply = model.reply(request, seconds)
        except ChatError as error:
            error.args = tuple(map(self.redactor.redact_json, error.args))
            tokens = None if error.usage_unknown else 0
            attempts = error.unreported_attempts + error.usage_unknown
            error.usage = self._record_usage(request, Usage("", 1, tokens, tokens, unreported_calls=attempts), started)
            raise
        usage = self._record_usage(request, reply.usage, started, reply)
        if not reply.text.strip() and not reply.calls:
            raise _empty_reply_error(self.name, reply.stopped, usage)
        return replace(_redact_reply(_make_reply_storable(reply), self.redactor), usage=usage)

    def _record_usage(
        self, request: ChatRequest, reported: Usage, started: float, reply: ChatReply | None = None
    ) -> Usage:
        usage = replace(reported, model=self.name, calls=1, seconds=time.monotonic() - started)
        usage = price_usage(usage, self.price, request, reply, self.parameters.get("reply_limit"))
        self._add_usage(usage)
        return usage

    def _add_usage(self, usage: Usage) -> None:
        self._meter.add(usage)
        if self._gate is not None:
            self._gate.end(self._purpose, usage)


class _UsageMeter:
    """Adds up the usage of requests from many threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.total_usage = Usage()

    def add(self, usage: Usage) -> None:
        with self._lock:
            self.total_usage += usage


def build_chat_client(
    profile: ModelProfile,
    limits_place: Path | LimitsBackend | None = None,
    redactor: Redactor | None = None,
    limitations_file: Path | None = None,
    lent: ChatModel | None = None,
) -> ChatClient:
    """Return a client of that model, or of the one that a program lends; nothing is loaded before the first request.

    All clients of a model share its rate limit, also those of other processes with the same place: a home, or what
    machines share. With a file, what its server refuses is remembered.
    """
    limitations = ServerLimitations(profile, limitations_file)

    def load() -> ChatModel:
        from showhow.llm.langchain_model import load_model  # noqa: PLC0415 - LangChain takes a second to import

        model = lent or load_model(profile)
        limiter = get_rate_limiter_of_model(f"{profile.model} at {address}" if address else profile.model, limits_place)
        limits = RequestLimits(
            profile.requests_per_minute and profile.requests_per_minute / 60,
            profile.tokens_per_minute and profile.tokens_per_minute / 60,
            profile.concurrency,
        )
        return AdaptingModel(RetryingModel(model, limiter, profile.seconds, limits), limitations)

    address = profile.parameters["base_url"]
    return ChatClient(profile, _load_once(load), redactor, limitations)


def _load_once(load: Callable[[], ChatModel]) -> Callable[[], ChatModel]:
    lock = Lock()
    loaded: list[ChatModel] = []

    def load_or_return() -> ChatModel:
        with lock:
            if not loaded:
                loaded.append(load())
            return loaded[0]

    return load_or_return


def _make_reply_storable(reply: ChatReply) -> ChatReply:
    calls = tuple(
        replace(call, name=replace_unstorable(call.name), arguments=make_storable(call.arguments))
        for call in reply.calls
    )
    text, thoughts = replace_unstorable(reply.text), replace_unstorable(reply.thoughts)
    return replace(reply, text=text, calls=calls, thoughts=thoughts)


def _redact_reply(reply: ChatReply, redactor: Redactor) -> ChatReply:
    """The reply without secrets; log-probabilities are of another text if there was one."""
    calls = tuple(
        ModelToolCall(redactor.redact(call.id), redactor.redact(call.name), redactor.redact_json(call.arguments))
        for call in reply.calls
    )
    text, thoughts = redactor.redact(reply.text), redactor.redact(reply.thoughts)
    logprobs = reply.logprobs if text == reply.text else None
    return replace(reply, text=text, calls=calls, thoughts=thoughts, logprobs=logprobs)


def _pass_on(text: str, on_text: Callable[[str], None]) -> None:
    if text:
        on_text(text)


def _empty_reply_error(name: str, stopped: str, usage: Usage) -> ChatEmptyReply:
    if stopped == FinishReason.LENGTH:
        error = ChatEmptyReply(f"{name} used up its tokens before it said a word; allow it more, or ask it for less.")
    else:
        error = ChatEmptyReply(f"{name} replied with an empty message; ask again, or use another model.")
    error.usage = usage
    return error


class RetryingModel:
    """A model whose requests keep to its rate limit; failed ones are retried. Thread-safe.

    An attempt takes at most `attempt_seconds`; waiting for the rate limit is not part of it.
    """

    def __init__(
        self, model: ChatModel, limiter: ModelRateLimiter, attempt_seconds: float, limits: RequestLimits
    ) -> None:
        self._model = model
        self._limiter = limiter
        self._attempt_seconds = attempt_seconds
        self._limits = limits
        self._was_reached = False
        self._repeated: dict[object, float] = {}
        """When the server last failed with a sentence that it had repeated, so that a next request is told at once."""

    def reply(self, request: ChatRequest, seconds: float) -> ChatReply:
        """Return the reply within `seconds`; ChatError if the error is not retryable or no time is left.

        `usage.unreported_calls` of the reply counts failed attempts that may have spent tokens.
        """
        deadline = time.monotonic() + seconds
        tokens = bound_prompt_tokens(request)
        attempts: Counter[object] = Counter()
        unreported, attempt_seconds = 0, self._attempt_seconds
        is_whole = request.on_text is None
        earlier: ChatError | None = None
        while True:
            started: StartedRequest | None = None
            try:
                with self._limiter.slot(self._limits, deadline):
                    started = self._limiter.acquire(tokens, self._limits, deadline)
                    attempt_seconds = min(self._attempt_seconds, deadline - time.monotonic())
                    reply = self._send(
                        replace(request, on_text=None) if is_whole else request, started, attempt_seconds
                    )
            except ChatError as error:
                failure = error
            else:
                if is_whole and request.on_text is not None:
                    _pass_on(reply.text, request.on_text)
                return replace(reply, usage=replace(reply.usage, unreported_calls=unreported))
            failure.unreported_attempts = unreported
            unreported += failure.usage_unknown
            attempts[failure.counted_as] += 1
            if started is None:
                raise failure
            if isinstance(failure, ChatTimeout) and earlier is not None and attempt_seconds < self._attempt_seconds:
                # The server's failures left this attempt too little time.
                earlier.unreported_attempts = unreported - earlier.usage_unknown
                raise earlier
            self._wait_or_raise(failure, started, attempts[failure.counted_as], deadline)
            earlier = None if isinstance(failure, ChatTimeout) else failure
            # A server that fails once it has begun to stream cannot say why; where it replies in one piece, it can.
            is_broken = isinstance(failure, ChatInterrupted | ChatInvalidReply)
            is_whole = request.on_text is None or (is_broken and not is_whole)

    def _send(self, request: ChatRequest, started: StartedRequest, seconds: float) -> ChatReply:
        reply = self._model.reply(replace(request, on_headers=partial(self._observe_headers, started)), seconds)
        self._was_reached = True
        self._limiter.confirm(started, self._limits, reply.usage.max_tokens)
        return reply

    def _observe_headers(self, started: StartedRequest, headers: Mapping[str, str]) -> None:
        self._limiter.observe_budgets(started, parse_budgets(headers))

    def _wait_or_raise(self, failure: ChatError, started: StartedRequest, attempt: int, deadline: float) -> None:
        """Wait until the request can be sent again, or raise the failure."""
        self._was_reached |= not isinstance(failure, ChatUnreachable)
        is_rate_limited = isinstance(failure, ChatRateLimited)
        if is_rate_limited:
            self._limiter.refuse(started, failure.retry_after)
        # The address of a server that never answered is probably wrong.
        max_attempts = failure.max_attempts if self._was_reached else MAX_ATTEMPTS
        status = failure.status if isinstance(failure, ChatServerError) else None
        now, key = time.monotonic(), failure.counted_as
        is_repeated = status is not None and now < self._repeated.get(key, -inf) + _REPETITION_SECONDS
        if not failure.retryable or is_repeated or (max_attempts is not None and attempt >= max_attempts):
            if status is not None and max_attempts is not None:
                self._repeated[key] = now
            failure.is_refusal |= failure.retryable and status == HTTPStatus.INTERNAL_SERVER_ERROR
            raise failure
        wait = failure.retry_after
        reason = "" if wait is None else ", the time that it names"
        if is_rate_limited:
            # The limiter waits.
            _log.info(
                "%s It is asked again %s.", failure, f"in {wait:.1f} s{reason}" if wait else "when its limit allows"
            )
            return
        if wait is None:
            # A server that is overloaded or starts needs longer than one that failed once.
            wait = _backoff_seconds(attempt) * (4 if (status or 0) > HTTPStatus.INTERNAL_SERVER_ERROR else 1)
        if time.monotonic() + wait > deadline:
            raise failure
        _log.info("%s It is asked again in %.1f s%s.", failure, wait, reason)
        time.sleep(wait)


def _backoff_seconds(attempt: int) -> float:
    """Exponential backoff with jitter, for servers that name no time."""
    return min(_MAX_BACKOFF_SECONDS, _INITIAL_BACKOFF_SECONDS * 2.0 ** (attempt - 1)) * random.uniform(0.5, 1.5)  # noqa: S311 - no secret
