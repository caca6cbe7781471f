"""Runs compared with a baseline: figures with intervals, paired differences, and why runs may not compare.

    comparison = compare_runs(database, run_ids, baseline_id, MetricVersion("f1", 2))
    comparison.figures, comparison.differences, comparison.warnings

The score of a question is the mean over its repetitions (db/comparisons.py), so that a question that is asked several
times is one value. Questions that share a universe, an instance, an article or a template are a cluster.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from db import attempts, comparisons
from db.comparisons import CLUSTER_FIELDS, MetricVersion, QuestionFigures
from db.database import Conflict, Database
from db.models import UNFINISHED_ENDINGS, Run
from db.trace_configuration import TraceConfiguration
from evaluation.metrics import METRICS
from evaluation.scoring import label_runs, usage_of_group
from evaluation.statistics import (
    Estimate,
    FloatArray,
    IntArray,
    Interval,
    PairedDifference,
    adjust_holm,
    cluster_mean,
    compare_paired,
    mcnemar_exact,
    wilson_interval,
)
from evaluation.value_format import escape_latex, format_latex_table, format_p_value
from llm.usage import Usage

MAX_COMPARED_RUNS = 8
OWN_CLUSTER = "question"
"""Each question is a cluster of its own."""
QUESTIONS_DIFFER, METRIC_DIFFERS, WORLD_DIFFERS = "questions", "metric version", "world"
MODEL_DIFFERS, UNFINISHED, NO_SHARED_QUESTIONS = "model", "unfinished", "no shared questions"
WARNING_SENTENCES = {
    QUESTIONS_DIFFER: "{run} was asked other questions than {baseline}, or questions with other gold answers.",
    METRIC_DIFFERS: "{run} has no complete scores by {metric}; score it again, or choose another metric.",
    WORLD_DIFFERS: "{run} worked in another content of its world than {baseline}.",
    MODEL_DIFFERS: "{run} used another model than {baseline}.",
    UNFINISHED: "{run} is not finished; its figures are over the questions that are.",
    NO_SHARED_QUESTIONS: "{run} and {baseline} share no scored question, so there is no difference to show.",
}
NOTES = frozenset({MODEL_DIFFERS})
"""Warnings about runs that compare nevertheless."""


@dataclass(frozen=True, slots=True)
class ComparisonWarning:
    """One reason why the figures of a run may not compare with those of the baseline."""

    kind: str
    """A key of WARNING_SENTENCES."""
    run_id: UUID
    sentence: str

    @property
    def is_note(self) -> bool:
        """Whether the runs compare nevertheless."""
        return self.kind in NOTES


@dataclass(frozen=True, slots=True)
class RunFigures:
    """The figures of one run; means are over its finished questions."""

    run_id: UUID
    label: str
    """A name that no other run of the comparison has."""
    questions: int
    repetitions: int
    answered: int
    """Answers, not questions, as are the next three."""
    refused: int
    failed: int
    left: int
    scored: int
    """Questions with a score by the metric."""
    score: float | None
    """The mean score; None without one."""
    error: Estimate | None
    """Its clustered standard error, and its interval within 0 to 1; None for fewer than two clusters."""
    right: int
    right_share: Interval | None
    """Wilson's interval of the share of right questions."""
    cost: float | None
    """US dollars an answer; None if a price is unknown."""
    cost_error: Estimate | None
    """The mean and interval over questions; None if a price is unknown, or for fewer than two questions."""
    tokens: float | None
    """Input and output tokens an answer; None if they are unknown."""
    seconds: float
    seconds_error: Estimate | None
    calls: float
    """Model calls an answer."""
    is_cost_bound: bool
    """Whether `cost` is the most that it can be."""


@dataclass(frozen=True, slots=True)
class RunDifference:
    """A run against the baseline, over the questions that both have."""

    run_id: UUID
    paired: PairedDifference
    clusters: int
    right_gains: int
    """Questions that the run has right and the baseline wrong."""
    right_losses: int
    p_value: float
    """McNemar's exact test of right and wrong."""
    adjusted_p: float
    """Holm's correction for the number of runs that are compared with the baseline."""


@dataclass(frozen=True, slots=True)
class RunComparison:
    """Runs, their figures, and the difference of each from the baseline."""

    metric: MetricVersion
    baseline_id: UUID
    cluster_field: str
    """The field of CLUSTER_FIELDS by which questions are clustered, or OWN_CLUSTER."""
    figures: list[RunFigures]
    """In the order of the runs."""
    differences: dict[UUID, RunDifference]
    """By run; the baseline has none, and neither has a run that shares fewer than two clusters with it."""
    warnings: list[ComparisonWarning]

    @property
    def labels(self) -> dict[UUID, str]:
        """The name of each run."""
        return {run.run_id: run.label for run in self.figures}


def metric_label(name: str) -> str:
    """The name of a metric in texts and tables; a scorer of an imported log keeps its own."""
    return METRICS[name].label if name in METRICS else name


def list_metrics(database: Database, run_ids: Sequence[UUID]) -> list[MetricVersion]:
    """The metrics by which answers of these runs are scored; those that most runs have first, newer versions first."""
    with database.read() as session:
        scores = comparisons.list_run_scores(session, run_ids)
    counts = Counter(MetricVersion(row.metric, row.version) for row in scores)
    order = list(METRICS)
    places = {name: place for place, name in enumerate(order)}
    return sorted(counts, key=lambda metric: (-counts[metric], places.get(metric.name, len(order)), -metric.version))


def compare_runs(
    database: Database, run_ids: Sequence[UUID], baseline_id: UUID, metric: MetricVersion
) -> RunComparison:
    """Compare runs by a metric; Conflict for fewer than two runs, too many, or a baseline that is none of them."""
    ids = list(dict.fromkeys(run_ids))
    if not 2 <= len(ids) <= MAX_COMPARED_RUNS or baseline_id not in ids:
        raise Conflict(f"choose 2 to {MAX_COMPARED_RUNS} different runs, one of them as the baseline")
    with database.read() as session:
        stored = {run_id: comparisons.find_comparable_run(session, run_id) for run_id in ids}
        questions = {run_id: comparisons.load_question_figures(session, run_id, metric) for run_id in ids}
        fields = comparisons.load_cluster_fields(session, baseline_id)
        for run_id, rows in questions.items():
            if not fields.keys() >= {row.question for row in rows}:
                fields |= comparisons.load_cluster_fields(session, run_id)
        groups = {run_id: attempts.group_attempts(session, run_id) for run_id in ids}
    labels = label_runs(list(stored.values()))
    cluster_field, clusters = _choose_clusters(fields)
    places = {question: place for place, question in enumerate(fields)}
    columns = {run_id: _RunColumns.of(rows, places) for run_id, rows in questions.items()}
    figures = [_summarize_run(run, labels[key], columns[key], groups[key], clusters) for key, run in stored.items()]
    differences = _compare_with_baseline(columns, baseline_id, clusters)
    comparison = RunComparison(metric, baseline_id, cluster_field, figures, differences, [])
    return replace(comparison, warnings=_find_warnings(comparison, stored))


def _choose_clusters(fields: Mapping[str, tuple[str | None, ...]]) -> tuple[str, IntArray]:
    """The widest field that every question has and that groups some of them, and the cluster of each in their order."""
    for place, name in enumerate(CLUSTER_FIELDS):
        values = [row[place] for row in fields.values()]
        codes = {value: code for code, value in enumerate(dict.fromkeys(values))}
        if None not in codes and 1 < len(codes) < len(values):
            return name, np.array([codes[value] for value in values], dtype=np.intp)
    return OWN_CLUSTER, np.arange(len(fields))


@dataclass(frozen=True, slots=True)
class _RunColumns:
    """What a run made of all questions of the comparison, as arrays in their order; NaN where it is unknown."""

    scores: FloatArray
    is_right: NDArray[np.bool_]
    costs: FloatArray
    seconds: FloatArray
    """Known for every question that the run has finished."""

    @classmethod
    def of(cls, rows: Sequence[QuestionFigures], places: Mapping[str, int]) -> "_RunColumns":
        """The columns of these rows; `places` has the place of each question."""
        columns = np.full((4, len(places)), np.nan)
        if rows:
            asked = [places[row.question] for row in rows]
            values = [(row.score, bool(row.is_right), row.cost, row.seconds) for row in rows]
            columns[:, asked] = np.array(values, dtype=float).T
        return cls(columns[0], columns[1] == 1, columns[2], columns[3])


def _estimate(values: FloatArray, clusters: IntArray) -> Estimate | None:
    """The mean of the values that are known; None for fewer than two clusters."""
    known = ~np.isnan(values)
    chosen = clusters[known]
    return cluster_mean(values[known], chosen) if len(chosen) and chosen.min() < chosen.max() else None


def _within_scale(estimate: Estimate | None, scores: FloatArray) -> Estimate | None:
    """The estimate of a mean score with its interval cut to the scale: from 0, or -1 if scores are below 0, to 1."""
    if estimate is None:
        return None
    low = max(estimate.interval.low, -1.0 if np.nanmin(scores) < 0 else 0.0)
    return replace(estimate, interval=Interval(low, min(estimate.interval.high, 1.0)))


def _summarize_run(
    run: Run,
    label: str,
    columns: _RunColumns,
    groups: Sequence[attempts.AttemptGroup],
    clusters: IntArray,
) -> RunFigures:
    endings: Counter[str | None] = Counter()
    for group in groups:
        endings[group.ending] += group.attempts
    left = sum(endings[ending] for ending in (None, *UNFINISHED_ENDINGS))
    finished = endings.total() - left
    ended = [group for group in groups if group.ending not in (None, *UNFINISHED_ENDINGS)]
    usage = sum(map(usage_of_group, ended), Usage())
    answers = finished or 1
    scores = columns.scores[~np.isnan(columns.scores)]
    right = int(columns.is_right.sum())
    is_asked = ~np.isnan(columns.seconds)
    has_all_costs = not np.isnan(columns.costs[is_asked]).any()
    alone = np.arange(len(clusters))
    tokens = None if None in (usage.input_tokens, usage.output_tokens) else usage.input_tokens + usage.output_tokens  # type: ignore[operator]
    is_bound = usage.max_cost is not None and (usage.cost is None or usage.max_cost > usage.cost)
    return RunFigures(
        run_id=run.id,
        label=label,
        questions=int(is_asked.sum()),
        repetitions=TraceConfiguration.from_json(run.configuration).repetitions,
        answered=endings["answered"],
        refused=endings["refused"],
        failed=finished - endings["answered"] - endings["refused"],
        left=left,
        scored=len(scores),
        score=float(scores.mean()) if len(scores) else None,
        error=_within_scale(_estimate(columns.scores, clusters), columns.scores),
        right=right,
        right_share=wilson_interval(right, len(scores)) if len(scores) else None,
        cost=None if usage.max_cost is None else usage.max_cost / answers,
        cost_error=_estimate(columns.costs, alone) if has_all_costs else None,
        tokens=None if tokens is None else tokens / answers,
        seconds=sum(group.seconds for group in ended) / answers,
        seconds_error=_estimate(columns.seconds, alone),
        calls=usage.calls / answers,
        is_cost_bound=is_bound,
    )


def _compare_with_baseline(
    columns: Mapping[UUID, _RunColumns], baseline_id: UUID, clusters: IntArray
) -> dict[UUID, RunDifference]:
    baseline = columns[baseline_id]
    compared: dict[UUID, tuple[PairedDifference, int, int, int]] = {}
    for run_id, run in columns.items():
        both = ~np.isnan(run.scores) & ~np.isnan(baseline.scores)
        count = len(np.unique(clusters[both]))
        if run_id == baseline_id or count < 2:
            continue
        paired = compare_paired(run.scores, baseline.scores, clusters)
        gains, losses = run.is_right & ~baseline.is_right, baseline.is_right & ~run.is_right
        compared[run_id] = (paired, count, int(gains[both].sum()), int(losses[both].sum()))
    p_values = [mcnemar_exact(gains, losses) for _, _, gains, losses in compared.values()]
    return {
        run_id: RunDifference(run_id, *values, p_value, adjusted)
        for (run_id, values), p_value, adjusted in zip(compared.items(), p_values, adjust_holm(p_values), strict=True)
    }


def _find_warnings(comparison: RunComparison, stored: Mapping[UUID, Run]) -> list[ComparisonWarning]:
    warnings: list[ComparisonWarning] = []
    labels, baseline = comparison.labels, stored[comparison.baseline_id]
    for figures in comparison.figures:
        run = stored[figures.run_id]
        kinds = {
            METRIC_DIFFERS: figures.scored < figures.questions,
            UNFINISHED: figures.left > 0,
        }
        if run.id != baseline.id:
            kinds |= {
                QUESTIONS_DIFFER: _differ(run.questions_hash, baseline.questions_hash),
                WORLD_DIFFERS: run.world != baseline.world or _differ(run.world_hash, baseline.world_hash),
                MODEL_DIFFERS: run.model != baseline.model and run.reasoner == baseline.reasoner,
                NO_SHARED_QUESTIONS: run.id not in comparison.differences,
            }
        metric = f"{metric_label(comparison.metric.name)}, version {comparison.metric.version}"
        words = {"run": labels[run.id], "baseline": labels[baseline.id], "metric": metric}
        warnings += [
            ComparisonWarning(kind, run.id, WARNING_SENTENCES[kind].format(**words))
            for kind, applies in kinds.items()
            if applies
        ]
    return warnings


def _differ(value: str | None, other: str | None) -> bool:
    """Whether both are recorded and differ."""
    return None not in (value, other) and value != other


RUN_COLUMNS: dict[str, type] = {
    **dict.fromkeys(("run", "id", "metric"), str),
    **dict.fromkeys(("metric_version", "questions", "repetitions", "answered", "refused", "failed", "left"), int),
    **dict.fromkeys(("score", "score_se", "score_low", "score_high"), float),
    "right": int,
    **dict.fromkeys(("right_low", "right_high", "cost", "cost_low", "cost_high", "tokens", "seconds", "calls"), float),
    "baseline": str,
    **dict.fromkeys(("difference", "difference_se", "difference_low", "difference_high"), float),
    **dict.fromkeys(("bootstrap_low", "bootstrap_high"), float),
    "clusters_by": str,
    **dict.fromkeys(("clusters", "pairs", "gains", "losses", "ties", "missing"), int),
    "difference_with_missing_as_zero": float,
    **dict.fromkeys(("right_gains", "right_losses"), int),
    **dict.fromkeys(("p_mcnemar", "p_holm"), float),
    "warnings": str,
}
"""The columns of an exported table of runs; figures of cost, tokens, seconds and calls are those of an answer."""
ANSWER_COLUMNS: dict[str, type] = {
    **dict.fromkeys(("run", "run_id", "question_id", "source_id", "kind", "question", "gold"), str),
    "repetition": int,
    **dict.fromkeys(("ending", "answer", "failure", "metric"), str),
    "metric_version": int,
    "score": float,
    **dict.fromkeys(("model_calls", "input_tokens", "output_tokens"), int),
    **dict.fromkeys(("cost", "seconds"), float),
    "trace_id": str,
}
"""The columns of exported answers."""


def list_run_rows(comparison: RunComparison) -> list[dict[str, Any]]:
    """The rows of RUN_COLUMNS; None where a figure is unknown, and for the baseline where it is a difference."""
    rows = []
    for run in comparison.figures:
        difference = comparison.differences.get(run.run_id)
        row = dict.fromkeys(RUN_COLUMNS) | {name: getattr(run, name) for name in RUN_COLUMNS if hasattr(run, name)}
        row |= {"run": run.label, "id": str(run.run_id), "baseline": comparison.labels[comparison.baseline_id]}
        row |= {"metric": comparison.metric.name, "metric_version": comparison.metric.version}
        row |= _interval_cells("score", run.error) | _interval_cells("cost", run.cost_error)
        if run.right_share is not None:
            row |= {"right_low": run.right_share.low, "right_high": run.right_share.high}
        if difference is not None:
            row |= _difference_cells(difference) | {"clusters_by": comparison.cluster_field}
        row["warnings"] = " ".join(w.sentence for w in comparison.warnings if w.run_id == run.run_id) or None
        rows.append({name: row[name] for name in RUN_COLUMNS})
    return rows


def _interval_cells(name: str, estimate: Estimate | None) -> dict[str, float]:
    if estimate is None:
        return {}
    ends = {f"{name}_low": estimate.interval.low, f"{name}_high": estimate.interval.high}
    return ends | {f"{name}_se": estimate.standard_error}


def _difference_cells(difference: RunDifference) -> dict[str, Any]:
    paired = difference.paired
    return {
        "difference": paired.difference.value,
        **_interval_cells("difference", paired.difference),
        "bootstrap_low": paired.bootstrap.low,
        "bootstrap_high": paired.bootstrap.high,
        "clusters": difference.clusters,
        "pairs": paired.questions,
        **{name: getattr(paired, name) for name in ("gains", "losses", "ties", "missing")},
        "difference_with_missing_as_zero": paired.with_missing_as_zero,
        "right_gains": difference.right_gains,
        "right_losses": difference.right_losses,
        "p_mcnemar": difference.p_value,
        "p_holm": difference.adjusted_p,
    }


def iterate_answer_rows(database: Database, comparison: RunComparison) -> Iterator[dict[str, Any]]:
    """The rows of ANSWER_COLUMNS: every answer of each run, in the order in which it was asked."""
    labels, metric = comparison.labels, comparison.metric
    with database.read() as session:
        for row in comparisons.iterate_attempt_rows(session, list(labels), metric):
            yield {
                **{name: getattr(row, name) for name in ANSWER_COLUMNS if hasattr(row, name)},
                **{name: str(getattr(row, name)) for name in ("run_id", "question_id")},
                "run": labels[row.run_id],
                "question": row.text,
                "gold": " | ".join(str(gold["text"]) for gold in row.gold),
                "metric": metric.name,
                "metric_version": metric.version,
                "trace_id": None if row.trace_id is None else str(row.trace_id),
            }


def format_comparison_latex(comparison: RunComparison) -> str:
    """The table of a paper: each run with score, difference from the baseline, adjusted p, and cost of an answer."""
    label = escape_latex(metric_label(comparison.metric.name))
    columns = {"Run": "l", "$n$": "r", rf"{label} [95\% CI]": "l", r"$\Delta$ [95\% CI]": "l"}
    columns |= {"W/T/L": "r", "$p$": "r", r"\$/answer": "r"}
    rows = []
    for run in comparison.figures:
        difference = comparison.differences.get(run.run_id)
        cells = ["--", "--", "--"]
        if difference is not None:
            paired = difference.paired
            counts = f"{paired.gains}/{paired.ties}/{paired.losses}"
            cells = [
                _latex_estimate(paired.difference.value, paired.difference),
                counts,
                format_p_value(difference.adjusted_p).replace("<", "$<$"),
            ]
        score = "--" if run.score is None else _latex_estimate(run.score, run.error)
        cost = "--" if run.cost is None else f"{run.cost:.4f}"
        rows.append([escape_latex(run.label), str(run.scored), score, *cells, cost])
    baseline = escape_latex(comparison.labels[comparison.baseline_id])
    note = (
        rf"$\Delta$: paired difference from {baseline}, standard errors clustered by {comparison.cluster_field}. "
        r"W/T/L: questions with a higher, equal, lower score. $p$: McNemar's exact test with Holm's correction."
    )
    notes = [note, *(escape_latex(warning.sentence) for warning in comparison.warnings)]
    return format_latex_table(columns, rows, f"{label} of {len(rows)} runs.", " ".join(notes))


def _latex_estimate(value: float, estimate: Estimate | None) -> str:
    interval = "" if estimate is None else f" [{estimate.interval.low:.3f}, {estimate.interval.high:.3f}]"
    return f"{value:.3f}{interval}".replace("-", "$-$")
