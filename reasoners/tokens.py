"""How long a prompt is, without a model's own tokenizer.

The rule: a token for every three bytes of UTF-8, rounded up, and four for each message and each call around them.
English takes about four bytes a token and queries about three, so that prompts are rather taken for longer than they
are.
"""

import json
from collections.abc import Iterable

from tools.chat import Message, Offered

BYTES = 3
AROUND = 4


def estimated(text: str) -> int:
    """The tokens of a text by the rule."""
    return -(-len(text.encode()) // BYTES)


def start_of(text: str, most: int) -> str:
    """As much of the text's start as so many tokens hold."""
    return text.encode()[: most * BYTES].decode(errors="ignore")


def of_messages(messages: Iterable[Message]) -> int:
    """The tokens of these messages with their calls."""
    return sum(_of_message(message) for message in messages)


def _of_message(message: Message) -> int:
    calls = sum(
        AROUND + estimated(call.name) + estimated(json.dumps(call.arguments, ensure_ascii=False))
        for call in message.calls
    )
    return AROUND + estimated(message.text) + calls


def of_tools(tools: Iterable[Offered]) -> int:
    """The tokens of the tools as a model is told of them."""
    return sum(
        AROUND + estimated(tool.name) + estimated(tool.description) + estimated(json.dumps(dict(tool.schema)))
        for tool in tools
    )
