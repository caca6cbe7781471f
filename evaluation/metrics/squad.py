"""The metrics of SQuAD, whose version 2 has questions that its paragraphs do not answer: their answer is empty."""

from collections.abc import Mapping
from typing import Any

from showhow.db.unanswerable import read_unanswerable
from showhow.evaluation.metrics.em_and_f1 import compare_words, normalize_words
from showhow.evaluation.metrics.metric import (
    GOLD_TEXT_FIELDS,
    Case,
    Components,
    declare_metrics,
    first_field,
    list_aliases,
    to_list,
    to_text,
)
from showhow.worlds.input_files import restore_rows


def score_squad(case: Case) -> Components:
    """EM and F1 over words, each as the maximum over the answers; no words are compared with no words as equal.

    A question without a prediction scores 0, also one that was refused; the script leaves out the former.
    """
    if case.predicted is None:
        return {"em": 0.0, "f1": 0.0}
    words = normalize_words("" if case.predicted == [] else to_text(case.predicted))
    golds = list(filter(None, map(normalize_words, _list_texts(case.gold)))) or [[]]
    f1 = max(compare_words(words, gold)[2] if words and gold else float(words == gold) for gold in golds)
    return {"em": float(words in golds), "f1": f1}


def _list_texts(gold: Mapping[str, Any]) -> list[str]:
    """The texts of the answers, as lists, objects or gold answers of Showhow; none of a question without one."""
    if gold.get("is_impossible") is True:
        return []
    answers = to_list(restore_rows(first_field(gold, ("answers", *GOLD_TEXT_FIELDS))), "the answers")
    texts = [
        text
        for answer in answers
        for text in (list_aliases(answer) if isinstance(answer, Mapping) else [to_text(answer, "an answer")])
    ]
    return [] if any(map(read_unanswerable, texts)) else texts


SQUAD_METRICS = declare_metrics(
    "squad",
    {"em": "exact match of the answer; none for a question without one", "f1": "F1 over the words of the answer"},
    score=score_squad,
    components=("em", "f1"),
    datasets=("squad",),
    source="rajpurkar/SQuAD-explorer evaluate-v2.0.py",
    scores_empty=True,
)
"""The metrics of SQuAD."""
