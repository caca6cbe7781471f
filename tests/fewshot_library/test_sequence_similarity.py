"""The map of action sequences, against known distances."""

import numpy as np
import pytest

from showhow.fewshot_library.sequence_similarity import DISTANCES, build_sequence_map, encode_actions

ROADS = ["abc", "abd", "ab", "xyz", "xyzabc", "a", "xxyyzz", "abcabc", "zz", "b"]


def distances(places):
    return np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=2))


def of(*words):
    return encode_actions([list(word) for word in words])


@pytest.fixture
def on_a_line(monkeypatch):
    """A distance that places sequences on a line by their length."""

    def apart(sequence, others):
        return np.array([abs(len(sequence) - len(other)) for other in others], np.float64)

    monkeypatch.setitem(DISTANCES, "line", apart)


def test_distances_of_points_on_a_line_are_recovered_exactly(on_a_line):
    lengths = np.array([7, 1, 3, 12, 4])
    drawn = build_sequence_map(of(*("a" * length for length in lengths)), "line")
    assert drawn.explained_variance == pytest.approx((1, 1))
    assert np.allclose(drawn.coordinates[:, 1], 0, atol=1e-6)
    # The greatest part of the axis is positive: the longest stands at the far right.
    assert np.allclose(drawn.coordinates[:, 0], lengths - lengths.mean())


def test_sequences_that_are_not_landmarks_are_placed_by_their_distances(on_a_line):
    words = ["a" * length for length in (2, 9, 9, 5, 5, 14, 14)]
    drawn = build_sequence_map(of(*words), "line", landmarks=3)
    assert drawn.landmarks == 3
    # The sequence that was used once is no landmark; the middle of the map is that of the other three.
    assert np.allclose(drawn.coordinates[:, 0], np.array([2, 9, 5, 14]) - (9 + 5 + 14) / 3)


@pytest.mark.parametrize("distance", ["longer", "metric"])
def test_the_map_is_the_best_two_dimensional_approximation(distance):
    drawn = build_sequence_map(of(*ROADS), distance)
    # Another route: the double centring written as a product of matrices, and its best approximation of rank two.
    squared = np.array([DISTANCES[distance](one, ROADS) ** 2 for one in ROADS])
    middle = np.eye(len(ROADS)) - 1 / len(ROADS)
    left, values, right = np.linalg.svd(-0.5 * middle @ squared @ middle)
    assert np.allclose(drawn.coordinates @ drawn.coordinates.T, (left[:, :2] * values[:2]) @ right[:2], atol=1e-9)
    assert drawn.explained_variance == pytest.approx((values[0] / values.sum(), values[:2].sum() / values.sum()))
    again = build_sequence_map(of(*ROADS), distance)
    assert np.array_equal(drawn.coordinates, again.coordinates)


def test_distances_of_three_sequences_are_exact():
    words = ["abc", "abcd", "xbc"]
    drawn = build_sequence_map(of(*words), "metric")
    apart = np.array([DISTANCES["metric"](one, words) for one in words])
    assert np.allclose(distances(drawn.coordinates), apart)
    assert drawn.explained_variance[1] == pytest.approx(1)


@pytest.mark.parametrize("words", [(), ("abc",), ("abc", "abc"), ("",)])
def test_equal_sequences_are_placed_at_the_origin(words):
    drawn = build_sequence_map(of(*words))
    assert not drawn.coordinates.any()
    assert drawn.explained_variance == (1.0, 1.0)
