"""Samples, scores and summaries, against manual counts."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.db.runs.runs import RunOutcome
from showhow.db.traces.recording import TraceAnswers
from showhow.evaluation.metrics import score_answer
from showhow.evaluation.scoring.scoring import QuestionScore, sample_questions, score_outcome, summarize_scores


@dataclass
class Asked:
    kind: str | None
    gold_answers: list[dict[str, Any]] = field(default_factory=list)


QUESTIONS = st.lists(st.sampled_from("abc"), max_size=40).map(lambda kinds: [Asked(kind) for kind in kinds])


@given(QUESTIONS, st.integers(1, 50), st.integers(0, 5))
def test_a_sample_is_even_over_kinds_and_deterministic_by_seed(questions: list[Asked], limit: int, seed: int) -> None:
    chosen = sample_questions(questions, limit, seed)
    assert len(chosen) == min(limit, len(questions)) == len({id(question) for question in chosen})
    assert [id(question) for question in chosen] == [
        id(question) for question in sample_questions(questions, limit, seed)
    ]
    there, taken = Counter(question.kind for question in questions), Counter(question.kind for question in chosen)
    short = [taken[kind] for kind in there if taken[kind] < there[kind]]
    assert not short or max(taken.values()) - min(short) <= 1


def test_without_a_limit_all_questions_are_sampled_in_order() -> None:
    questions = [Asked(kind) for kind in "abca"]
    assert sample_questions(questions, None, 3) == questions


@pytest.mark.parametrize("said", ["no answer", "None.", "nothing", "unknown", "Nobody"])
def test_stating_that_there_is_no_answer_is_right_without_gold_answers(said: str) -> None:
    assert score_answer(said, []) == 1.0
    assert score_answer(said, [{"text": "Ada Lund"}]) == 0.0


def test_any_answer_is_wrong_without_gold_answers() -> None:
    assert score_answer("Ada Lund", []) == 0.0
    assert score_answer("0", []) == 0.0


def test_failed_and_refused_questions_are_counted_and_score_zero_in_f1_only() -> None:
    gold = [{"text": "Ada"}, {"text": "Bo"}]
    ends = [
        RunOutcome("answered", None, answers=TraceAnswers(final_answer="Ada, Bo")),
        RunOutcome("answered", None, answers=TraceAnswers(final_answer="Ada")),
        RunOutcome("refused", "I can't"),
        RunOutcome("failed", "it broke"),
        RunOutcome("limit", "too long"),
    ]
    summary = summarize_scores([score_outcome(Asked("x", gold), outcome) for outcome in ends])
    counts = ("questions", "answered", "refused", "failed", "right")
    assert [summary[name] for name in counts] == [5, 2, 1, 2, 1]
    assert summary["f1_answered"] == pytest.approx((1 + 2 / 3) / 2, abs=1e-4)
    assert summary["f1"] == pytest.approx((1 + 2 / 3) / 5, abs=1e-4)
    assert summary["official_f1"] == pytest.approx((1 + 2 / 3) / 5, abs=1e-4)
    assert summary["official_f1_answered"] == pytest.approx((1 + 2 / 3) / 2, abs=1e-4)
    assert summary["by_kind"]["x"] == {name: value for name, value in summary.items() if name != "by_kind"}


def test_a_summary_of_no_scores_is_an_error() -> None:
    with pytest.raises(ValueError, match="mean of no scores"):
        summarize_scores([])
    assert summarize_scores([QuestionScore("x", "refused")])["f1_answered"] is None
