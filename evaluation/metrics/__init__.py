"""Metrics of answers; a new one has a module here and a line in METRICS.

Every report of scores has the mean of each metric under its name.
"""

from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import Any

from evaluation.metrics.answer_f1 import ANSWER_F1, score_against_gold
from evaluation.metrics.metric import GoldAnswer, Metric
from evaluation.metrics.official_f1 import OFFICIAL_F1, normalize_words
from reasoners.answers.extraction import strip_or_none

METRICS = {
    metric.name: metric
    for metric in (
        ANSWER_F1,
        OFFICIAL_F1,
    )
}
"""The metrics that reports show, by name."""
NO_ANSWER_WORDS = (["no", "answer"], ["none"], ["nothing"], ["nobody"])
"""Normalized answers which state that a question has no answer."""

__all__ = [
    "ANSWER_F1",
    "METRICS",
    "GoldAnswer",
    "Metric",
    "format_means",
    "mean",
    "score_against_gold",
    "score_answer",
    "score_by_metric",
]


def score_answer(answer: str, golds: Sequence[GoldAnswer], metric: Metric = ANSWER_F1) -> float:
    """Score an answer; without gold answers, 1 if it states that there is no answer, else 0."""
    if not golds:
        return float(strip_or_none(answer) is None or normalize_words(answer) in NO_ANSWER_WORDS)
    return metric.score(answer, golds)


def score_by_metric(answer: str, golds: Sequence[GoldAnswer]) -> dict[str, float]:
    """Score an answer by every metric; returns the scores by name."""
    return {name: score_answer(answer, golds, metric) for name, metric in METRICS.items()}


def format_means(report: Mapping[str, Any], decimals: int = 2) -> str:
    """Format the mean of each metric in a report: F1 0.51, official F1 0.48."""
    means = {metric.label: report[name] for name, metric in METRICS.items()}
    return ", ".join(f"{label} {'-' if value is None else f'{value:.{decimals}f}'}" for label, value in means.items())


def mean(scores: Sequence[float]) -> float:
    """The mean; ValueError if there are no scores."""
    if not scores:
        raise ValueError("the mean of no scores is not defined")
    return fmean(scores)
