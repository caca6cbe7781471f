"""Evaluation of a reasoner: sample questions evenly over their kinds, score the answers, summarize by kind."""

import random
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from db.runs import RunOutcome
from evaluation.metrics import ANSWER_F1, METRICS, mean, score_by_metric

REFUSED = "refused"
CORRECTNESS_METRIC = ANSWER_F1.name
"""An answer with score 1 by this metric is right."""


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
