"""Metrics, against published scores and second implementations."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.evaluation.metrics import (
    METRICS,
    Metric,
    format_means,
    mean,
    score_against_gold,
    score_answer,
    score_by_metric,
)
from showhow.evaluation.metrics.metric import split_answers
from showhow.evaluation.scoring.scoring import QuestionScore, summarize_scores
from tests.cli_help import option_help

NAMES = st.sampled_from(["Ada Lund", "Ben Reed", "Cora Holm", "Dan Ott"])


@given(st.lists(NAMES, min_size=1), st.lists(NAMES, min_size=2, unique=True))
def test_several_gold_answers_are_scored_as_sets(answers, golds):
    score = score_against_gold("; ".join(answers), [{"text": gold} for gold in golds])
    both = len(set(answers) & set(golds))
    assert score == pytest.approx(2 * both / (len(set(answers)) + len(golds)))


def test_a_list_of_answers_is_split_and_gold_answers_with_commas_stay_whole():
    golds = [{"text": "Reed, Ada"}, {"text": "Fay Lund"}]
    assert score_against_gold("Fay Lund, Reed, Ada", golds) == 1.0
    assert score_against_gold("Reed, Ada\nFay Lund", golds) == 1.0
    assert score_against_gold("Fay Lund", golds) == pytest.approx(2 / 3)
    assert score_against_gold("Fay Lund and nobody", [{"text": "Fay Lund"}]) == pytest.approx(2 / 3)
    assert split_answers("A, B, and C") == ["A", "B", "C"]
    assert split_answers("Eli Reed; Fay Lund") == ["Eli Reed", "Fay Lund"]


@pytest.mark.parametrize(
    ("answer", "golds"),
    [
        ("Alice and Bob", ["Alice", "Bob"]),
        ("Bob & Alice.", ["Alice", "Bob"]),
        ("1. Alice\n2. Bob", ["Alice", "Bob"]),
        ("Cora, Bob and Alice", ["Alice", "Bob", "Cora"]),
        ("Cuba and Trinidad and Tobago", ["Trinidad and Tobago", "Cuba"]),
        ("Alice (Q1), Bob (Q2)", ["Alice", "Bob"]),
        ("Lisbon (Q597)", ["Lisbon"]),
        ("1234.0", ["1,234"]),
        ("twelve", ["12"]),
        ("12 people", ["12"]),
        ("True", ["yes"]),
        ("3 May 1990", ["1990-05-03"]),
        ("Mr Kegan Ott", ["Kegan Ott"]),
    ],
)
def test_another_notation_scores_one(answer, golds):
    assert score_against_gold(answer, [{"text": gold, "entity": None} for gold in golds]) == 1.0


def test_the_id_of_the_gold_entity_scores_one_with_any_name():
    golds = [{"text": "Lisbon", "entity": "Q597"}, {"text": "Porto", "entity": "Q36433"}]
    assert score_against_gold("Lisboa (Q597), Oporto (Q36433)", golds) == 1.0
    assert score_against_gold("Lisboa (Q597) and Oporto (Q36433)", golds) == 1.0
    assert score_against_gold("Q597", golds[:1]) == 1.0
    assert score_against_gold("Lisboa (Q597) and Faro (Q9)", golds) == 0.5
    assert score_against_gold("Lisboa (Q9)", golds[:1]) == 0.0
    assert score_against_gold("Lisbon (Q9)", golds[:1]) == 0.0
    assert score_against_gold("Lisbon", golds[:1]) == 1.0


def test_a_remark_distinguishes_gold_answers_with_the_same_name():
    golds = [{"text": "John Smith (judge)"}, {"text": "John Smith (painter)"}]
    assert score_against_gold("John Smith (painter), John Smith (judge)", golds) == 1.0
    assert score_against_gold("John Smith (judge)", golds) == pytest.approx(2 / 3)
    assert score_against_gold("John Smith", golds) == 0.0
    assert score_against_gold("John Smith", golds[:1]) == 1.0
    assert score_against_gold("John Smith (judge)", golds[1:]) < 1.0


def test_ids_distinguish_gold_entities_with_the_same_name():
    golds = [{"text": "Ada Lund", "entity": "Q5"}, {"text": "Ada Lund", "entity": "Q9"}]
    assert score_against_gold("Ada Lund (Q5); Ada Lund (Q9)", golds) == 1.0
    assert score_against_gold("Ada Lund (Q5)", golds) == pytest.approx(2 / 3)
    assert score_against_gold("Ada Lund", golds) == 1.0


@pytest.mark.parametrize("name", METRICS)
def test_an_alias_scores_one_by_every_metric(name):
    golds = [{"text": "Christopher Guest", "entity": None, "aliases": ["Guest, the 5th Baron", "Nigel Tufnel"]}]
    assert score_answer("Nigel Tufnel", golds, METRICS[name]) == 1.0
    assert score_answer("Ada Lund", golds, METRICS[name]) == 0.0
    several = [*golds, {"text": "Ada Lund"}]
    assert score_against_gold("Ada Lund, Nigel Tufnel", several) == 1.0


def test_our_f1_and_the_official_one_are_named_and_versioned():
    assert {(metric.name, metric.version) for metric in METRICS.values()} == {("f1", 2), ("official_f1", 2)}
    assert score_by_metric("twelve", [{"text": "12"}]) == {"f1": 1.0, "official_f1": 0.0}
    assert score_by_metric("no answer", []) == {"f1": 1.0, "official_f1": 1.0}
    assert all(isinstance(metric, Metric) and metric.purpose for metric in METRICS.values())


@pytest.mark.parametrize(
    ("answer", "golds", "score"),
    [
        ("Alice and Dan", ["Alice", "Bob"], 0.5),
        ("Cuba and Trinidad and Tobago and Haiti", ["Trinidad and Tobago", "Cuba"], 0.8),
        ("13 people", ["12"], 0.0),
        ("4 May 1990", ["3 May 1990"], 0.0),
        ("2004-01-02", ["2004-02-01"], 0.0),
        ("C", ["C++"], 0.0),
        ("no", ["No. 1"], 0.0),
        ("yes, but no", ["yes"], 0.0),
        ("Ada Reed", ["Ada Lund"], 0.5),
        ("Tobago and Trinidad", ["Trinidad and Tobago"], 1 / 3),
        ("no", ["yes"], 0.0),
    ],
)
def test_wrong_answers_score_less_than_one(answer, golds, score):
    assert score_against_gold(answer, [{"text": gold, "entity": None} for gold in golds]) == pytest.approx(score)


def test_the_mean_of_no_scores_is_an_error():
    assert mean([0.0, 1.0]) == 0.5
    with pytest.raises(ValueError, match="mean of no scores"):
        mean([])


def test_a_new_metric_is_in_every_summary_and_help_text(monkeypatch):
    monkeypatch.setitem(METRICS, "length", Metric("length", 1, "length", "", lambda answer, _: len(answer) / 10))
    answered = QuestionScore("x", "answered", score_by_metric("Ada", [{"text": "Ada"}]))
    summary = summarize_scores([answered, QuestionScore("x", "refused")])
    assert (summary["length"], summary["length_answered"]) == (0.15, 0.3)
    assert summary["by_kind"]["x"]["length"] == 0.15
    assert format_means(summary) == "F1 0.50, official F1 0.50, length 0.15"
    for verb in ("evaluate", "verify"):
        assert "f1, official_f1, length" in option_help(f"showhow.app.cli.{verb}", verb, "--json")
