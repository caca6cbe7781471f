"""Asking a language model while its words are handed on as they come."""

from collections.abc import Generator, Sequence
from concurrent.futures import Future
from dataclasses import replace
from math import isfinite
from queue import SimpleQueue
from threading import Thread
from typing import Any

from llm.client import ChatClient
from llm.types import ChatReply, Message, TextDelta, ToolSpec
from worlds.text_normalization import replace_unstorable


def stream_reply(
    chat: ChatClient,
    messages: Sequence[Message],
    stop: Sequence[str] = (),
    tools: Sequence[ToolSpec] = (),
    *,
    stream: bool,
) -> Generator[TextDelta, None, ChatReply]:
    """The reply as traces can keep it; what it says is yielded meanwhile, where somebody wants to hear it."""
    if stream:
        reply = yield from _stream_from_thread(chat, messages, stop, tools)
    else:
        reply = chat.ask(messages, stop=stop, tools=tools)
    calls = tuple(
        replace(call, name=replace_unstorable(call.name), arguments=_make_storable(call.arguments))
        for call in reply.calls
    )
    return replace(reply, text=replace_unstorable(reply.text), calls=calls)


def _stream_from_thread(
    chat: ChatClient, messages: Sequence[Message], stop: Sequence[str], tools: Sequence[ToolSpec]
) -> Generator[TextDelta, None, ChatReply]:
    pieces: SimpleQueue[str | None] = SimpleQueue()
    reply: Future[ChatReply] = Future()

    def ask() -> None:
        try:
            reply.set_result(chat.ask(messages, stop=stop, tools=tools, on_text=pieces.put))
        except BaseException as failed:  # noqa: BLE001 - it is raised where the reply is awaited
            reply.set_exception(failed)
        pieces.put(None)

    # A generator cannot yield out of a callback, so that the asking has a thread of its own.
    Thread(target=ask, name="asking", daemon=True).start()
    while (piece := pieces.get()) is not None:
        yield TextDelta(piece)
    return reply.result()


def _make_storable(value: Any) -> Any:
    """The JSON value with signs for what no database keeps, and numbers that are none as words."""
    if isinstance(value, str):
        return replace_unstorable(value)
    if isinstance(value, dict):
        return {replace_unstorable(name): _make_storable(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_make_storable(inner) for inner in value]
    return str(value) if isinstance(value, float) and not isfinite(value) else value
