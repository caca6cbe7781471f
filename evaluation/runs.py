"""How well questions with gold answers are answered: an even sample over their kinds, and the figures by kind."""

import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from db.runs import RunOutcome
from evaluation.metrics import mean, normalize_words, score_against_gold
from reasoners.answers.extraction import strip_or_none

REFUSED = "refused"
NO_ANSWER_WORDS = (["no", "answer"], ["none"], ["nothing"], ["nobody"])
"""Ways to say that a question has no answer."""


class GoldQuestion(Protocol):
    """A question with its gold answers, from a file or from a project."""

    @property
    def kind(self) -> str | None: ...

    @property
    def gold_answers(self) -> list[dict[str, Any]]: ...


GoldQuestionType = TypeVar("GoldQuestionType", bound=GoldQuestion)


@dataclass(frozen=True, slots=True)
class QuestionScore:
    """How one question ended; `score` is None unless it was answered."""

    kind: str
    ending: str
    score: float | None = None


def sample_questions(questions: Sequence[GoldQuestionType], limit: int | None, seed: int) -> list[GoldQuestionType]:
    """So many of them, as many of one kind as of another as far as there are; all without a limit.

    The same seed draws the same questions.
    """
    if limit is None:
        return list(questions)
    by_kind: dict[str, list[GoldQuestionType]] = defaultdict(list)
    for question in questions:
        by_kind[question.kind or ""].append(question)
    chance = random.Random(seed)  # noqa: S311 - a sample, no secret
    for of_kind in by_kind.values():
        chance.shuffle(of_kind)
    chosen: list[GoldQuestionType] = []
    while len(chosen) < min(limit, len(questions)):
        for of_kind in by_kind.values():
            if of_kind and len(chosen) < limit:
                chosen.append(of_kind.pop())
    return chosen


def score_outcome(question: GoldQuestion, ended: RunOutcome) -> QuestionScore:
    """The score of how a run ended on a question."""
    kind = question.kind or "unknown"
    if ended.answers is None:
        return QuestionScore(kind, ended.ending)
    return QuestionScore(kind, ended.ending, score_answer(ended.answers.final_answer, question.gold_answers))


def score_answer(answer: str, golds: Sequence[dict[str, Any]]) -> float:
    """From 0 to 1; a question that has no answer is answered rightly by saying so, in whatever words."""
    if not golds:
        return float(strip_or_none(answer) is None or normalize_words(answer) in NO_ANSWER_WORDS)
    return score_against_gold(answer, golds)


def summarize_scores(found: Sequence[QuestionScore]) -> dict[str, Any]:
    """Counts and mean F1, over all questions and over those answered, together and by kind.

    Whoever refuses or fails gets 0 in `f1`; `f1_answered` is None where nothing was answered.
    """
    kinds = list(dict.fromkeys(each.kind for each in found))
    return _summarize_group(found) | {
        "by_kind": {kind: _summarize_group([e for e in found if e.kind == kind]) for kind in kinds}
    }


def _summarize_group(found: Sequence[QuestionScore]) -> dict[str, Any]:
    endings = Counter(each.ending for each in found)
    answered = [each.score for each in found if each.score is not None]
    return {
        "questions": len(found),
        "answered": len(answered),
        "refused": endings[REFUSED],
        "failed": len(found) - len(answered) - endings[REFUSED],
        "f1": round(mean([each.score or 0.0 for each in found]), 4),
        "f1_answered": round(mean(answered), 4) if answered else None,
        "right": sum(score == 1.0 for score in answered),
    }
