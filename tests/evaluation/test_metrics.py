"""Scores against what AtomR published, by a second route, and where there are none."""

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluation.metrics import exact_match, mean, normalize_words, score_against_gold, set_f1, split_answers, word_f1

TEXTS = st.lists(st.sampled_from(["the", "Ada", "ada", "Reed-Holm", "1950", "a", "x.", "…", "An"]), max_size=5).map(
    " ".join
)


def plainly(answer: str, gold: str) -> float:
    """The same by counting each word."""
    sides = []
    for text in (answer, gold):
        kept = "".join(" " if c == "-" else c for c in text.lower() if c == "-" or c not in string.punctuation)
        sides.append([word for word in kept.split() if word not in ("a", "an", "the")])
    mine, wanted = sides
    same = sum(min(mine.count(word), wanted.count(word)) for word in set(mine))
    if not mine and not wanted:
        return 1.0
    if same == 0:
        return 0.0
    precision, recall = same / len(mine), same / len(wanted)
    return 2 * precision * recall / (precision + recall)


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=3))
def test_words_are_counted_as_by_hand(answer, golds):
    assert word_f1(answer, golds) == pytest.approx(max(plainly(answer, gold) for gold in golds))
    assert exact_match(answer, golds) == any(normalize_words(answer) == normalize_words(gold) for gold in golds)


@given(st.lists(TEXTS, max_size=4), st.lists(TEXTS, min_size=1, max_size=4))
def test_sets_are_compared_without_order_and_repetition(answers, golds):
    mine, wanted = ({tuple(normalize_words(each)) for each in side} for side in (answers, golds))
    score = set_f1(answers, golds)
    assert score == set_f1([*reversed(answers), *answers], golds)
    both = len(mine & wanted)
    assert score == pytest.approx(2 * both / (len(mine) + len(wanted)))


def test_a_list_of_answers_is_taken_apart_and_gold_answers_with_commas_stay_whole():
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
def test_another_way_of_writing_has_the_full_score(answer, golds):
    assert score_against_gold(answer, [{"text": gold, "entity": None} for gold in golds]) == 1.0


def test_who_names_the_gold_entity_is_right_whatever_it_is_called():
    golds = [{"text": "Lisbon", "entity": "Q597"}, {"text": "Porto", "entity": "Q36433"}]
    assert score_against_gold("Lisboa (Q597), Oporto (Q36433)", golds) == 1.0
    assert score_against_gold("Lisboa (Q597) and Oporto (Q36433)", golds) == 1.0
    assert score_against_gold("Q597", golds[:1]) == 1.0
    assert score_against_gold("Lisboa (Q597) and Faro (Q9)", golds) == 0.5
    assert score_against_gold("Lisboa (Q9)", golds[:1]) == 0.0


@pytest.mark.parametrize(
    ("answer", "golds", "score"),
    [
        ("Alice and Dan", ["Alice", "Bob"], 0.5),
        ("Cuba and Trinidad and Tobago and Haiti", ["Trinidad and Tobago", "Cuba"], 0.8),
        ("13 people", ["12"], 0.0),
        ("4 May 1990", ["3 May 1990"], 2 / 3),
        ("no", ["yes"], 0.0),
    ],
)
def test_other_answers_have_not(answer, golds, score):
    assert score_against_gold(answer, [{"text": gold, "entity": None} for gold in golds]) == pytest.approx(score)


def test_there_is_no_mean_over_nothing():
    assert mean([0.0, 1.0]) == 0.5
    with pytest.raises(ValueError, match="no mean"):
        mean([])


@pytest.mark.parametrize(
    ("file", "published"),
    [("hotpotqa_test_500", 71.27), ("2Wiki_test_500", 78.72), ("musique_test_500", 36.11)],
)
def test_released_predictions_have_the_published_scores(shared_data, file, published):
    lines = (shared_data / "atomr_released" / f"{file}_predictions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert 100 * mean([word_f1(row["predicted"], row["gold"]) for row in rows]) == pytest.approx(published, abs=0.005)
