"""A verification in figures, for programs, people and the page."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from db.models import Run
from db.verifications import VerificationOutcome
from evaluation.metrics import mean

VerificationReport = dict[str, Any]


def build_verification_report(run: Run, found: Sequence[VerificationOutcome]) -> VerificationReport:
    """The verification in figures."""
    told = run.configuration
    kinds = sorted({each.kind or "" for each in found})
    return {
        "id": str(run.id),
        "started_at": run.started_at.isoformat(timespec="seconds"),
        "reasoner": told["reasoner"],
        "library": told["library"],
        "again_of": told.get("again_of"),
        **summarize_outcomes(found),
        "by_kind": {kind: summarize_outcomes([each for each in found if (each.kind or "") == kind]) for kind in kinds},
    }


def summarize_outcomes(found: Sequence[VerificationOutcome]) -> VerificationReport:
    """Counts and mean scores; a question without an answer counts as 0 in f1, and not in f1_answered."""
    over = [each for each in found if each.is_finished]
    endings = Counter(each.ending for each in over)
    scores = [each.score for each in over if each.score is not None]
    costs = [each.cost["cost"] for each in found if each.cost]
    known = [cost for cost in costs if cost is not None]
    return {
        "questions": len(found),
        "left": len(found) - len(over),
        "answered": endings["answered"],
        "right": sum(each.is_correct for each in over),
        "refused": endings["refused"],
        "failed": len(over) - endings["answered"] - endings["refused"],
        "f1": mean([each.score or 0.0 for each in over]) if over else None,
        "f1_answered": mean(scores) if scores else None,
        "cost": sum(known) if len(known) == len(costs) else None,
    }
