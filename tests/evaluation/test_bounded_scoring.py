"""Answers of any length and form are scored within limits, or are unscorable; none is a wrong answer for its length."""

import contextlib
import json
import string
import time
from pathlib import Path
from typing import Any

import pytest

from showhow.evaluation.metrics import DATASET_METRICS, METRICS, score_by_metric
from showhow.evaluation.metrics.metric import Case, DatasetMetric, Unscorable, split_answers
from showhow.evaluation.scoring.bounded_scoring import SHORT_CHARACTERS, score_within_limits
from showhow.evaluation.scoring.predictions import read_cases, score_cases
from showhow.guard.worker import WorkLimits, run_bounded
from showhow.reasoners.answers import normalization
from showhow.reasoners.answers.dates_and_numbers import read_days
from showhow.reasoners.answers.extraction import find_labelled_answer, strip_answer_markup
from showhow.reasoners.humaniq.response import link_evidence
from showhow.worlds.embedded.text import strip_parenthesis
from showhow.worlds.sentences import split_sentences
from showhow.worlds.sparql_syntax import tokenize_query

pytestmark = pytest.mark.long

GOLDS: list[dict[str, Any]] = [{"text": "x"}, {"text": "y; z", "aliases": ["Trinidad and Tobago"]}]
LENGTH = 40_000
SIGNS = [*string.punctuation, *" \t\n\u00a0\u3000\u0301", "a", "1", "A", "0"]
PHRASES = [
    "a,",
    "1,1,",
    "a and ",
    "hundred ",
    "\u0301\u0316",
    "(a",
    "\n- ",
    "a_",
    "a.",
    "Q1 ",
    '\\"',
    "but not ",
    "http://(",
]


def score_repeated(unit: str) -> None:
    """Every step of a score, on a text that repeats a unit."""
    text = unit * (LENGTH // len(unit)) + "x"
    score_by_metric(text, GOLDS)
    score_by_metric(text, GOLDS[:1])
    strip_answer_markup(text)
    find_labelled_answer(text)
    normalization.answers_equal(text, text[:-1])
    strip_parenthesis(text)
    link_evidence(text, [1])
    tokenize_query(f"SELECT {text[:100_000]}")
    read_days(text)
    split_sentences(text)


@pytest.mark.parametrize("unit", [*SIGNS, *PHRASES], ids=ascii)
def test_no_step_of_a_score_takes_more_than_linear_time(unit: str):
    # Some seconds on an idle machine; a quadratic step would take minutes.
    run_bounded(score_repeated, unit, limits=WorkLimits(seconds=30, megabytes=800))


@pytest.mark.parametrize(
    ("answer", "golds"),
    [
        ("a" + " " * 400_000, [{"text": "x"}, {"text": "y; z"}]),
        ("(" * 100_000 + " " * 100_000, [{"text": "x (y)"}]),
        ("; ".join(map(str, range(5_000))), [{"text": str(n)} for n in range(5_000)]),
        (" ".join(map(str, range(20_000))), [{"text": " ".join(map(str, reversed(range(20_000))))}]),
    ],
    ids=["blanks", "parentheses", "many golds", "words in another order"],
)
def test_a_long_answer_is_scored_in_time_or_is_unscorable(answer: str, golds: list[dict[str, Any]]):
    start = time.monotonic()
    with contextlib.suppress(Unscorable):
        assert score_within_limits(answer, golds).keys() == METRICS.keys()
    assert time.monotonic() - start < 30


def test_thousands_of_answers_are_compared_with_thousands_of_gold_answers():
    names = [f"name{n} of{n}" for n in range(2_000)]
    assert score_by_metric("; ".join(names), [{"text": name} for name in reversed(names)])["f1"] == 1
    half = score_by_metric("; ".join(names[:1_000]), [{"text": name} for name in names])["f1"]
    assert half == pytest.approx(2 / 3)


def test_a_prediction_that_cannot_be_scored_in_time_is_unscorable_and_the_others_are_scored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    long = "word " * SHORT_CHARACTERS
    rows = [{"id": "1", "predicted": long, "gold": ["x"]}, {"id": "2", "predicted": "y", "gold": ["y"]}]
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    metric = DATASET_METRICS["f1"]
    monkeypatch.setattr("showhow.evaluation.scoring.bounded_scoring.SCORING_LIMITS", WorkLimits(seconds=0.001))
    report = score_cases(read_cases(file, None, metric), metric, file)
    assert (report["value"], report["value_of_scored"], report["unscored"], report["wrong"]) == (None, 1, 1, 0)
    assert next(iter(report["unscored_because"])).startswith("the answer could not be scored: it was stopped at its")


@pytest.mark.parametrize(
    "metric", [metric for metric in DATASET_METRICS.values() if not metric.unavailable], ids=lambda metric: metric.name
)
def test_no_metric_of_a_data_set_takes_more_than_linear_time(metric: DatasetMetric):
    # WorkLimitExceeded fails the test: a quadratic metric would take minutes.
    run_bounded(score_by_name, metric.name, limits=WorkLimits(seconds=30, megabytes=800))


def score_by_name(name: str) -> None:
    """The metric on repeated texts in every field that it may read."""
    metric = DATASET_METRICS[name]
    fields = {field for group in (*metric.gold_fields, *metric.predicted_fields) for field in group}
    for unit in ("(", " ", ";", "1,", "\u0301\u0316", "{", '"', "a "):
        text = unit * (20_000 // len(unit))
        for value in (text, [text], [text, "x"]):
            gold = dict.fromkeys({*fields, "gold", "answer"}, value)
            try:
                metric.score(Case(gold, value, {**gold, "predicted": value}))
            except (Unscorable, ValueError, TypeError, AttributeError, LookupError):
                continue


def test_a_list_is_split_as_ever():
    assert split_answers("a ; b\n\n c;") == ["a", "b", "c"]
    assert split_answers("1. a\n\n2. b\n") == ["a", "b"]
    assert split_answers("Trinidad and Tobago, Cuba and Haiti", [{"text": "Trinidad and Tobago"}]) == [
        "Trinidad and Tobago",
        "Cuba",
        "Haiti",
    ]
    assert split_answers("Smith (judge, actor) and  Lee , Kim") == ["Smith (judge, actor)", "Lee", "Kim"]
