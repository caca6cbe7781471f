"""The language model behind tools and agents: asked with messages, it replies with words or with calls of tools.

It is LangChain's model underneath (llm/langchain_model.py), which loads when the first question is asked. Failures are
ChatErrors of one sentence each (llm/errors.py).
"""

import random
import time
from collections.abc import Callable, Sequence
from threading import Lock

from llm.errors import ChatEmptyReply, ChatError, ChatRateLimited
from llm.types import DEFAULT_TIMEOUT_SECONDS, ChatModel, ChatReply, ChatRequest, Message, ModelProfile, ToolSpec
from llm.usage import TokenPrice, Usage

MAX_ATTEMPTS = 4
_INITIAL_BACKOFF_SECONDS = 0.5
_MAX_BACKOFF_SECONDS = 8.0


class ChatClient:
    """A language model that is asked from many threads at once; `metered` gives one with a meter of its own."""

    def __init__(
        self,
        name: str,
        load: Callable[[], ChatModel],
        *,
        seconds: float = DEFAULT_TIMEOUT_SECONDS,
        price: TokenPrice | None = None,
    ):
        self.name = name
        self.seconds = seconds
        self.price = price
        self.known_limitations: set[str] = set()
        """What those who ask found out about the server; every Chat that was made from this one knows it too."""
        self._load = load
        self._lock = Lock()
        self._total_usage = Usage()

    def with_new_meter(self) -> "ChatClient":
        """The same model with a meter that stands at nothing."""
        other = ChatClient(self.name, self._load, seconds=self.seconds, price=self.price)
        other.known_limitations = self.known_limitations
        return other

    def with_model_wrapper(self, wrap: Callable[[ChatModel], ChatModel]) -> "ChatClient":
        """The same with a meter that stands at nothing, its model asked through what `wrap` makes of it, once."""
        made: list[ChatModel] = []
        making = Lock()

        def once() -> ChatModel:
            with making:
                if not made:
                    made.append(wrap(self._load()))
                return made[0]

        other = self.with_new_meter()
        other._load = once
        return other

    @property
    def total_usage(self) -> Usage:
        """What all calls through this Chat took, failed ones too."""
        return self._total_usage

    def ask(
        self,
        messages: Sequence[Message],
        *,
        stop: Sequence[str] = (),
        tools: Sequence[ToolSpec] = (),
        on_text: Callable[[str], None] | None = None,
        seconds: float | None = None,
    ) -> ChatReply:
        """The model's reply within `seconds`, waits included; given `on_text`, its words are handed over as they come.

        A request that failed is sent again where that may help and no word was handed over yet. The text ends before
        the first of `stop`. A ChatError where there is no reply, its `usage` being what the call took all the same.
        """
        model = self._load()
        started = time.monotonic()
        request = ChatRequest(messages, stop, tools, on_text)
        try:
            reply = self._ask_with_retries(model, request, started + (seconds or self.seconds))
        except ChatError as failed:
            failed.usage = self._record_usage(
                started, None if failed.usage_unknown else 0, None if failed.usage_unknown else 0
            )
            raise
        used = self._record_usage(started, reply.usage.input_tokens, reply.usage.output_tokens)
        if not reply.text.strip() and not reply.calls:
            raise _empty_reply_error(self.name, reply.stopped, used)
        return ChatReply(reply.text, reply.calls, used, reply.stopped)

    def _ask_with_retries(self, model: ChatModel, request: ChatRequest, ends: float) -> ChatReply:
        attempt = 0
        while True:
            attempt += 1
            try:
                return model.reply(request, ends - time.monotonic())
            except ChatError as failed:
                wait = failed.retry_after if failed.retry_after is not None else _backoff_seconds(attempt)
                if not failed.retryable or attempt == MAX_ATTEMPTS:
                    raise
                if time.monotonic() + wait > ends:
                    raise _deadline_error(self.name, failed, wait) from None
            time.sleep(wait)

    def _record_usage(self, started: float, input_tokens: int | None, output_tokens: int | None) -> Usage:
        cost = self.price.cost_of(input_tokens, output_tokens) if self.price else None
        used = Usage(self.name, 1, input_tokens, output_tokens, time.monotonic() - started, cost)
        with self._lock:
            self._total_usage += used
        return used


def build_chat_client(setup: ModelProfile) -> ChatClient:
    """The model of that setup; nothing is loaded or checked before the first question."""
    loading = Lock()
    loaded: list[ChatModel] = []

    def once() -> ChatModel:
        with loading:
            if not loaded:
                from llm.langchain_model import load_model  # noqa: PLC0415 - brings LangChain, which takes a second to import

                loaded.append(load_model(setup))
            return loaded[0]

    return ChatClient(setup.name, once, seconds=setup.seconds, price=setup.price)


def _backoff_seconds(attempt: int) -> float:
    """How long to wait before the next attempt where the server does not say; longer each time, and never the same."""
    return min(_MAX_BACKOFF_SECONDS, _INITIAL_BACKOFF_SECONDS * 2.0 ** (attempt - 1)) * random.uniform(0.5, 1.5)  # noqa: S311 - no secret


def _deadline_error(name: str, failed: ChatError, wait: float) -> ChatError:
    if isinstance(failed, ChatRateLimited):
        return ChatRateLimited(
            f"{name} takes no more requests for another {wait:.0f} s; try again then.", failed.retry_after
        )
    return failed


def _empty_reply_error(name: str, stopped: str, used: Usage) -> ChatEmptyReply:
    if stopped == "length":
        failed = ChatEmptyReply(f"{name} used up its tokens before it said a word; allow it more, or ask it for less.")
    else:
        failed = ChatEmptyReply(f"{name} replied with an empty message; ask again, or use another model.")
    failed.usage = used
    return failed
