"""The language model behind tools and agents: asked with messages, it replies with words or with calls of tools.

It is LangChain's model underneath (tools/chat_model.py), which loads when the first question is asked. Failures are
ChatErrors of one sentence each (tools/chat_errors.py).
"""

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Protocol

from tools.chat_errors import ChatBusy, ChatEmpty, ChatError
from tools.usage import Price, Usage

SECONDS = 120.0
TRIES = 4
_FIRST_WAIT = 0.5
_LONGEST_WAIT = 8.0


@dataclass(frozen=True, slots=True)
class ModelSetup:
    """Which model, as LangChain's init_chat_model names it, or as an OpenAI-compatible server at `base_url` does."""

    name: str
    base_url: str | None = None
    key: str | None = field(default=None, repr=False)
    """For the server at `base_url`; providers' own keys are read by their packages, from the environment."""
    seconds: float = SECONDS
    """How long a reply may take."""
    temperature: float | None = 0.0
    """None leaves it to the provider; some models take no other."""
    price: Price | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call of the model; `arguments` is the raw text where the model wrote no JSON object."""

    id: str
    name: str
    arguments: dict[str, Any] | str


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation; `role` is system, user, assistant (words and calls) or tool (a call's result)."""

    role: str
    text: str
    calls: tuple[Call, ...] = ()
    answers: str = ""
    """Of a tool's message: the id of the call."""


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model replied; `stopped` is why it ended: stop, tool_calls, length, or what else the server says."""

    text: str
    calls: tuple[Call, ...]
    usage: Usage
    stopped: str


class Offered(Protocol):
    """A tool as the model is told of it."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def schema(self) -> Mapping[str, Any]:
        """Its arguments as JSON Schema."""


@dataclass(frozen=True, slots=True)
class Request:
    """One request to a model."""

    messages: Sequence[Message]
    stop: Sequence[str]
    tools: Sequence[Offered]
    on_text: Callable[[str], None] | None


class Model(Protocol):
    """A provider's model, safe to share between threads."""

    def reply(self, request: Request, seconds: float) -> Reply:
        """The reply to one request, sent once; its usage has tokens only. A ChatError where there is none."""


class Chat:
    """A language model that is asked from many threads at once; `metered` gives one with a meter of its own."""

    def __init__(self, name: str, load: Callable[[], Model], *, seconds: float = SECONDS, price: Price | None = None):
        self.name = name
        self.seconds = seconds
        self.price = price
        self.learnt: set[str] = set()
        """What those who ask found out about the server; every Chat that was made from this one knows it too."""
        self._load = load
        self._lock = Lock()
        self._used = Usage()

    def metered(self) -> "Chat":
        """The same model with a meter that stands at nothing."""
        other = Chat(self.name, self._load, seconds=self.seconds, price=self.price)
        other.learnt = self.learnt
        return other

    def through(self, wrap: Callable[[Model], Model]) -> "Chat":
        """The same with a meter that stands at nothing, its model asked through what `wrap` makes of it, once."""
        made: list[Model] = []
        making = Lock()

        def once() -> Model:
            with making:
                if not made:
                    made.append(wrap(self._load()))
                return made[0]

        other = self.metered()
        other._load = once
        return other

    @property
    def used(self) -> Usage:
        """What all calls through this Chat took, failed ones too."""
        return self._used

    def ask(
        self,
        messages: Sequence[Message],
        *,
        stop: Sequence[str] = (),
        tools: Sequence[Offered] = (),
        on_text: Callable[[str], None] | None = None,
        seconds: float | None = None,
    ) -> Reply:
        """The model's reply within `seconds`, waits included; given `on_text`, its words are handed over as they come.

        A request that failed is sent again where that may help and no word was handed over yet. The text ends before
        the first of `stop`. A ChatError where there is no reply, its `usage` being what the call took all the same.
        """
        model = self._load()
        started = time.monotonic()
        request = Request(messages, stop, tools, on_text)
        try:
            reply = self._persistently(model, request, started + (seconds or self.seconds))
        except ChatError as failed:
            failed.usage = self._took(started, None if failed.answered else 0, None if failed.answered else 0)
            raise
        used = self._took(started, reply.usage.input_tokens, reply.usage.output_tokens)
        if not reply.text.strip() and not reply.calls:
            raise _empty(self.name, reply.stopped, used)
        return Reply(reply.text, reply.calls, used, reply.stopped)

    def _persistently(self, model: Model, request: Request, ends: float) -> Reply:
        attempt = 0
        while True:
            attempt += 1
            try:
                return model.reply(request, ends - time.monotonic())
            except ChatError as failed:
                wait = failed.wait if failed.wait is not None else _patience(attempt)
                if not failed.again or attempt == TRIES:
                    raise
                if time.monotonic() + wait > ends:
                    raise _no_time(self.name, failed, wait) from None
            time.sleep(wait)

    def _took(self, started: float, input_tokens: int | None, output_tokens: int | None) -> Usage:
        cost = self.price.of(input_tokens, output_tokens) if self.price else None
        used = Usage(self.name, 1, input_tokens, output_tokens, time.monotonic() - started, cost)
        with self._lock:
            self._used += used
        return used


def build_chat(setup: ModelSetup) -> Chat:
    """The model of that setup; nothing is loaded or checked before the first question."""
    loading = Lock()
    loaded: list[Model] = []

    def once() -> Model:
        with loading:
            if not loaded:
                from tools.chat_model import load  # noqa: PLC0415 - brings LangChain, which takes a second to import

                loaded.append(load(setup))
            return loaded[0]

    return Chat(setup.name, once, seconds=setup.seconds, price=setup.price)


def _patience(attempt: int) -> float:
    """How long to wait before the next attempt where the server does not say; longer each time, and never the same."""
    return min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** (attempt - 1)) * random.uniform(0.5, 1.5)  # noqa: S311 - no secret


def _no_time(name: str, failed: ChatError, wait: float) -> ChatError:
    if isinstance(failed, ChatBusy):
        return ChatBusy(f"{name} takes no more requests for another {wait:.0f} s; try again then.", failed.wait)
    return failed


def _empty(name: str, stopped: str, used: Usage) -> ChatEmpty:
    if stopped == "length":
        failed = ChatEmpty(f"{name} used up its tokens before it said a word; allow it more, or ask it for less.")
    else:
        failed = ChatEmpty(f"{name} replied with an empty message; ask again, or use another model.")
    failed.usage = used
    return failed
