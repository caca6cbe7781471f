"""Wordings that several sentences share: what a search by a value finds says the same fact of others."""

import re
from collections.abc import Iterator, Sequence
from itertools import combinations, takewhile

from reasoners.replay.english import content
from reasoners.replay.sentences import SPLIT, SUBJECT, VALUE, WORD, SentencePattern, generalize_token

SnippetHit = tuple[str, str, str]
"""A sentence, whom it is about, and the value that it was found by."""


def find_shared_patterns(hits: Sequence[SnippetHit]) -> Iterator[SentencePattern]:
    """The patterns of sentences that differ in nothing but whom they are about and in words like those searched for."""
    for first, second in combinations(hits, 2):
        one, other = _TokenizedSentence(first), _TokenizedSentence(second)
        before = _common_prefix(one.tokens, other.tokens, one.searched | other.searched)
        after = _common_prefix(one.tokens[::-1], other.tokens[::-1], one.searched | other.searched)[::-1]
        middles = [cut.tokens[len(before) : len(cut.tokens) - len(after)] for cut in (one, other)]
        said = content("".join(token for token in (*before, *after) if token != SUBJECT))
        if first[0] != second[0] and said and all(map(_is_value, middles, (one, other))):
            yield SentencePattern((*before, VALUE, *after), WORD)


class _TokenizedSentence:
    """A sentence as tokens."""

    def __init__(self, hit: SnippetHit) -> None:
        sentence, subject, value = hit
        self.searched = content(value)
        name = subject.partition(" (")[0]
        parts = re.split(rf"({re.escape(name)})", sentence)
        self.tokens = [
            token for part in parts for token in ([SUBJECT] if part == name else SPLIT.findall(part)) if part
        ]


def _common_prefix(one: Sequence[str], other: Sequence[str], searched: set[str]) -> list[str]:
    """The tokens with which both begin, free where they change with who and when."""
    same = takewhile(
        lambda pair: _is_same_token(*pair) and content(pair[0]).isdisjoint(searched), zip(one, other, strict=False)
    )
    return [_merge_tokens(*pair) for pair in same]


def _is_same_token(one: str, other: str) -> bool:
    return generalize_token(one) == generalize_token(other) or bool(content(one) and content(one) == content(other))


def _merge_tokens(one: str, other: str) -> str:
    if SUBJECT in (one, other):
        return SUBJECT
    return (
        generalize_token(one)
        if generalize_token(one) == generalize_token(other)
        else f"(?:{re.escape(one)}|{re.escape(other)})"
    )


def _is_value(tokens: Sequence[str], cut: _TokenizedSentence) -> bool:
    """Whether words in small letters have one of those searched for among them."""
    text = "".join(tokens)
    in_words = text == text.strip() and text.replace(" ", "").isalpha() and text.islower()
    return in_words and bool(content(text) & cut.searched)
