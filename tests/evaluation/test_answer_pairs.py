"""Hand-made pairs of answers, equal and different, in both directions and by both the comparison and the score."""

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from showhow.evaluation.metrics import score_against_gold
from showhow.reasoners.answers.normalization import answers_equal

FOLDER = Path(__file__).parent
Pair = tuple[str, str]


def read_pairs(file: str, verdict: str) -> list[Pair]:
    """The pairs of one verdict, in both directions."""
    categories = tomllib.loads((FOLDER / file).read_text(encoding="utf-8"))
    return list(_both_directions(pair for pairs in categories.values() for pair in pairs.get(verdict, ())))


def _both_directions(pairs: Iterator[list[str]]) -> Iterator[Pair]:
    for first, second in pairs:
        yield first, second
        yield second, first


def test_there_are_at_least_three_hundred_pairs_and_sixty_more_held_out() -> None:
    for file, fewest in (("answer_pairs.toml", 300), ("answer_pairs_held_out.toml", 60)):
        pairs = read_pairs(file, "equal") + read_pairs(file, "different")
        assert len(set(pairs)) == len(pairs) >= 2 * fewest


@pytest.mark.parametrize("file", ["answer_pairs.toml", "answer_pairs_held_out.toml"])
def test_equal_answers_are_equal_in_both_directions_and_score_one(file: str) -> None:
    pairs = read_pairs(file, "equal")
    assert [pair for pair in pairs if not answers_equal(*pair)] == []
    assert [pair for pair in pairs if score_against_gold(pair[0], [{"text": pair[1]}]) != 1.0] == []


@pytest.mark.parametrize("file", ["answer_pairs.toml", "answer_pairs_held_out.toml"])
def test_different_answers_differ_in_both_directions_and_score_less(file: str) -> None:
    pairs = read_pairs(file, "different")
    assert [pair for pair in pairs if answers_equal(*pair)] == []
    assert [pair for pair in pairs if score_against_gold(pair[0], [{"text": pair[1]}]) >= 1.0] == []
