"""Evaluation of a reasoner: sample questions evenly over their kinds, score the answers, summarize by kind.

The report of a verification has the same figures as JSON, for pages and the command line.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from db.models import Run
from db.runs import RunOutcome
from db.trace_configuration import TraceConfiguration
from db.verifications import VerificationOutcome
from evaluation.metrics import ANSWER_F1, METRICS, mean, score_answer, score_by_metric
from evaluation.value_format import format_money
from llm.usage import Usage

REFUSED = "refused"
CORRECTNESS_METRIC = ANSWER_F1.name
"""An answer with score 1 by this metric is right."""
VerificationReport = dict[str, Any]


class GoldQuestion(Protocol):
    """A question with its gold answers, from a file or from a project."""

    @property
    def kind(self) -> str | None: ...

    @property
    def gold_answers(self) -> list[dict[str, Any]]: ...


GoldQuestionType = TypeVar("GoldQuestionType", bound=GoldQuestion)


@dataclass(frozen=True, slots=True)
class QuestionScore:
    """How a run over one question ended; `scores` by metric, None unless it was answered."""

    kind: str
    ending: str
    scores: Mapping[str, float] | None = None
    failure: str | None = None
    model_calls: int = 0
    model_calls_expected: int | None = None
    """The model calls that the method's plan needs; None if it does not tell."""
    retrievals: int = 0
    """The calls of tools."""


def sample_questions(questions: Sequence[GoldQuestionType], limit: int | None, seed: int) -> list[GoldQuestionType]:
    """Sample at most `limit` questions evenly over their kinds; None returns all. Deterministic by seed."""
    if limit is None:
        return list(questions)
    by_kind: dict[str, list[GoldQuestionType]] = defaultdict(list)
    for question in questions:
        by_kind[question.kind or ""].append(question)
    generator = random.Random(seed)  # noqa: S311 - a sample, no secret
    for group in by_kind.values():
        generator.shuffle(group)
    sample: list[GoldQuestionType] = []
    while len(sample) < min(limit, len(questions)):
        for group in by_kind.values():
            if group and len(sample) < limit:
                sample.append(group.pop())
    return sample


def score_outcome(question: GoldQuestion, outcome: RunOutcome) -> QuestionScore:
    """Score the outcome of a run against the question's gold answers."""
    answers = outcome.answers
    scores = None if answers is None else score_by_metric(answers.final_answer, question.gold_answers)
    calls = outcome.calls
    return QuestionScore(
        question.kind or "unknown",
        outcome.ending,
        scores,
        outcome.failure,
        calls.get("model_calls", 0),
        calls.get("model_calls_expected"),
        calls.get("retrievals", 0),
    )


def summarize_scores(scores: Sequence[QuestionScore]) -> dict[str, Any]:
    """Counts and the mean of each metric, over all questions and by kind.

    A refusal or failure counts as 0 in `f1`; `f1_answered` is over answered questions, None if there are none.
    """
    kinds = list(dict.fromkeys(score.kind for score in scores))
    return _summarize_group(scores) | {
        "by_kind": {kind: _summarize_group([score for score in scores if score.kind == kind]) for kind in kinds},
    }


def summarize_calls(scores: Sequence[QuestionScore]) -> dict[str, int | None]:
    """The calls of all questions; `model_calls_expected` is None unless every question tells its own."""
    expected = [score.model_calls_expected for score in scores]
    known = [calls for calls in expected if calls is not None]
    return {
        "model_calls": sum(score.model_calls for score in scores),
        "model_calls_expected": sum(known) if len(known) == len(expected) else None,
        "retrievals": sum(score.retrievals for score in scores),
    }


def _summarize_group(scores: Sequence[QuestionScore]) -> dict[str, Any]:
    endings = Counter(score.ending for score in scores)
    answered = [score.scores for score in scores if score.scores is not None]
    return {
        "questions": len(scores),
        "answered": len(answered),
        "refused": endings[REFUSED],
        "failed": len(scores) - len(answered) - endings[REFUSED],
        **summarize_metrics(answered, len(scores)),
        "right": sum(values[CORRECTNESS_METRIC] == 1.0 for values in answered),
    }


def summarize_metrics(answered: Sequence[Mapping[str, float]], questions: int) -> dict[str, float | None]:
    """The means of each metric: over all `questions` under its name, over the answered ones as `NAME_answered`.

    ValueError if there are no questions.
    """
    means: dict[str, float | None] = {}
    for name in METRICS:
        values = [scores[name] for scores in answered]
        means[name] = round(mean([*values, *[0.0] * (questions - len(values))]), 4)
        means[f"{name}_answered"] = round(mean(values), 4) if values else None
    return means


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
