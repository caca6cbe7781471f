"""A comparison of runs as tables: one row a run, one row an answer, and the table of a paper."""

import json
from collections.abc import Iterator
from typing import Any

from showhow.db.database import Database
from showhow.db.models import UNFINISHED_ENDINGS
from showhow.db.runs import comparisons
from showhow.db.runs.comparisons import AttemptRow
from showhow.db.unanswerable import read_unanswerable
from showhow.evaluation.comparison.comparison import RunComparison, RunDifference, metric_label
from showhow.evaluation.datasets.text_answers import parse_hop_count
from showhow.evaluation.statistics import Estimate
from showhow.evaluation.value_format import escape_latex, format_latex_table, format_p_value
from showhow.fiction.questions.question_file import format_needs

RUN_COLUMNS: dict[str, type] = {
    **dict.fromkeys(("run", "id", "metric"), str),
    **dict.fromkeys(("metric_version", "questions", "repetitions", "answered"), int),
    **dict.fromkeys(("cannot_be_answered", "refused", "failed", "left"), int),
    **dict.fromkeys(("score", "score_se", "score_low", "score_high"), float),
    "right": int,
    **dict.fromkeys(("right_low", "right_high", "cost", "cost_low", "cost_high", "cost_bound"), float),
    **dict.fromkeys(("tokens", "token_bound", "seconds", "calls"), float),
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
"""The columns of an exported table of runs; figures of cost, tokens, seconds and calls are those of an answer.

Cost and tokens are as reported, the bounds the most that they can be.
"""
ANSWER_COLUMNS: dict[str, type] = {
    **dict.fromkeys(("run", "run_id", "question_id", "source_id", "dataset", "split", "kind", "type"), str),
    "hops": int,
    **dict.fromkeys(("difficulty", "needs", "question", "gold"), str),
    "repetition": int,
    **dict.fromkeys(("ending", "answer", "cannot_be_answered", "failure", "metric"), str),
    "metric_version": int,
    "score": float,
    **dict.fromkeys(("score_reason", "error_category"), str),
    **dict.fromkeys(("model_calls", "retrievals", "input_tokens", "output_tokens", "token_bound"), int),
    **dict.fromkeys(("cost", "cost_bound", "seconds"), float),
    "trace_id": str,
}
"""The columns of exported answers; `type` and `difficulty` are as in the record of the data set.

`cannot_be_answered` is the reason of an answer that says so.
"""


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
                "cannot_be_answered": read_unanswerable(row.answer),
                "gold": " | ".join(str(gold["text"]) for gold in row.gold),
                "type": row.type or row.kind,
                "hops": _read_count(row.hops or (parse_hop_count(row.source_id) or "").removesuffix("hop")),
                "needs": None if row.needs is None else format_sources(row.needs),
                "retrievals": _read_count(row.retrievals),
                **_score_cells(row),
                "metric": metric.name,
                "metric_version": metric.version,
                "trace_id": None if row.trace_id is None else str(row.trace_id),
            }


def format_sources(value: str) -> str:
    """The needed sources of a question, as the database stores them."""
    try:
        return format_needs(json.loads(value))
    except ValueError:
        return value


def _score_cells(row: AttemptRow) -> dict[str, Any]:
    """The score as the mean of the run counts it, and why it is 0 or unknown where the answer has none."""
    if row.ending in (None, *UNFINISHED_ENDINGS):
        return {"score": None, "score_reason": "not finished"}
    if row.score is not None:
        return {"score": row.score, "score_reason": None}
    is_answered = row.ending == "answered"
    reason = "not scored by this metric" if is_answered else f"no answer: {row.ending}"
    return {"score": None if is_answered else 0.0, "score_reason": reason}


def _read_count(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() else None


def format_comparison_latex(comparison: RunComparison) -> str:
    """The table of a paper: each run with score, difference from the baseline, adjusted p, and cost of an answer."""
    label = escape_latex(metric_label(comparison.metric.name))
    columns = {"Run": "l", "$n$": "r", rf"{label} [95\% CI]": "l", r"$\Delta$ [95\% CI]": "l"}
    columns |= {"W/T/L": "r", "$p$": "r", r"\$/answer": "r", r"at most \$/answer": "r"}
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
        costs = ["--" if cost is None else f"{cost:.4f}" for cost in (run.cost, run.cost_bound)]
        rows.append([escape_latex(run.label), str(run.scored), score, *cells, *costs])
    baseline = escape_latex(comparison.labels[comparison.baseline_id])
    note = (
        rf"$\Delta$: paired difference from {baseline}, standard errors clustered by {comparison.cluster_field}. "
        r"W/T/L: questions with a higher, equal, lower score. $p$: McNemar's exact test with Holm's correction. "
        r"\$/answer: as reported, and the most that it can be, since replies without reported tokens were paid too."
    )
    notes = [note, *(escape_latex(warning.sentence) for warning in comparison.warnings)]
    return format_latex_table(columns, rows, f"{label} of {len(rows)} runs.", " ".join(notes))


def _latex_estimate(value: float, estimate: Estimate | None) -> str:
    interval = "" if estimate is None else f" [{estimate.interval.low:.3f}, {estimate.interval.high:.3f}]"
    return f"{value:.3f}{interval}".replace("-", "$-$")
