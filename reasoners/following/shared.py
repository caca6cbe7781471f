"""Wordings that several sentences share: what a search by a value finds says the same fact of others."""

import re
from collections.abc import Iterator, Sequence
from itertools import combinations, takewhile

from reasoners.following.english import content
from reasoners.following.sentences import SPLIT, SUBJECT, VALUE, WORD, Pattern, free

Hit = tuple[str, str, str]
"""A sentence, whom it is about, and the value that it was found by."""


def shared(hits: Sequence[Hit]) -> Iterator[Pattern]:
    """The patterns of sentences that differ in nothing but whom they are about and in words like those searched for."""
    for first, second in combinations(hits, 2):
        one, other = _Cut(first), _Cut(second)
        before = _alike(one.tokens, other.tokens, one.searched | other.searched)
        after = _alike(one.tokens[::-1], other.tokens[::-1], one.searched | other.searched)[::-1]
        middles = [cut.tokens[len(before) : len(cut.tokens) - len(after)] for cut in (one, other)]
        said = content("".join(token for token in (*before, *after) if token != SUBJECT))
        if first[0] != second[0] and said and all(map(_is_value, middles, (one, other))):
            yield Pattern((*before, VALUE, *after), WORD)


class _Cut:
    """A sentence as tokens."""

    def __init__(self, hit: Hit) -> None:
        sentence, subject, value = hit
        self.searched = content(value)
        name = subject.partition(" (")[0]
        parts = re.split(rf"({re.escape(name)})", sentence)
        self.tokens = [
            token for part in parts for token in ([SUBJECT] if part == name else SPLIT.findall(part)) if part
        ]


def _alike(one: Sequence[str], other: Sequence[str], searched: set[str]) -> list[str]:
    """The tokens with which both begin, free where they change with who and when."""
    same = takewhile(lambda pair: _same(*pair) and content(pair[0]).isdisjoint(searched), zip(one, other, strict=False))
    return [_either(*pair) for pair in same]


def _same(one: str, other: str) -> bool:
    return free(one) == free(other) or bool(content(one) and content(one) == content(other))


def _either(one: str, other: str) -> str:
    if SUBJECT in (one, other):
        return SUBJECT
    return free(one) if free(one) == free(other) else f"(?:{re.escape(one)}|{re.escape(other)})"


def _is_value(tokens: Sequence[str], cut: _Cut) -> bool:
    """Whether words in small letters have one of those searched for among them."""
    text = "".join(tokens)
    in_words = text == text.strip() and text.replace(" ", "").isalpha() and text.islower()
    return in_words and bool(content(text) & cut.searched)
