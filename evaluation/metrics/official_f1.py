"""The F1 of SQuAD's and HotpotQA's evaluation scripts, and AtomR's variant.

Both compare bags of words in lower case, without punctuation and articles. AtomR replaces hyphens by spaces first.
"""

import re
import string
from collections import Counter
from collections.abc import Callable, Sequence

from evaluation.metrics.metric import GoldAnswer, Metric, list_aliases

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLE = re.compile(r"\b(?:a|an|the)\b")
_VERDICTS = (["yes"], ["no"], ["noanswer"])


def normalize_words(text: str) -> list[str]:
    """The words of a text in lower case, without punctuation and articles."""
    return _ARTICLE.sub(" ", text.lower().translate(_PUNCTUATION)).split()


def normalize_atomr_words(text: str) -> list[str]:
    """Like `normalize_words`, but a hyphen separates two words."""
    return normalize_words(text.replace("-", " "))


def bag_f1(answer: Sequence[str], gold: Sequence[str]) -> float:
    """F1 over two bags of words; 1 if both are empty."""
    overlap = (Counter(answer) & Counter(gold)).total()
    if not overlap:
        return float(not answer and not gold)
    return 2 * overlap / (len(answer) + len(gold))


def exact_match(answer: str, golds: Sequence[str]) -> bool:
    """Whether the normalized words of the answer equal those of a gold answer, in order."""
    return normalize_words(answer) in [normalize_words(gold) for gold in golds]


def hotpotqa_f1(answer: str, golds: Sequence[str]) -> float:
    """The best F1 over alternative gold answers; 0 if exactly one side is yes, no or noanswer."""
    words = normalize_words(answer)

    def score(gold: list[str]) -> float:
        return 0.0 if words != gold and (words in _VERDICTS or gold in _VERDICTS) else bag_f1(words, gold)

    return max(score(normalize_words(gold)) for gold in golds)


def atomr_f1(answer: str, golds: Sequence[str]) -> float:
    """The best F1 over alternative gold answers by AtomR's rule, which does not treat yes and no specially."""
    words = normalize_atomr_words(answer)
    return max(bag_f1(words, normalize_atomr_words(gold)) for gold in golds)


def _over_texts(score: Callable[[str, Sequence[str]], float]) -> Callable[[str, Sequence[GoldAnswer]], float]:
    """Adapt a script's score to gold answers; several gold answers are joined, since the scripts support no lists."""

    def over_golds(answer: str, golds: Sequence[GoldAnswer]) -> float:
        return score(answer, list_aliases(golds[0]) if len(golds) == 1 else [", ".join(str(g["text"]) for g in golds)])

    return over_golds


OFFICIAL_F1 = Metric(
    "official_f1", 1, "official F1", "F1 over words as in the scripts of SQuAD and HotpotQA", _over_texts(hotpotqa_f1)
)
ATOMR_F1 = Metric("atomr_f1", 1, "AtomR F1", "F1 over words as in AtomR's script", _over_texts(atomr_f1))
