"""Requests a reply whose content can be stored, and optionally streams its text."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any

from llm.client import ChatClient
from llm.types import ChatReply, Message, ToolSpec
from worlds.text_normalization import replace_unstorable


def stream_reply(
    chat: ChatClient,
    messages: Sequence[Message],
    stop: Sequence[str] = (),
    tools: Sequence[ToolSpec] = (),
    on_text: Callable[[str], None] | None = None,
) -> ChatReply:
    """Request a reply; `on_text` is called with each text delta, None turns streaming off."""
    return make_reply_storable(chat.ask(messages, stop=stop, tools=tools, on_text=on_text))


def make_reply_storable(reply: ChatReply) -> ChatReply:
    """Replace what databases cannot store in the texts and the calls of a reply."""
    calls = tuple(
        replace(call, name=replace_unstorable(call.name), arguments=make_storable(call.arguments))
        for call in reply.calls
    )
    text, thoughts = replace_unstorable(reply.text), replace_unstorable(reply.thoughts)
    return replace(reply, text=text, calls=calls, thoughts=thoughts)


def make_storable(value: Any) -> Any:
    """Replace characters that databases cannot store, and convert non-finite numbers to text, in a JSON value."""
    if isinstance(value, str):
        return replace_unstorable(value)
    if isinstance(value, dict):
        return {replace_unstorable(name): make_storable(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [make_storable(inner) for inner in value]
    return str(value) if isinstance(value, float) and not isfinite(value) else value
