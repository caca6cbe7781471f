"""Asking a language model while its words are handed on as they come."""

from collections.abc import Generator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from math import isfinite
from queue import SimpleQueue
from threading import Thread
from typing import Any

from reasoners.reasoner import Saying
from tools.chat import Chat, Message, Offered, Reply
from worlds.spelling import storable


def asked(
    chat: Chat, messages: Sequence[Message], stop: Sequence[str] = (), tools: Sequence[Offered] = (), *, stream: bool
) -> Generator[Saying, None, Reply]:
    """The reply as traces can keep it; what it says is yielded meanwhile, where somebody wants to hear it."""
    if stream:
        reply = yield from _heard(chat, messages, stop, tools)
    else:
        reply = chat.ask(messages, stop=stop, tools=tools)
    calls = tuple(replace(call, name=storable(call.name), arguments=_kept(call.arguments)) for call in reply.calls)
    return replace(reply, text=storable(reply.text), calls=calls)


def _heard(
    chat: Chat, messages: Sequence[Message], stop: Sequence[str], tools: Sequence[Offered]
) -> Generator[Saying, None, Reply]:
    pieces: SimpleQueue[str | None] = SimpleQueue()
    reply: Future[Reply] = Future()

    def ask() -> None:
        try:
            reply.set_result(chat.ask(messages, stop=stop, tools=tools, on_text=pieces.put))
        except BaseException as failed:  # noqa: BLE001 - it is raised where the reply is awaited
            reply.set_exception(failed)
        pieces.put(None)

    # A generator cannot yield out of a callback, so that the asking has a thread of its own.
    Thread(target=ask, name="asking", daemon=True).start()
    while (piece := pieces.get()) is not None:
        yield Saying(piece)
    return reply.result()


def _kept(value: Any) -> Any:
    """The JSON value with signs for what no database keeps, and numbers that are none as words."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, dict):
        return {storable(name): _kept(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_kept(inner) for inner in value]
    return str(value) if isinstance(value, float) and not isfinite(value) else value
