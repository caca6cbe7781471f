"""Streams a reply through a generator: text deltas are yielded, the reply is returned."""

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
    """Ask the model, yield its text as it arrives if `stream`, and return the reply in a form that can be stored."""
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
    deltas: SimpleQueue[str | None] = SimpleQueue()
    future: Future[ChatReply] = Future()

    def ask() -> None:
        try:
            future.set_result(chat.ask(messages, stop=stop, tools=tools, on_text=deltas.put))
        except BaseException as error:  # noqa: BLE001 - it is raised in the thread that awaits the reply
            future.set_exception(error)
        deltas.put(None)

    # A generator cannot yield from within a callback, so the request runs in its own thread.
    Thread(target=ask, name="language model stream", daemon=True).start()
    while (delta := deltas.get()) is not None:
        yield TextDelta(delta)
    return future.result()


def _make_storable(value: Any) -> Any:
    """The JSON value with characters that no database stores replaced, and non-finite numbers as text."""
    if isinstance(value, str):
        return replace_unstorable(value)
    if isinstance(value, dict):
        return {replace_unstorable(name): _make_storable(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_make_storable(inner) for inner in value]
    return str(value) if isinstance(value, float) and not isfinite(value) else value
