"""Sentences of texts, for articles, pages, prompts and answers alike."""

from sentencex import segment


def split_sentences(text: str, language: str = "en") -> tuple[str, ...]:
    """The sentences of a text; the end of a line ends a sentence."""
    sentences = (sentence.strip() for line in text.splitlines() if line.strip() for sentence in segment(language, line))
    return tuple(sentence for sentence in sentences if sentence)
