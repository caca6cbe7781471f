"""Asking a language model while its words are handed on as they come."""

from collections.abc import Generator, Sequence
from concurrent.futures import Future
from queue import SimpleQueue
from threading import Thread

from reasoners.reasoner import Saying
from tools.chat import Chat, Message, Offered, Reply


def asked(
    chat: Chat, messages: Sequence[Message], stop: Sequence[str] = (), tools: Sequence[Offered] = (), *, stream: bool
) -> Generator[Saying, None, Reply]:
    """The reply; what it says is yielded meanwhile, where somebody wants to hear it."""
    if stream:
        return (yield from _heard(chat, messages, stop, tools))
    return chat.ask(messages, stop=stop, tools=tools)


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
