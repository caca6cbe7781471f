"""What a set of demonstrations holds: lengths, tools, kinds, ratings, and what it lacks.

What changed from one library version to another.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from db.libraries import Demonstration
from fewshot_library.kernel import encode_actions


@dataclass(frozen=True, slots=True)
class LibraryDifference:
    """Demonstrations that came and went, by trace, each in its version's order."""

    added: list[Demonstration]
    removed: list[Demonstration]
    kept: int


def compare_versions(before: Sequence[Demonstration], after: Sequence[Demonstration]) -> LibraryDifference:
    """What the later version has and the earlier has not, and the other way round."""
    old, new = ({each.trace_id for each in version} for version in (before, after))
    return LibraryDifference(
        added=[each for each in after if each.trace_id not in old],
        removed=[each for each in before if each.trace_id not in new],
        kept=len(old & new),
    )


@dataclass(frozen=True, slots=True)
class LibraryStatistics:
    """Counts over demonstrations; what nobody has counted is not there, never zero."""

    demonstrations: int
    lengths: dict[int, int]
    """How many demonstrations have so many actions."""
    tools: dict[str, int]
    """How many actions use each tool."""
    kinds: dict[str, int]
    ratings: dict[int, int]
    """How many demonstrations have this mean of stars, rounded."""
    unrated: int
    worlds: dict[str, int]
    people: int
    models: int
    sequences: int
    """How many different sequences of actions there are."""
    unused_tools: list[str]
    """Tools that there are and that no demonstration shows."""
    missing_kinds: list[str]
    """Kinds of the projects' questions that no demonstration answers."""

    def to_json(self) -> dict[str, Any]:
        """The counts for programs."""
        return asdict(self)


def compute_statistics(
    demonstrations: Sequence[Demonstration], *, tools: Iterable[str] = (), kinds: Iterable[str] = ()
) -> LibraryStatistics:
    """The counts, and which of the tools and kinds are in none of them."""
    used = Counter(tool for each in demonstrations for tool in each.tools)
    shown = Counter(each.kind for each in demonstrations if each.kind is not None)
    people = sum(each.reasoner == "human" for each in demonstrations)
    rated = [round(each.rating) for each in demonstrations if each.rating is not None]
    return LibraryStatistics(
        demonstrations=len(demonstrations),
        lengths=dict(sorted(Counter(len(each.tools) for each in demonstrations).items())),
        tools=dict(used.most_common()),
        kinds=dict(shown.most_common()),
        ratings=dict(sorted(Counter(rated).items())),
        unrated=len(demonstrations) - len(rated),
        worlds=dict(Counter(each.world for each in demonstrations).most_common()),
        people=people,
        models=len(demonstrations) - people,
        sequences=len(encode_actions([each.tools for each in demonstrations]).sequences),
        unused_tools=[tool for tool in tools if tool not in used],
        missing_kinds=[kind for kind in kinds if kind not in shown],
    )
