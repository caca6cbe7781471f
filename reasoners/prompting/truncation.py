"""Truncate long observations to the rows or sentences most relevant to the question, and estimate token counts.

A token is estimated for every three bytes of UTF-8, rounded up, plus four for each message and each call. English has
about four bytes a token and queries about three, so a prompt is rather overestimated than underestimated.
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
    """The estimated tokens of a text."""
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def truncate_to_tokens(text: str, max_tokens: int) -> str:
    """The beginning of the text, at most `max_tokens` long."""
    return text.encode()[: max_tokens * BYTES_PER_TOKEN].decode(errors="ignore")


def count_message_tokens(messages: Iterable[Message]) -> int:
    """The estimated tokens of the messages with their tool calls."""
    return sum(_count_one_message(message) for message in messages)


def _count_one_message(message: Message) -> int:
    calls = sum(
        MESSAGE_OVERHEAD + estimate_tokens(call.name) + estimate_tokens(json.dumps(call.arguments, ensure_ascii=False))
        for call in message.calls
    )
    return MESSAGE_OVERHEAD + estimate_tokens(message.text) + calls


def count_tool_tokens(tools: Iterable[ToolSpec]) -> int:
    """The estimated tokens of the tool declarations in a request."""
    return sum(
        MESSAGE_OVERHEAD
        + estimate_tokens(tool.name)
        + estimate_tokens(tool.description)
        + estimate_tokens(json.dumps(dict(tool.schema)))
        for tool in tools
    )


_CONTINUATION = re.compile(r"(?:\.\.\.|…) ")
_NOTICE_TOKENS = 16
"""Tokens reserved for the notice about what was left out."""


def truncate_observation(text: str, max_tokens: int, question: str, encode: EncodeFunction) -> str:
    """The text in at most `max_tokens`: the rows or sentences nearest to the question, in their original order.

    The first row always stays, since it may hold the column names or the article's title; so do lines that report an
    earlier truncation. A last line counts what was left out.
    """
    if estimate_tokens(text) <= max_tokens:
        return text
    return _truncate_cached(text, max_tokens, question, encode)  # type: ignore[arg-type]  # every encoder is hashable


@lru_cache(maxsize=4096)
def _truncate_cached(text: str, max_tokens: int, question: str, encode: EncodeFunction) -> str:
    pieces, noun = _split_pieces(text)
    budget = max_tokens - _NOTICE_TOKENS
    if len(pieces) < 2 or estimate_tokens(pieces[0]) > budget:
        return _truncate_end(text, max_tokens)
    ranked = _rank_pieces(text, question, encode)  # type: ignore[arg-type]  # as above
    kept = _select_pieces(pieces, budget, ranked)
    omitted = len(pieces) - len(kept)
    shown = "\n".join(pieces[index] for index in sorted(kept))
    return f"{shown}\n... {omitted} more {noun}{'s' if omitted > 1 else ''} left out" if omitted else shown


def _split_pieces(text: str) -> tuple[list[str], str]:
    """The rows or sentences of a text, and the noun for one."""
    rows = [line for line in text.splitlines() if line.strip()]
    return (rows, "row") if len(rows) > 2 else (list(split_sentences(text)), "sentence")


@lru_cache(maxsize=4096)
def _rank_pieces(text: str, question: str, encode: EncodeFunction) -> tuple[int, ...]:
    """The indexes of the pieces, best first; cached, since a text may be truncated to several lengths."""
    return tuple(index for index, _ in rank_sentences(_split_pieces(text)[0], question, encode))


def _select_pieces(pieces: Sequence[str], budget: int, ranked: Sequence[int]) -> set[int]:
    kept: set[int] = set()
    required = [0, *(index for index, piece in enumerate(pieces) if index and _CONTINUATION.match(piece))]
    for index in dict.fromkeys([*required, *ranked]):
        cost = estimate_tokens(pieces[index]) + 1
        if cost <= budget:
            kept.add(index)
            budget -= cost
    return kept


def _truncate_end(text: str, max_tokens: int) -> str:
    shown = truncate_to_tokens(text, max(max_tokens - _NOTICE_TOKENS, 0))
    return f"{shown} ... {len(text) - len(shown):,} more characters left out".lstrip()
