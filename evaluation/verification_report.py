"""The report of a verification: its figures as JSON, for pages and the command line."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from db.models import Run
from db.trace_configuration import TraceConfiguration
from db.verifications import VerificationOutcome
from evaluation.metrics import ANSWER_F1, METRICS, mean, score_answer
from evaluation.number_format import format_money
from llm.usage import Usage

VerificationReport = dict[str, Any]


def build_verification_report(run: Run, outcomes: Sequence[VerificationOutcome]) -> VerificationReport:
    """Build the report: the run's configuration, and its figures in total and by kind of question."""
    kinds = sorted({outcome.kind or "" for outcome in outcomes})
    return {
        "id": str(run.id),
        "started_at": run.started_at.isoformat(timespec="seconds"),
        "reasoner": run.configuration["reasoner"],
        "model": run.model,
        "profile": TraceConfiguration.from_json(run.configuration).profile,
        "library": run.configuration["library"],
        "again_of": run.configuration.get("again_of"),
        **summarize_outcomes(outcomes),
        "by_kind": {
            kind: summarize_outcomes([outcome for outcome in outcomes if (outcome.kind or "") == kind])
            for kind in kinds
        },
    }


def summarize_outcomes(outcomes: Sequence[VerificationOutcome]) -> VerificationReport:
    """Count outcomes, add up costs, and average each metric: `f1` over finished questions, `f1_answered` over answered.

    A question without an answer counts as 0 in `f1`; the mean over no questions is None.
    """
    finished = [outcome for outcome in outcomes if outcome.is_finished]
    endings = Counter(outcome.ending for outcome in finished)
    report = {
        "questions": len(outcomes),
        "left": len(outcomes) - len(finished),
        "answered": endings["answered"],
        "right": sum(outcome.is_correct for outcome in finished),
        "refused": endings["refused"],
        "failed": len(finished) - endings["answered"] - endings["refused"],
        "unavailable": sum(outcome.met_unavailable_source for outcome in finished if not outcome.is_correct),
        **summarize_usage(sum((Usage(**outcome.cost) for outcome in outcomes if outcome.cost), Usage())),
    }
    for name in METRICS:
        scores = [_score(outcome, name) for outcome in finished]
        answered = [score for score in scores if score is not None]
        report[name] = mean([score or 0.0 for score in scores]) if scores else None
        report[f"{name}_answered"] = mean(answered) if answered else None
    return report


def summarize_usage(usage: Usage) -> dict[str, Any]:
    """The usage of all model calls: tokens and cost, None if unknown, and the most that the cost can be."""
    tokens = (usage.input_tokens, usage.output_tokens)
    return {
        "model_calls": usage.calls,
        "input_tokens": tokens[0],
        "output_tokens": tokens[1],
        "unreported_calls": usage.unreported_calls,
        "cost": usage.cost,
        "cost_bound": usage.max_cost,
    }


def format_model(report: Mapping[str, Any]) -> str | None:
    """The model of a report with its profile; None if it has no model."""
    profile, model = report["profile"], report["model"]
    return model if profile is None else f"{profile['name']} ({model})"


def format_usage(report: Mapping[str, Any]) -> str:
    """The model, its calls, tokens and cost, in one line."""
    model = format_model(report)
    if model is None and not report["model_calls"]:
        return "no model"
    tokens = [report["input_tokens"], report["output_tokens"]]
    counts = "tokens unknown" if None in tokens else f"{sum(tokens):,} tokens"
    unreported = f" ({report['unreported_calls']:,} of the calls reported none)" if report["unreported_calls"] else ""
    cost, bound = report["cost"], report["cost_bound"]
    is_bounded = bound is not None and (cost is None or bound > cost)
    amount = f"at most {format_money(bound)}" if is_bounded else "cost unknown" if cost is None else format_money(cost)
    return f"model {model or 'not recorded'}: {report['model_calls']:,} calls, {counts}{unreported}, {amount}"


def _score(outcome: VerificationOutcome, name: str) -> float | None:
    """The stored score for Showhow's F1; other metrics are computed from the answer."""
    if outcome.score is None or name == ANSWER_F1.name:
        return outcome.score
    return score_answer(outcome.answer or "", outcome.gold, METRICS[name])
