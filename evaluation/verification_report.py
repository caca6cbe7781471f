"""The figures of a verification, for programs, the command line and the page."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from db.models import Run
from db.verifications import VerificationOutcome
from evaluation.metrics import ANSWER_F1, METRICS, mean, score_answer

VerificationReport = dict[str, Any]


def build_verification_report(run: Run, outcomes: Sequence[VerificationOutcome]) -> VerificationReport:
    """The run's configuration and its figures, in all and by kind of question."""
    kinds = sorted({outcome.kind or "" for outcome in outcomes})
    return {
        "id": str(run.id),
        "started_at": run.started_at.isoformat(timespec="seconds"),
        "reasoner": run.configuration["reasoner"],
        "library": run.configuration["library"],
        "again_of": run.configuration.get("again_of"),
        **summarize_outcomes(outcomes),
        "by_kind": {
            kind: summarize_outcomes([outcome for outcome in outcomes if (outcome.kind or "") == kind])
            for kind in kinds
        },
    }


def summarize_outcomes(outcomes: Sequence[VerificationOutcome]) -> VerificationReport:
    """Counts, cost, and each metric's means: `f1` over finished questions, `f1_answered` over answered ones.

    A question without an answer counts as 0 in the former; a mean over no question is None.
    """
    finished = [outcome for outcome in outcomes if outcome.is_finished]
    endings = Counter(outcome.ending for outcome in finished)
    costs = [outcome.cost["cost"] for outcome in outcomes if outcome.cost]
    priced = [cost for cost in costs if cost is not None]
    report = {
        "questions": len(outcomes),
        "left": len(outcomes) - len(finished),
        "answered": endings["answered"],
        "right": sum(outcome.is_correct for outcome in finished),
        "refused": endings["refused"],
        "failed": len(finished) - endings["answered"] - endings["refused"],
        "cost": sum(priced) if len(priced) == len(costs) else None,
    }
    for name in METRICS:
        scores = [_score(outcome, name) for outcome in finished]
        answered = [score for score in scores if score is not None]
        report[name] = mean([score or 0.0 for score in scores]) if scores else None
        report[f"{name}_answered"] = mean(answered) if answered else None
    return report


def _score(outcome: VerificationOutcome, name: str) -> float | None:
    """The stored score for our F1; other metrics are computed from the answer."""
    if outcome.score is None or name == ANSWER_F1.name:
        return outcome.score
    return score_answer(outcome.answer or "", outcome.gold, METRICS[name])
