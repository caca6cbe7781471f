"""The metrics of DROP: exact match and F1 over the spans of an answer, which are matched one to one."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from showhow.evaluation.metrics.em_and_f1 import remove_articles, remove_punctuation
from showhow.evaluation.metrics.metric import (
    Case,
    Components,
    UnusableValue,
    count_overlap_f1,
    declare_metrics,
    first_field,
    list_aliases,
    split_answers,
    to_list,
    to_text,
)
from showhow.worlds.input_files import restore_rows

DROP_SCRIPT = "allenai/allennlp-reading-comprehension allennlp_rc/eval/drop_eval.py"
_TOKEN_END = re.compile("[ -]")
_GOLD_FIELDS = ("gold", "answer", "answers_spans")
Spans = list[str]


def score_drop(case: Case) -> Components:
    """EM and F1, each as the maximum over the answers of several people.

    EM asks for the same spans and as many. For F1 each span is matched with one gold span, so that the sum is the
    greatest; spans without a partner count 0, and so do those that share no number with a gold span that has some.
    """
    golds = list_drop_golds(case.gold)
    if isinstance(case.predicted, str) and any(len(gold) > 1 for gold in golds):
        spans = split_answers(case.predicted, [{"text": span} for gold in golds for span in gold]) or [""]
    else:
        spans = [to_text(span) for span in to_list(case.predicted)] or [""]
    scores = [_compare_spans(spans, gold) for gold in golds]
    return {"em": max(em for em, _ in scores), "f1": max(f1 for _, f1 in scores)}


def list_drop_golds(gold: Mapping[str, Any]) -> list[Spans]:
    """The spans of each person's answer; UnusableValue if there is none."""
    value = first_field(gold, _GOLD_FIELDS)
    if isinstance(value, dict) and "spans" in value and "number" not in value:
        spans = list(map(str, to_list(value["spans"])))
        golds = [spans] if "span" in value.get("types", ("span",)) else [[span] for span in spans]
    elif isinstance(value, dict):
        others = restore_rows(gold.get("validated_answers"))
        people = [value, *(other for other in to_list(others) if isinstance(other, dict))]
        golds = list(map(_list_spans, people))
    elif isinstance(value, list) and value and all(isinstance(answer, dict) for answer in value):
        # The gold answers of a question, all of which an answer names; of one of them, any name.
        names = list(map(list_aliases, value))
        golds = [[aliases[0] for aliases in names]] if len(names) > 1 else [[name] for name in names[0]]
    else:
        golds = [[to_text(answer, "the gold answer")] for answer in to_list(value)]
    golds = [spans for spans in golds if spans and spans[0].strip()]
    if not golds:
        raise UnusableValue("the gold record has no answer")
    return golds


def _list_spans(answer: dict[str, Any]) -> Spans:
    """The number, the spans or the date of an answer, in this order."""
    if answer.get("number") not in (None, ""):
        return [str(answer["number"])]
    if spans := [str(span) for span in to_list(answer.get("spans"))]:
        return spans
    date = answer.get("date")
    parts = [str(date.get(name) or "") for name in ("day", "month", "year")] if isinstance(date, dict) else []
    return [" ".join(parts).strip()]


def _compare_spans(predicted: Spans, gold: Spans) -> tuple[float, float]:
    # SciPy takes a second to load, which pages and verbs that show other metrics need not wait for.
    from scipy.optimize import linear_sum_assignment  # noqa: PLC0415

    texts, gold_texts = list(map(_normalize, predicted)), list(map(_normalize, gold))
    em = float(set(texts) == set(gold_texts) and len(texts) == len(gold_texts))
    shares = np.array(
        [[_compare_words(set(text.split()), set(other.split())) for other in gold_texts] for text in texts]
    )
    f1 = float(shares[linear_sum_assignment(shares, maximize=True)].sum()) / max(len(texts), len(gold_texts))
    # The script rounds the F1 of a question.
    return em, round(f1, 2)


def _compare_words(predicted: set[str], gold: set[str]) -> float:
    numbers = set(filter(_is_number, gold))
    if numbers and numbers.isdisjoint(predicted):
        return 0.0
    if not predicted and not gold:
        return 1.0
    return count_overlap_f1(len(predicted & gold), len(predicted), len(gold))[2]


def _normalize(span: str) -> str:
    """The words of a span in lower case without articles, each as a number if it is one, else without punctuation."""
    words = (_normalize_word(word) for word in _TOKEN_END.split(span.lower()))
    return " ".join(word for word in words if word)


def _normalize_word(word: str) -> str:
    plain = word if _is_number(word) else remove_punctuation(word)
    return " ".join(remove_articles(str(float(plain)) if _is_number(plain) else plain).split())


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


DROP_METRICS = declare_metrics(
    "drop",
    {"em": "the spans of the answer are those of a gold answer", "f1": "F1 over the words of matched spans"},
    score=score_drop,
    components=("em", "f1"),
    datasets=("drop",),
    source=DROP_SCRIPT,
    gold_fields=(_GOLD_FIELDS,),
    note="the script takes several spans as a list; a text is split at line ends, semicolons or commas",
)
"""The metrics of DROP."""
