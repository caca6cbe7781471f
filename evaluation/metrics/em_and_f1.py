"""Exact match and F1 over words, with the normalization of SQuAD's and HotpotQA's official scripts; `official_f1`."""

import re
import string
from collections import Counter
from collections.abc import Sequence

from showhow.evaluation.metrics.metric import GoldAnswer, Metric, count_overlap_f1, list_aliases

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_VERDICTS = (["yes"], ["no"], ["noanswer"])


def normalize_words(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation and articles."""
    return remove_articles(remove_punctuation(text.lower())).split()


def remove_articles(text: str) -> str:
    """The text with a blank for each English article in lower case."""
    return _ARTICLE.sub(" ", text)


def remove_punctuation(text: str) -> str:
    """The text without the punctuation of ASCII."""
    return text.translate(_PUNCTUATION)


def compare_words(answer: Sequence[str], gold: Sequence[str]) -> tuple[float, float, float]:
    """Precision, recall and F1 over two bags of words; 0 if they share none, also if both are empty."""
    return count_overlap_f1((Counter(answer) & Counter(gold)).total(), len(answer), len(gold))


def exact_match(answer: str, golds: Sequence[str]) -> bool:
    """Whether the normalized words of the answer equal those of a gold answer, in order."""
    return normalize_words(answer) in [normalize_words(gold) for gold in golds]


def compare_hotpotqa_words(answer: str, gold: str) -> tuple[float, float, float]:
    """Precision, recall and F1 over words; all 0 if one side is yes, no or noanswer and the other differs."""
    words, gold_words = normalize_words(answer), normalize_words(gold)
    if words != gold_words and (words in _VERDICTS or gold_words in _VERDICTS):
        return 0.0, 0.0, 0.0
    return compare_words(words, gold_words)


def hotpotqa_f1(answer: str, golds: Sequence[str]) -> float:
    """The best F1 over alternative gold answers."""
    return max(compare_hotpotqa_words(answer, gold)[2] for gold in golds)


def _over_golds(answer: str, golds: Sequence[GoldAnswer]) -> float:
    """Several gold answers are joined, since the scripts support no lists."""
    texts = list_aliases(golds[0]) if len(golds) == 1 else [", ".join(str(gold["text"]) for gold in golds)]
    return hotpotqa_f1(answer, texts)


OFFICIAL_F1 = Metric(
    "official_f1", 2, "official F1", "F1 over words as in the scripts of SQuAD and HotpotQA", _over_golds
)
