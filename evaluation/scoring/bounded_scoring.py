"""Scores within limits: a long answer is scored in a bounded worker, so that none stops a page, a verb or a run.

Metrics take about linear time, and a short answer is scored at once; what cannot be scored within the limits is
unscorable, which is not a wrong answer.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from showhow.evaluation.metrics import DATASET_METRICS, GoldAnswer, score_by_metric
from showhow.evaluation.metrics.metric import Case, Components, DatasetMetric, Unscorable
from showhow.guard.worker import WorkFailed, WorkLimits, run_bounded

SCORING_LIMITS = WorkLimits(seconds=5.0, megabytes=512)
"""What scoring an answer, or a batch of cases, may use."""
RuleResult = Components | Exception | None
"""The figures of a case, why it has none, or None if the rule leaves it out."""
SHORT_CHARACTERS = 5_000
"""Texts that together are no longer are scored at once."""
_CASES_OF_A_BATCH = 100


def score_within_limits(answer: str, golds: Sequence[GoldAnswer]) -> dict[str, float]:
    """The scores of an answer by the name of each metric of runs; Unscorable if its limits end it."""
    if count_characters((answer, list(golds))) <= SHORT_CHARACTERS:
        return score_by_metric(answer, golds)
    scores: dict[str, float] = _run(score_by_metric, answer, list(golds))
    return scores


def score_cases_within_limits(cases: Sequence[Case], metric: DatasetMetric) -> list[RuleResult]:
    """For each case its figures, or the exception of the metric's rule; Unscorable if the limits end it."""
    is_registered = DATASET_METRICS.get(metric.name) is metric
    long = [case for case in cases if is_registered and not _is_short(case)]
    batches = (long[start : start + _CASES_OF_A_BATCH] for start in range(0, len(long), _CASES_OF_A_BATCH))
    pairs = [pair for batch in batches for pair in zip(batch, _score_batch(batch, metric), strict=True)]
    results: dict[int, RuleResult] = {id(case): result for case, result in pairs}
    return [results[id(case)] if id(case) in results else _try(metric.score, case) for case in cases]


def _score_batch(cases: Sequence[Case], metric: DatasetMetric) -> list[RuleResult]:
    """The results of cases, alone if one of them has no figures."""
    fields = [(dict(case.gold), case.predicted, dict(case.row)) for case in cases]
    results = _try(_run, score_fields, metric.name, fields)
    if not isinstance(results, Exception):
        return list(results or ())
    if len(fields) == 1:
        return [results]
    return [result for case in cases for result in _score_batch([case], metric)]


def _try(call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return call(*arguments)
    # The rule of a metric may raise anything for a foreign record; who asked for the figures says what it means.
    except Exception as error:  # noqa: BLE001
        return error


def score_fields(name: str, cases: Sequence[tuple[Mapping[str, Any], Any, Mapping[str, Any]]]) -> list[Any]:
    """The figures of cases by the metric of this name, in a worker."""
    metric = DATASET_METRICS[name]
    return [None if (score := metric.score(Case(*case))) is None else dict(score) for case in cases]


def _is_short(case: Case) -> bool:
    return count_characters([case.predicted, case.row, case.gold]) <= SHORT_CHARACTERS


def _run(function: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return run_bounded(function, *arguments, limits=SCORING_LIMITS)
    except WorkFailed as error:
        raise Unscorable(f"the answer could not be scored: {error}") from error
    except RecursionError as error:
        raise Unscorable("the answer could not be scored: it is nested too deeply") from error


def count_characters(value: Any) -> int:
    """The characters of all texts, and one for each other value, of nested lists and objects."""
    count, unvisited = 0, [value]
    while unvisited and count <= SHORT_CHARACTERS:
        part = unvisited.pop()
        if isinstance(part, str):
            count += len(part)
        elif isinstance(part, Mapping):
            unvisited += part.keys()
            unvisited += part.values()
        elif isinstance(part, list | tuple):
            unvisited += part
        count += 1
    return count
