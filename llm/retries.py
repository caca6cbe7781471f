"""Sends requests to a model within its rate limit, and retries failed ones until their deadline."""

import random
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from llm.errors import MAX_ATTEMPTS, ChatError, ChatRateLimited, ChatUnreachable
from llm.rate_limiter import ModelRateLimiter, RequestLimits, StartedRequest
from llm.retry_hints import parse_budgets
from llm.token_bounds import bound_prompt_tokens
from llm.types import ChatModel, ChatReply, ChatRequest

_INITIAL_BACKOFF_SECONDS = 0.5
_MAX_BACKOFF_SECONDS = 8.0


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

    def reply(self, request: ChatRequest, seconds: float) -> ChatReply:
        """Return the reply within `seconds`; ChatError if the error is not retryable or no time is left.

        `usage.unreported_calls` of the reply counts failed attempts that may have spent tokens.
        """
        deadline = time.monotonic() + seconds
        tokens = bound_prompt_tokens(request)
        attempts: Counter[type[ChatError]] = Counter()
        unreported = 0
        while True:
            started: StartedRequest | None = None
            try:
                with self._limiter.slot(self._limits, deadline):
                    started = self._limiter.acquire(tokens, self._limits, deadline)
                    reply = self._send(request, started, min(self._attempt_seconds, deadline - time.monotonic()))
            except ChatError as error:
                failure = error
            else:
                return replace(reply, usage=replace(reply.usage, unreported_calls=unreported))
            failure.unreported_attempts = unreported
            unreported += failure.usage_unknown
            attempts[type(failure)] += 1
            if started is None:
                raise failure
            self._wait_or_raise(failure, started, attempts[type(failure)], deadline)

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
        if not failure.retryable or (max_attempts is not None and attempt >= max_attempts):
            raise failure
        if is_rate_limited:
            # The limiter waits.
            return
        wait = _backoff_seconds(attempt) if failure.retry_after is None else failure.retry_after
        if time.monotonic() + wait > deadline:
            raise failure
        time.sleep(wait)


def _backoff_seconds(attempt: int) -> float:
    """Exponential backoff with jitter, for servers that name no time."""
    return min(_MAX_BACKOFF_SECONDS, _INITIAL_BACKOFF_SECONDS * 2.0 ** (attempt - 1)) * random.uniform(0.5, 1.5)  # noqa: S311 - no secret
