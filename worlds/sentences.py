"""Sentences of texts, for articles, pages, prompts and answers alike."""

import re
from collections.abc import Iterator

from sentencex import segment

_SPACE_BEFORE_STOP = re.compile(r"(?<!\s)\s++(?=\.)")


def split_sentences(text: str, language: str = "en") -> tuple[str, ...]:
    """The sentences of a text; the end of a line ends a sentence."""
    sentences = (part.strip() for line in text.splitlines() if line.strip() for part in _split_line(line, language))
    return tuple(sentence for sentence in sentences if sentence)


def split_paragraphs(text: str) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The sentences of a text, and for each of several paragraphs the index of its first one.

    Empty lines part paragraphs; in a text without any, each line is one.
    """
    lines = text.splitlines()
    has_gaps = any(not line.strip() for line in "\n".join(lines).strip().splitlines())
    sentences: list[str] = []
    starts: list[int] = []
    is_new = True
    for line in lines:
        of_line = split_sentences(line)
        if of_line and is_new:
            starts.append(len(sentences))
        is_new = not of_line or not has_gaps
        sentences += of_line
    return tuple(sentences), tuple(starts) if len(starts) > 1 else ()


def _split_line(line: str, language: str) -> Iterator[str]:
    # The library aborts at a space of several bytes, such as a no-break space, between a capital and a full stop.
    plain = _SPACE_BEFORE_STOP.sub(lambda space: " " * len(space[0]), line)
    start = 0
    for part in segment(language, plain):
        yield line[start : start + len(part)]
        start += len(part)
