"""Runs compared with a baseline: figures with intervals, paired differences, and why runs may not compare.

    comparison = compare_runs(database, run_ids, baseline_id, MetricVersion("f1", 2))
    comparison.figures, comparison.differences, comparison.warnings

The score of a question is the mean over its repetitions (comparisons.py), so that a question that is asked several
times is one value. Questions that share a universe, an instance, an article or a template are a cluster.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from showhow.db.database import Conflict, Database
from showhow.db.models import UNFINISHED_ENDINGS, Run
from showhow.db.runs import attempts, comparisons, verifications
from showhow.db.runs.comparisons import CLUSTER_FIELDS, MetricVersion, QuestionFigures
from showhow.db.traces.libraries import list_library_worlds
from showhow.evaluation.metrics import ANSWER_F1, METRICS
from showhow.evaluation.scoring.scoring import label_runs, usage_of_group
from showhow.evaluation.statistics import (
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
from showhow.evaluation.value_format import format_count
from showhow.llm.usage import Usage
from showhow.runs.preparation import shows_demonstrations

MAX_COMPARED_RUNS = 8
OWN_CLUSTER = "question"
"""Each question is a cluster of its own."""
QUESTIONS_DIFFER, METRIC_DIFFERS, WORLD_DIFFERS = "questions", "metric version", "world"
MODEL_DIFFERS, UNFINISHED, NO_SHARED_QUESTIONS = "model", "unfinished", "no shared questions"
NOTHING_ANSWERED, TESTED_WORLD = "nothing answered", "tested world"
WARNING_SENTENCES = {
    QUESTIONS_DIFFER: "{run} was asked other questions than {baseline}, or questions with other gold answers.",
    METRIC_DIFFERS: "{run} has no complete scores by {metric}; score it again, or choose another metric.",
    WORLD_DIFFERS: "{run} worked in another content of its world than {baseline}.",
    MODEL_DIFFERS: "{run} used another model than {baseline}.",
    UNFINISHED: "{run} is not finished; its figures are over the questions that are.",
    NOTHING_ANSWERED: "{run} answered no question: {refused:,} were refused and {failed:,} failed, so its score is 0.",
    TESTED_WORLD: "{run} was shown demonstrations of the library {library}, some of which are from its own world.",
    NO_SHARED_QUESTIONS: "{run} and {baseline} share no scored question, so there is no difference to show.",
}
NOTES = frozenset({MODEL_DIFFERS, NOTHING_ANSWERED, TESTED_WORLD})
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
    """Answers, not questions, as are the next four."""
    cannot_be_answered: int
    """Those of the answers which say that their question cannot be answered."""
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
    """US dollars an answer as reported; None if they are unknown for one."""
    cost_error: Estimate | None
    """The interval of `cost`, clustered by question; None if it is unknown, or for fewer than two questions."""
    cost_bound: float | None
    """The most US dollars an answer, calls included that did not report their tokens; None if a price is unknown."""
    tokens: float | None
    """Input and output tokens an answer as reported; None if they are unknown for one."""
    token_bound: float | None
    """The most tokens an answer, of the same calls as `cost_bound`."""
    seconds: float
    seconds_error: Estimate | None
    calls: float
    """Model calls an answer."""


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


def describe_runs(database: Database, runs: Sequence[Run], when: Callable[[datetime], str]) -> dict[UUID, str]:
    """Tell runs apart in a list: each one's name, size, date (`when` formats it) and score."""
    metric = MetricVersion(ANSWER_F1.name, ANSWER_F1.version)
    with database.read() as session:
        sizes = comparisons.list_run_sizes(session, [run.id for run in runs], metric)
    titles: dict[UUID, str] = {}
    for run in runs:
        parts = [label_runs([run])[run.id]]
        if (size := sizes.get(run.id)) is not None:
            left = f" ({size.attempts - size.ended:,} left)" if size.ended < size.attempts else ""
            parts.append(f"{format_count(size.attempts, 'question')}{left}")
        parts.append(when(run.started_at))
        if size is not None and size.score is not None:
            parts.append(f"{ANSWER_F1.label} {size.score:.2f}")
        titles[run.id] = " · ".join(parts)
    return titles


def list_metrics(database: Database, run_ids: Sequence[UUID]) -> list[MetricVersion]:
    """The metrics by which answers of these runs are scored; those that most runs have first, newer versions first.

    Runs that have ended without an answer have no score: by the first metric, each of their questions has 0.
    """
    with database.read() as session:
        scores = comparisons.list_run_scores(session, run_ids)
        ended = comparisons.count_ended_attempts(session, run_ids)
    counts = Counter(MetricVersion(row.metric, row.version) for row in scores)
    order = list(METRICS)
    if not counts and len(ended) == len(set(run_ids)) > 0:
        counts = Counter([MetricVersion(ANSWER_F1.name, ANSWER_F1.version)])
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
        libraries = {run.spec.library for run in stored.values() if run.spec.library is not None}
        worlds = {library: list_library_worlds(session, library) for library in libraries}
        unanswerable = {run_id: sum(verifications.count_unanswerable(session, run_id).values()) for run_id in ids}
    labels = label_runs(list(stored.values()))
    cluster_field, clusters = _choose_clusters(fields)
    places = {question: place for place, question in enumerate(fields)}
    columns = {run_id: _RunColumns.of(rows, places) for run_id, rows in questions.items()}
    figures = [
        _summarize_run(run, labels[key], columns[key], groups[key], unanswerable[key], clusters)
        for key, run in stored.items()
    ]
    differences = _compare_with_baseline(columns, baseline_id, clusters)
    comparison = RunComparison(metric, baseline_id, cluster_field, figures, differences, [])
    return replace(comparison, warnings=_find_warnings(comparison, stored, worlds))


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
    answers: IntArray
    """How many answers each of them is the mean of."""

    @classmethod
    def of(cls, rows: Sequence[QuestionFigures], places: Mapping[str, int]) -> "_RunColumns":
        """The columns of these rows; `places` has the place of each question."""
        columns, answers = np.full((4, len(places)), np.nan), np.zeros(len(places), dtype=np.intp)
        if rows:
            asked = [places[row.question] for row in rows]
            values = [(row.score, bool(row.is_right), row.cost, row.seconds) for row in rows]
            columns[:, asked] = np.array(values, dtype=float).T
            answers[asked] = [row.attempts for row in rows]
        return cls(columns[0], columns[1] == 1, columns[2], columns[3], answers)

    def estimate_per_answer(self, values: FloatArray) -> Estimate | None:
        """The mean of all answers, clustered by question; the values are the means of the answers to each question."""
        repeated = np.repeat(np.arange(len(values)), self.answers)
        return _estimate(values[repeated], repeated)


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


def _summarize_run(  # noqa: PLR0913, PLR0917 - each is a part of the figures
    run: Run,
    label: str,
    columns: _RunColumns,
    groups: Sequence[attempts.AttemptGroup],
    unanswerable: int,
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
    tokens = None if None in (usage.input_tokens, usage.output_tokens) else usage.input_tokens + usage.output_tokens  # type: ignore[operator]
    return RunFigures(
        run_id=run.id,
        label=label,
        questions=int(is_asked.sum()),
        repetitions=run.spec.repetitions,
        answered=endings["answered"],
        cannot_be_answered=unanswerable,
        refused=endings["refused"],
        failed=finished - endings["answered"] - endings["refused"],
        left=left,
        scored=len(scores),
        score=float(scores.mean()) if len(scores) else None,
        error=_within_scale(_estimate(columns.scores, clusters), columns.scores),
        right=right,
        right_share=wilson_interval(right, len(scores)) if len(scores) else None,
        cost=None if usage.cost is None else usage.cost / answers,
        cost_error=columns.estimate_per_answer(columns.costs) if has_all_costs else None,
        cost_bound=None if usage.max_cost is None else usage.max_cost / answers,
        tokens=None if tokens is None else tokens / answers,
        token_bound=None if usage.max_tokens is None else usage.max_tokens / answers,
        seconds=sum(group.seconds for group in ended) / answers,
        seconds_error=columns.estimate_per_answer(columns.seconds),
        calls=usage.calls / answers,
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


def _find_warnings(
    comparison: RunComparison, stored: Mapping[UUID, Run], library_worlds: Mapping[str, Collection[str]]
) -> list[ComparisonWarning]:
    warnings: list[ComparisonWarning] = []
    labels, baseline = comparison.labels, stored[comparison.baseline_id]
    for figures in comparison.figures:
        run = stored[figures.run_id]
        kinds = {
            METRIC_DIFFERS: figures.scored < figures.questions,
            UNFINISHED: figures.left > 0,
            TESTED_WORLD: run.world in library_worlds.get(run.spec.library or "", ())
            and shows_demonstrations(run.spec),
            NOTHING_ANSWERED: not figures.answered and figures.scored > 0,
        }
        if run.id != baseline.id:
            kinds |= {
                QUESTIONS_DIFFER: _differ(run.questions_hash, baseline.questions_hash),
                WORLD_DIFFERS: run.world != baseline.world or _differ(run.spec.world_hash, baseline.spec.world_hash),
                MODEL_DIFFERS: run.spec.model != baseline.spec.model and run.reasoner == baseline.reasoner,
                NO_SHARED_QUESTIONS: run.id not in comparison.differences,
            }
        metric = f"{metric_label(comparison.metric.name)}, version {comparison.metric.version}"
        counts = {"refused": figures.refused, "failed": figures.failed}
        words = {"run": labels[run.id], "baseline": labels[baseline.id], "metric": metric, **counts}
        words["library"] = str(run.spec.library)
        warnings += [
            ComparisonWarning(kind, run.id, WARNING_SENTENCES[kind].format(**words))
            for kind, applies in kinds.items()
            if applies
        ]
    return warnings


def _differ(value: str | None, other: str | None) -> bool:
    """Whether both are recorded and differ."""
    return None not in (value, other) and value != other
