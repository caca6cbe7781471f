"""How alike the solution processes of runs and of people are (HumanIQ's RQ8): style, embeddings, calls and tokens.

Style is stylometry in Burrows's way: of each trace, the relative frequencies of the words, signs and pairs of them
that most traces use, standardized, and their first two principal components. The distance of a run from people by the
first n thoughts is the mean over all pairs of a k-th thought of the run and a k-th thought of a person, k up to n, of
the Jensen-Shannon distance between the softmax of both embeddings (the root of the divergence, in natural units).
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean
from typing import Any

import numpy as np
import numpy.typing as npt

from showhow.db.database import Database
from showhow.db.traces.thoughts import TraceThoughts, list_run_traces, list_traces_of_people, load_thoughts
from showhow.evaluation.comparison.comparison import RunComparison
from showhow.reasoners.prompting.run_state import estimate_tokens

THOUGHTS, PEOPLE = "thoughts", "people"
MOST_TRACES = 200
"""Traces of a group that are read, at even distances; pairs of thoughts grow with their square."""
FEATURES = 100
"""Words and signs that are counted, and as many pairs of them."""
DEPTHS = (1, 2, 4, 8)
THOUGHT_COLUMNS: dict[str, type] = {
    **dict.fromkeys(("group", "id"), str),
    **dict.fromkeys(("traces", "thoughts"), int),
    **dict.fromkeys(("demonstrations", "tool_calls", "tokens"), float),
    **dict.fromkeys((*(f"distance_{depth}" for depth in DEPTHS), "pc1", "pc2"), float),
}
"""The columns of a table of groups: means of a trace, distances from people by the first thoughts, the mean style."""
POINT_COLUMNS: dict[str, type] = {**dict.fromkeys(("group", "trace_id"), str), **dict.fromkeys(("pc1", "pc2"), float)}
_ROUNDING = 1e-12
"""A deviation of frequencies up to this is one of rounding."""
Matrix = npt.NDArray[np.float64]
EncodeTexts = Callable[[Sequence[str]], npt.NDArray[np.float32]]
# A character of Chinese or Japanese counts as a word, since nothing separates words there.
_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\d_\u3040-\u30ff\u3400-\u9fff]+|[^\w\s]")


@dataclass(frozen=True, slots=True)
class ThoughtComparison:
    """The rows of THOUGHT_COLUMNS, the runs first, and of POINT_COLUMNS, one a trace with thoughts."""

    groups: list[dict[str, Any]]
    points: list[dict[str, Any]]
    explained: tuple[float, float]
    """The share of the variance that each component has; 0 where there are no points."""


def compare_thoughts(database: Database, comparison: RunComparison, encode: EncodeTexts) -> ThoughtComparison:
    """Compare the thoughts of the runs with those of people in their projects and libraries."""
    ids: dict[str, str | None] = {label: str(run_id) for run_id, label in comparison.labels.items()} | {PEOPLE: None}
    with database.read() as session:
        traces = {label: list_run_traces(session, run_id) for run_id, label in comparison.labels.items()}
        traces[PEOPLE] = list_traces_of_people(session, list(comparison.labels))
        groups = {label: load_thoughts(session, _choose_evenly(listed)) for label, listed in traces.items()}
    thinking = [(label, trace) for label, members in groups.items() for trace in members if trace.thoughts]
    places, explained = project_styles(["\n".join(trace.thoughts) for _, trace in thinking])
    points = [
        {"group": label, "trace_id": str(trace.trace_id), "pc1": float(place[0]), "pc2": float(place[1])}
        for (label, trace), place in zip(thinking, places, strict=False)
    ]
    rows = [
        dict.fromkeys(THOUGHT_COLUMNS)
        | {"group": label, "id": ids[label], "traces": len(members)}
        | _describe_group(members, [point for point in points if point["group"] == label])
        | ({} if label == PEOPLE else measure_distances(members, groups[PEOPLE], encode))
        for label, members in groups.items()
    ]
    return ThoughtComparison(rows, points, explained)


def _choose_evenly(listed: Sequence[Any]) -> list[Any]:
    count = min(len(listed), MOST_TRACES)
    return [listed[place * len(listed) // count] for place in range(count)]


def _describe_group(members: Sequence[TraceThoughts], points: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    figures: dict[str, Any] = {"thoughts": sum(len(trace.thoughts) for trace in members)}
    if members:
        written = ["\n".join((*trace.thoughts, *trace.actions)) for trace in members]
        figures |= {
            "demonstrations": fmean(trace.demonstrations for trace in members),
            "tool_calls": fmean(len(trace.actions) for trace in members),
            "tokens": fmean(map(estimate_tokens, written)),
        }
    return figures | ({name: fmean(point[name] for point in points) for name in ("pc1", "pc2")} if points else {})


def project_styles(texts: Sequence[str]) -> tuple[Matrix, tuple[float, float]]:
    """Each text by the first two principal components of its style, and their shares of the variance.

    No rows for fewer than three texts, or if no two features vary. A component points to where its heaviest feature
    grows.
    """
    if len(texts) < 3:
        return np.empty((0, 2)), (0.0, 0.0)
    tokens = [_TOKEN.findall(text.casefold()) for text in texts]
    words, pairs = _count_common(tokens), _count_common([[*pairwise(row)] for row in tokens])
    frequencies = np.array([*words, *pairs]).T / [[max(len(row), 1)] for row in tokens]
    deviations = frequencies.std(axis=0)
    varying = deviations > _ROUNDING
    standardized = (frequencies - frequencies.mean(axis=0))[:, varying] / deviations[varying]
    if standardized.shape[1] < 2:
        return np.empty((0, 2)), (0.0, 0.0)
    left, lengths, loadings = np.linalg.svd(standardized, full_matrices=False)
    signs = np.sign([row[np.abs(row).argmax()] for row in loadings[:2]])
    shares = lengths**2 / (lengths**2).sum()
    return left[:, :2] * lengths[:2] * signs, (float(shares[0]), float(shares[1]))


def _count_common(texts: Sequence[Sequence[Any]]) -> list[list[int]]:
    """How often each text has the tokens that most texts have: a list for each of these tokens."""
    used = Counter(token for text in texts for token in set(text))
    common = sorted(used, key=lambda token: (-used[token], token))[:FEATURES]
    counts = [Counter(text) for text in texts]
    return [[count[token] for count in counts] for token in common]


def measure_distances(
    members: Sequence[TraceThoughts], people: Sequence[TraceThoughts], encode: EncodeTexts
) -> dict[str, float]:
    """The distance from people by the first thoughts, for each of DEPTHS; nothing where a side has no thought."""
    total, pairs, distances = 0.0, 0, {}
    for place in range(max(DEPTHS)):
        texts = [[trace.thoughts[place] for trace in side if len(trace.thoughts) > place] for side in (members, people)]
        if all(texts):
            matrix = jensen_shannon(*(_softmax(encode(side)) for side in texts))
            total, pairs = total + float(matrix.sum()), pairs + matrix.size
        if pairs and place + 1 in DEPTHS:
            distances[f"distance_{place + 1}"] = total / pairs
    return distances


def _softmax(rows: npt.NDArray[np.float32]) -> Matrix:
    powers = np.exp(rows.astype(np.float64) - rows.max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


def jensen_shannon(first: Matrix, second: Matrix) -> Matrix:
    """The distance of every row of the one from every row of the other, all of them positive and of sum 1."""
    entropies = [_entropy(side) for side in (first, second)]
    middles = np.array([_entropy((row + second) / 2) for row in first])
    return np.asarray(np.sqrt(np.maximum(middles - (entropies[0][:, None] + entropies[1][None, :]) / 2, 0.0)))


def _entropy(rows: Matrix) -> Matrix:
    return np.asarray(-(rows * np.log(rows)).sum(axis=1))


def format_thought_lines(compared: ThoughtComparison) -> Iterator[str]:
    """The groups as lines of text."""
    for row in compared.groups:
        yield f"{row['group']}\n  {row['traces']:,} traces with {row['thoughts']:,} thoughts" + (
            f"; of a trace {row['demonstrations']:.1f} demonstrations, {row['tool_calls']:.1f} tool calls, "
            f"{row['tokens']:,.0f} tokens"
            if row["traces"]
            else ""
        )
        known = [f"{row[f'distance_{n}']:.4f} (n = {n})" for n in DEPTHS if row[f"distance_{n}"] is not None]
        if known:
            yield f"  distance from people by the first n thoughts {', '.join(known)}"
        if row["pc1"] is not None:
            yield f"  style {row['pc1']:+.2f}, {row['pc2']:+.2f}"
