"""Sentences of texts, for articles, pages, prompts and answers alike."""

import re
from collections.abc import Iterator

from sentencex import segment

_SPACE_BEFORE_STOP = re.compile(r"(?<!\s)\s++(?=\.)")


def split_sentences(text: str, language: str = "en") -> tuple[str, ...]:
    """The sentences of a text; the end of a line ends a sentence."""
    sentences = (part.strip() for line in text.splitlines() if line.strip() for part in _split_line(line, language))
    return tuple(sentence for sentence in sentences if sentence)


def _split_line(line: str, language: str) -> Iterator[str]:
    # The library aborts at a space of several bytes, such as a no-break space, between a capital and a full stop.
    plain = _SPACE_BEFORE_STOP.sub(lambda space: " " * len(space[0]), line)
    start = 0
    for part in segment(language, plain):
        yield line[start : start + len(part)]
        start += len(part)
