"""Cutting a long observation down to what a question needs, telling what was left out.

How long a prompt is, without a model's own tokenizer.

The rule: a token for every three bytes of UTF-8, rounded up, and four for each message and each call around them.
English takes about four bytes a token and queries about three, so that prompts are rather taken for longer than they
are.
"""

import json
import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from llm.types import Message, ToolSpec
from tools.read import rank_sentences
from tools.tool import EncodeFunction
from worlds.importers.articles import split_sentences

BYTES_PER_TOKEN = 3
MESSAGE_OVERHEAD = 4


def estimate_tokens(text: str) -> int:
    """The tokens of a text by the rule."""
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def truncate_to_tokens(text: str, most: int) -> str:
    """As much of the text's start as so many tokens hold."""
    return text.encode()[: most * BYTES_PER_TOKEN].decode(errors="ignore")


def count_message_tokens(messages: Iterable[Message]) -> int:
    """The tokens of these messages with their calls."""
    return sum(_count_one_message(message) for message in messages)


def _count_one_message(message: Message) -> int:
    calls = sum(
        MESSAGE_OVERHEAD + estimate_tokens(call.name) + estimate_tokens(json.dumps(call.arguments, ensure_ascii=False))
        for call in message.calls
    )
    return MESSAGE_OVERHEAD + estimate_tokens(message.text) + calls


def count_tool_tokens(tools: Iterable[ToolSpec]) -> int:
    """The tokens of the tools as a model is told of them."""
    return sum(
        MESSAGE_OVERHEAD
        + estimate_tokens(tool.name)
        + estimate_tokens(tool.description)
        + estimate_tokens(json.dumps(dict(tool.schema)))
        for tool in tools
    )


_CONTINUATION = re.compile(r"(?:\.\.\.|…) ")
_NOTICE_TOKENS = 16
"""Tokens that are kept free for telling what was left out."""


def truncate_observation(text: str, most: int, question: str, encode: EncodeFunction) -> str:
    """The text in at most so many tokens: of its rows or sentences those nearest to the question, in their order.

    The first row stays, since it may name the columns or the article; so do lines that tell of an earlier cut. What was
    left out is counted in a last line.
    """
    if estimate_tokens(text) <= most:
        return text
    return _truncate_cached(text, most, question, encode)  # type: ignore[arg-type]  # every encoder can be hashed


@lru_cache(maxsize=4096)
def _truncate_cached(text: str, most: int, question: str, encode: EncodeFunction) -> str:
    rows = [line for line in text.splitlines() if line.strip()]
    pieces, noun = (rows, "row") if len(rows) > 2 else (list(split_sentences(text)), "sentence")
    room = most - _NOTICE_TOKENS
    if len(pieces) < 2 or estimate_tokens(pieces[0]) > room:
        return _truncate_end(text, most)
    kept = _select_pieces(pieces, room, question, encode)
    left = len(pieces) - len(kept)
    shown = "\n".join(pieces[place] for place in sorted(kept))
    return f"{shown}\n... {left} more {noun}{'s' if left > 1 else ''} left out" if left else shown


def _select_pieces(pieces: Sequence[str], room: int, question: str, encode: EncodeFunction) -> set[int]:
    kept: set[int] = set()
    fixed = [0, *(place for place, piece in enumerate(pieces) if place and _CONTINUATION.match(piece))]
    ranked = (place for place, _ in rank_sentences(list(pieces), question, encode))
    for place in dict.fromkeys([*fixed, *ranked]):
        cost = estimate_tokens(pieces[place]) + 1
        if cost <= room:
            kept.add(place)
            room -= cost
    return kept


def _truncate_end(text: str, most: int) -> str:
    shown = truncate_to_tokens(text, max(most - _NOTICE_TOKENS, 0))
    return f"{shown} ... {len(text) - len(shown):,} more characters left out".lstrip()
