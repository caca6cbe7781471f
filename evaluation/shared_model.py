"""The model of many questions that are answered in parallel: one budget for all, and errors of its server.

An error of the server, such as a rate limit that outlasted every retry, says nothing about the question: the question
stays unfinished and is asked again.
"""

import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from threading import Condition, Event, Lock, Timer
from typing import TypeVar

from showhow.db.database import Conflict
from showhow.llm.client import ChatClient
from showhow.llm.errors import (
    MAX_ATTEMPTS,
    ChatAuthenticationError,
    ChatError,
    ChatInterrupted,
    ChatModelNotFound,
    ChatQuotaExceeded,
    ChatRateLimited,
    ChatServerError,
    ChatTimeout,
    ChatUnavailable,
    ChatUnreachable,
)
from showhow.llm.types import ChatModel, ChatReply, ChatRequest
from showhow.llm.usage import Usage
from showhow.llm.usage_bounds import DEFAULT_REPLY_BOUND, price_usage
from showhow.option_fields import option
from showhow.runs.branch_workers import RequestNotSent, RunStopped
from showhow.runs.budget import MAX_CONCURRENT_QUESTIONS

PERMANENT_ERRORS = (ChatUnavailable, ChatAuthenticationError, ChatQuotaExceeded, ChatModelNotFound)
"""Errors that every question would meet."""
SERVER_ERRORS = (*PERMANENT_ERRORS, ChatRateLimited, ChatServerError, ChatUnreachable, ChatTimeout, ChatInterrupted)
"""Errors of the model's server or its account, not of the question."""
_DEADLINE_MARGIN = 1.0
"""Seconds by which a request ends before the time limit of its question, so that its error is known at the limit."""
_CONCURRENCY_INTERVAL = 1.0
"""Seconds after which a change of the number of questions at the same time takes effect."""
_RESERVATION_INTERVAL = 0.2
"""Seconds after which a request that waits for room looks whether no request is sent any more."""
_FIRST_PAUSE, _LONGEST_PAUSE = 5.0, 60.0
"""Seconds between two rounds over the unfinished questions."""

ItemT = TypeVar("ItemT")
ResultT = TypeVar("ResultT")


def ignore_note(_note: str) -> None:
    """The default callback, which does nothing."""


@dataclass(frozen=True, slots=True)
class TotalLimits:
    """The limits of all questions together; None for no limit."""

    money: float | None = option(
        None,
        "Send no request that could make all questions together cost more US dollars; one whose reply is lost "
        "counts with the most that it can cost.",
        label="Stop after (US dollars)",
        flag="--most-money",
        minimum=0,
    )
    tokens: int | None = option(
        None,
        "Send no request that could make all questions together use more tokens; one whose reply is lost counts "
        "with the most that it can use.",
        flag="--most-tokens",
        minimum=1,
    )
    """Input and output tokens of all model calls."""
    seconds: float | None = option(
        None,
        "Stop after this many seconds; until then, questions that the server failed are retried.",
        flag="--most-seconds",
        minimum=1,
    )
    """Since the work was started or continued."""


class SharedModel:
    """Guards the model of all questions; thread-safe.

    Once a limit is reached, or the model is not available, no request is sent. The most that a request can use is
    reserved before it is sent, so that the requests under way never exceed the money or the tokens together.
    """

    def __init__(
        self,
        chat: ChatClient | None,
        limits: TotalLimits,
        stop: Event,
        *,
        used: Iterable[Usage] = (),
        on_note: Callable[[str], None] = ignore_note,
    ) -> None:
        """`used` is the usage of earlier requests, which the limits include; Conflict if a cost cannot be limited."""
        self._chat = chat
        self._limits = limits
        self._stop = stop
        self._on_note = on_note
        self._lock = Lock()
        self._is_settled = Condition(self._lock)
        self._reserved: list[tuple[float, int]] = []
        """The US dollars and tokens that each request under way can use."""
        self._missing_room: str | None = None
        if limits.money is not None and chat is not None and chat.price is None:
            raise Conflict(
                f"the price of {chat.name} is unknown, so the cost cannot be limited; set prices in its profile, or "
                "SHOWHOW_MODEL_PRICE"
            )
        self.used = sum((self._bound_earlier(usage) for usage in used if usage.calls), Usage())
        self.error: str | None = None
        """Why the model is not available for any question; None while it is."""
        self.server_errors: Counter[str] = Counter()
        """The errors for which questions stayed unfinished in this round."""
        self.asks_again = False
        """Whether unfinished questions are asked again later, however many errors of the server follow each other."""
        self._successive_errors = 0
        self._is_pausing = False
        self._deadline: float | None = None

    def guard(self, question: str) -> ChatClient:
        """The client for one question, which raises RunStopped where the question has to be asked again later."""
        if self._chat is None:
            raise ValueError("there is no model to guard")
        seconds = self._chat.seconds
        return self._chat.with_model_wrapper(lambda model: _GuardedModel(model, self, question, seconds))

    @property
    def reached_limit(self) -> str | None:
        """The limit that is reached, as a sentence; None if there is none."""
        if (reason := self._missing_room or self._find_missing_room((), 0.0, 0)) is not None:
            return reason
        if self._deadline is not None and time.monotonic() >= self._deadline:
            return f"the limit of {self._limits.seconds:g} seconds for all questions is reached"
        return None

    def _find_missing_room(self, reserved: Sequence[tuple[float, int]], money: float, tokens: int) -> str | None:
        """Why a request that can use so much is not sent, as a sentence; None if both limits leave room for it.

        `reserved` is what the requests under way can use.
        """
        held = (sum(amount for amount, _ in reserved), sum(amount for _, amount in reserved))
        reported = (self.used.cost or 0.0, (self.used.input_tokens or 0) + (self.used.output_tokens or 0))
        limits = (
            (self._limits.money, self.used.max_cost or 0.0, reported[0], held[0], money, "${:,.4g}"),
            (self._limits.tokens, self.used.max_tokens or 0, reported[1], held[1], tokens, "{:,} tokens"),
        )
        for limit, used, known, open_amount, most, style in limits:
            if limit is not None and (used >= limit or used + open_amount + most > limit):
                unreported = self.used.unreported_calls
                after = f"after {self.used.calls:,} requests" + (
                    f": {style.format(known)} as reported, and at most {style.format(used - known)} of {unreported:,} "
                    "whose tokens no reply reported"
                    if unreported
                    else ""
                )
                further = f"; another one can use up to {style.format(most)}" if used < limit else ""
                return f"the limit of {style.format(limit)} for all questions is reached {after}{further}"
        return None

    @contextmanager
    def reserve(self, request: ChatRequest) -> Iterator[None]:
        """Hold the most that a request can use while it is under way; wait while other requests hold what is left.

        RequestNotSent if a limit leaves no room for it, or if no request is sent any more.
        """
        bound = self._price(request, Usage("", 1, 0, 0, unreported_calls=1), None)
        most = (bound.max_cost or 0.0, bound.max_tokens or 0)
        with self._is_settled:
            while self.accepts_requests and (reason := self._find_missing_room(self._reserved, *most)) is not None:
                if not self._reserved:
                    self._missing_room = reason
                self._is_settled.wait(_RESERVATION_INTERVAL)
            if not self.accepts_requests:
                raise RequestNotSent
            self._reserved.append(most)
        try:
            yield
        finally:
            with self._is_settled:
                self._reserved.remove(most)
                self._is_settled.notify_all()

    @property
    def reason_for_stopping(self) -> str | None:
        """Why questions are unfinished, as a sentence: a limit, or the errors of the server; None if it is neither."""
        if self.reached_limit is not None:
            return self.reached_limit
        return f"questions stayed unfinished: {format_errors(self.server_errors)}" if self.server_errors else None

    @property
    def is_closed(self) -> bool:
        """Whether no further request is sent."""
        return self._stop.is_set() or self.error is not None or self.reached_limit is not None

    @property
    def accepts_requests(self) -> bool:
        """Whether a request is sent now; between two rounds over the questions none is."""
        return not self._is_pausing and not self.is_closed

    @contextmanager
    def time_limit(self) -> Iterator[None]:
        """Stop all questions when the time limit is reached."""
        if self._limits.seconds is None:
            yield
            return
        self._deadline = time.monotonic() + self._limits.seconds
        timer = Timer(self._limits.seconds, self._stop.set)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    @property
    def retry_delay(self) -> float:
        """Seconds until a question that an error left unfinished is asked again by workers; 0 without an error."""
        errors = self._successive_errors
        return min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** (errors - 1)) if errors else 0.0

    def pause_before_retry(self, rounds: int) -> bool:
        """Wait before unfinished questions are asked again; False if that is not to be done.

        Without a time limit the caller starts it again, since each question was retried up to its own time limit.
        """
        if not self.server_errors or self.is_closed or self._deadline is None:
            return False
        pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0**rounds)
        if time.monotonic() + pause >= self._deadline:
            return False
        self._on_note(f"{format_errors(self.server_errors)}; the unfinished questions are asked again in {pause:.0f} s")
        self._stop.wait(pause)
        with self._lock:
            self.server_errors.clear()
            self._successive_errors, self._is_pausing = 0, False
        return not self.is_closed

    def count_reply(self, request: ChatRequest, reply: ChatReply, question: str) -> None:
        """Count the usage of a reply."""
        with self._lock:
            self._successive_errors = 0
        self._count(request, reply.usage, reply, question)

    def count_error(self, request: ChatRequest, error: ChatError, question: str) -> None:
        """Count what a failed request may have used."""
        attempts = error.unreported_attempts + error.usage_unknown
        if attempts:
            self._count(request, Usage("", 1, 0, 0, unreported_calls=attempts), None, question)

    def register_server_error(self, error: ChatError) -> None:
        """Note an error for which a question stays unfinished; the round ends if every question would meet it."""
        with self._lock:
            self.server_errors[str(error)] += 1
            self._successive_errors += 1
            is_for_all = self._successive_errors >= MAX_ATTEMPTS and not self.asks_again
            if isinstance(error, PERMANENT_ERRORS) or (is_for_all and self._deadline is None):
                self.error = self.error or str(error)
                self._stop.set()
            self._is_pausing |= is_for_all

    def _price(self, request: ChatRequest, usage: Usage, reply: ChatReply | None) -> Usage:
        """The usage of one request with its cost and bounds."""
        price = self._chat.price if self._chat else None
        name = self._chat.name if self._chat else ""
        limit = self._chat.parameters.get("reply_limit") if self._chat else None
        return price_usage(replace(usage, model=name, calls=1), price, request, reply, limit)

    def _count(self, request: ChatRequest, usage: Usage, reply: ChatReply | None, question: str) -> None:
        name = self._chat.name if self._chat else ""
        counted = self._price(request, usage, reply)
        if counted.unreported_calls:
            tokens = (counted.max_tokens or 0) - (usage.max_tokens or 0)
            cost = None if counted.cost_bound is None else counted.cost_bound - (counted.cost or 0.0)
            most = f"{tokens:,} tokens" + ("" if cost is None else f" and ${cost:.4g}")
            self._on_note(f"{name} reported no tokens for a request of {question!r}; it counts as at most {most}")
        with self._lock:
            self.used += counted

    def _bound_earlier(self, usage: Usage) -> Usage:
        """The usage of earlier requests with its bounds; of a request that reported nothing, the largest possible."""
        price = self._chat.price if self._chat else None
        tokens = usage.max_tokens
        if tokens is None:
            tokens = usage.calls * DEFAULT_REPLY_BOUND * 2
            usage = replace(usage, unreported_calls=usage.unreported_calls or usage.calls, token_bound=tokens)
        if usage.max_cost is None and price is not None:
            cost = price.cost_of(usage)
            usage = replace(usage, cost_bound=price.max_cost_of(tokens // 2, tokens // 2) if cost is None else cost)
        return usage


class _GuardedModel:
    """A model of one question that tells errors of the server from those of the question."""

    def __init__(self, model: ChatModel, shared: SharedModel, question: str, full_seconds: float) -> None:
        self._model = model
        self._shared = shared
        self._question = question
        self._full_seconds = full_seconds

    def reply(self, request: ChatRequest, seconds: float) -> ChatReply:
        """Return the model's reply; RunStopped if the question has to be asked again later."""
        if not self._shared.accepts_requests:
            raise RequestNotSent
        started = time.monotonic()
        with self._shared.reserve(request):
            return self._send(request, max(seconds - (time.monotonic() - started), _DEADLINE_MARGIN))

    def _send(self, request: ChatRequest, seconds: float) -> ChatReply:
        try:
            reply = self._model.reply(request, seconds - min(_DEADLINE_MARGIN, 0.1 * seconds))
        except ChatError as error:
            self._shared.count_error(request, error, self._question)
            # A request that got less time than it usually has met the time limit of its question.
            is_own_limit = isinstance(error, ChatTimeout) and seconds < self._full_seconds
            if not isinstance(error, SERVER_ERRORS) or is_own_limit:
                raise
            self._shared.register_server_error(error)
            raise RunStopped from error
        self._shared.count_reply(request, reply, self._question)
        return reply


def answer_in_parallel(
    items: Sequence[ItemT],
    answer: Callable[[ItemT], ResultT | None],
    shared: SharedModel,
    concurrency: Callable[[], int],
    stop: Event,
) -> Iterator[ResultT]:
    """Yield the results as they come; an item without a result is tried again until the time limit of all.

    `concurrency` says how many items may be at work, at most MAX_CONCURRENT_QUESTIONS; it is asked again and
    again, and while it says 0, none is begun. An exception of `answer`, or one in the caller, stops the running items.
    """
    pending = list(range(len(items)))
    with shared.time_limit():
        for rounds in count():
            unfinished: set[int] = set()
            for index, result in _answer_once(items, pending, answer, concurrency, stop):
                if result is None:
                    unfinished.add(index)
                else:
                    yield result
            pending = sorted(unfinished)
            if not pending or not shared.pause_before_retry(rounds):
                return


def _answer_once(
    items: Sequence[ItemT],
    indexes: Iterable[int],
    answer: Callable[[ItemT], ResultT | None],
    concurrency: Callable[[], int],
    stop: Event,
) -> Iterator[tuple[int, ResultT | None]]:
    """Yield the index and the result of each of these items as they come."""
    waiting = deque(indexes)
    running: dict[Future[ResultT | None], int] = {}
    with ThreadPoolExecutor(MAX_CONCURRENT_QUESTIONS) as pool:
        try:
            while waiting or running:
                # Once it is stopped, each item that is left ends at once, without a result.
                allowed = MAX_CONCURRENT_QUESTIONS if stop.is_set() else min(concurrency(), MAX_CONCURRENT_QUESTIONS)
                while waiting and len(running) < allowed:
                    index = waiting.popleft()
                    running[pool.submit(answer, items[index])] = index
                if not running:
                    stop.wait(_CONCURRENCY_INTERVAL)
                    continue
                for future in wait(running, _CONCURRENCY_INTERVAL, FIRST_COMPLETED).done:
                    yield running.pop(future), future.result()
        finally:
            if running:
                stop.set()


def format_errors(errors: Counter[str]) -> str:
    """The most frequent errors with their numbers, in one line."""
    return "; ".join(f"{message.rstrip('.')} ({number:,}x)" for message, number in errors.most_common(3))
