"""The client of a language model: retries, deadline, usage, and a recorder for every request.

    chat = build_chat_client(ModelProfile("openai:gpt-4.1"))
    reply = chat.with_purpose("step").ask([Message("user", "Which city?")])

The model itself is LangChain's (llm/langchain_model.py); it loads with the first request. Every failure is a ChatError
with a message of one sentence (llm/errors.py).
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from threading import Lock
from typing import Any, Protocol

from llm.errors import ChatEmptyReply, ChatError, ChatRateLimited
from llm.types import (
    DEFAULT_TIMEOUT_SECONDS,
    ChatModel,
    ChatReply,
    ChatRequest,
    Message,
    ModelProfile,
    OutgoingRequest,
    ToolSpec,
)
from llm.usage import TokenPrice, Usage

MAX_ATTEMPTS = 4
DEFAULT_PURPOSE = "request"
_INITIAL_BACKOFF_SECONDS = 0.5
_MAX_BACKOFF_SECONDS = 8.0


class ModelCallRecorder(Protocol):
    """Stores each request before it is sent, and its reply before the caller gets it; called from any thread.

    Retries of a request belong to one call. An exception of `begin` stops the request, one of `complete` withholds the
    reply; both reach the caller of `ask`.
    """

    def begin(self, request: OutgoingRequest) -> Any:
        """Store the request, and return a handle for `complete` or `fail`."""

    def complete(self, handle: Any, reply: ChatReply) -> None:
        """Store the reply, which has the usage and the seconds of the call."""

    def fail(self, handle: Any, error: BaseException) -> None:
        """Store that there is no reply; a ChatError has the usage of the call."""


class ChatClient:
    """A language model that many threads may ask at the same time."""

    def __init__(
        self,
        name: str,
        load: Callable[[], ChatModel],
        *,
        seconds: float = DEFAULT_TIMEOUT_SECONDS,
        price: TokenPrice | None = None,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.seconds = seconds
        self.price = price
        self.parameters: Mapping[str, Any] = parameters or {}
        """What determines a reply besides the request: address and temperature. Never a key."""
        self.known_limitations: set[str] = set()
        """What callers learned about the server; shared by every client that was derived from this one."""
        self._load = load
        self._purpose = DEFAULT_PURPOSE
        self._recorder: ModelCallRecorder | None = None
        self._meter = _UsageMeter()

    def with_new_meter(self) -> "ChatClient":
        """Return a client of the same model whose usage starts at zero."""
        derived = copy(self)
        derived._meter = _UsageMeter()
        return derived

    def with_purpose(self, purpose: str) -> "ChatClient":
        """Return a client with the same meter whose requests are recorded as made for this purpose: "step" ..."""
        derived = copy(self)
        derived._purpose = purpose
        return derived

    def with_model_wrapper(self, wrap: Callable[[ChatModel], ChatModel]) -> "ChatClient":
        """Return a client whose usage starts at zero and whose model is `wrap(model)`, called once."""
        derived = self.with_new_meter()
        derived._load = _load_once(lambda: wrap(self._load()))
        return derived

    def recording(self, recorder: ModelCallRecorder) -> "ChatClient":
        """Return a client whose usage starts at zero and whose requests the recorder stores.

        Clients derived from it are recorded too.
        """
        derived = self.with_new_meter()
        derived._recorder = recorder
        return derived

    @property
    def total_usage(self) -> Usage:
        """The usage of all requests of this client, failed ones included."""
        return self._meter.total_usage

    def ask(
        self,
        messages: Sequence[Message],
        *,
        stop: Sequence[str] = (),
        tools: Sequence[ToolSpec] = (),
        on_text: Callable[[str], None] | None = None,
    ) -> ChatReply:
        """Return the model's reply within the client's `seconds`, retries included; `on_text` streams its text.

        A failed request is retried if that may help and no text was streamed yet. The text ends before the first of
        `stop`. ChatError if there is no reply; its `usage` is what the request took all the same.
        """
        request = ChatRequest(messages, stop, tools, on_text)
        if self._recorder is None:
            return self._request_reply(request)
        recorder = self._recorder
        handle = recorder.begin(OutgoingRequest.from_request(self._purpose, self.name, request, self.parameters))
        try:
            reply = self._request_reply(request)
        except BaseException as error:
            recorder.fail(handle, error)
            raise
        recorder.complete(handle, reply)
        return reply

    def _request_reply(self, request: ChatRequest) -> ChatReply:
        model = self._load()
        started = time.monotonic()
        try:
            reply = self._request_with_retries(model, request, started + self.seconds)
        except ChatError as error:
            tokens = None if error.usage_unknown else 0
            error.usage = self._record_usage(started, tokens, tokens)
            raise
        usage = self._record_usage(started, reply.usage.input_tokens, reply.usage.output_tokens)
        if not reply.text.strip() and not reply.calls:
            raise _empty_reply_error(self.name, reply.stopped, usage)
        return ChatReply(reply.text, reply.calls, usage, reply.stopped)

    def _request_with_retries(self, model: ChatModel, request: ChatRequest, deadline: float) -> ChatReply:
        attempt = 0
        while True:
            attempt += 1
            try:
                return model.reply(request, deadline - time.monotonic())
            except ChatError as error:
                wait = error.retry_after if error.retry_after is not None else _backoff_seconds(attempt)
                if not error.retryable or attempt == MAX_ATTEMPTS:
                    raise
                if time.monotonic() + wait > deadline:
                    raise _deadline_error(self.name, error, wait) from None
            time.sleep(wait)

    def _record_usage(self, started: float, input_tokens: int | None, output_tokens: int | None) -> Usage:
        cost = self.price.cost_of(input_tokens, output_tokens) if self.price else None
        usage = Usage(self.name, 1, input_tokens, output_tokens, time.monotonic() - started, cost)
        self._meter.add(usage)
        return usage


class _UsageMeter:
    """Adds up the usage of requests from many threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self.total_usage = Usage()

    def add(self, usage: Usage) -> None:
        with self._lock:
            self.total_usage += usage


def build_chat_client(profile: ModelProfile) -> ChatClient:
    """Return a client of that model; nothing is loaded or checked before the first request."""

    def load() -> ChatModel:
        from llm.langchain_model import load_model  # noqa: PLC0415 - LangChain takes a second to import

        return load_model(profile)

    return ChatClient(
        profile.name,
        _load_once(load),
        seconds=profile.seconds,
        price=profile.price,
        parameters=profile.parameters,
    )


def _load_once(load: Callable[[], ChatModel]) -> Callable[[], ChatModel]:
    lock = Lock()
    loaded: list[ChatModel] = []

    def load_or_return() -> ChatModel:
        with lock:
            if not loaded:
                loaded.append(load())
            return loaded[0]

    return load_or_return


def _backoff_seconds(attempt: int) -> float:
    """Exponential backoff with jitter, for servers that send no Retry-After."""
    return min(_MAX_BACKOFF_SECONDS, _INITIAL_BACKOFF_SECONDS * 2.0 ** (attempt - 1)) * random.uniform(0.5, 1.5)  # noqa: S311 - no secret


def _deadline_error(name: str, error: ChatError, wait: float) -> ChatError:
    if isinstance(error, ChatRateLimited):
        return ChatRateLimited(
            f"{name} takes no more requests for another {wait:.0f} s; try again then.", error.retry_after
        )
    return error


def _empty_reply_error(name: str, stopped: str, usage: Usage) -> ChatEmptyReply:
    if stopped == "length":
        error = ChatEmptyReply(f"{name} used up its tokens before it said a word; allow it more, or ask it for less.")
    else:
        error = ChatEmptyReply(f"{name} replied with an empty message; ask again, or use another model.")
    error.usage = usage
    return error
