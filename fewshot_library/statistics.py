"""Statistics of a set of demonstrations, its gaps, and the difference of two library versions."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from db.libraries import Demonstration
from fewshot_library.sequence_similarity import encode_actions


@dataclass(frozen=True, slots=True)
class LibraryDifference:
    """The demonstrations added and removed, compared by trace id, in the order of their version."""

    added: list[Demonstration]
    removed: list[Demonstration]
    kept: int


def compare_versions(before: Sequence[Demonstration], after: Sequence[Demonstration]) -> LibraryDifference:
    """Compare an earlier with a later version."""
    old, new = ({demonstration.trace_id for demonstration in version} for version in (before, after))
    return LibraryDifference(
        added=[demonstration for demonstration in after if demonstration.trace_id not in old],
        removed=[demonstration for demonstration in before if demonstration.trace_id not in new],
        kept=len(old & new),
    )


@dataclass(frozen=True, slots=True)
class LibraryStatistics:
    """Counts over demonstrations; the dictionaries omit zero counts."""

    demonstrations: int
    lengths: dict[int, int]
    """Demonstrations by number of actions."""
    tools: dict[str, int]
    """Actions by tool."""
    kinds: dict[str, int]
    ratings: dict[int, int]
    """Demonstrations by mean rating, rounded to whole stars."""
    unrated: int
    worlds: dict[str, int]
    people: int
    models: int
    sequences: int
    """Distinct sequences of actions."""
    unused_tools: list[str]
    """Tools that no demonstration uses."""
    missing_kinds: list[str]
    """Kinds of questions in the projects that no demonstration answers."""

    def to_json(self) -> dict[str, Any]:
        """The counts for programs."""
        return asdict(self)


def compute_statistics(
    demonstrations: Sequence[Demonstration], *, tools: Iterable[str] = (), kinds: Iterable[str] = ()
) -> LibraryStatistics:
    """Count demonstrations; `tools` and `kinds` list all that exist, to report those without a demonstration."""
    tool_counts = Counter(tool for demonstration in demonstrations for tool in demonstration.tools)
    kind_counts = Counter(demonstration.kind for demonstration in demonstrations if demonstration.kind is not None)
    people = sum(demonstration.reasoner == "human" for demonstration in demonstrations)
    rated = [round(demonstration.rating) for demonstration in demonstrations if demonstration.rating is not None]
    return LibraryStatistics(
        demonstrations=len(demonstrations),
        lengths=dict(sorted(Counter(len(demonstration.tools) for demonstration in demonstrations).items())),
        tools=dict(tool_counts.most_common()),
        kinds=dict(kind_counts.most_common()),
        ratings=dict(sorted(Counter(rated).items())),
        unrated=len(demonstrations) - len(rated),
        worlds=dict(Counter(demonstration.world for demonstration in demonstrations).most_common()),
        people=people,
        models=len(demonstrations) - people,
        sequences=len(encode_actions([demonstration.tools for demonstration in demonstrations]).sequences),
        unused_tools=[tool for tool in tools if tool not in tool_counts],
        missing_kinds=[kind for kind in kinds if kind not in kind_counts],
    )
