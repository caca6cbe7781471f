"""What is asked of a generated world."""

from dataclasses import dataclass

from worlds.folder import WorldError


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationOptions:
    """How large a world is, how its families are, how its facts are spread and how many questions are asked."""

    people: int
    seed: int
    family_size: int = 25
    """People of one family tree; the last tree has the rest."""
    generations: int = 5
    """At most so many levels in a tree."""
    branching: int = 5
    """At most so many children of a couple."""
    friends: float = 3.0
    """Of a person, on average."""
    collisions: float = 0.0
    """The share of people who have their full name in common with somebody of another family."""
    depth: int = 20
    """Of the question grammar."""
    per_template: int = 10
    """Questions of each template."""
    plain: bool = False
    """One phrasing a fact, as in the paper, instead of several."""
    split: str = "everywhere"
    """How the facts are spread over text, graph and web."""
    split_by: str = "both"
    """Whether shares of a split are drawn by entity, by relation or by both."""
    each: bool = False
    """A question for a number means the set of the numbers of each person, as in the paper."""

    def check(self) -> None:
        """Raise WorldError, in one sentence, for what cannot be made."""
        for name, lowest, highest in _OPTION_RANGES:
            value = getattr(self, name)
            # Written so that not-a-number is refused as well.
            if not lowest <= value <= highest:
                raise WorldError(f"{name} must be from {lowest:,} to {highest:,}, not {value}.")


_OPTION_RANGES = (
    ("people", 1, 5_000_000),
    ("seed", 0, 2**63 - 1),
    ("family_size", 1, 500),
    # With one level, or one child a couple, most sizes of a tree cannot be reached.
    ("generations", 2, 20),
    # More children would not fit between a mother's first and last fertile year.
    ("branching", 2, 20),
    ("friends", 0, 100),
    ("collisions", 0, 0.5),
    ("depth", 1, 100),
    ("per_template", 0, 100_000),
)
