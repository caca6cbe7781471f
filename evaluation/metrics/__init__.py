"""Metrics of answers; a new one has a module here and a line in METRICS or DATASET_METRICS.

Every report of scores has the mean of each of METRICS under its name. `showhow score` computes DATASET_METRICS.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from statistics import fmean
from typing import Any

from showhow.db.unanswerable import find_gold_reason, read_unanswerable
from showhow.evaluation.datasets import QUESTION_FORMATS
from showhow.evaluation.datasets.reader import list_claims
from showhow.evaluation.datasets.record import UnreadableRecord, parse_record
from showhow.evaluation.metrics.answer_sets import ANSWER_SET_METRICS
from showhow.evaluation.metrics.drop import DROP_METRICS
from showhow.evaluation.metrics.em_and_f1 import OFFICIAL_F1, normalize_words
from showhow.evaluation.metrics.hits import HIT_METRICS
from showhow.evaluation.metrics.metric import (
    ANSWER_F1,
    Case,
    Components,
    DatasetMetric,
    GoldAnswer,
    Metric,
    MetricError,
    Unscorable,
    UnusableValue,
    first_field,
    list_aliases,
    list_gold_texts,
    score_against_gold,
    to_text,
)
from showhow.evaluation.metrics.multihop import MULTIHOP_METRICS
from showhow.evaluation.metrics.squad import SQUAD_METRICS
from showhow.evaluation.metrics.strategyqa_and_crag import CRAG_METRICS, STRATEGYQA_METRICS
from showhow.guard.plugins import Registry
from showhow.reasoners.answers.extraction import strip_or_none

METRICS = Registry("metrics", Metric, (ANSWER_F1, OFFICIAL_F1), raises=(Unscorable,))
"""The metrics that reports show, by name."""
NO_ANSWER_WORDS = (["no", "answer"], ["none"], ["nothing"], ["nobody"])
"""Normalized answers which state that a question has no answer."""
OTHER_DATASET_NAMES = {
    "2wiki": "2wikimultihopqa",
    "2wikimultihop": "2wikimultihopqa",
    "lcquad20": "lcquad2",
    "qaldhybrid": "qald",
    "squad2": "squad",
    "squadv2": "squad",
}
"""Further names of data sets, in lower case and without punctuation."""

__all__ = [
    "ANSWER_F1",
    "DATASET_METRICS",
    "METRICS",
    "GoldAnswer",
    "Metric",
    "find_dataset_metric",
    "find_dataset_name",
    "format_means",
    "list_dataset_metrics",
    "list_gold_answers",
    "mean",
    "score_against_gold",
    "score_answer",
    "score_by_metric",
]


def score_answer(answer: str, golds: Sequence[GoldAnswer], metric: Metric = ANSWER_F1) -> float:
    """Score an answer; if there is none, or the question cannot be answered, 1 if the answer says so, else 0.

    An answer that says so is wrong for every other question; reasons are not compared.
    """
    says_so = read_unanswerable(answer) is not None
    if not golds or find_gold_reason(golds):
        names = {alias.casefold() for gold in golds for alias in list_aliases(gold)}
        is_none = strip_or_none(answer) is None or normalize_words(answer) in NO_ANSWER_WORDS
        return float(says_so or is_none or answer.strip().casefold() in names)
    return 0.0 if says_so else metric.score(answer, golds)


def score_by_metric(answer: str, golds: Sequence[GoldAnswer]) -> dict[str, float]:
    """Score an answer by every metric; returns the scores by name, without a metric of a plugin that fails."""
    scores: dict[str, float] = {}
    for name, metric in METRICS.items():
        try:
            scores[name] = score_answer(answer, golds, metric)
        except Unscorable:
            if name not in METRICS.packages:
                raise
    return scores


def format_means(report: Mapping[str, Any], decimals: int = 2) -> str:
    """Format the mean of each metric in a report: F1 0.51, official F1 0.48."""
    means = {metric.label: report[name] for name, metric in METRICS.items()}
    return ", ".join(f"{label} {'-' if value is None else f'{value:.{decimals}f}'}" for label, value in means.items())


def mean(scores: Sequence[float]) -> float:
    """The mean; ValueError if there are no scores."""
    if not scores:
        raise ValueError("the mean of no scores is not defined")
    return fmean(scores)


def _for_any_dataset(metric: Metric) -> DatasetMetric:
    """A metric of runs for the predictions of a file.

    A record of a gold file has the gold answers that its import would store. Under `gold`, texts are alternative
    answers, and objects are all required.
    """

    def score(case: Case) -> Components:
        return {metric.name: score_answer(to_text(case.predicted), list_gold_answers(case.gold), metric)}

    return DatasetMetric(
        name=metric.name,
        version=metric.version,
        purpose=metric.purpose,
        source="Showhow",
        datasets=(),
        components=(metric.name,),
        score=score,
        value=metric.name,
        gold_fields=(),
    )


def list_gold_answers(gold: Mapping[str, Any]) -> Sequence[GoldAnswer]:
    """The gold answers of a record of a gold file, as its import would store them; UnusableValue if there are none."""
    formats = () if "gold" in gold else list_claims(gold, QUESTION_FORMATS)
    if len(formats) == 1:
        try:
            golds = parse_record(QUESTION_FORMATS[formats[0]], gold, language="en").gold_answers
        except UnreadableRecord as error:
            raise UnusableValue(f"the gold record cannot be read in the format {formats[0]}: {error}") from error
        if not golds:
            raise UnusableValue("the gold record has no answer")
        return golds
    golds = first_field(gold, ("gold", "answers"))
    if isinstance(golds, list) and golds and all(isinstance(answer, Mapping) for answer in golds):
        return golds
    text, *aliases = list_gold_texts(gold)
    return [{"text": text, "aliases": aliases}]


DATASET_METRICS = Registry(
    "dataset_metrics",
    DatasetMetric,
    chain(
        # Lazy: METRICS are listed at the first use, since their packages may import this module.
        map(_for_any_dataset, METRICS.values()),
        MULTIHOP_METRICS,
        HIT_METRICS,
        ANSWER_SET_METRICS,
        DROP_METRICS,
        STRATEGYQA_METRICS,
        CRAG_METRICS,
        SQUAD_METRICS,
    ),
    raises=(Unscorable, UnusableValue),
)
"""The metrics of predictions in files, by name."""


def find_dataset_metric(name: str, dataset: str | None) -> DatasetMetric:
    """The metric with this name, if the data set can have it; MetricError names what exists."""
    metric = DATASET_METRICS.get(name)
    if metric is None:
        raise MetricError(f"There is no metric {name!r}; `--metric list` shows the metrics of each data set.")
    if metric.unavailable:
        raise MetricError(f"The metric {name} is not available: {metric.unavailable}.")
    if dataset is not None:
        (known,) = list_dataset_metrics(dataset).values()
        names = [metric.name for metric in known]
        if name not in names:
            raise MetricError(f"The data set {dataset} does not have the metric {name}; it has {', '.join(names)}.")
    return metric


def list_dataset_metrics(dataset: str | None = None) -> dict[str, list[DatasetMetric]]:
    """The metrics of each data set by its name, or of this one; those for all data sets included.

    MetricError if there is no data set with this name.
    """
    datasets = sorted({name for metric in DATASET_METRICS.values() for name in metric.datasets})
    if dataset is not None:
        datasets = [_find_dataset(dataset, datasets)]
    return {
        name: [metric for metric in DATASET_METRICS.values() if name in metric.datasets or not metric.datasets]
        for name in datasets
    }


def find_dataset_name(name: str) -> str:
    """The name of a data set in lower case and without punctuation; one of its other names is replaced."""
    plain = "".join(letter for letter in name.lower() if letter.isalnum())
    return OTHER_DATASET_NAMES.get(plain, plain)


def _find_dataset(name: str, datasets: Sequence[str]) -> str:
    plain = find_dataset_name(name)
    if plain not in datasets:
        raise MetricError(f"There is no data set {name!r}; those with metrics are {', '.join(datasets)}.")
    return plain
