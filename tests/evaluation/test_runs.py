"""The even sample, the score of an answer, and the figures, against counting by hand."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from db.recording import TraceAnswers
from db.runs import RunOutcome
from evaluation.metrics import score_answer
from evaluation.runs import QuestionScore, sample_questions, score_outcome, summarize_scores


@dataclass
class Asked:
    kind: str | None
    gold_answers: list[dict[str, Any]] = field(default_factory=list)


QUESTIONS = st.lists(st.sampled_from("abc"), max_size=40).map(lambda kinds: [Asked(kind) for kind in kinds])


@given(QUESTIONS, st.integers(1, 50), st.integers(0, 5))
def test_the_sample_is_even_and_the_same_for_the_same_seed(questions: list[Asked], limit: int, seed: int) -> None:
    chosen = sample_questions(questions, limit, seed)
    assert len(chosen) == min(limit, len(questions)) == len({id(each) for each in chosen})
    assert [id(each) for each in chosen] == [id(each) for each in sample_questions(questions, limit, seed)]
    there, taken = Counter(each.kind for each in questions), Counter(each.kind for each in chosen)
    short = [taken[kind] for kind in there if taken[kind] < there[kind]]
    assert not short or max(taken.values()) - min(short) <= 1


def test_without_a_limit_all_are_asked_in_their_order() -> None:
    questions = [Asked(kind) for kind in "abca"]
    assert sample_questions(questions, None, 3) == questions


@pytest.mark.parametrize("said", ["no answer", "None.", "nothing", "unknown", "Nobody"])
def test_a_question_without_an_answer_is_answered_by_saying_so(said: str) -> None:
    assert score_answer(said, []) == 1.0
    assert score_answer(said, [{"text": "Ada Lund"}]) == 0.0


def test_an_answer_where_there_is_none_is_wrong() -> None:
    assert score_answer("Ada Lund", []) == 0.0
    assert score_answer("0", []) == 0.0


def test_failed_and_refused_count_apart_and_as_nothing_in_f1_only() -> None:
    gold = [{"text": "Ada"}, {"text": "Bo"}]
    ends = [
        RunOutcome("answered", None, answers=TraceAnswers(final_answer="Ada, Bo")),
        RunOutcome("answered", None, answers=TraceAnswers(final_answer="Ada")),
        RunOutcome("refused", "I can't"),
        RunOutcome("failed", "it broke"),
        RunOutcome("limit", "too long"),
    ]
    told = summarize_scores([score_outcome(Asked("x", gold), ended) for ended in ends])
    counts = ("questions", "answered", "refused", "failed", "right")
    assert [told[name] for name in counts] == [5, 2, 1, 2, 1]
    assert told["f1_answered"] == pytest.approx((1 + 2 / 3) / 2, abs=1e-4)
    assert told["f1"] == pytest.approx((1 + 2 / 3) / 5, abs=1e-4)
    assert told["official_f1"] == pytest.approx((1 + 2 / 3) / 5, abs=1e-4)
    assert told["official_f1_answered"] == pytest.approx((1 + 2 / 3) / 2, abs=1e-4)
    assert told["by_kind"]["x"] == {name: value for name, value in told.items() if name != "by_kind"}


def test_there_are_no_figures_of_nothing() -> None:
    with pytest.raises(ValueError, match="no mean"):
        summarize_scores([])
    assert summarize_scores([QuestionScore("x", "refused")])["f1_answered"] is None
