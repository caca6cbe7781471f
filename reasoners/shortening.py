"""Cutting a long observation down to what a question needs, telling what was left out."""

import re
from collections.abc import Sequence
from functools import lru_cache

from reasoners.tokens import estimated, start_of
from tools.read import rank
from tools.tool import Encode
from worlds.importers.jsonl import split

_CONTINUES = re.compile(r"(?:\.\.\.|…) ")
_NOTICE = 16
"""Tokens that are kept free for telling what was left out."""


def shortened(text: str, most: int, question: str, encode: Encode) -> str:
    """The text in at most so many tokens: of its rows or sentences those nearest to the question, in their order.

    The first row stays, since it may name the columns or the article; so do lines that tell of an earlier cut. What was
    left out is counted in a last line.
    """
    if estimated(text) <= most:
        return text
    return _cut(text, most, question, encode)  # type: ignore[arg-type]  # every encoder can be hashed


@lru_cache(maxsize=4096)
def _cut(text: str, most: int, question: str, encode: Encode) -> str:
    rows = [line for line in text.splitlines() if line.strip()]
    pieces, noun = (rows, "row") if len(rows) > 2 else (list(split(text)), "sentence")
    room = most - _NOTICE
    if len(pieces) < 2 or estimated(pieces[0]) > room:
        return _start(text, most)
    kept = _chosen(pieces, room, question, encode)
    left = len(pieces) - len(kept)
    shown = "\n".join(pieces[place] for place in sorted(kept))
    return f"{shown}\n... {left} more {noun}{'s' if left > 1 else ''} left out" if left else shown


def _chosen(pieces: Sequence[str], room: int, question: str, encode: Encode) -> set[int]:
    kept: set[int] = set()
    fixed = [0, *(place for place, piece in enumerate(pieces) if place and _CONTINUES.match(piece))]
    ranked = (place for place, _ in rank(list(pieces), question, encode))
    for place in dict.fromkeys([*fixed, *ranked]):
        cost = estimated(pieces[place]) + 1
        if cost <= room:
            kept.add(place)
            room -= cost
    return kept


def _start(text: str, most: int) -> str:
    shown = start_of(text, max(most - _NOTICE, 0))
    return f"{shown} ... {len(text) - len(shown):,} more characters left out".lstrip()
