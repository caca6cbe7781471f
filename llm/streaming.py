"""Asks a model for a reply in a form that can be stored; its text may be streamed meanwhile."""

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
    """Ask the model and return its reply; `on_text` gets the text as it arrives, None asks for the whole reply."""
    reply = chat.ask(messages, stop=stop, tools=tools, on_text=on_text)
    calls = tuple(
        replace(call, name=replace_unstorable(call.name), arguments=make_storable(call.arguments))
        for call in reply.calls
    )
    return replace(reply, text=replace_unstorable(reply.text), calls=calls)


def make_storable(value: Any) -> Any:
    """The JSON value with characters that no database stores replaced, and non-finite numbers as text."""
    if isinstance(value, str):
        return replace_unstorable(value)
    if isinstance(value, dict):
        return {replace_unstorable(name): make_storable(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [make_storable(inner) for inner in value]
    return str(value) if isinstance(value, float) and not isfinite(value) else value
