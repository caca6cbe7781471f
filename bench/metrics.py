"""How good an answer is, from 0 to 1.

One gold answer: F1 over bags of words, as AtomR's published evaluation takes it, which rescores its released
predictions to the figures of its paper. Several gold answers, all of which are asked for: F1 over sets of answers, as
in PhantomWiki's paper. An answer that is the gold answer in another way of writing (reasoners/comparable.py), or that
names its entity, has the full score.
"""

import re
import string
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from reasoners.comparable import compared

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = frozenset({"a", "an", "the"})
_BETWEEN_LINES = re.compile(r"\s*[;\n]\s*")
_BETWEEN = re.compile(r"\s*(?:,\s*(?:and\b)?|&|\band\b)\s*")
_ITEM = re.compile(r"^\s*\d+[.)]\s+", re.MULTILINE)
_SEPARATOR = re.compile(r"([,;\n&]|\band\b)")
_ENTITY = re.compile(r"\s*\(?\b([QP]\d+)\b\)?")


def words(text: str) -> list[str]:
    """The words that count: in lower case, without punctuation and articles; a hyphen parts words."""
    plain = text.lower().replace("-", " ").translate(_PUNCTUATION)
    return [word for word in plain.split() if word not in _ARTICLES]


def exact_match(answer: str, golds: Sequence[str]) -> bool:
    """Whether the answer is one of the gold answers, word by word."""
    return words(answer) in [words(gold) for gold in golds]


def word_f1(answer: str, golds: Sequence[str]) -> float:
    """F1 over the words of the answer and of the gold answer that is nearest to it."""
    return max(_f1(Counter(words(answer)), Counter(words(gold))) for gold in golds)


def set_f1(answers: Sequence[str], golds: Sequence[str]) -> float:
    """F1 over the two sets of answers, each compared word by word."""
    return _f1(_set(answers), _set(golds))


def score_of(answer: str, golds: Sequence[Mapping[str, Any]]) -> float:
    """The score of an answer as it is written, against gold answers {"text", "entity"}."""
    texts = [str(gold["text"]) for gold in golds]
    answer = _named(answer, {str(gold.get("entity")): str(gold["text"]) for gold in golds})
    both = compared({"answer": answer, "gold": "; ".join(texts)})
    if both["answer"] == both["gold"]:
        return 1.0
    if len(texts) == 1:
        return word_f1(answer, texts)
    return set_f1(answers_in(answer, texts), texts)


def _named(answer: str, golds: Mapping[str, str]) -> str:
    """The answer with gold entities by their gold names, and other names without their ids."""

    def called(part: str) -> str:
        entity = _ENTITY.search(part)
        return part if entity is None else f" {golds.get(entity[1]) or _ENTITY.sub('', part) or part} "

    return "".join(map(called, _SEPARATOR.split(answer)))


def answers_in(text: str, golds: Sequence[str] = ()) -> list[str]:
    """The answers that a text lists, one a line or parted by semicolons, else by commas and "and".

    Gold ones stay whole.
    """
    text = _ITEM.sub("", text)
    if _BETWEEN_LINES.search(text.strip()):
        return [part for part in _BETWEEN_LINES.split(text.strip()) if part]
    found: list[str] = []
    for gold in sorted((gold for gold in golds if _BETWEEN.search(gold)), key=len, reverse=True):
        before = len(text)
        text = re.sub(rf"(?<!\w){re.escape(gold)}(?!\w)", "", text, flags=re.IGNORECASE)
        found += [gold] if len(text) < before else []
    return found + [part for part in _BETWEEN.split(text.strip()) if part.strip(" .")]


def mean(scores: Sequence[float]) -> float:
    """The mean; ValueError over nothing, which has none."""
    if not scores:
        raise ValueError("there is no mean over no score")
    return fmean(scores)


def _set(answers: Sequence[str]) -> Counter[tuple[str, ...]]:
    return Counter({tuple(words(answer)): 1 for answer in answers})


def _f1(found: Counter[Any], wanted: Counter[Any]) -> float:
    same = (found & wanted).total()
    if not same:
        # Nothing was asked for and nothing was said.
        return float(not found and not wanted)
    return 2 * same / (found.total() + wanted.total())
