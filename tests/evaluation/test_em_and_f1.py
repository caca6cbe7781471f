"""Exact match and F1 over words, against the scores of official scripts and counts by hand."""

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from showhow.evaluation.metrics import METRICS, mean
from showhow.evaluation.metrics.em_and_f1 import exact_match, hotpotqa_f1, normalize_words
from showhow.evaluation.metrics.metric import Case
from showhow.evaluation.metrics.multihop import score_by_atomr

TEXTS = st.lists(
    st.sampled_from(["the", "Ada", "ada", "Reed-Holm", "1950", "a", "x.", "\u2026", "An"]), max_size=5
).map(" ".join)


def count_words(answer: str, gold: str, hyphen: str) -> float:
    """The same F1 by counting each word."""
    sides = []
    for text in (answer, gold):
        plain = text.lower().replace("-", hyphen)
        plain = "".join(character for character in plain if character not in string.punctuation)
        sides.append([word for word in plain.split() if word not in ("a", "an", "the")])
    words, gold_words = sides
    same = sum(min(words.count(word), gold_words.count(word)) for word in set(words))
    if same == 0:
        return 0.0
    precision, recall = same / len(words), same / len(gold_words)
    return 2 * precision * recall / (precision + recall)


def atomr_f1(answer: str, golds: list[str]) -> float:
    return score_by_atomr(Case({"gold": golds}, answer, {}))["f1"]


@given(TEXTS, st.lists(TEXTS.filter(str.strip), min_size=1, max_size=3))
def test_word_f1_equals_manual_counts(answer, golds):
    assert atomr_f1(answer, golds) == pytest.approx(max(count_words(answer, gold, " ") for gold in golds))
    assert hotpotqa_f1(answer, golds) == pytest.approx(max(count_words(answer, gold, "-") for gold in golds))
    assert exact_match(answer, golds) == any(normalize_words(answer) == normalize_words(gold) for gold in golds)


def test_the_official_f1_scores_yes_and_no_only_alone():
    assert hotpotqa_f1("yes it is", ["yes"]) == 0.0
    assert hotpotqa_f1("no", ["no such luck"]) == 0.0
    assert hotpotqa_f1("Yes.", ["yes"]) == 1.0
    assert atomr_f1("yes it is", ["yes"]) == 0.5


@pytest.fixture
def released(shared_data):
    """The rows of AtomR's released predictions."""

    def read(name):
        lines = (shared_data / "atomr_released" / f"{name}_predictions.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]

    return read


@pytest.mark.parametrize(
    ("name", "f1", "match"),
    [("hotpotqa_test_500", 71.06, 56.0), ("2Wiki_test_500", 78.77, 66.4), ("musique_test_500", 34.77, 20.0)],
)
def test_released_predictions_have_the_scores_of_the_official_scripts(released, name, f1, match):
    rows = released(name)
    scores = [METRICS["official_f1"].score(row["predicted"], [{"text": gold} for gold in row["gold"]]) for row in rows]
    assert 100 * mean(scores) == pytest.approx(f1, abs=0.005)
    assert 100 * mean([exact_match(row["predicted"], row["gold"]) for row in rows]) == pytest.approx(match)
