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

from reasoners.answers.normalization import normalize_for_comparison

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = frozenset({"a", "an", "the"})
_LINE_SEPARATOR = re.compile(r"\s*[;\n]\s*")
_LIST_SEPARATOR = re.compile(r"\s*(?:,\s*(?:and\b)?|&|\band\b)\s*")
_ITEM_NUMBER = re.compile(r"^\s*\d+[.)]\s+", re.MULTILINE)
_SEPARATOR = re.compile(r"([,;\n&]|\band\b)")
_ENTITY_ID = re.compile(r"\s*\(?\b([QP]\d+)\b\)?")


def normalize_words(text: str) -> list[str]:
    """The words that count: in lower case, without punctuation and articles; a hyphen parts words."""
    plain = text.lower().replace("-", " ").translate(_PUNCTUATION)
    return [word for word in plain.split() if word not in _ARTICLES]


def exact_match(answer: str, golds: Sequence[str]) -> bool:
    """Whether the answer is one of the gold answers, word by word."""
    return normalize_words(answer) in [normalize_words(gold) for gold in golds]


def word_f1(answer: str, golds: Sequence[str]) -> float:
    """F1 over the words of the answer and of the gold answer that is nearest to it."""
    return max(_multiset_f1(Counter(normalize_words(answer)), Counter(normalize_words(gold))) for gold in golds)


def set_f1(answers: Sequence[str], golds: Sequence[str]) -> float:
    """F1 over the two sets of answers, each compared word by word."""
    return _multiset_f1(_count_answers(answers), _count_answers(golds))


def score_against_gold(answer: str, golds: Sequence[Mapping[str, Any]]) -> float:
    """The score of an answer as it is written, against gold answers {"text", "entity"}."""
    texts = [str(gold["text"]) for gold in golds]
    answer = _use_gold_names(answer, {str(gold.get("entity")): str(gold["text"]) for gold in golds})
    both = normalize_for_comparison({"answer": answer, "gold": "; ".join(texts)})
    if both["answer"] == both["gold"]:
        return 1.0
    if len(texts) == 1:
        return word_f1(answer, texts)
    return set_f1(split_answers(answer, texts), texts)


def _use_gold_names(answer: str, golds: Mapping[str, str]) -> str:
    """The answer with gold entities by their gold names, and other names without their ids."""

    def called(part: str) -> str:
        entity = _ENTITY_ID.search(part)
        return part if entity is None else f" {golds.get(entity[1]) or _ENTITY_ID.sub('', part) or part} "

    return "".join(map(called, _SEPARATOR.split(answer)))


def split_answers(text: str, golds: Sequence[str] = ()) -> list[str]:
    """The answers that a text lists, one a line or parted by semicolons, else by commas and "and".

    Gold ones stay whole.
    """
    text = _ITEM_NUMBER.sub("", text)
    if _LINE_SEPARATOR.search(text.strip()):
        return [part for part in _LINE_SEPARATOR.split(text.strip()) if part]
    found: list[str] = []
    for gold in sorted((gold for gold in golds if _LIST_SEPARATOR.search(gold)), key=len, reverse=True):
        before = len(text)
        text = re.sub(rf"(?<!\w){re.escape(gold)}(?!\w)", "", text, flags=re.IGNORECASE)
        found += [gold] if len(text) < before else []
    return found + [part for part in _LIST_SEPARATOR.split(text.strip()) if part.strip(" .")]


def mean(scores: Sequence[float]) -> float:
    """The mean; ValueError over nothing, which has none."""
    if not scores:
        raise ValueError("there is no mean over no score")
    return fmean(scores)


def _count_answers(answers: Sequence[str]) -> Counter[tuple[str, ...]]:
    return Counter({tuple(normalize_words(answer)): 1 for answer in answers})


def _multiset_f1(found: Counter[Any], wanted: Counter[Any]) -> float:
    same = (found & wanted).total()
    if not same:
        # Nothing was asked for and nothing was said.
        return float(not found and not wanted)
    return 2 * same / (found.total() + wanted.total())
